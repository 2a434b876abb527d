"""`files_per_batch` bounds the files of a batch, in each folder of `partition_by`, and changes no row."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import ProjectFolder

Rows = Callable[[Path], list[dict[str, Any]]]

SELECT = "select id, kind, amount from {{ source('shop', 'orders') }}"
MODELS = {
    "plain": "{{ config(sink='lake') }} " + SELECT,
    "one": "{{ config(sink='one_file') }} " + SELECT,
    "folders": "{{ config(sink='one_file', partition_by='kind') }} " + SELECT,
    "parts": "{{ config(sink='two_files', partition_by='kind') }} " + SELECT,
    "shared": "{{ config(sink=['one_file', 'rows'], fan_out='shared') }} " + SELECT,
    "replaced": "{{ config(sink='one_file', output_mode='complete') }} "
    "select id, count(*) as n from {{ source('shop', 'orders') }} group by id",
    "batch": "{{ config(sink='one_file') }} select explode(sequence(1, 1000)) as id",
    "kept": "{{ config(sink='rows', quarantine_sink='one_file') }} " + SELECT,
}
SINKS = """sinks:
  - {name: one_file, format: parquet, path: '{{ model.name }}', files_per_batch: 1}
  - {name: rows, format: sqlite, path: '{{ model.name }}.sqlite'}
  - {name: two_files, format: parquet, path: '{{ model.name }}', files_per_batch: 2}
"""
TEST = "models: [{name: kept, data_tests: [{expression_is_true: {expression: id < 0, on_violation: quarantine}}]}]"
FILES, ROWS = 12, 200
PROJECT = """name: shop
version: 1.0.0
targets: {local: {master: 'local[2]', storage: store, spark: {spark.sql.files.openCostInBytes: '1', spark.sql.files.maxPartitionBytes: '2kb'}}}
"""


@pytest.mark.slow
def test_a_batch_has_at_most_so_many_files(folder: ProjectFolder, read_parquet: Rows) -> None:
    """Streams, a shared query, complete mode, a batch model and a quarantine: the files in each folder are counted."""
    folder.write(
        {
            "project.yml": PROJECT,
            "models/_sinks.yml": SINKS,
            "models/_tests.yml": TEST,
            **{f"models/{name}.sql": text for name, text in MODELS.items()},
        }
    )
    sources = folder.root / "sources.yml"
    sources.write_text(sources.read_text().replace("        options: {maxFilesPerTrigger: 1}\n", ""))
    for number in range(FILES):
        rows = [{"id": number * ROWS + i, "kind": "abc"[i % 3], "amount": i} for i in range(ROWS)]
        folder.rows(f"in/orders/{number}.json", rows, modified=number)
    assert folder.run().succeeded

    def files(name: str) -> set[int]:
        """Returns how many files the folders of an output have."""
        found = [path.parent for path in (folder.root / "store" / name).rglob("*.parquet")]
        return {found.count(parent) for parent in found}

    assert min(files("plain")) > 2
    names = ("one", "folders", "shared", "replaced", "batch", "kept__quarantine")
    assert {name: files(name) for name in names} == {name: {1} for name in names}
    assert max(files("parts")) <= 2
    expected = sorted((row["id"], row["kind"], row["amount"]) for row in read_parquet(folder.root / "store/plain"))
    for name in ("one", "folders", "parts", "shared"):
        rows = read_parquet(folder.root / "store" / name)
        assert sorted((row["id"], row["kind"], row["amount"]) for row in rows) == expected


def test_status_says_what_makes_files_larger(folder: ProjectFolder) -> None:
    """Batches of several files need `files_per_batch`; with it, only a longer trigger helps. The next run warns, too."""
    folder.write({"project.yml": PROJECT, "models/_sinks.yml": SINKS})
    folder.write({f"models/{name}.sql": MODELS[name] for name in ("plain", "folders")})
    sources = folder.root / "sources.yml"
    sources.write_text(sources.read_text().replace("maxFilesPerTrigger: 1", "maxFilesPerTrigger: 2"))
    for number in range(FILES):
        rows = [{"id": number * ROWS + i, "kind": "abc"[i % 3], "amount": i} for i in range(ROWS)]
        folder.rows(f"in/orders/{number}.json", rows, modified=number)
    assert folder.run().succeeded

    told = [line for line in folder.invoke("status").out.splitlines() if line.startswith("sink ")]
    assert ["files_per_batch: 1" in line for line in told] == [False, True]
    assert told[0].startswith("sink one_file: a batch adds 1 file of ")
    assert told[0].endswith("; larger batches or a longer trigger write fewer and larger files")
    assert told[1].endswith("; set `files_per_batch: 1` in sink `lake`")

    warned = folder.invoke("run", "--available-now")
    lines = warned.err.splitlines() + warned.out.splitlines()
    found = [line.partition("warning: ")[2] for line in lines if "[small-files]" in line]
    assert sorted(found) == [
        "[small-files] `folders` writes small files to sink `one_file`",
        "[small-files] `plain` writes small files to sink `lake`",
    ]
    results = json.loads((folder.root / "target/run_results.json").read_text())
    assert [finding["code"] for finding in results["findings"]] == ["small-files"] * 2
    folder.write(
        {"models/_sinks.yml": "# sqlstream: allow small-files because the files are for a demonstration\n" + SINKS}
    )
    allowed = folder.invoke("run", "--available-now")
    assert [name in allowed.err + allowed.out for name in ("`folders` writes", "`plain` writes")] == [False, True]
