"""Makes a checkpoint corpus: the storage of a project after a run, for tests that a later release resumes it.

    .venv41/bin/python -m tests.tools.make_checkpoints     # writes tests/checkpoints/spark-4.1/

Each release of sqlstream adds the corpora of the Spark versions that it is tested with, and never changes earlier ones. Absolute
paths are written as ROOT. tests/spark/test_checkpoint_corpus.py resumes every corpus.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pyspark

FOLDER = Path(__file__).parents[1] / "checkpoints"

ROOT = "@ROOT@"
"""The placeholder for the folder of the project in the files of a corpus."""

SHOP = "{{ source('shop', 'orders') }}"
TABLE = "sink='tables', output_mode='update'"

PROJECT = {
    "project.yml": "name: shop\ntargets: {local: {master: 'local[2]', storage: store}}\n",
    "sources.yml": "sources:\n  - name: shop\n    tables:\n"
    + "".join(
        f"      - name: {name}\n        format: json\n        path: in/{name}\n"
        "        schema: id int, ts timestamp, kind string, amount int\n"
        for name in ("orders", "refunds")
    ),
    "sinks.yml": "sinks:\n  - {name: tables, format: sqlite, path: '{{ model.name }}.sqlite'}\n"
    "  - {name: lake, format: parquet, path: '{{ model.name }}'}\n",
    "models/totals.sql": f"{{{{ config({TABLE}, unique_key='kind') }}}}\n"
    f"select kind, sum(amount) as total, count(*) as n, avg(amount) as mean from {SHOP} group by kind\n",
    "models/hours.sql": f"{{{{ config({TABLE}, unique_key=['at', 'kind']) }}}}\n"
    f"select /*+ WATERMARK(ts, '1 day') */ window.start as at, kind, max(amount) as most from {SHOP}\n"
    "group by window(ts, '1 hour'), kind\n",
    "models/once.sql": "{{ config(sink='lake', deduplicate=['id', 'ts']) }}\n"
    f"select /*+ WATERMARK(ts, '1 day') */ id, ts, kind from {SHOP}\n",
    "models/pairs.sql": "{{ config(sink='lake') }}\n"
    "select /*+ WATERMARK(o.ts, '1 day'), WATERMARK(r.ts, '1 day') */ o.id, o.amount, r.amount as back\n"
    f"from {SHOP} o join {{{{ source('shop', 'refunds') }}}} r\n"
    "  on o.id = r.id and r.ts between o.ts and o.ts + interval 12 hours\n",
    "models/plain.sql": f"{{{{ config(sink='lake') }}}}\nselect id, upper(kind) as kind from {SHOP} where amount > 1\n",
}

ROWS = {
    1: {
        "orders": [(1, "01:00", "a", 5), (2, "01:10", "b", 1), (3, "02:00", "a", 7), (3, "02:00", "a", 7)],
        "refunds": [(1, "01:30", "a", 2), (9, "02:30", "b", 4)],
    },
    2: {
        "orders": [(3, "02:00", "a", 7), (4, "02:20", "b", 6), (9, "02:25", "c", 3)],
        "refunds": [(3, "03:00", "a", 1), (2, "01:20", "b", 1)],
    },
}
"""The rows that the release of the corpus has read, and those that a later one reads."""


def write_rows(root: Path, number: int) -> None:
    """Writes the files of rows `number` (1 or 2)."""
    for name, rows in ROWS[number].items():
        lines = [
            json.dumps({"id": row[0], "ts": f"2024-01-01T{row[1]}:00Z", "kind": row[2], "amount": row[3]})
            for row in rows
        ]
        path = root / f"in/{name}/{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def write_project(root: Path) -> None:
    """Writes the project."""
    for name, text in PROJECT.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def with_root(source: Path, destination: Path, before: str, after: str) -> None:
    """Copies a folder tree without Hadoop's checksums, with the path `before` replaced by `after` in all files."""
    for path in sorted(each for each in source.rglob("*") if each.is_file() and each.suffix != ".crc"):
        copy = destination / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes().replace(before.encode(), after.encode()))


def main() -> None:
    """Makes the corpus of the installed Spark."""
    from sqlstream.app.request import ProjectRequest, RunRequest
    from sqlstream.app.run.run import run_models

    version = ".".join(pyspark.__version__.split(".")[:2])
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        write_project(root)
        write_rows(root, 1)
        outcome = run_models(RunRequest(ProjectRequest(root, env=os.environ), available_now=True), lambda _: None)
        if not outcome.succeeded:
            sys.exit("the run failed")
        target = FOLDER / f"spark-{version}"
        shutil.rmtree(target, ignore_errors=True)
        with_root(root / "store", target / "store", str(root), ROOT)
        for lock in target.rglob("*.lock"):
            lock.unlink()
    print(f"{target}: {sum(1 for each in target.rglob('*') if each.is_file())} files")


if __name__ == "__main__":
    main()
