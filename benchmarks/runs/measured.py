"""What runs and scripts leave: the times of their batches, Spark's plans, and the memory that they took."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

Batches = dict[str, list[float]]
"""The ms of each batch, by query."""

SECONDS_BETWEEN_LOOKS = 1.0
KIB_PER_MB = 1024

COMMANDS = ("Execute CreateViewCommand",)
"""Executions that are no batch: sqlstream makes a view of what a model reads."""

_NUMBERS = re.compile(r"#\d+L?|\[id=#?\d+\]|plan_id=\d+|\bfile:\S+|/\S+|\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\d{10,}|\b\d+\b")
"""What differs between two runs of one query: numbers of columns, paths and ids."""


def batches_of_run(project: Path) -> Batches:
    """Returns the batches in the events of a project's run."""
    found: Batches = {}
    for line in (project / "logs/events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "batch":
            found.setdefault(event["model"], []).append(event["parts_ms"]["triggerExecution"])
    return found


def batches_of_script(printed: str) -> Batches:
    """Returns the batches that the script has printed."""
    lines = (json.loads(line) for line in printed.splitlines() if line.startswith("{"))
    return {line["query"]: line["batches_ms"] for line in lines}


def plans_of(log: Path) -> set[tuple[str, ...]]:
    """Returns the plans of the batches in one of Spark's event logs, each as its operators from the top down, without
    the one that counts rows.
    """
    return {tuple(_operators(plan)) for plan in _plans(log)}


def _plans(log: Path) -> Iterator[dict[str, object]]:
    files = sorted(log.iterdir()) if log.is_dir() else [log]
    for file in files:
        for line in file.read_text().splitlines():
            event = json.loads(line)
            is_start = event["Event"].endswith("SparkListenerSQLExecutionStart")
            if is_start and event["sparkPlanInfo"]["nodeName"] not in COMMANDS:
                yield event["sparkPlanInfo"]


def _operators(plan: dict[str, object]) -> Iterator[str]:
    name, said = str(plan["nodeName"]), str(plan["simpleString"])
    if name != "CollectMetrics":
        yield _NUMBERS.sub("", said)
    for child in plan["children"]:  # type: ignore[attr-defined]
        yield from _operators(child)


def resident_megabytes(command: Sequence[str], folder: Path) -> list[float]:
    """Runs a command to its end; returns what it and the processes below it held in memory, look by look."""
    seen: list[float] = []
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            seen.append(sum(_resident(pid) for pid in _below(process.pid)) / KIB_PER_MB)
            time.sleep(SECONDS_BETWEEN_LOOKS)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed in {folder}")
    return seen


def _resident(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    return int(found.group(1)) if found else 0


def _below(pid: int) -> Iterator[int]:
    yield pid
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [child for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return
    for child in children:
        yield from _below(int(child))
