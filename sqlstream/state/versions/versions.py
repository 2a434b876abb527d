"""Which of a query's stored versions is current: `versions.json` beside them.

Without this file the newest version is the current one.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from pydantic import TypeAdapter, ValidationError


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

    def beside(self, version: int) -> Versions:
        """Returns the parts when `version` runs beside the current one."""
        return replace(self, parallel=version)

    def promoted(self) -> Versions | None:
        """Returns the parts after the parallel version became the current one, None if there is none."""
        if self.parallel is None:
            return None
        return self._with(current=self.parallel, parallel=None, previous=self.current)

    def rolled_back(self) -> Versions | None:
        """Returns the parts after the previous version became the current one again, None if there is none. The version
        that was current can be promoted again; if another one runs beside it, a second rollback returns to it.
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
        return next((part for part, number in asdict(self).items() if number == version), "")

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
