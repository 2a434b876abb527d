"""Writes the declarations of new fields as patches in target/schema_changes/, during a run."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlstream.app.evolve.declaration import Evolution, evolve
from sqlstream.app.loading.atomic_writes import write_file
from sqlstream.app.observe.observers import Observed, Snapshot
from sqlstream.compiler.allowances import lowered
from sqlstream.errors import Finding, Severity
from sqlstream.location import printable
from sqlstream.project.declarations.schema_changes import RESCUED, evolves
from sqlstream.project.files.files import ARTIFACTS_FOLDER
from sqlstream.project.types.data_types import Struct
from sqlstream.project.types.ddl import TypeSyntaxError, parse_type
from sqlstream.project.values import Project, SourceTable
from sqlstream.state.runs.events import WarningEmitted
from sqlstream.state.runs.progress import BatchProgress, merged_types

FOLDER = f"{ARTIFACTS_FOLDER}/schema_changes"

SHOWN = 5
"""The most new fields that a warning names."""

_HEAD = "new fields: "
"""The start of the first line of a patch, before the types of the fields as JSON: later runs add theirs. Programs that
apply patches skip it.
"""


def patch_path(source: str) -> str:
    """Returns the path of the patch of a source table, relative to the project's root."""
    return f"{FOLDER}/{source.replace('/', '%2F')}.patch"


def patch_text(types: str, found: Evolution) -> str:
    """Returns the patch as a unified diff; empty if the file does not change."""
    if found.before is None or found.after is None:
        return ""
    before, after = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (found.before, found.after))
    name = found.path + ("\t" if " " in found.path else "")
    lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
    whole = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return f"{_HEAD}{json.dumps(types)}\n{''.join(whole)}"


def known_types(text: str) -> str | None:
    """Returns the types of the new fields of a patch, None for a text that is no patch of sqlstream."""
    first = text.partition("\n")[0]
    if first.startswith(_HEAD):
        with suppress(ValueError, TypeSyntaxError):
            types = json.loads(first.removeprefix(_HEAD))
            if isinstance(types, str) and isinstance(parse_type(types), Struct):
                return types
    return None


class SchemaPatches:
    """An observer that writes a patch for each source with new fields, and reports it with `emit`: when there are some,
    and at the end of the run if they have changed.

    A patch that an earlier run has written gets the fields of this one, too. It is removed if they are all declared.
    """

    name = "the patches of schema changes"

    def __init__(self, project: Project, emit: Callable[[WarningEmitted], None]) -> None:
        self._project, self._emit = project, emit
        self._tables = {table.full_name: table for table in project.sources if evolves(table)}
        self._types: dict[str, str] = {}
        self._evolved: dict[str, Evolution] = {}
        self._reported: dict[str, Evolution] = {}
        for source, table in self._tables.items():
            self._resume(source, table)

    @property
    def is_needed(self) -> bool:
        """Whether a source of the project evolves."""
        return bool(self._tables)

    def observe(self, seen: Observed) -> None:
        """Writes what a batch has found. Raises: UsageError if a patch cannot be written."""
        types: Mapping[str, str] = seen.event.new_types if isinstance(seen.event, BatchProgress) else {}
        for source, found in types.items():
            table, before = self._tables.get(source), self._types.get(source)
            merged = merged_types(before, found)
            if table is not None and (merged != before or source not in self._reported):
                self._types[source] = merged
                self._write(source, table, merged)
                if source not in self._reported:
                    self._report(source, table)

    def tick(self, now: Snapshot) -> None:
        """Does nothing."""

    def close(self, last: Snapshot) -> None:  # noqa: ARG002 - the protocol's signature
        """Reports what has changed since the first report."""
        for source, evolved in self._evolved.items():
            if evolved.columns != self._reported[source].columns:
                self._report(source, self._tables[source])

    def _resume(self, source: str, table: SourceTable) -> None:
        path = self._project.root / patch_path(source)
        if not path.exists():
            return
        with _locked(path):
            types = _types_in(path)
            if types is not None:
                self._types[source] = types
                if not evolve(self._project.root, table, _struct(types)).columns.named:
                    path.unlink(missing_ok=True)

    def _write(self, source: str, table: SourceTable, types: str) -> None:
        path = self._project.root / patch_path(source)
        with _locked(path):
            others = _types_in(path)  # another run of the project can have found more in the meantime
            self._types[source] = types if others is None else merged_types(types, others)
            self._evolved[source] = found = evolve(self._project.root, table, _struct(self._types[source]))
            text = patch_text(self._types[source], found)
            if text:
                write_file(str(path), text.encode())
            else:
                path.unlink(missing_ok=True)

    def _report(self, source: str, table: SourceTable) -> None:
        self._reported[source] = found = self._evolved[source]
        if found.columns.named:
            for finding in lowered(self._project, [_finding(table, found)]):
                self._emit(WarningEmitted(finding))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keeps other runs from a patch while the body runs. The lock is a file beside it."""
    from filelock import FileLock  # slow to import and rarely needed

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock")):
        yield


def _types_in(path: Path) -> str | None:
    """Returns the types of the new fields of a patch, None without one."""
    with suppress(OSError, UnicodeDecodeError):
        return known_types(path.read_bytes().decode())
    return None


def _struct(types: str) -> Struct:
    found = parse_type(types)
    return found if isinstance(found, Struct) else Struct(())


def _finding(table: SourceTable, found: Evolution) -> Finding:
    why = f"the source does not declare them, so rows have them only in `{RESCUED}`"
    if found.columns.unclear:
        names = _listed(found.columns.unclear)
        why += f"; left out, because they have no values or a name that no column can have: {names}"
    fix = f"check {patch_path(table.full_name)}, and apply it with `git apply` or `patch -p1`; then run again"
    if found.after is None:
        fix = f"declare them in {found.path}, whose form no patch can change; then run again"
    return Finding(
        "new-fields",
        f"source `{table.full_name}` has new fields: {_listed(found.columns.named)}",
        why,
        fix,
        table.locations.get("schema_changes", table.location),
        severity=Severity.WARNING,
    )


def _listed(names: Sequence[str]) -> str:
    more = [f"{len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return ", ".join([*(printable(name) for name in names[:SHOWN]), *more])
