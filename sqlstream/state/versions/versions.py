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
class Versions:
    """The parts of a query's versions. `current` is the one that runs continue and that readers see. `parallel` runs
    beside it until it is promoted. A rollback goes back to `previous`.
    """

    current: int
    parallel: int | None = None
    previous: int | None = None

    def refreshed(self, version: int) -> Versions:
        """Returns the parts after a full refresh that started `version`."""
        return self if version == self.current else replace(self, current=version, previous=self.current)

    def beside(self, version: int) -> Versions:
        """Returns the parts when `version` runs beside the current one."""
        return replace(self, parallel=version)

    def promoted(self) -> Versions | None:
        """Returns the parts after the parallel version became the current one, None if there is none."""
        return None if self.parallel is None else Versions(self.parallel, previous=self.current)

    def rolled_back(self) -> Versions | None:
        """Returns the parts after the previous version became the current one again, None if there is none. The version
        that was current can be promoted again; if another one runs beside it, a second rollback returns to it.
        """
        if self.previous is None:
            return None
        if self.parallel is None:
            return Versions(self.previous, parallel=self.current)
        return replace(self, current=self.previous, previous=self.current)

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
