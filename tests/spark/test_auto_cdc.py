"""Tables of AUTO CDC, from Spark's declarative pipelines, beside those of `sequence_by` and `history`.

AUTO CDC needs a table that supports MERGE, and nothing in the jars of Spark 4.3 has one, so the tables are in memory:
`tests/support/MemoryCatalog.java`. `make auto-cdc` sets SQLSTREAM_PIPELINES to a Python with `pyspark[pipelines]`.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import ROOT, ProjectFolder
from tests.support.keyed_changes import COLUMNS, SOURCES, Changes, keyed_changes, model

PYTHON = os.environ.get("SQLSTREAM_PIPELINES", "")
BATCHES = 4
"""AUTO CDC takes many seconds for each batch."""

COUNT = int(os.environ.get("SQLSTREAM_EVENTS", "20000"))

SPEC = """\
name: cdc
storage: "file://{folder}/storage"
catalog: memory
database: shop
libraries:
  - glob: {{include: transformations/**}}
configuration:
  spark.sql.catalog.memory: MemoryCatalog
"""

FLOWS = """\
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()


@dp.temporary_view(name="changes")
def changes():
    return spark.readStream.schema("{columns}").option("maxFilesPerTrigger", 1).json("{changes}")


def flow(target, **more):
    dp.create_streaming_table(target)
    dp.create_auto_cdc_flow(
        target=target, source="changes", keys=["id"], sequence_by="at", apply_as_deletes="op = 'd'", **more
    )


flow("last", stored_as_scd_type=1)
flow("versions", stored_as_scd_type=2, except_column_list=["at", "op"])
flow("tracked", stored_as_scd_type=2, except_column_list=["at", "op"], track_history_column_list=["name"])
"""

MODELS = {
    "last": "",
    "versions": ", history=true, track_columns=['n', 'name']",
    "tracked": ", history=true, track_columns=['name']",
}
LAST, VERSION = ("id", "at", "n", "name"), ("id", "n", "name")


def of_pipeline(folder: Path, changes: Path) -> dict[str, list[dict[str, Any]]]:
    """Returns the rows of the tables that AUTO CDC makes of the changes."""
    (folder / "transformations").mkdir(parents=True)
    (folder / "transformations/flows.py").write_text(FLOWS.format(columns=COLUMNS, changes=changes))
    spec = folder / "spark-pipeline.yml"
    spec.write_text(SPEC.format(folder=folder))
    classes = folder / "classes"
    jars = next(Path(PYTHON).parents[1].glob("lib/*/site-packages/pyspark/jars"))
    source = str(ROOT / "tests/support/MemoryCatalog.java")
    subprocess.run(["javac", "-nowarn", "-d", str(classes), "-cp", f"{jars}/*", source], check=True)
    command = [PYTHON, str(ROOT / "tests/support/auto_cdc.py"), str(spec), *MODELS]
    env = {
        **os.environ,
        "PYSPARK_SUBMIT_ARGS": f"--driver-class-path {classes} --conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=1 pyspark-shell",
    }
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, list[dict[str, Any]]] = json.loads(done.stdout.splitlines()[-1])
    return found


def of_sqlstream(folder: ProjectFolder, changes: Changes) -> dict[str, list[tuple[Any, ...]]]:
    """Returns the rows of the tables that sqlstream makes of the changes in SQLite, in two runs."""
    sinks = "sinks: [{name: sqlite, format: sqlite, path: '{{ model.name }}.sqlite'}]\n"
    models = {f"models/{name}.sql": model("sqlite", more) for name, more in MODELS.items()}
    folder.write({"sources.yml": SOURCES, "sinks.yml": sinks, **models})
    half = len(changes.batches) // 2
    folder.batches("in/changes", changes.batches[:half])
    assert folder.run().succeeded
    folder.batches("in/changes", changes.batches[half:], first=half)
    assert folder.run().succeeded
    found = {}
    for name in MODELS:
        columns = LAST if name == "last" else (*VERSION, "valid_from", "valid_to")
        with sqlite3.connect(folder.root / f"store/{name}.sqlite") as connection:
            found[name] = connection.execute(f"select {', '.join(columns)} from {name}").fetchall()
    return found


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON, reason="runs with `make auto-cdc`")
def test_tables_are_those_of_auto_cdc(folder: ProjectFolder, tmp_path: Path) -> None:
    """Changes in random order over batches, with duplicates and deletions, make the same tables of type 1 and 2. No two
    different changes of a key have the same sequence, because AUTO CDC does not define which of them counts.
    """
    changes = keyed_changes(13, COUNT, COUNT // 20, BATCHES, times=True)
    found = of_sqlstream(folder, changes)

    tables = of_pipeline(tmp_path / "pipeline", folder.root / "in/changes")
    expected = {
        name: [
            tuple(row[column] for column in (LAST if name == "last" else (*VERSION, "__START_AT", "__END_AT")))
            for row in rows
        ]
        for name, rows in tables.items()
    }
    for name in MODELS:
        assert sorted(found[name], key=str) == sorted(expected[name], key=str)
