"""A project in which edits of what queries read happen. Spark judges each: the rows of all files must be in the output as
often as if the changed query had read them all, no matter when.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from sqlstream import FindingsError
from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest, ProjectRequest
from sqlstream.state.runs.events import Status
from sqlstream.state.verdicts import QueryVerdict, Verdict
from tests.spark.changes.read_edits import ReadEdit, Tables
from tests.spark.changes.worlds import Judged
from tests.spark.conftest import ProjectFolder

DAY = 86_400


def judge_reads(edits: Sequence[ReadEdit], root: Path) -> list[Judged]:
    """Returns what happens to `edits`, all in one project."""
    edited, scratch = _World(root / "edited", edits), _World(root / "scratch", edits)
    edited.write_files("first")
    edited.write(None)
    assert not edited.run()
    edited.write_files("detour")
    if any(edit.detour for edit in edits):
        edited.write("detour")
        assert not edited.run()
    edited.change_files()
    edited.write("after")
    refusals = edited.refusals()
    planned = edited.planned()
    assert {name: planned[name].reason for name in planned if (name in refusals) != _is_refused(planned[name])} == {}
    errors = edited.run(accepted=tuple(refusals))
    scratch.write_files("first")
    scratch.write_files("detour")
    scratch.change_files()
    scratch.write("after")
    failed = scratch.run()
    assert not failed, failed
    found = []
    for edit in edits:
        expected, rows = scratch.rows(edit), edited.rows(edit)
        agrees = all(rows[row] == count for row, count in expected.items())
        found.append(Judged(edit, refusals.get(edit.name), errors.get(edit.name), agrees))
    return found


def _is_refused(verdict: QueryVerdict) -> bool:
    return bool(verdict.findings)


class _World:
    def __init__(self, root: Path, edits: Sequence[ReadEdit]) -> None:
        self._folder, self._edits, self._time = ProjectFolder(root), edits, 1_700_000_000
        probe = _PROBE.replace("OUT", str(root / "out.jsonl"))
        self._folder.write({"project.yml": _PROJECT, "sinks.yml": _SINKS, "python/probe.py": probe})

    def write(self, stage: str | None) -> None:
        """Writes the project: before the edits, in the detour of those that have one, or after the edits."""
        groups, models = [], {}
        shutil.rmtree(self._folder.root / "models", ignore_errors=True)
        for edit in self._edits:
            is_detour = stage == "detour" and edit.detour is not None
            sql, tables = edit.detour if is_detour and edit.detour else (edit.before, edit.tables)
            if stage == "after":
                sql, tables = edit.after, edit.tables_after
            mode = ", output_mode='update'" if edit.stateful else ""
            models[edit.name] = f"{{{{ config(sink='{'counts' if edit.stateful else 'lines'}'{mode}) }}}}\n{sql}\n"
            models |= edit.views[stage == "after"]
            group = edit.group if stage == "after" else "NAME"
            groups.append(self._filled(edit, _source(group, tables)))
            models = {name: edit.filled(text) for name, text in models.items()}
        self._folder.write({"sources.yml": "sources:\n" + "".join(groups)})
        self._folder.write({f"models/{name}.sql": text for name, text in models.items()})

    def write_files(self, which: str) -> None:
        """Writes the files of `first` or `second`, or one that a query on a detour reads."""
        for edit in self._edits:
            files = edit.first if which == "first" else edit.second
            if which == "detour":
                files = {"in/NAME/detour.json": (8,)} if edit.detour else {}
            for name, ids in files.items():
                self._time += 10
                path = self._folder.root / edit.filled(name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("".join(json.dumps({"id": number, "key": number}) + "\n" for number in ids))
                at = self._time - edit.ages.get(name, 0) * DAY
                os.utime(path, (at, at))

    def change_files(self) -> None:
        """Moves and copies files, and writes later ones."""
        for edit in self._edits:
            for how, source, place in edit.moves:
                old, new = (self._folder.root / edit.filled(path) for path in (source, place))
                new.parent.mkdir(parents=True, exist_ok=True)
                if how == "mv":
                    old.rename(new)
                elif how == "ln":
                    new.symlink_to(old)
                else:
                    shutil.copytree(old, new)
        self.write_files("second")

    def refusals(self) -> dict[str, str]:
        """Returns why `run` refuses each changed query."""
        try:
            self._folder.run(*(edit.name for edit in self._edits))
        except FindingsError as error:
            named = ((edit.name, each) for each in error.findings for edit in self._edits)
            return {name: str(each) for name, each in named if f"`{name}`" in each.message}
        raise AssertionError("no edit was refused, so a run has started")

    def planned(self) -> dict[str, QueryVerdict]:
        """Returns the verdicts without Spark, of the queries about which `plan` is sure."""
        found = plan_project(PlanRequest(ProjectRequest(self._folder.root, env=os.environ)))
        return {query.model: query for query in found.queries if query.verdict is not Verdict.UNDECIDED}

    def run(self, accepted: tuple[str, ...] = ()) -> dict[str, str]:
        """Runs all queries that can run, and returns the errors."""
        names: list[str] = [edit.name for edit in self._edits]
        barred: dict[str, str] = {}
        while True:
            try:
                outcome = self._folder.run(*names, accept_state_change=accepted)
                break
            except FindingsError as error:
                refused = [name for name in names if any(f"`{name}`" in each.message for each in error.findings)]
                if not refused:
                    raise
                barred |= dict.fromkeys(refused, "run refuses it even if the change is accepted")
                names = [name for name in names if name not in refused]
        return barred | {each.model: str(each.finding) for each in outcome.results if each.status is Status.ERROR}

    def rows(self, edit: ReadEdit) -> Counter[str]:
        """Returns the rows in the output of a query: how often each is there, or the last count of its key."""
        if not edit.stateful:
            files = (self._folder.root / "store/lines" / edit.name).glob("*.json")
            return Counter(line for file in files for line in file.read_text().splitlines())
        lines = (self._folder.root / "out.jsonl").read_text().splitlines()
        last = {key: row for model, key, row in map(json.loads, lines) if model == edit.name}
        return Counter(last.values())

    def _filled(self, edit: ReadEdit, text: str) -> str:
        return edit.filled(text).replace("ROOT", str(self._folder.root))


def _source(group: str, tables: Tables) -> str:
    return "".join(_lines(group, tables))


def _lines(group: str, tables: Tables) -> Iterator[str]:
    name, _, more = group.partition(", ")
    yield f"  - name: {name}\n"
    if more:
        yield f"    {more}\n"
    yield "    tables:\n"
    for table, keys in tables.items():
        schema = "" if "schema" in keys else ", schema: 'id int'"
        yield f"      - {{name: {table}, format: json, {keys}{schema}}}\n"


_PROJECT = "name: shop\ntargets: {local: {master: 'local[2]', storage: store, spark: {spark.driver.memory: 2g}}}\n"
_SINKS = (
    "sinks:\n  - {name: lines, format: json, path: 'lines/{{ model.name }}'}\n"
    "  - {name: counts, format: python, function: 'probe:write'}\n"
)
_PROBE = """import json


def write(rows, batch):
    with open("OUT", "a") as file:
        for row in rows.collect():
            key = str(row[0]) if len(row) > 1 else ""
            file.write(json.dumps([batch.model, key, str(list(row))]) + "\\n")
"""
"""The function in python/ that appends the rows of aggregations to a file, with the name of the model and the key."""
