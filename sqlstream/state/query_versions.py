"""The stored versions of a query: which is current (`versions.json` beside them), where each writes, and whether it is
complete.

Without this file the newest version is the current one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from pydantic import TypeAdapter, ValidationError

from sqlstream.compiler.digest import digest
from sqlstream.errors import Finding
from sqlstream.location import Place
from sqlstream.project.formats.formats import format_of
from sqlstream.state.layout import output_table
from sqlstream.state.ledger import Ledger, QueryIdentity
from sqlstream.state.refusals import refresh_text
from sqlstream.state.sinks import UNSTORED


class VersionsUnreadableError(OSError):
    """The file versions.json is damaged. The message is one line."""


@dataclass(frozen=True)
class Switch:
    """A switch to another version by a promotion, a rollback or a full refresh (`action`): when it happened, and the
    current `version` after and `before` it. The time is UTC, ISO 8601.
    """

    at: str
    action: str
    version: int
    before: int


MOST_SWITCHES = 20
"""The most switches that versions.json keeps."""


@dataclass(frozen=True)
class Versions:
    """The parts of a query's versions. `current` is the one that runs continue and that readers see. `parallel` runs
    beside it until it is promoted. A rollback goes back to `previous`.

    `published` are the plain paths and tables of sinks that show readers the current version: version 1 of their
    outputs is in `<path>.v1` or `<table>_v1`, too. None if an earlier sqlstream has switched versions, so readers use
    the names of the versions until the next switch. `history` are the last switches, the newest last. `is_waiting`:
    readers see the version before until the current one, which started over, has caught up.
    """

    current: int
    parallel: int | None = None
    previous: int | None = None
    published: tuple[str, ...] | None = None
    history: tuple[Switch, ...] = ()
    is_waiting: bool = False

    def refreshed(self, version: int, *, is_waiting: bool = False) -> Versions:
        """Returns the parts after a full refresh that started `version`."""
        if version == self.current:
            return self
        return replace(self._with(current=version, previous=self.current), is_waiting=is_waiting)

    def with_parallel(self, version: int) -> Versions:
        """Returns the parts when `version` runs in parallel with the current one."""
        return replace(self, parallel=version)

    def promoted(self) -> Versions | None:
        """Returns the parts after the parallel version became the current one, None if there is none."""
        if self.parallel is None:
            return None
        return self._with(current=self.parallel, parallel=None, previous=self.current)

    def rolled_back(self) -> Versions | None:
        """Returns the parts after the previous version became the current one again, None if there is none. The version
        that was current can be promoted again; with a parallel version, a second rollback returns to it.
        """
        if self.previous is None:
            return None
        if self.parallel is None:
            return self._with(current=self.previous, parallel=self.current, previous=None)
        return self._with(current=self.previous, previous=self.current)

    def _with(self, **changes: int | None) -> Versions:
        """Returns the parts after a switch, whose readers keep the plain names where storage can do that."""
        return replace(self, **changes, published=self.published or (), is_waiting=False)  # type: ignore[arg-type]

    def recorded(self, action: str, before: Versions, at: str) -> Versions:
        """Returns the parts with the switch that made them of the parts `before`."""
        switch = Switch(at, action, self.current, before.current)
        return replace(self, history=(*before.history, switch)[-MOST_SWITCHES:])

    def chosen(self, *, parallel: bool) -> int:
        """Returns the number of the parallel or of the current version, 0 if there is none."""
        return (self.parallel or 0) if parallel else self.current

    @property
    def highest(self) -> int:
        """The highest number in use. Its version may have no folder yet."""
        return max(self.current, self.parallel or 0, self.previous or 0)

    def part_of(self, version: int) -> str:
        """Returns the part of a version: `current`, `parallel`, `previous`, or an empty text."""
        parts = {"current": self.current, "parallel": self.parallel, "previous": self.previous}
        return next((part for part, number in parts.items() if number == version), "")

    def to_json(self) -> str:
        """Returns the text of versions.json."""
        return json.dumps(asdict(self)) + "\n"


_VERSIONS = TypeAdapter(Versions)


def read_parts(text: str | None, newest: int, path: str) -> Versions:
    """Returns the parts in the text of versions.json at `path`, or those without this file.

    Raises: VersionsUnreadableError.
    """
    if text is None:
        return Versions(newest)
    try:
        return _VERSIONS.validate_json(text, strict=True)
    except ValidationError as error:
        raise VersionsUnreadableError(f"{path} is not valid: {error.errors(include_url=False)[0]['msg']}") from error


# Whether a version of a batch model has written its whole output: `complete.json` beside its ledger.
#
# A stream has its checkpoint for that.


def completion_text(ledger: str) -> str:
    """Returns the text of complete.json after the query in the text of ledger.json has written all of its rows."""
    return json.dumps({"ledger": digest(ledger), "at": datetime.now(UTC).isoformat(timespec="seconds")}) + "\n"


def is_complete(mark: str | None, ledger: str | None) -> bool:
    """Returns whether `mark`, the text of complete.json, is that of the query in the text of ledger.json."""
    if mark is None or ledger is None:
        return False
    try:
        found = json.loads(mark)
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("ledger") == digest(ledger)


def parallel_problem(identity: QueryIdentity, place: Place, *, restartable: bool) -> Finding | None:
    """Returns why a second version of the query cannot run, None if it can: two versions need a checkpoint and an
    output each.
    """
    shared = [use.sink_format for use in identity.by_sink if not _has_versions(use)]
    if restartable and not shared:
        return None
    if restartable:
        why = f"both would write to the same {shared[0]} sink, and its readers would get all rows twice"
    else:
        why = "it starts over in every run, so there is no version that a later run could continue"
    return Finding(
        "parallel-version",
        f"a new version of `{identity.model}` cannot run in parallel with the current one",
        why,
        f"use a copy of the model with another sink; or {refresh_text(identity.model)}",
        place.location,
        calls=place.calls,
    )


def _has_versions(use: QueryIdentity) -> bool:
    return use.sink_format in UNSTORED or format_of(use.sink_format).keeps_output


_SQLITE_PATH = re.compile(r"(?P<file>.+)#v(?P<version>[1-9][0-9]*)\Z")


def versioned_path(plain: str, version: int, *, is_published: bool = False) -> str:
    """Returns the path to which version `version` writes, where `plain` is the path of the sink. `is_published`: the
    plain path shows readers the current version, see `Versions.published`.

    A new checkpoint must never share its predecessor's folder, because Spark's file sink then silently skips batches.
    """
    return plain if version == 1 and not is_published else f"{plain}.v{version}"


def versioned_sqlite_path(plain: str, version: int, *, is_published: bool = False) -> str:
    """Returns where version `version` writes in the file `plain`, which has a table for each version: `<plain>#v<n>`,
    or `plain` for version 1 until another version is published.
    """
    return plain if version == 1 and not is_published else f"{plain}#v{version}"


def split_sqlite_path(path: str) -> tuple[str, int | None]:
    """Returns the file and the version in a path from `versioned_sqlite_path`, None for the plain path."""
    match = _SQLITE_PATH.match(path)
    return (match["file"], int(match["version"])) if match else (path, None)


def with_new_names(ledger: Ledger, published: Container[str]) -> Ledger:
    """Returns the ledger of version 1 with the paths and tables to which it writes now: its query may not have run
    since the plain ones in `published` show another version.
    """
    uses = zip(ledger.identity.by_sink, (ledger.output, *ledger.also), strict=True)
    output, *also = (_new_name(path, use.sink_path, use.sink_format, published) for use, path in uses)
    return replace(ledger, output=output, also=tuple(also))


def _new_name(path: str | None, declared: str | None, sink_format: str, published: Container[str]) -> str | None:
    if path is None or declared is None or declared not in published or _last(path) != _last(declared):
        return path
    if sink_format == "sqlite":
        return versioned_sqlite_path(path, 1, is_published=True)
    new = versioned_path if "/" in path else output_table  # relative paths are complete in a ledger
    return new(path, 1, is_published=True)


def _last(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2]


def has_begun_since(ledger: Ledger | None, since: datetime | None) -> bool:
    """Returns whether the version with this ledger has begun at the time `since` (with a time zone) or later.

    A ledger has its times in seconds, so the second of `since` counts as a whole. A ledger of an early sqlstream has no
    history; its version counts as older.
    """
    if ledger is None or since is None or not ledger.history:
        return False
    return datetime.fromisoformat(ledger.history[0].at) >= since.replace(microsecond=0)
