"""The key `data_tests` of a model, with the names and the form of dbt: rules on its rows, and what happens to rows that
violate one.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, create_model

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.fields import Document, Identifier, Names, Text
from sqlstream.project.configuration.generic_tests import COLUMN, GenericTest
from sqlstream.project.configuration.reference_calls import ReferenceCall, read_call
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
    locate,
)

Action = Literal["warn", "drop", "quarantine", "fail"]
"""What happens to a row that violates a rule: it is counted, it is left out, it is written to another sink instead, or
the query fails before it writes it.
"""

Verdict = Literal["pass", "warn", "fail"]
"""The result of a test of stored rows."""

_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}

_THRESHOLD = re.compile(r"\s*(==?|!=|<>|<=?|>=?)\s*(\d+)\s*")


def _parse_threshold(value: object) -> str:
    if isinstance(value, str) and _THRESHOLD.fullmatch(value):
        return value.strip()
    raise invalid(
        f"must be a comparison with a number of failures, but is {given(value)}", 'for example, use "> 10" or "!= 0"'
    )


def _parse_severity(value: object) -> object:
    return value.lower() if isinstance(value, str) else value  # as in dbt, where `ERROR` is common


def _parse_parent(value: object) -> str:
    if isinstance(value, str) and read_call(value) is not None:
        return value
    raise invalid(
        f"must be one call of ref() or source() with names in quotes, but is {given(value)}",
        "for example, use ref('customers') or source('shop', 'customers')",
    )


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
Threshold = Annotated[str, BeforeValidator(_parse_threshold)]
Severity = Annotated[Literal["error", "warn"], BeforeValidator(_parse_severity)]
Parent = Annotated[str, BeforeValidator(_parse_parent)]
Bound = Annotated[str, BeforeValidator(_parse_bound), WithJsonSchema({"type": ["string", "number"]})]


class StoredTestConfig(Document):
    """How `sqlstream test --data` judges the failures of a data test; without effect while rows flow."""

    severity: Severity = Field(
        "error", description="Whether failures are errors or warnings for `sqlstream test --data`."
    )
    warn_if: Threshold = Field(
        "!= 0", description="The numbers of failures with which `sqlstream test --data` warns, such as `> 10`."
    )
    error_if: Threshold = Field(
        "!= 0",
        description="The numbers of failures with which the test fails in `sqlstream test --data`, such as `> 100`.",
    )
    limit: int | None = Field(
        None, ge=1, description="The most failures that `sqlstream test --data` stores (default: all)."
    )
    store_failures: bool | None = Field(
        None,
        description="Whether `sqlstream test --data` stores the failures as Parquet files in target/data_tests/ "
        "(default: only with --store-failures).",
    )


class DataTestConfig(StoredTestConfig):
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


class DataTestDocument(StoredTestConfig):
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


class Unique(DataTestDocument):
    """No two rows have the same value in the column; only `sqlstream test --data` checks it."""


class UniqueCombinationOfColumns(DataTestDocument):
    """No two rows have the same values in some columns; only `sqlstream test --data` checks it."""

    combination_of_columns: tuple[Text, ...] = Field(min_length=1, description="The names of the columns.")


class Relationships(DataTestDocument):
    """Each value of the column is in a column of another table; only `sqlstream test --data` checks it."""

    to: Parent = Field(
        description="The other table: `ref('...')` of a model with a sink or of a seed, or `source('...', '...')`."
    )
    field: Text = Field(description="The column of the other table.")


class GenericArguments(DataTestDocument):
    """The keys of a generic test of the project: those of every data test, and its own, in fields with other names."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The given arguments by name."""
        fields = type(self).model_fields.items()
        given = {name: field.alias for name, field in fields if name in self.model_fields_set}
        return {alias: getattr(self, name) for name, alias in given.items() if alias is not None}


KINDS: dict[str, type[DataTestDocument]] = {
    "not_null": NotNull,
    "accepted_values": AcceptedValues,
    "accepted_range": AcceptedRange,
    "accepted_length": AcceptedLength,
    "matches_regex": MatchesRegex,
    "expression_is_true": ExpressionIsTrue,
    "unique": Unique,
    "unique_combination_of_columns": UniqueCombinationOfColumns,
    "relationships": Relationships,
}
"""The tests by name."""

_OF_TABLES = ("unique", "unique_combination_of_columns", "relationships")
"""The tests that compare rows with others, which only `sqlstream test --data` can do."""

_OF_MODELS = ("expression_is_true", "unique_combination_of_columns")
"""The tests that need no column."""

_OTHER_NAMES = {
    "dbt_utils.accepted_range": "accepted_range",
    "dbt_utils.expression_is_true": "expression_is_true",
    "dbt_utils.unique_combination_of_columns": "unique_combination_of_columns",
    "dbt_expectations.expect_column_value_lengths_to_be_between": "accepted_length",
    "dbt_expectations.expect_column_values_to_be_between": "accepted_range",
    "dbt_expectations.expect_column_values_to_be_in_set": "accepted_values",
    "dbt_expectations.expect_column_values_to_match_regex": "matches_regex",
    "dbt_expectations.expect_column_values_to_not_be_null": "not_null",
    "dbt_expectations.expression_is_true": "expression_is_true",
}
"""Tests of dbt's packages, with those that do the same."""


@dataclass(frozen=True)
class DataTest:
    """A rule on the rows of a model, with its unique `name` in the model. `kind` is one of `KINDS` or the name of a
    generic test, `column` its column, None for a rule on the whole row. `action_location` is that of `on_violation`.

    The compiler renders generic tests: `query` selects the rows that fail. `fails_if` is its condition, None if it is
    not only a filter; `not_plain` then says why. `references` are the other tables that it reads.
    """

    name: str
    kind: str
    column: str | None
    document: DataTestDocument
    location: Location
    action_location: Location | None = field(default=None, compare=False)
    query: str | None = None
    fails_if: str | None = None
    not_plain: str = ""
    references: tuple[ReferenceCall, ...] = ()

    @property
    def is_generic(self) -> bool:
        """Whether the project defines the test."""
        return isinstance(self.document, GenericArguments)

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

    @property
    def is_of_table(self) -> bool:
        """Whether the test is not about single rows, so that only `sqlstream test --data` checks it."""
        return self.fails_if is None if self.is_generic else self.kind in _OF_TABLES

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns whose values no two rows share; empty for other tests."""
        if isinstance(self.document, UniqueCombinationOfColumns):
            return self.document.combination_of_columns
        return (self.column,) if isinstance(self.document, Unique) and self.column is not None else ()

    @property
    def parent(self) -> ReferenceCall | None:
        """The other table of `relationships`; None for other tests."""
        return read_call(self.document.to) if isinstance(self.document, Relationships) else None

    @property
    def severity(self) -> str:
        """Whether failures are an `error` or only `warn`."""
        return self._of("severity").severity

    @property
    def limit(self) -> int | None:
        """The most failures to store, None for all."""
        return self._of("limit").limit

    @property
    def store_failures(self) -> bool | None:
        """Whether to store failures, None if only the command decides."""
        return self._of("store_failures").store_failures

    def judge(self, failures: int) -> Verdict:
        """Returns the result of the test for a number of failures, as in dbt: `error_if` counts with the severity
        `error`, and then `warn_if`.
        """
        if self.severity == "error" and _meets(failures, self._of("error_if").error_if):
            return "fail"
        return "warn" if _meets(failures, self._of("warn_if").warn_if) else "pass"

    def _of(self, key: str) -> StoredTestConfig:
        """Returns where `key` is set: beside `name`, or in `config`."""
        return self.document if key in self.document.model_fields_set else self.document.config


def _meets(failures: int, threshold: str) -> bool:
    found = _THRESHOLD.fullmatch(threshold)
    return found is not None and _COMPARISONS[found[1]](failures, int(found[2]))


def read_data_tests(
    model: str,
    columns: Sequence[str],
    node: YamlMapping,
    path: Path,
    findings: list[Finding],
    generic: Mapping[str, GenericTest] = {},
) -> tuple[DataTest, ...]:
    """Returns the enabled data tests of a model: those of its `columns`, and its own. `path` leads to its entry, and
    `generic` are the tests that the project defines.
    """
    found: list[DataTest] = []
    for column, at in [*((name, (*path, "columns", index)) for index, name in enumerate(columns)), (None, path)]:
        listed = follow(node, (*at, "data_tests"))
        for item in listed.items if isinstance(listed, YamlSequence) else ():
            test = _read(model, column, item, findings, generic)
            found += [test] if test is not None and test.document.config.enabled else []
    names = SeenNames(f"data tests of `{model}`")
    return tuple(test for test in found if names.add(test.name, test.location, findings))


def _read(
    model: str, column: str | None, item: YamlNode, findings: list[Finding], generic: Mapping[str, GenericTest]
) -> DataTest | None:
    kind, body, location = _parts(item)
    own = generic.get(kind)
    document_class = KINDS.get(kind) if own is None else _document_of(own, column)
    if document_class is None:
        findings.append(_unknown(kind, location, generic))
        return None
    document = validate_node(document_class, body, findings)
    if own is not None:
        kind, problem = own.name, _generic_problem(own, column, body)
    else:
        problem = None if document is None else _problem(document, kind, column, body)
    if document is None or problem is not None:
        findings += [problem] if problem is not None else []
        return None
    default = "_".join(filter(None, (kind, model, column)))
    action_location = locate(body, _path_of_action(document))
    return DataTest(document.name or default, kind, column, document, location, action_location)


def _path_of_action(document: DataTestDocument) -> Path:
    return ("on_violation",) if document.on_violation is not None else ("config", "on_violation")


def _document_of(test: GenericTest, column: str | None) -> type[GenericArguments]:
    """Returns the document with the arguments of a generic test. That of a column gets the column from its place."""
    names = [name for name in test.parameters if column is None or name != COLUMN]
    # Other names for the fields, because an argument can have the name of a method of pydantic.
    fields: dict[str, Any] = {
        f"argument_{at}": (Any, Field(None if test.parameters[name] else ..., alias=name))
        for at, name in enumerate(names)
        if name not in DataTestDocument.model_fields
    }
    document = create_model(f"Test_{test.name}", __base__=GenericArguments, **fields)
    document.called = f"the data test `{test.name}`"
    return document


def _generic_problem(test: GenericTest, column: str | None, body: YamlMapping) -> Finding | None:
    reserved = next((name for name in test.parameters if name in DataTestDocument.model_fields), None)
    if reserved is not None:
        what = f"the data test `{test.name}` has a parameter `{reserved}`"
        why = f"every data test has the key `{reserved}`, so no argument can have this name"
        return Finding("data-test", what, why, "rename the parameter", test.location)
    if column is not None and COLUMN not in test.parameters:
        what = f"`{test.name}` cannot be a test of one column"
        why = f"{test.location} defines it without the parameter `{COLUMN}`"
        return Finding("invalid-value", what, why, "move it to `data_tests:` of the model", body.location)
    return None


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


def _unknown(kind: str, location: Location, generic: Mapping[str, GenericTest]) -> Finding:
    other, known = _OTHER_NAMES.get(kind), list(dict.fromkeys((*KINDS, *(test.name for test in generic.values()))))
    fix = f"use {other}" if other is not None else did_you_mean(kind, known)
    why = f"the data tests are {quoted_list(known, most=20)}; a {{% test %}} block defines others"
    return Finding("invalid-value", f"{given(kind)} is not a data test that sqlstream has", why, fix, location)


def _problem(document: DataTestDocument, kind: str, column: str | None, body: YamlMapping) -> Finding | None:
    location = body.location
    if column is None and kind not in _OF_MODELS:
        why = "it is about the values of one column"
        return Finding(
            "invalid-value", f"`{kind}` has no column", why, "move it to `data_tests:` of a column", location
        )
    if column is not None and kind == "unique_combination_of_columns":
        why, fix = "it is about several columns", "move it to `data_tests:` of the model, or use `unique`"
        return Finding("invalid-value", f"`{kind}` cannot be a test of one column", why, fix, location)
    if isinstance(document, AcceptedRange | AcceptedLength) and document.min_value is document.max_value is None:
        why = "without min_value and max_value every value is accepted"
        return Finding("missing-key", f"`{kind}` has no limit", why, "add min_value, max_value or both", location)
    action = document.on_violation or document.config.on_violation
    if kind in _OF_TABLES and action != "warn":
        what = f"`{kind}` cannot have on_violation: {action}"
        why = "a stream does not compare its rows with others, so only `sqlstream test --data` checks this test"
        return Finding("data-test", what, why, "remove on_violation", locate(body, _path_of_action(document)))
    return None
