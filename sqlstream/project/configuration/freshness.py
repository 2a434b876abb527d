"""The freshness check of a source table: its keys in YAML, and what a table inherits from its source."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from sqlstream.errors import Finding
from sqlstream.project.configuration.fields import Document, Text
from sqlstream.project.values import Expression, Freshness, Threshold
from sqlstream.project.yaml import YamlMapping, YamlScalar, entries_at, follow, locate

Path = tuple[str | int, ...]

LOADED_AT = "The time of a row: a column or SQL expression (default: the time of the last file, commit or record)."
FRESHNESS = "How old the newest data can be, for `sqlstream source freshness`; `null` turns off an inherited check."


class ThresholdDocument(Document):
    """An age of the newest data."""

    label: ClassVar[str] = "a threshold of freshness"

    count: int = Field(ge=1, description="The number of periods.")
    period: Literal["minute", "hour", "day"] = Field(description="The unit: minute, hour or day.")


class FreshnessDocument(Document):
    """How old the newest data of a source can be."""

    label: ClassVar[str] = "a freshness check"

    warn_after: ThresholdDocument | None = Field(None, description="Warn if the newest data is older.")
    error_after: ThresholdDocument | None = Field(None, description="Fail if the newest data is older.")
    filter: Text | None = Field(
        None, description="A SQL condition: only these rows count. It needs a `loaded_at_field`."
    )


class SourceConfigDocument(Document):
    """The keys that dbt accepts in `config` of a source or table; outside of it they mean the same."""

    label: ClassVar[str] = "a source's configuration"

    freshness: FreshnessDocument | None = Field(None, description=FRESHNESS)
    loaded_at_field: Text | None = Field(None, description=LOADED_AT)


def build_freshness(node: YamlMapping, path: Path, findings: list[Finding]) -> Freshness | None:
    """Returns the check of the source table at `path` in a valid file, None if it has none.

    As in dbt, each key of the table beats that of its source, also in `freshness`, and a null removes it.
    """
    places = [(*place, *config) for place in (path[:2], path) for config in ((), ("config",))]
    thresholds: dict[str, Threshold | None] = {}
    condition: Expression | None = None
    location = None
    for place in places:
        entry = next((entry for entry in entries_at(node, place) if entry.key == "freshness"), None)
        if entry is None:
            continue
        location, below = entry.key_location, (*place, "freshness")
        if not isinstance(entry.value, YamlMapping):
            thresholds, condition = {}, None
        for name in (each.key for each in entries_at(node, below)):
            if name == "filter":
                condition = _expression(node, (*below, name))
            else:
                thresholds[name] = _threshold(node, (*below, name))
    warn_after, error_after = thresholds.get("warn_after"), thresholds.get("error_after")
    if location is None or (warn_after is None and error_after is None):
        return None
    freshness = Freshness(warn_after, error_after, location, _loaded_at(node, places), condition)
    findings.extend(_problems(freshness))
    return freshness


def _loaded_at(node: YamlMapping, places: list[Path]) -> Expression | None:
    given = [place for place in places if any(entry.key == "loaded_at_field" for entry in entries_at(node, place))]
    return _expression(node, (*given[-1], "loaded_at_field")) if given else None


def _threshold(node: YamlMapping, path: Path) -> Threshold | None:
    values = {entry.key: entry.value for entry in entries_at(node, path)}
    if not values:
        return None
    document = ThresholdDocument.model_validate(
        {key: value.value for key, value in values.items() if isinstance(value, YamlScalar)}
    )
    return Threshold(document.count, document.period)


def _expression(node: YamlMapping, path: Path) -> Expression | None:
    found = follow(node, path)
    if not isinstance(found, YamlScalar) or found.value is None:
        return None
    return Expression(str(found.value), locate(node, path))


def _problems(freshness: Freshness) -> list[Finding]:
    if freshness.filter is None or freshness.loaded_at_field is not None:
        return []
    return [
        Finding(
            "invalid-value",
            "`filter` has no effect without a `loaded_at_field`",
            "without it, the time comes from the files, commits or records of the source, and no rows are read",
            "set `loaded_at_field` to the column with the time of a row, or remove `filter`",
            freshness.filter.location,
        )
    ]
