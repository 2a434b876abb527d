"""`make changes`: Spark judges all edits of the change matrix and random ones, in two processes.

Returns 1 if an edit corrupts state in silence, if the matrix is wrong, if more than 5 % of the random edits are refused in
vain, or if `plan` without Spark contradicts Spark.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.spark.changes.closed_generator import random_closed_edit, random_settings
from tests.spark.changes.compared_plans import contradictions, planned_twice
from tests.spark.changes.edits import Edit
from tests.spark.changes.filters import random_filters
from tests.spark.changes.generator import random_edit
from tests.spark.changes.matrix import MATRIX, SETTINGS, settings_text
from tests.spark.changes.outcomes import Outcomes, described
from tests.spark.changes.read_edits import READ_EDITS, ReadEdit
from tests.spark.changes.read_worlds import judge_reads
from tests.spark.changes.worlds import Judged, judge

AT_ONCE = 30
"""The edits of one part: the queries of one project, in one Java process."""

PLANNED, PLANNED_SEED = 300, 4096


@dataclass(frozen=True)
class Part:
    """Edits to judge together. `kind` is `matrix` or `random`, or `plans`: compare the plans with and without Spark.
    `reads` are the edits of what queries read.
    """

    kind: str
    name: str
    edits: tuple[Edit, ...]
    settings: tuple[dict[str, str], dict[str, str]] = ({}, {})
    reads: tuple[ReadEdit, ...] = ()


def main() -> int:
    """Judges all parts, prints a line for each, and then a summary."""
    arguments = _arguments()
    parts = list(_parts(arguments))
    outcomes, began = Outcomes(), time.monotonic()
    print(f"{sum(len(part.edits) + len(part.reads) for part in parts)} edits in {len(parts)} parts", flush=True)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.processes, context, max_tasks_per_child=1) as pool:
        waiting = {pool.submit(_work, part): part for part in parts}
        for number, future in enumerate(as_completed(waiting), start=1):
            part, (judged, problems, seconds) = waiting[future], future.result()
            found = outcomes.add(part.kind, judged, problems)
            print(
                f"[{number}/{len(parts)}] {part.name}: {len(part.edits) + len(part.reads)} edits in {seconds:.0f} s: {found}",
                flush=True,
            )
    print(outcomes.summary())
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if outcomes.failures else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, default=300, help="number of random edits of queries, and of literals")
    parser.add_argument("--seed", type=int, default=2024, help="seed of the random edits")
    parser.add_argument("--only", nargs="*", default=[], help="names of edits to judge, such as `sum_times edit_17`")
    parser.add_argument("--processes", type=int, default=2, help="number of processes, each with its own Spark")
    return parser.parse_args()


def _parts(arguments: argparse.Namespace) -> Iterator[Part]:
    random = Random(arguments.seed)
    edits = [random_edit(random, number) for number in range(arguments.random)]
    if arguments.only:
        edits = [edit for edit in edits if edit.name in arguments.only]
    yield from _chunks("random", "random edits", edits)
    closed = [random_closed_edit(random, number) for number in range(arguments.random)]
    closed = [edit for edit in closed if edit.name in (arguments.only or [edit.name])]
    for start in range(0, len(closed), AT_ONCE):
        settings = random_settings(random)
        yield from _chunks("random", "random literals and settings", closed[start : start + AT_ONCE], settings)
    for group, settings in SETTINGS.items():
        chosen = [edit for edit in MATRIX if edit.group == group and edit.name in (arguments.only or [edit.name])]
        yield from _chunks("matrix", f"matrix, {group}", chosen, settings)
    reads = tuple(edit for edit in READ_EDITS if edit.name in (arguments.only or [edit.name]))
    if reads:
        yield Part("matrix", "matrix, sources", (), reads=reads)
    if not arguments.only:
        random = Random(PLANNED_SEED)
        planned = tuple(random_edit(random, number) for number in range(PLANNED))
        yield Part("plans", "plans without Spark", planned)
        random = Random(PLANNED_SEED)
        filters = tuple(random_filters(random, number) for number in range(PLANNED))
        yield Part("plans", "filters without Spark", filters)


def _chunks(
    kind: str, name: str, edits: list[Edit], settings: tuple[dict[str, str], dict[str, str]] = ({}, {})
) -> Iterator[Part]:
    for start in range(0, len(edits), AT_ONCE):
        part = tuple(edits[start : start + AT_ONCE])
        yield Part(kind, f"{name} from {part[0].name} on", part, settings)


def _work(part: Part) -> tuple[list[Judged], list[str], float]:
    """Returns the judged edits of a part, its problems, and its seconds. Runs in a process of the pool."""
    began = time.monotonic()
    judged: list[Judged] = []
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="changes-") as folder:
        try:
            if part.reads:
                judged = judge_reads(part.reads, Path(folder))
            elif part.kind == "plans":
                problems = contradictions(part.edits, planned_twice(part.edits, Path(folder)))
            else:
                before, after = map(settings_text, part.settings)
                judged = judge(part.edits, {False: before, True: after}, Path(folder))
        except Exception:  # the other parts run to their end
            problems = [f"{part.name}: {traceback.format_exc()}"]
    if part.kind == "matrix":
        problems += [described(each) for each in judged if not each.is_expected]
    return judged, problems, time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
