"""The verdicts of `plan` without Spark never contradict those from Spark's optimized plans.

Spark only analyzes the queries. SQLSTREAM_CHANGES=all compares 300 random edits (`make changes`), otherwise 30.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

import pytest
from edits import Edit, aggregation
from generator import random_edit
from planned_edits import TABLES, ledger_of, model_of, plan_of, written_project

from sqlstream.app.loading.load import Loaded
from sqlstream.app.running.jars import session_connectors
from sqlstream.app.running.session import brief_session
from sqlstream.spark.jvm.session import SparkRuntime
from sqlstream.spark.running.prepare import prepare_query
from sqlstream.spark.secrets import Secrets
from sqlstream.state.ledger import Ledger
from sqlstream.state.verdicts import QueryVerdict, Verdict

RANDOM_EDITS = 300 if os.environ.get("SQLSTREAM_CHANGES") == "all" else 30
SEED = 4096
UNCHANGED = frozenset({Verdict.RESUME, Verdict.UNCHANGED})


def test_no_random_edit_has_another_verdict_without_spark(tmp_path: Path) -> None:
    """What resumes without Spark resumes with it, and what is refused without Spark is refused with it."""
    random = Random(SEED)
    edits = [random_edit(random, number) for number in range(RANDOM_EDITS)]

    found = {edit.name: both for edit, both in zip(edits, _planned_twice(edits, tmp_path), strict=True)}

    print(Counter((str(with_spark.verdict), str(without.verdict)) for with_spark, without in found.values()))
    decided = {name: both for name, both in found.items() if both[1].verdict is not Verdict.UNDECIDED}
    wrong = [name for name, both in decided.items() if (both[0].verdict in UNCHANGED) != (both[1].verdict in UNCHANGED)]
    assert [_described(edit, *found[edit.name]) for edit in edits if edit.name in wrong] == []


@pytest.mark.smoke
def test_a_query_with_the_current_time_resumes_by_its_sql(tmp_path: Path) -> None:
    """Spark does not show the plan of such a query, so its SQL decides, also with Spark."""
    before = aggregation("k, count(*) as n, now() as at")
    edits = [
        Edit("renamed", "", "", before, before.replace(" as n", " as number"), ""),
        Edit("changed", "", "", before, before.replace("count(*)", "count(v)"), ""),
    ]

    (renamed, _), (changed, _) = _planned_twice(edits, tmp_path)

    assert (renamed.verdict, changed.verdict) == (Verdict.RESUME, Verdict.UNKNOWN)


def _planned_twice(edits: Sequence[Edit], root: Path) -> list[tuple[QueryVerdict, QueryVerdict]]:
    """Returns the verdicts on each edit with and without Spark."""
    for table in TABLES:
        (root / "in" / table).mkdir(parents=True)
    loaded = written_project(root, edits, changed=False, env=dict(os.environ))
    secrets = Secrets(dict(os.environ))
    connectors = session_connectors(loaded, secrets, os.environ, print, [])
    with brief_session(loaded, secrets, connectors) as runtime:
        ledgers = {edit.name: _ledger(loaded, edit.name, runtime, secrets) for edit in edits}
        changed = written_project(root, edits, changed=True, env=dict(os.environ))
        return list(_verdicts(changed, ledgers, runtime, secrets))


def _ledger(loaded: Loaded, name: str, runtime: SparkRuntime, secrets: Secrets) -> Ledger:
    query = prepare_query(loaded.compiled, model_of(loaded.compiled, name), runtime, secrets, None)
    try:
        return ledger_of(query.identity, query.signature if query.identity.stateful else None)
    finally:
        query.release()


def _verdicts(
    loaded: Loaded, ledgers: Mapping[str, Ledger], runtime: SparkRuntime, secrets: Secrets
) -> Iterator[tuple[QueryVerdict, QueryVerdict]]:
    compiled = loaded.compiled
    for name, ledger in ledgers.items():
        model = model_of(compiled, name)
        query = prepare_query(compiled, model, runtime, secrets, ledger)
        try:
            found = plan_of(compiled, model, ledger, query.identity, query.signature)
            yield found, plan_of(compiled, model, ledger)
        finally:
            query.release()


def _described(edit: Edit, with_spark: QueryVerdict, without: QueryVerdict) -> str:
    verdicts = [f"{each.verdict}: {each.reason}" for each in (with_spark, without)]
    return "\n".join((edit.text, *verdicts, edit.sql(changed=False), edit.sql(changed=True)))
