"""Projects in which an edit happens: the old queries, then the changed ones on the same checkpoints, and the changed
ones from the start.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlstream import Finding, FindingsError
from sqlstream.state.runs.events import Status
from tests.spark.changes.edits import ASK, Edit, declared_tables
from tests.spark.changes.read_edits import ReadEdit
from tests.spark.changes.world_rows import ORDERS, PHASES, REFUNDS, wider_values
from tests.spark.changes.world_sinks import PROBE, make_folders, rows_of, sinks_text
from tests.spark.conftest import ProjectFolder

COLUMNS = "id int, ts timestamp, k string, g string, v int, d double"

CANNOT_TELL = "sqlstream cannot tell"
"""In the reason of a refusal: `run` asks."""


@dataclass(frozen=True)
class Judged:
    """What happened to an edit: whether `run` refused it, with which text, Spark's error in a run that accepted it, and
    whether its results were those of the changed query from the start.
    """

    edit: Edit | ReadEdit
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
        if self.refusal is None:
            return "resume"
        return ASK if CANNOT_TELL in self.refusal else "refuse"

    @property
    def is_expected(self) -> bool:
        """Whether `run` does what the matrix says, and rightly. If it asks, the results do not matter."""
        return self.verdict == self.edit.expected and self.verdict in (self.right, ASK)


def judge(edits: Sequence[Edit], settings: Mapping[bool, str], root: Path, *, storage: str = "store") -> list[Judged]:
    """Returns what happens to `edits`, all in one project. `settings` are Spark's before and after the edit. The
    checkpoints are in folders of `storage`.
    """
    world, scratch = (_World(root / name, edits, f"{storage}/{name}") for name in ("edited", "scratch"))
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
    def __init__(self, root: Path, edits: Sequence[Edit], storage: str) -> None:
        self._folder, self._edits, self._storage = ProjectFolder(root), edits, storage
        make_folders(root)

    def write(self, *, changed: bool, spark: str) -> None:
        """Writes the project before or after the edit."""
        settings = ", ".join(text for text in (_MEMORY, spark) if text)
        options = {name: text for edit in self._edits for name, text in edit.files[changed].items() if "/" not in name}
        folder = self._folder.root
        tables = (
            {
                "name": name,
                "path": "in/sheet" if name.startswith("sheet") else "in/orders",
                "options": options.get(name, ""),
            }
            | {"columns": options.get(f"{name} columns", COLUMNS)}
            for name in dict.fromkeys((*_TABLES, *declared_tables(options)))
        )
        self._folder.write(
            {
                "project.yml": f"name: shop\nvars: {{least: {options.get('least', '1')}}}\ntargets: {{local: {{master: 'local[2]', storage: '{self._storage}', spark: {{{settings}}}}}}}\n",
                "sources.yml": "sources:\n  - name: shop\n    tables:\n"
                + "".join(map(_source, tables))
                + _source({"name": "refunds", "path": "in/refunds", "options": "", "columns": COLUMNS}),
                "sinks.yml": sinks_text(folder, options),
                "python/probe.py": PROBE,
                "seeds/names.csv": "k,name\na,alpha\nb,beta\nc,gamma\n",
            }
        )
        for edit in self._edits:
            files = {name: text for name, text in edit.files[changed].items() if "/" in name}
            others = edit.files[False] if changed and name_of_models(edit.files[False]) else {}
            self._folder.write({**{name: text for name, text in others.items() if "/" in name}, **files})
            self._folder.write({edit.path: edit.sql(changed=changed)})

    def refusals(self) -> tuple[dict[str, str], frozenset[str]]:
        """Returns why `run` refuses each changed query, and the queries whose change nobody can accept."""
        self._data(2)
        try:
            self._folder.run(*(edit.name for edit in self._edits))
        except FindingsError as error:
            named = self._named(error)
            barred = frozenset(name for name, finding in named if finding.code != "state-change")
            return {name: f"{finding.message}\n  why: {finding.why}" for name, finding in named}, barred
        raise AssertionError("no edit was refused, so a run has started")

    def _named(self, error: FindingsError) -> list[tuple[str, Finding]]:
        """Returns the findings with the queries that they name."""
        return [
            (edit.name, finding)
            for finding in error.findings
            for edit in self._edits
            if f"`{edit.name}`" in finding.message
        ]

    def run(
        self, phase: int, accepted: tuple[str, ...], barred: frozenset[str] = frozenset()
    ) -> tuple[dict[str, list[str]], dict[str, str]]:
        """Runs all queries but the `barred` ones over the data of `phase`, and returns the rows and errors of each. A
        query that Spark cannot stream has an error and no rows.
        """
        self._data(phase)
        names = [edit.name for edit in self._edits if edit.name not in barred]
        refused: dict[str, str] = {}
        try:
            outcome = self._folder.run(*names, accept_state_change=accepted)
        except FindingsError as error:
            refused = {name: str(finding) for name, finding in self._named(error)}
            outcome = self._folder.run(*(name for name in names if name not in refused), accept_state_change=accepted)
        found = {edit.name: rows_of(self._folder.root, edit.output, edit.name) for edit in self._edits}
        rows = {name: lines for name, lines in found.items() if lines is not None}
        failed = {result.model: str(result.finding) for result in outcome.results if result.status is Status.ERROR}
        return rows, failed | refused

    def _data(self, phase: int) -> None:
        for name, rows in (("orders", ORDERS[phase]), ("refunds", REFUNDS[phase])):
            keys = [column.split()[0] for column in COLUMNS.split(", ")]
            dicts = [dict(zip(keys, (row[0], f"2024-01-01T{row[1]}:00Z", *row[2:]), strict=True)) for row in rows]
            more = [wider_values(phase, row[0], row[4]) for row in rows]
            joined = [{**one, **other} for one, other in zip(dicts, more, strict=True)]
            self._folder.rows(f"in/{name}/{phase}.json", joined, modified=phase)
        lines = (",".join(map(str, (row[0], f"2024-01-01T{row[1]}:00Z", *row[2:]))) for row in ORDERS[phase])
        sheet = self._folder.root / "in" / "sheet" / f"{phase}.csv"
        sheet.parent.mkdir(parents=True, exist_ok=True)
        sheet.write_text("".join(f"{line}\n" for line in lines).replace("None", ""), encoding="utf-8")
        os.utime(sheet, (phase, phase))


_MEMORY = "spark.driver.memory: 4g"
"""One Java process runs all queries, again and again."""

_TABLES = ("orders", "notes", "slow", "typed", "wider", "cased", "cased2", "sheet", "sheet2")


def _source(table: Mapping[str, str]) -> str:
    options = f"        options: {table['options']}\n" if table["options"] else ""
    return (
        f"      - name: {table['name']}\n        format: {'csv' if table['name'].startswith('sheet') else 'json'}\n"
        f"        path: {table['path']}\n"
        f"        schema: {table['columns']}\n{options}"
    )


def name_of_models(files: Mapping[str, str]) -> bool:
    """Returns whether `files` contain models, which stay after an edit."""
    return any(name.startswith("models/") for name in files)
