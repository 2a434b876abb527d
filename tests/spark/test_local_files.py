"""Hadoop's files of this machine as sqlstream sets them up: the same files, without a process for each."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream.spark.jvm.launch import FILE_SYSTEM
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder, order_rows

Rows = Callable[[Path], list[dict[str, Any]]]

SUMS = """{{ config(sink='lake', output_mode='append', partition_by='kind') }}
select window(ts, '1 minute').start as at, kind, sum(amount) as amount
from (select /*+ WATERMARK(ts, '1 minute') */ * from {{ source('shop', 'orders') }})
group by window(ts, '1 minute'), kind
"""
HADOOPS = {FILE_SYSTEM: "org.apache.hadoop.fs.LocalFileSystem"}


def run(orders: ProjectFolder, target: str, settings: dict[str, str]) -> Counter[tuple[str, int]]:
    """Runs a query with state in a process, and returns how many files and folders have each suffix and permissions."""
    store = orders.root / target
    given = {"master": "local[2]", "storage": str(store), "spark": settings}
    orders.write({"project.yml": json.dumps({"name": "shop", "targets": {target: given}})})
    before = os.umask(0o077)  # Hadoop's permissions do not depend on that of the process
    try:
        done = orders.command("run", "--available-now", "--target", target)
    finally:
        os.umask(before)
    printed, _ = done.communicate(timeout=LONGEST_WAIT_SECONDS)
    assert done.returncode == 0, printed
    made = [path for part in ("sums", "queries") for path in (store / part).rglob("*")]
    return Counter((path.suffix, stat.S_IMODE(path.stat().st_mode)) for path in made)


@pytest.mark.slow
def test_files_have_hadoops_permissions_without_processes(
    orders: ProjectFolder, read_parquet: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run writes the same files as with Hadoop's own class, with the same permissions, and starts chmod for none."""
    orders.write({"models/sums.sql": SUMS, "sinks.yml": "sinks: [{name: lake, format: parquet, path: sums}]\n"})
    orders.rows("in/orders/2.json", order_rows(2), modified=2)
    orders.root.chmod(0o2775)  # new folders have its group
    expected = run(orders, "hadoop", HADOOPS)
    chmod, started = tmp_path / "tools/chmod", tmp_path / "started"
    chmod.parent.mkdir()
    chmod.write_text(f"#!/bin/sh\necho \"$2\" >> '{started}'\nexec '{shutil.which('chmod')}' \"$@\"\n")
    chmod.chmod(0o755)
    started.touch()
    monkeypatch.setenv("PATH", f"{chmod.parent}:{os.environ['PATH']}")

    found = run(orders, "own", {})

    assert found == expected
    paths = [Path(line) for line in started.read_text().splitlines()]
    assert [path for path in paths if path.is_relative_to(orders.root) and not path.is_dir()] == []
    rows = [sorted(read_parquet(orders.root / target / "sums"), key=str) for target in ("hadoop", "own")]
    assert rows[0] == rows[1] != []
