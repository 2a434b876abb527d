"""The checkpoints of each released Spark resume: with all results, unchanged or after a cosmetic change."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from sqlstream.app.request import ProjectRequest, RunRequest
from sqlstream.app.run.recorded import RunOutcome
from sqlstream.app.run.run import run_models
from sqlstream.state.runs.events import Status
from tests.tools.make_checkpoints import FOLDER, PROJECT, ROOT, with_root, write_project, write_rows

Rows = Callable[[Path], list[dict[str, Any]]]

CORPORA = sorted(path.name for path in FOLDER.iterdir())
TABLES, FILES = ("totals", "hours"), ("once", "pairs", "plain")


def is_later(corpus: str) -> bool:
    """Returns whether a corpus is from a later Spark than the installed one, which may not read it."""
    wanted = tuple(map(int, corpus.removeprefix("spark-").split(".")))
    return wanted > tuple(map(int, pyspark.__version__.split(".")[:2]))


def run(root: Path) -> RunOutcome:
    """Runs all queries over what is there."""
    return run_models(RunRequest(ProjectRequest(root, env=os.environ), available_now=True), lambda _: None)


def outputs(root: Path, read_parquet: Rows) -> Iterator[list[Any]]:
    """Yields the rows of all outputs."""
    for name in TABLES:
        with sqlite3.connect(root / f"store/{name}.sqlite") as connection:
            yield sorted(connection.execute(f"select * from {name}"))
    for name in FILES:
        yield sorted(map(repr, read_parquet(root / "store" / name)))


@pytest.mark.smoke
@pytest.mark.parametrize("corpus", [each for each in CORPORA if not is_later(each)])
def test_a_corpus_resumes(corpus: str, tmp_path: Path, read_parquet: Rows) -> None:
    """No query of an earlier release is refused, and all outputs are those of a run without the upgrade."""
    old, fresh = tmp_path / "old", tmp_path / "fresh"
    with_root(FOLDER / corpus, old, ROOT, str(old))
    for root in (old, fresh):
        write_project(root)
        write_rows(root, 1)
    assert run(fresh).succeeded
    (old / "models/totals.sql").write_text(PROJECT["models/totals.sql"].replace("count(*)", "count(1)"))

    for root in (old, fresh):
        write_rows(root, 2)
        assert [result.status for result in run(root).results] == [Status.SUCCESS] * 5

    assert list(outputs(old, read_parquet)) == list(outputs(fresh, read_parquet))


def test_there_is_a_corpus_of_each_tested_release() -> None:
    """The corpora are those of the oldest and the newest supported Spark."""
    assert CORPORA == ["spark-4.1", "spark-4.3"]
