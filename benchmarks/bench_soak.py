"""`make bench-soak`: one query with 20,000,000 keys in RocksDB for two hours, then `kill -9` and the time to recover.

The keys come in an order that spreads them over the state: each batch updates or adds as many keys as it has rows.
Once a minute, a line with the memory, the state and the checkpoint goes to `soak.csv`; at the end, `soak.svg` shows
them. The settings are those of a new project: a heap of 1 GB, RocksDB with bounded memory, changelogs.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.runs.measured import resident_memory

ROOT = Path(__file__).resolve().parent.parent
SAMPLE_SECONDS = 60.0
POLL_SECONDS = 0.2
LIMIT_SECONDS = 1800.0
"""The longest time until the first batch after a start."""
FILLED_AFTER = 0.4
"""The share of the time after which each key has been seen once."""
TRIGGER_SECONDS = 10
PRIME = 7_919
MEGABYTE = 1_000_000

PROJECT = f"""name: soak
version: 1.0.0
targets: {{local: {{master: "local[*]", storage: store}}}}
models: {{+trigger: {TRIGGER_SECONDS} seconds, +sink: nowhere, +output_mode: update}}
"""
SOURCES = """version: 2
sources:
  - name: made
    tables: [{{name: numbers, format: rate-micro-batch, options: {{rowsPerBatch: {rows}, numPartitions: 2}}}}]
"""
SINKS = "version: 2\nsinks: [{name: nowhere, format: noop}]\n"
MODEL = """select value * {prime} % {keys} as device, count(*) as readings, sum(value % 100) as total,
    max(timestamp) as last_seen
from {{{{ source('made', 'numbers') }}}}
group by value * {prime} % {keys}
"""

COLUMNS = ("seconds", "batch", "batch_s", "state_rows", "memory_mb", "checkpoint_mb", "checkpoint_files")
PANELS = {
    "memory_mb": "Memory of Python and Java (MB)",
    "state_rows": "Rows in the state",
    "batch_s": "Last batch (s)",
    "checkpoint_mb": "Checkpoint (MB)",
    "checkpoint_files": "Files of the checkpoint",
}
WIDTH, HEIGHT, MARGIN = 640, 130, 34

Row = Mapping[str, float]


def main() -> None:
    """Runs the query, and prints what the last line of the table says and how long the recovery takes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--minutes", type=float, help="instead of hours")
    parser.add_argument("--keys", type=int, default=20_000_000)
    parser.add_argument("--out", type=Path, default=ROOT / "target/soak", help="folder of the project and the figures")
    given = parser.parse_args()
    seconds = given.minutes * 60 if given.minutes is not None else given.hours * 3600
    project = write_project(given.out, given.keys, rows_per_batch(given.keys, seconds))
    rows = soak(project, seconds)
    before = rows[-1]
    recovered = recover(project, int(before["batch"]))
    (project / "soak.svg").write_text(chart(rows))
    print(", ".join(f"{name} {before[name]:,.1f}" for name in COLUMNS))
    print(
        f"after kill -9: {recovered['seconds']:.1f} s until the next batch has ended, with {recovered['rows']:,} rows"
    )
    print(f"figures: {project}/soak.csv, {project}/soak.svg")


def rows_per_batch(keys: int, seconds: float) -> int:
    """Returns how many rows a batch needs so that each key is seen in a part of the time."""
    return max(1, round(keys / (FILLED_AFTER * seconds / TRIGGER_SECONDS)))


def write_project(folder: Path, keys: int, rows: int) -> Path:
    """Writes the project into a new folder and returns it."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "models").mkdir(parents=True)
    (folder / "project.yml").write_text(PROJECT)
    (folder / "sources.yml").write_text(SOURCES.format(rows=rows))
    (folder / "sinks.yml").write_text(SINKS)
    (folder / "models/devices.sql").write_text(MODEL.format(prime=PRIME, keys=keys))
    return folder


def soak(project: Path, seconds: float) -> list[Row]:
    """Runs the query for `seconds`, ends it by kill -9, and returns one line for each minute."""
    rows: list[Row] = []
    began = time.monotonic()
    with start(project) as process, (project / "soak.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        while time.monotonic() - began < seconds:
            time.sleep(min(SAMPLE_SECONDS, max(0.0, began + seconds - time.monotonic())))
            row = sample(project, process, time.monotonic() - began)
            if row is not None:
                rows.append(row)
                table.writerow(row)
                file.flush()
        os.killpg(process.pid, signal.SIGKILL)
    if not rows:
        sys.exit(f"no batch has ended, see {project}/logs")
    return rows


def start(project: Path) -> subprocess.Popen[bytes]:
    """Starts the run in a process group."""
    command = [sys.executable, "-m", "sqlstream", "run"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (project / "output.txt").open("ab") as output:
        return subprocess.Popen(
            command, cwd=project, env=env, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )


def sample(project: Path, process: subprocess.Popen[bytes], seconds: float) -> Row | None:
    """Returns the figures now, None before the first batch has ended. Raises: SystemExit if the run has ended."""
    if process.poll() is not None:
        sys.exit(f"the run ended with code {process.returncode}, see {project}/output.txt")
    batch = last_batch(project)
    if batch is None:
        return None
    sizes = [size_of(path) for path in (project / "store/queries").rglob("*")]
    files = [size for size in sizes if size is not None]
    return {
        "seconds": round(seconds),
        "batch": batch["batch_id"],
        "batch_s": batch["duration_ms"] / 1000,
        "state_rows": batch["state"]["rows"],
        "memory_mb": round(resident_memory(process.pid)),
        "checkpoint_mb": round(sum(files) / MEGABYTE),
        "checkpoint_files": len(files),
    }


def size_of(path: Path) -> int | None:
    """Returns the size of a file, None for a folder and a file that has just been removed."""
    with suppress(OSError):
        return path.stat().st_size if path.is_file() else None
    return None


def last_batch(project: Path) -> dict[str, Any] | None:
    """Returns the last batch in the journal, None without one."""
    found = None
    for name in ("events.jsonl.1", "events.jsonl"):
        with suppress(OSError):
            for line in (project / "logs" / name).read_text().splitlines():
                if '"event": "batch"' in line and line.endswith("}"):
                    found = json.loads(line)
    return found


def recover(project: Path, killed_after: int) -> dict[str, float]:
    """Returns the seconds from the start of a new run to the end of its first batch, and the rows in the state."""
    began = time.monotonic()
    with start(project) as process:
        while (batch := last_batch(project)) is None or batch["batch_id"] <= killed_after:
            if process.poll() is not None or time.monotonic() - began > LIMIT_SECONDS:
                process.kill()
                sys.exit(f"the query did not recover, see {project}/output.txt")
            time.sleep(POLL_SECONDS)
        seconds = time.monotonic() - began
        process.send_signal(signal.SIGTERM)
    return {"seconds": seconds, "rows": batch["state"]["rows"]}


def chart(rows: Sequence[Row]) -> str:
    """Returns an SVG with a curve for each figure over the time in minutes."""
    parts = [panel(rows, name, title, number) for number, (name, title) in enumerate(PANELS.items())]
    height = len(PANELS) * HEIGHT
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">'
    return "\n".join([start, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>\n"])


def panel(rows: Sequence[Row], name: str, title: str, number: int) -> str:
    """Returns one curve with its axes, from 0 to its maximum."""
    top, bottom = number * HEIGHT + MARGIN - 8, (number + 1) * HEIGHT - 24
    end, most = max(row["seconds"] for row in rows) or 1, max(row[name] for row in rows) or 1
    points = " ".join(
        f"{MARGIN + row['seconds'] / end * (WIDTH - 2 * MARGIN):.1f},{bottom - row[name] / most * (bottom - top):.1f}"
        for row in rows
    )
    return (
        f'<text x="{MARGIN}" y="{top - 8}">{title}: at most {most:,.1f}</text>\n'
        f'<path d="M{MARGIN} {top} V{bottom} H{WIDTH - MARGIN}" fill="none" stroke="#888"/>\n'
        f'<text x="{WIDTH - MARGIN}" y="{bottom + 14}" text-anchor="end">{end / 60:,.0f} min</text>\n'
        f'<polyline points="{points}" fill="none" stroke="#1f6feb" stroke-width="1.5"/>\n'
    )


if __name__ == "__main__":
    main()
