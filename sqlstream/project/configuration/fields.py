"""The types of configuration fields: the values that YAML can have, and their JSON Schema for editors."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from sqlstream.project.configuration.trigger import (
    MAPPED,
    Retries,
    Trigger,
    invalid,
    parse_interval,
    parse_retries,
    parse_trigger,
)
from sqlstream.project.secret_text import OptionValue, SecretText
from sqlstream.project.wording import given

_NAME = re.compile(r"\w[\w-]*")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Document(BaseModel):
    """The base of all documents in YAML: frozen, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    called: ClassVar[str]
    """The words for the document in messages: `a sink`."""

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty_keys(cls, value: object) -> object:
        # As in dbt, a key without a value (`columns:`) is ignored; an unknown one is still an error.
        if isinstance(value, dict):
            return {key: item for key, item in value.items() if item is not None or key not in cls.model_fields}
        return {} if value is None else value


def is_name(text: str) -> bool:
    """Returns whether text can be the name of a view: letters, digits, `_` and `-`."""
    return _NAME.fullmatch(text) is not None


def _parse_text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise invalid(f"must be text, but is {given(value)}", "use text; put numbers and words like `no` in quotes")


def _parse_name(value: object) -> str:
    text = _parse_text(value)
    if is_name(text):
        return text
    raise invalid(
        f"cannot be {given(text)}", "use only letters, digits and `_`, because it becomes the name of a view in Spark"
    )


def _parse_sinks(value: object) -> str | tuple[str, ...]:
    if not isinstance(value, list | tuple):
        return _parse_name(value)
    names = tuple(map(_parse_name, value))
    if not names or len(set(names)) < len(names):
        raise invalid("needs at least one sink, and each only once", "for example, use `[archive, stats]`")
    return names


def _parse_identifier(value: object) -> str:
    text = _parse_text(value)
    if _IDENTIFIER.fullmatch(text):
        return text
    raise invalid(f"cannot be {given(text)}", "use only letters, digits and `_`, starting with a letter")


def format_name(text: str) -> str:
    """Returns the name of a format in Spark's spelling. Spark accepts any letter case. The name of a Java class stays
    unchanged.
    """
    return text if "." in text else _MIXED_CASE.get(text.lower(), text.lower())


_MIXED_CASE = {"binaryfile": "binaryFile"}


def _as_list(value: object) -> object:
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, str):
        return (value,)
    raise invalid(f"must be text or a list of texts, but is {given(value)}", "for example, use `[a, b]`")


def parse_option(value: object) -> OptionValue:
    """Returns an option's value as Spark's text. Raises: PydanticCustomError for lists and mappings."""
    if isinstance(value, str | SecretText):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    raise invalid(
        f"must be text, a number, true or false, but is {given(value)}", "use a single value; Spark expects text"
    )


def _parse_moment(value: object) -> datetime:
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        raise invalid(f"cannot be {given(value)}", "use a date, such as 2027-01-31") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _parse_delimiter(value: object) -> str:
    text = _parse_text(value)
    if len(text) == 1 and text not in '"\\\r\n\0':
        return text
    raise invalid(
        f"cannot be {given(text)}", 'use one character that is not a quote or backslash, such as ";" or "\\t"'
    )


def _parse_definition(value: object) -> object:
    if isinstance(value, str | dict) and value:
        return value
    raise invalid(
        f"must be text or a mapping, but is {given(value)}", "use a criterion, or `union:` with a list of criteria"
    )


def _parse_delay(value: object) -> str:
    return parse_interval(value, zero=True)


_TEXT_SCHEMA = {"type": "string"}
_OPTION_SCHEMA = {"type": ["string", "number", "boolean"]}
_INTERVAL_SCHEMA = {"type": "string", "examples": ["10 seconds", "5 minutes"]}
_DEFINITION_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "examples": ["tag:hourly", "orders+"]},
        {
            "type": "object",
            "properties": {
                "method": {"type": "string"},
                "value": {"type": ["string", "number", "boolean"]},
                "parents": {"type": "boolean"},
                "children": {"type": "boolean"},
                "childrens_parents": {"type": "boolean"},
                "parents_depth": {"type": "integer", "minimum": 1},
                "children_depth": {"type": "integer", "minimum": 1},
                "union": {"type": "array"},
                "intersection": {"type": "array"},
                "exclude": {"type": "array"},
            },
            "additionalProperties": True,
        },
    ]
}
_TRIGGER_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "examples": ["10 seconds", "available_now", "once"]},
        {
            "type": "object",
            "properties": dict.fromkeys(MAPPED, _INTERVAL_SCHEMA),
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        },
    ]
}

_RETRIES_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "integer", "minimum": 0, "examples": [3]},
        {
            "type": "object",
            "properties": {
                "attempts": {"type": "integer", "minimum": 0},
                "first_delay": _INTERVAL_SCHEMA,
                "longest_delay": _INTERVAL_SCHEMA,
                "window": _INTERVAL_SCHEMA,
            },
            "additionalProperties": False,
        },
    ]
}

Text = Annotated[str, BeforeValidator(_parse_text), WithJsonSchema(_TEXT_SCHEMA)]
Format = Annotated[str, BeforeValidator(_parse_text), AfterValidator(format_name), WithJsonSchema(_TEXT_SCHEMA)]
Lowered = Annotated[
    Literal["warn", "info", "ignore", "off"],
    BeforeValidator(lambda value: "off" if value is False else value),  # YAML 1.1 reads off as false
]
_NAME_SCHEMA = {"type": "string", "pattern": r"^\w[\w-]*$"}
Name = Annotated[str, BeforeValidator(_parse_name), WithJsonSchema(_NAME_SCHEMA)]
SinksField = Annotated[
    str | tuple[str, ...],
    PlainValidator(_parse_sinks),
    WithJsonSchema({"anyOf": [_NAME_SCHEMA, {"type": "array", "items": _NAME_SCHEMA}]}),
]
Identifier = Annotated[
    str, BeforeValidator(_parse_identifier), WithJsonSchema({"type": "string", "pattern": f"^{_IDENTIFIER.pattern}$"})
]
Names = Annotated[
    tuple[Text, ...],
    BeforeValidator(_as_list),
    WithJsonSchema({"anyOf": [_TEXT_SCHEMA, {"type": "array", "items": _TEXT_SCHEMA}]}),
]
Listed = Annotated[
    tuple[Any, ...],
    WithJsonSchema({"type": "array", "items": {"anyOf": [_TEXT_SCHEMA, {"type": "object"}]}}),
]
"""A list of names and mappings, which another document reads."""
OptionText = Annotated[OptionValue, PlainValidator(parse_option), WithJsonSchema(_OPTION_SCHEMA)]
Options = dict[str, OptionText]
TriggerField = Annotated[Trigger, PlainValidator(parse_trigger), WithJsonSchema(_TRIGGER_SCHEMA)]
RetriesField = Annotated[Retries, PlainValidator(parse_retries), WithJsonSchema(_RETRIES_SCHEMA)]
Moment = Annotated[
    datetime, PlainValidator(_parse_moment), WithJsonSchema({"type": "string", "examples": ["2027-01-31"]})
]
Delay = Annotated[str, PlainValidator(_parse_delay), WithJsonSchema(_INTERVAL_SCHEMA)]
Interval = Annotated[str, PlainValidator(parse_interval), WithJsonSchema(_INTERVAL_SCHEMA)]
Definition = Annotated[str | dict[str, Any], PlainValidator(_parse_definition), WithJsonSchema(_DEFINITION_SCHEMA)]
Delimiter = Annotated[
    str, PlainValidator(_parse_delimiter), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 1})
]
