"""Projects in which an edit happens: the old queries, then the changed ones on the same checkpoints, and the changed
ones from the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conftest import ProjectFolder
from edits import Edit

from sqlstream import FindingsError
from sqlstream.state.runs.events import Status

PHASES = (1, 2, 3)
"""The old query reads the data of phase 1. The changed one reads those of phase 2, and of phase 3, which touch all keys
and move the watermark past all windows."""

COLUMNS = "id int, ts timestamp, k string, g string, v int, d double"

PROBE = """import json


def write(rows, batch):
    lines = [json.dumps([str(value) for value in row]) + "\\n" for row in rows.collect()]
    with open(f"{batch.options['folder']}/{batch.model}.jsonl", "a") as file:
        file.writelines(lines)
"""

# After phase 1 the watermark is at 12:17, because of rows without values. The query that filters them out would have an
# earlier one. The windows of 5 minutes are open from 12:15 on, those of 10 minutes from 12:10 on.
_ORDERS = {
    1: (
        (1, "12:00", "a", "x", 1, 1.5),
        (2, "12:01", "b", "y", 2, 2.5),
        (3, "12:02", "A", "x", 3, 3.5),
        (4, "12:03", None, "x", 4, 4.5),
        (5, "12:04", "a", "y", None, 5.5),
        (6, "12:12", "c", "x", 6, 6.5),
        (6, "12:12", "c", "x", 6, 6.5),
        (30, "12:15", "only before", "x", 3, 0.5),
        (31, "12:15", "A", "a", 5, 1.5),
        (32, "02:00", "b", "x", 1000, 2.5),
        (33, "12:18", "a", "x", 1, 1.5),
        (34, "12:18", "b", "y", None, 2.5),
        (35, "12:11", "a", "x", 1, 2.5),
        (36, "12:19", "d", "x", 2, 2.5),
        (None, "12:16", "e", "x", 4, 2.5),
        # the same windows and keys as in phase 2, with other values
        (0, "12:18", "a", "x", 4, 1.75),
        (12, "12:15", "b", "y", 4, 1.75),
        (39, "12:15", "a", "x", 2, 1.75),
        (21, "12:16", "c", "x", 4, 8.5),
        # refunded in phase 2, 2, 9 and 18 minutes later
        (37, "12:18", "f", "x", 1, 1.5),
        (45, "12:07", "h", "x", 2, 2.5),
        (46, "11:58", "i", "x", 2, 2.5),
        # null but for the keys of a deduplication, so most filters drop them
        (15, "12:18", None, None, None, None),
        (16, "12:18", "b", None, None, None),
        (17, "12:18", None, "x", None, None),
        (80, "12:18", None, "m", None, None),
        (81, "12:18", "q", None, None, None),
        (82, "12:18", "r", "x", None, None),
        # the latest rows, alone in their windows
        (95, "12:23", "a", None, None, None),
        *((number, "12:25", None, None, None, None) for number in (90, 91, 92)),
        (None, "12:27", None, None, None, None),
    ),
    2: (
        (7, "12:18", "a", "x", 7, 7.5),
        (20, "12:18", "a", "x", 3, 7.5),
        (1, "12:17", "a", "x", 1, 1.5),
        (8, "12:18", "d", "y", 8, 8.5),
        (9, "10:30", "a", "x", 9, 9.5),
        (10, "12:18", "b", None, 10, None),
        (11, "12:19", "a", "x", -5, 2.5),
        (40, "12:19", "only after", "y", 2, 4.5),
        (41, "12:03", "c", "x", 4, 4.5),
        (5, "12:18", "a", "y", 5, 5.5),
        (33, "12:18", "a", "x", 1, 2.5),
        (13, "12:17", "a", "x", 4, 7.5),
        (24, "12:17", "b", "y", 3, 7.5),
        (22, "12:17", "c", "x", 4, 6.5),
        # late, but not for a query without the latest rows of phase 1
        (43, "12:16", "b", "x", 5, 2.5),
        (44, "12:12", "b", "x", 5, 2.5),
        # refunded in phase 1, 9 and 18 minutes earlier
        (47, "12:16", "l", "x", 2, 2.5),
        (48, "12:16", "m", "x", 2, 2.5),
        # keys of phase 1, now with values
        (15, "12:18", "b", "x", 4, 9.5),
        (16, "12:18", "b", "x", 4, 9.5),
        (17, "12:18", "b", "x", 4, 9.5),
        (18, "12:18", "b", "m", 4, 9.5),
        (19, "12:18", "q", "x", 4, 9.5),
        (23, "12:18", "r", "x", 4, 9.5),
    ),
    3: (
        *((50 + number, "12:40", key, "x", number, 1.5) for number, key in enumerate(("a", "b", "A", "c", "d", None))),
        (60, "12:41", "only before", "x", 2, 2.5),
        (61, "12:41", "only after", "x", 2, 2.5),
        (6, "12:42", "c", "y", 6, 6.5),
        (15, "12:43", "a", "x", 4, 9.5),
        (17, "12:43", "a", "x", 4, 9.5),
        (18, "12:43", "a", "m", 4, 9.5),
        (99, "23:00", "z", "z", 99, 99.5),
    ),
}
_REFUNDS = {
    1: (
        (1, "12:05", "a", "x", 2, 1.5),
        (3, "12:06", "b", "x", 9, 1.5),
        (20, "12:07", "a", "y", 1, 1.5),
        (21, "12:20", "c", "y", 1, 1.5),
        (47, "12:07", "l", "x", 3, 2.5),
        (48, "11:58", "m", "x", 3, 2.5),
        (93, "12:27", "a", None, None, None),
    ),
    2: (
        (2, "12:17", "b", "x", 3, 1.5),
        (7, "12:19", "a", "x", 1, 1.5),
        (30, "12:18", "c", "y", 5, 1.5),
        (1, "12:18", "a", "x", 7, 1.5),
        (33, "12:20", "a", "x", 3, 1.5),
        (37, "12:20", "f", "x", 3, 1.5),
        (43, "12:18", "b", "x", 7, 1.5),
        (44, "12:17", "b", "x", 7, 1.5),
        (45, "12:16", "h", "x", 3, 2.5),
        (46, "12:16", "i", "x", 3, 2.5),
    ),
    3: ((8, "12:41", "b", "x", 3, 1.5), (50, "12:42", "a", "x", 4, 1.5), (98, "23:00", "z", "z", 98, 1.5)),
}


@dataclass(frozen=True)
class Judged:
    """What happened to an edit: whether `run` refused it, with which text, Spark's error in a run that accepted it, and
    whether its results were those of the changed query from the start.
    """

    edit: Edit
    refusal: str | None
    error: str | None
    agrees: bool

    @property
    def right(self) -> str:
        """What `run` should do."""
        return "resume" if self.agrees and self.error is None else "refuse"

    @property
    def verdict(self) -> str:
        """What `run` does."""
        return "resume" if self.refusal is None else "refuse"


def judge(edits: Sequence[Edit], settings: Mapping[bool, str], root: Path) -> list[Judged]:
    """Returns what happens to `edits`, all in one project. `settings` are Spark's before and after the edit."""
    world, scratch = _World(root / "edited", edits), _World(root / "scratch", edits)
    world.write(changed=False, spark=settings.get(False, ""))
    emitted = {}
    emitted[1], first = world.run(1, ())
    assert not first, first
    world.write(changed=True, spark=settings.get(True, ""))
    refusals, barred = world.refusals()
    accepted = tuple(name for name in refusals if name not in barred)
    errors = dict.fromkeys(barred, "run refuses it even if the change is accepted")
    for phase in PHASES[1:]:
        emitted[phase], stopped = world.run(phase, accepted, barred)
        errors |= stopped
    scratch.write(changed=True, spark=settings.get(True, ""))
    expected = {phase: scratch.run(phase, ()) for phase in PHASES}
    failed = {name for _, errors_of in expected.values() for name in errors_of}
    found = []
    for edit in edits:
        agrees = edit.name not in failed and all(
            emitted[phase].get(edit.name) == expected[phase][0].get(edit.name) for phase in edit.compared
        )
        found.append(Judged(edit, refusals.get(edit.name), errors.get(edit.name), agrees))
    return found


class _World:
    def __init__(self, root: Path, edits: Sequence[Edit]) -> None:
        self._folder, self._edits = ProjectFolder(root), edits
        (root / "out").mkdir(parents=True)

    def write(self, *, changed: bool, spark: str) -> None:
        """Writes the project before or after the edit."""
        settings = ", ".join(text for text in (_MEMORY, spark) if text)
        options = {name: text for edit in self._edits for name, text in edit.files[changed].items() if "/" not in name}
        folder = self._folder.root
        tables = (
            {"name": name, "path": "in/orders", "options": options.get(name, "")}
            | {"columns": options.get(f"{name} columns", COLUMNS)}
            for name in _TABLES
        )
        self._folder.write(
            {
                "project.yml": f"name: shop\ntargets: {{local: {{master: 'local[2]', storage: store, spark: {{{settings}}}}}}}\n",
                "sources.yml": "sources:\n  - name: shop\n    tables:\n"
                + "".join(map(_source, tables))
                + _source({"name": "refunds", "path": "in/refunds", "options": "", "columns": COLUMNS}),
                "sinks.yml": "sinks:\n  - {name: probe, format: python, function: 'probe:write', "
                f"options: {{folder: {folder}/out}}}}\n",
                "python/probe.py": PROBE,
                "seeds/names.csv": "k,name\na,alpha\nb,beta\nc,gamma\n",
            }
        )
        for edit in self._edits:
            files = {name: text for name, text in edit.files[changed].items() if "/" in name}
            others = edit.files[False] if changed and name_of_models(edit.files[False]) else {}
            self._folder.write({**{name: text for name, text in others.items() if "/" in name}, **files})
            self._folder.write({f"models/{edit.name}.sql": edit.sql(changed=changed)})

    def refusals(self) -> tuple[dict[str, str], frozenset[str]]:
        """Returns why `run` refuses each changed query, and the queries whose change nobody can accept."""
        self._data(2)
        try:
            self._folder.run(*(edit.name for edit in self._edits))
        except FindingsError as error:
            named = [
                (edit.name, finding)
                for finding in error.findings
                for edit in self._edits
                if f"`{edit.name}`" in finding.message
            ]
            barred = frozenset(name for name, finding in named if finding.code != "state-change")
            return {name: f"{finding.message}\n  why: {finding.why}" for name, finding in named}, barred
        raise AssertionError("no edit was refused, so a run has started")

    def run(
        self, phase: int, accepted: tuple[str, ...], barred: frozenset[str] = frozenset()
    ) -> tuple[dict[str, list[str]], dict[str, str]]:
        """Runs all queries but the `barred` ones over the data of `phase`, and returns the rows and errors of each."""
        self._data(phase)
        names = [edit.name for edit in self._edits if edit.name not in barred]
        outcome = self._folder.run(*names, accept_state_change=accepted)
        rows = {}
        for path in (self._folder.root / "out").iterdir():
            rows[path.stem] = sorted(path.read_text().splitlines())
            path.unlink()
        failed = {result.model: str(result.finding) for result in outcome.results if result.status is Status.ERROR}
        return rows, failed

    def _data(self, phase: int) -> None:
        for name, rows in (("orders", _ORDERS[phase]), ("refunds", _REFUNDS[phase])):
            keys = [column.split()[0] for column in COLUMNS.split(", ")]
            dicts = [dict(zip(keys, (row[0], f"2024-01-01T{row[1]}:00Z", *row[2:]), strict=True)) for row in rows]
            self._folder.rows(f"in/{name}/{phase}.json", dicts, modified=phase)


_MEMORY = "spark.driver.memory: 4g"
"""One Java process runs all queries, again and again."""

_TABLES = ("orders", "notes", "slow", "typed", "wider")


def _source(table: Mapping[str, str]) -> str:
    options = f"        options: {table['options']}\n" if table["options"] else ""
    return (
        f"      - name: {table['name']}\n        format: json\n        path: {table['path']}\n"
        f"        schema: {table['columns']}\n{options}"
    )


def name_of_models(files: Mapping[str, str]) -> bool:
    """Returns whether `files` contain models, which stay after an edit."""
    return any(name.startswith("models/") for name in files)
