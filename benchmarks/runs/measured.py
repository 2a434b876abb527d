"""What runs and scripts leave: the times of their batches, Spark's plans, and the memory that they took."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

Batches = dict[str, list[float]]
"""The ms of each batch, by query."""

SECONDS_BETWEEN_LOOKS = 1.0
LOOKS_PER_COLLECTION = 20
"""The heap is collected for each of these looks: what is left is what the run keeps."""

COLLECTIONS = 3
"""How often each time."""
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


@dataclass(frozen=True)
class Memory:
    """What a command held, in MB, look by look: `resident` with all processes below it, `live` what its JVM keeps after
    a collection of all garbage.
    """

    resident: list[float]
    live: list[float]


def megabytes_held(command: Sequence[str], folder: Path) -> Memory:
    """Runs a command to its end; returns the memory that it took."""
    seen = Memory([], [])
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            pids = list(_below(process.pid))
            seen.resident.append(sum(map(_resident, pids)) / KIB_PER_MB)
            if len(seen.resident) % LOOKS_PER_COLLECTION == 0:
                seen.live.append(max(map(_live, pids)) / KIB_PER_MB)
            time.sleep(SECONDS_BETWEEN_LOOKS)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed in {folder}")
    return seen


def _live(pid: int) -> int:
    """The KiB of a JVM's heap that are in use after a collection, 0 for what is no JVM or has ended."""
    try:
        is_java = Path(f"/proc/{pid}/comm").read_text().strip() == "java"
    except OSError:
        return 0
    if not is_java:
        return 0
    # a collection that is asked for is left out while native code holds an array
    return min(_after_collection(pid) for _ in range(COLLECTIONS))


def _after_collection(pid: int) -> int:
    ask = ["jcmd", str(pid)]
    subprocess.run([*ask, "GC.run"], capture_output=True, check=False)
    told = subprocess.run([*ask, "GC.heap_info"], capture_output=True, text=True, check=False).stdout
    heap = told.partition("Metaspace")[0]
    return sum(int(used) for used in re.findall(r"(?:Gen|generation|heap)\s.*?used (\d+)K", heap))


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
