"""The key `data_tests` of a model, with the names and the form of dbt: rules on its rows, and what happens to rows that
violate one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.fields import Document, Identifier, Names, Text
from sqlstream.project.configuration.trigger import invalid
from sqlstream.project.configuration.validate import Path, SeenNames, validate_node
from sqlstream.project.wording import did_you_mean, given, quoted_list
from sqlstream.project.yaml import (
    YamlEntry,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    follow,
)

Action = Literal["warn", "drop", "quarantine", "fail"]
"""What happens to a row that violates a rule: it is counted, it is left out, it is written to another sink instead, or
the query fails before it writes it.
"""


def _parse_value(value: object) -> object:
    if isinstance(value, str | int | float):
        return value
    raise invalid(f"must be text, a number, true or false, but is {given(value)}", "use a single value")


def _parse_bound(value: object) -> str:
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise invalid(f"must be a number or an SQL expression, but is {given(value)}", "for example, use 0 or current_date")


Value = Annotated[Any, BeforeValidator(_parse_value), WithJsonSchema({"type": ["string", "number", "boolean"]})]
Bound = Annotated[str, BeforeValidator(_parse_bound), WithJsonSchema({"type": ["string", "number"]})]


class DataTestConfig(Document):
    """The configuration of a data test."""

    called: ClassVar[str] = "the configuration of a data test"

    where: Text | None = Field(None, description="A condition; the test is about the rows that meet it.")
    on_violation: Action = Field(
        "warn",
        description="What happens to a row that violates the test: `warn` counts it, `drop` leaves it out, "
        "`quarantine` writes it to `quarantine_sink` instead, `fail` ends the query before it writes anything of the "
        "batch.",
    )
    enabled: bool = Field(True, description="Whether the rows are tested.")
    tags: Names = Field((), description="Tags; sqlstream only copies them to the manifest.")
    meta: dict[str, Any] = Field(default_factory=dict, description="Any values.")


class DataTestDocument(Document):
    """The keys of every data test; those of `config` can also be beside `name`."""

    called: ClassVar[str] = "a data test"

    name: Identifier | None = Field(
        None, description="The name of the rule (default: the test, the model and the column)."
    )
    description: Text = Field("", description="What the rule means.")
    config: DataTestConfig = Field(DataTestConfig(), description="The configuration.")
    where: Text | None = Field(None, description="The same as `where` in `config`.")
    on_violation: Action | None = Field(None, description="The same as `on_violation` in `config`.")


class NotNull(DataTestDocument):
    """The column has a value."""


class AcceptedValues(DataTestDocument):
    """The column has one of some values."""

    values: tuple[Value, ...] = Field(min_length=1, description="The accepted values.")
    quote: bool = Field(True, description="Whether texts are quoted; if not, each is an SQL expression.")


class AcceptedRange(DataTestDocument):
    """The column is between two values."""

    min_value: Bound | None = Field(None, description="The least value: a number or an SQL expression.")
    max_value: Bound | None = Field(None, description="The greatest value: a number or an SQL expression.")
    inclusive: bool = Field(True, description="Whether the two values themselves are accepted.")


class AcceptedLength(DataTestDocument):
    """The text in the column has a length between two numbers, in characters."""

    min_value: int | None = Field(None, ge=0, description="The least length.")
    max_value: int | None = Field(None, ge=0, description="The greatest length.")


class MatchesRegex(DataTestDocument):
    """The text in the column contains a match of a pattern."""

    regex: Text = Field(description="The regular expression, of Java; ^ and $ match the whole text.")


class ExpressionIsTrue(DataTestDocument):
    """A condition is true; at a column, it is what follows the column, such as `>= 0`."""

    expression: Text = Field(description="The condition; at a column, what follows the column, such as `>= 0`.")


KINDS: dict[str, type[DataTestDocument]] = {
    "not_null": NotNull,
    "accepted_values": AcceptedValues,
    "accepted_range": AcceptedRange,
    "accepted_length": AcceptedLength,
    "matches_regex": MatchesRegex,
    "expression_is_true": ExpressionIsTrue,
}
"""The tests by name."""

_OTHER_NAMES = {
    "dbt_utils.accepted_range": "accepted_range",
    "dbt_utils.expression_is_true": "expression_is_true",
    "dbt_expectations.expect_column_value_lengths_to_be_between": "accepted_length",
    "dbt_expectations.expect_column_values_to_be_between": "accepted_range",
    "dbt_expectations.expect_column_values_to_be_in_set": "accepted_values",
    "dbt_expectations.expect_column_values_to_match_regex": "matches_regex",
    "dbt_expectations.expect_column_values_to_not_be_null": "not_null",
    "dbt_expectations.expression_is_true": "expression_is_true",
}
"""Tests of dbt's packages, with those that do the same."""

_ABOUT_TABLES = {
    "unique": "a stream remembers no rows; `deduplicate` or `unique_key` make them unique",
    "relationships": "join the other table in the model, and test its column with not_null",
}
"""Tests of dbt that need more than one row, and what to do instead."""


@dataclass(frozen=True)
class DataTest:
    """A rule on the rows of a model, with its unique `name` in the model. `kind` is one of `KINDS`, `column` its
    column, None for a rule on the whole row.
    """

    name: str
    kind: str
    column: str | None
    document: DataTestDocument
    location: Location

    @property
    def where(self) -> str | None:
        """The condition of the rows that are tested."""
        return self.document.where or self.document.config.where

    @property
    def action(self) -> Action:
        """What happens to a row that violates the rule."""
        return self.document.on_violation or self.document.config.on_violation

    @property
    def leaves_out(self) -> bool:
        """Whether the model lacks a row that violates the rule."""
        return self.action in ("drop", "quarantine")


def read_data_tests(
    model: str, columns: Sequence[str], node: YamlMapping, path: Path, findings: list[Finding]
) -> tuple[DataTest, ...]:
    """Returns the enabled data tests of a model: those of its `columns`, and its own. `path` leads to its entry."""
    found: list[DataTest] = []
    for column, at in [*((name, (*path, "columns", index)) for index, name in enumerate(columns)), (None, path)]:
        listed = follow(node, (*at, "data_tests"))
        for item in listed.items if isinstance(listed, YamlSequence) else ():
            test = _read(model, column, item, findings)
            found += [test] if test is not None and test.document.config.enabled else []
    names = SeenNames(f"data tests of `{model}`")
    return tuple(test for test in found if names.add(test.name, test.location, findings))


def _read(model: str, column: str | None, item: YamlNode, findings: list[Finding]) -> DataTest | None:
    kind, body, location = _parts(item)
    document_class = KINDS.get(kind)
    if document_class is None:
        findings.append(_unknown(kind, location))
        return None
    document = validate_node(document_class, body, findings)
    problem = None if document is None else _problem(document, kind, column, location)
    if document is None or problem is not None:
        findings += [problem] if problem is not None else []
        return None
    default = "_".join(filter(None, (kind, model, column)))
    return DataTest(document.name or default, kind, column, document, location)


def _parts(item: YamlNode) -> tuple[str, YamlMapping, Location]:
    """Returns the test's kind, its keys and its location. Keys below `arguments` count as those beside it."""
    if isinstance(item, YamlScalar):
        return str(item.value), YamlMapping((), item.location), item.location
    entry = item.entries[0] if isinstance(item, YamlMapping) and item.entries else None
    if entry is None:
        return "", YamlMapping((), item.location), item.location
    body = entry.value if isinstance(entry.value, YamlMapping) else YamlMapping((), entry.key_location)
    return entry.key, YamlMapping(tuple(_flat(body)), entry.key_location), entry.key_location


def _flat(body: YamlMapping) -> Iterator[YamlEntry]:
    for entry in body.entries:
        if entry.key == "arguments" and isinstance(entry.value, YamlMapping):
            yield from entry.value.entries
        else:
            yield entry


def _unknown(kind: str, location: Location) -> Finding:
    other = _OTHER_NAMES.get(kind)
    fix = f"use {other}" if other is not None else _ABOUT_TABLES.get(kind) or did_you_mean(kind, list(KINDS))
    why = f"the tests of the rows of a stream are {quoted_list(list(KINDS), most=20)}"
    return Finding("invalid-value", f"{given(kind)} is not a data test that sqlstream has", why, fix, location)


def _problem(document: DataTestDocument, kind: str, column: str | None, location: Location) -> Finding | None:
    if column is None and kind != "expression_is_true":
        why = "it is about the values of one column"
        return Finding(
            "invalid-value", f"`{kind}` has no column", why, "move it to `data_tests:` of a column", location
        )
    if isinstance(document, AcceptedRange | AcceptedLength) and document.min_value is document.max_value is None:
        why = "without min_value and max_value every value is accepted"
        return Finding("missing-key", f"`{kind}` has no limit", why, "add min_value, max_value or both", location)
    return None
