"""Reads the results of runs and scripts: the times of their batches, Spark's plans, and their memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

Batches = dict[str, list[float]]
"""The duration of each batch in ms, by query."""

SAMPLE_SECONDS = 1.0
SAMPLES_PER_COLLECTION = 20
"""The number of samples between garbage collections, which show how much memory the run keeps."""

COLLECTIONS = 3
"""The number of collections each time."""
KIB_PER_MB = 1024

COMMANDS = ("Execute CreateViewCommand",)
"""Executions that are not batches: sqlstream creates views of a model's inputs."""

_NUMBERS = re.compile(r"#\d+L?|\[id=#?\d+\]|plan_id=\d+|\bfile:\S+|/\S+|\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\d{10,}|\b\d+\b")
"""The parts of a plan that differ between two runs of one query: column ids, paths and other ids."""


def batches_of_run(project: Path) -> Batches:
    """Returns the batches in the events of a project's run."""
    found: Batches = {}
    for line in (project / "logs/events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "batch":
            found.setdefault(event["model"], []).append(event["parts_ms"]["triggerExecution"])
    return found


def batches_of_script(printed: str) -> Batches:
    """Returns the batches in the output of the script."""
    lines = (json.loads(line) for line in printed.splitlines() if line.startswith("{"))
    return {line["query"]: line["batches_ms"] for line in lines}


def plans_of(log: Path) -> set[tuple[str, ...]]:
    """Returns the plans of the batches in a Spark event log. Each is a tuple of its operators from top to bottom,
    without the one that counts rows.
    """
    return {tuple(_operators(plan)) for plan in _plans(log)}


def _plans(log: Path) -> Iterator[dict[str, object]]:
    files = sorted(log.iterdir()) if log.is_dir() else [log]
    events = (json.loads(line) for file in files for line in file.read_text().splitlines())
    for event in events:
        is_start = event["Event"].endswith("SparkListenerSQLExecutionStart")
        if is_start and event["sparkPlanInfo"]["nodeName"] not in COMMANDS:
            yield event["sparkPlanInfo"]


def _operators(plan: dict[str, object]) -> Iterator[str]:
    name, text = str(plan["nodeName"]), str(plan["simpleString"])
    if name != "CollectMetrics":
        yield _NUMBERS.sub("", text)
    for child in plan["children"]:  # type: ignore[attr-defined]
        yield from _operators(child)


@dataclass(frozen=True)
class Memory:
    """The memory samples of a command in MB: `resident` with all child processes, `live` in the JVM's heap after a
    garbage collection.
    """

    resident: list[float]
    live: list[float]


def measure_memory(command: Sequence[str], folder: Path) -> Memory:
    """Runs a command to its end and returns its memory."""
    memory = Memory([], [])
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            _add_sample(memory, list(_below(process.pid)))
            time.sleep(SAMPLE_SECONDS)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed in {folder}")
    return memory


def _add_sample(memory: Memory, pids: Sequence[int]) -> None:
    memory.resident.append(sum(map(_resident, pids)) / KIB_PER_MB)
    if len(memory.resident) % SAMPLES_PER_COLLECTION == 0:
        memory.live.append(max(map(_live, pids)) / KIB_PER_MB)


def resident_memory(pid: int) -> float:
    """Returns the memory of a process with all its child processes, in MB."""
    return sum(map(_resident, _below(pid))) / KIB_PER_MB


def cpu_seconds(pid: int) -> float:
    """Returns the seconds of the CPU that a process and all its child processes have used."""
    ticks = 0
    for each in _below(pid):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])  # utime and stime, see proc(5)
    return ticks / os.sysconf("SC_CLK_TCK")


def thread_count(pid: int) -> int:
    """Returns the number of threads of a process with all its child processes."""
    counts = (len(list(Path(f"/proc/{each}/task").iterdir())) for each in _below(pid) if Path(f"/proc/{each}").exists())
    return sum(counts)


def _live(pid: int) -> int:
    """Returns the heap of a JVM after a garbage collection in KiB, 0 for other processes and those that have ended."""
    try:
        is_java = Path(f"/proc/{pid}/comm").read_text().strip() == "java"
    except OSError:
        return 0
    if not is_java:
        return 0
    # the JVM skips a requested collection while native code holds an array
    return min(_heap_after_collection(pid) for _ in range(COLLECTIONS))


def _heap_after_collection(pid: int) -> int:
    jcmd = ["jcmd", str(pid)]
    subprocess.run([*jcmd, "GC.run"], capture_output=True, check=False)
    info = subprocess.run([*jcmd, "GC.heap_info"], capture_output=True, text=True, check=False).stdout
    heap = info.partition("Metaspace")[0]
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
