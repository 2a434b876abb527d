"""The freshness check of a source table: its keys in YAML, and what a table inherits from its source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple

from pydantic import Field

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.numbers import plural
from sqlstream.project.configuration.fields import Document, Text
from sqlstream.project.yaml import YamlMapping, entries_at, plain

Path = tuple[str | int, ...]

LOADED_AT = "The time of a row: a column or SQL expression (default: the time of the last file, commit or record)."
FRESHNESS = "How old the newest data can be, for `sqlstream source freshness`; `null` turns off an inherited check."


PERIOD_SECONDS = {"minute": 60, "hour": 3600, "day": 86_400}
"""dbt's periods, in seconds."""


class Threshold(Document):
    """An age of the newest data, such as 12 hours."""

    called: ClassVar[str] = "a threshold of freshness"

    count: int = Field(ge=1, description="The number of periods.")
    period: Literal["minute", "hour", "day"] = Field(description="The unit: minute, hour or day.")

    @property
    def seconds(self) -> int:
        """The age in seconds."""
        return self.count * PERIOD_SECONDS[self.period]

    @property
    def text(self) -> str:
        """The age in words: `12 hours`."""
        return plural(self.count, self.period)


class Freshness(Document):
    """How old the newest data of a source can be."""

    called: ClassVar[str] = "a freshness check"

    warn_after: Threshold | None = Field(None, description="Warn if the newest data is older.")
    error_after: Threshold | None = Field(None, description="Fail if the newest data is older.")
    filter: Text | None = Field(
        None, description="A SQL condition: only these rows count. It needs a `loaded_at_field`."
    )

    @property
    def criteria(self) -> dict[str, object]:
        """The thresholds and the filter in the form of dbt's artifacts."""
        none = {"count": None, "period": None}
        warn, error = (none if each is None else each.model_dump() for each in (self.warn_after, self.error_after))
        return {"warn_after": warn, "error_after": error, "filter": self.filter}


class SourceConfigDocument(Document):
    """The keys that dbt accepts in `config` of a source or table; outside of it they mean the same."""

    called: ClassVar[str] = "a source's configuration"

    freshness: Freshness | None = Field(None, description=FRESHNESS)
    loaded_at_field: Text | None = Field(None, description=LOADED_AT)


class Inherited(NamedTuple):
    """The check of a table with what it inherits from its source: None without a threshold. `loaded_at_field` is the
    time of a row. `locations` has the locations of `freshness`, `freshness.filter` and `loaded_at_field`.
    """

    freshness: Freshness | None
    loaded_at_field: str | None
    locations: Mapping[str, Location]


def inherit_freshness(node: YamlMapping, path: Path, findings: list[Finding]) -> Inherited:
    """Returns the check of the source table at `path` in a valid file.

    As in dbt, each key of the table beats that of its source, also in `freshness`, and a null removes it.
    """
    # From the weakest to the strongest: what comes later wins.
    levels = [(*level, *config) for level in (path[:2], path) for config in ((), ("config",))]
    values: dict[str, object] = {}
    loaded_at: str | None = None
    locations: dict[str, Location] = {}
    for level in levels:
        for key, key_location, value in entries_at(node, level):
            if key == "loaded_at_field":
                loaded_at = None if plain(value) is None else str(plain(value))
                locations[key] = value.location
            elif key == "freshness":
                locations[key] = key_location
                below = plain(value)
                values = {**values, **below} if isinstance(below, dict) else {}
                locations |= {f"{key}.{name}": each.location for name, _, each in entries_at(node, (*level, key))}
    freshness = Freshness.model_validate(values)
    if freshness.warn_after is None and freshness.error_after is None:
        return Inherited(None, loaded_at, locations)
    if freshness.filter is not None and loaded_at is None:
        findings.append(_unused_filter(locations["freshness.filter"]))
    return Inherited(freshness, loaded_at, locations)


def _unused_filter(location: Location) -> Finding:
    return Finding(
        "invalid-value",
        "`filter` has no effect without a `loaded_at_field`",
        "without it, the time comes from the files, commits or records of the source, and no rows are read",
        "set `loaded_at_field` to the column with the time of a row, or remove `filter`",
        location,
    )
