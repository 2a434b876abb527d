"""Converts values of fixtures to JSON that Spark casts to the declared types, reports values that do not fit, and
converts rows back to values that a fixture reads as the same rows (`written_value`).

Scalars keep their text from the file, and Spark casts it: `01234` is a number only if its type is one, and `no` is a
boolean only if its type is one. Values that are refused here, without Java, are those that Spark would also refuse or
change silently. Spark checks the rest (Spark's documentation, "ANSI Compliance", Cast).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal as Number
from decimal import InvalidOperation

from sqlstream.errors import Finding
from sqlstream.project.types.data_types import Array, DataType, Decimal, Field, Map, Primitive, Struct, Unknown
from sqlstream.project.wording import did_you_mean, given, quoted, quoted_list
from sqlstream.project.yaml import YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence, from_plain, plain

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_WHOLE = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
"""The integer types and their bits."""

_INTEGER = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(r"(?i)[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?[df]?|[+-]?\.?inf(inity)?|\.?nan")
_YAML_FLOAT = re.compile(r"(?i)([+-]?)\.(inf|nan)")
_BOOLEAN = re.compile(r"(?i)t|true|y|yes|1|f|false|n|no|0")
_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?P<rest>[ T].*)?)?)?")
_CLOCK = re.compile(r"[ T]?(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.\d*)?)?)?(?P<zone>\s*(?:Z|[+-].+|[A-Za-z].*))?")
_HEXADECIMAL = re.compile(r"[xX]'((?:[0-9A-Fa-f]{2})*)'")

_FIXES = {
    "boolean": "use true or false",
    "date": "use for example 2024-01-31",
    "timestamp": "use for example 2024-01-31 12:00, with seconds and a time zone if needed",
    "timestamp_ntz": "use for example 2024-01-31 12:00:00, without a time zone",
}


class ValueReader:
    """Converts nodes to JSON, and reports values that do not fit in `findings`.

    `where` names what the rows belong to, such as `the input source('iot', 'signals')`.
    """

    def __init__(self, where: str, findings: list[Finding]) -> None:
        self._where = where
        self.findings = findings

    def row(self, row: YamlMapping, columns: Sequence[Field]) -> list[Json]:
        """Returns the values of a row in the order of `columns`, null for columns that it leaves out."""
        return self._fields(row, columns, f"column of {self._where}")

    def _fields(self, row: YamlMapping, fields: Sequence[Field], what: str) -> list[Json]:
        """Returns the values of a row or a struct. `what` describes its fields in messages."""
        by_name = {entry.key.casefold(): entry for entry in row.entries}
        names = [field.name for field in fields]
        known = {name.casefold() for name in names}
        for entry in row.entries:
            if entry.key.casefold() not in known:
                self._unknown(entry, names, what)
        return [self._field(by_name.get(field.name.casefold()), field) for field in fields]

    def _field(self, entry: YamlEntry | None, field: Field) -> Json:
        return None if entry is None else self.value(entry.value, field.type, field.name)

    def value(self, node: YamlNode, wanted: DataType, name: str) -> Json:
        """Returns the JSON of a value of type `wanted` for the column or field `name`; null if the type is unknown."""
        if isinstance(wanted, Unknown):
            return None
        if isinstance(node, YamlScalar):
            return self._scalar(node, wanted, name)
        if isinstance(wanted, Primitive) and wanted.name == "variant":
            return _natural(node)
        if isinstance(node, YamlSequence) and isinstance(wanted, Array):
            return [self.value(item, wanted.element, name) for item in node.items]
        if isinstance(node, YamlMapping) and isinstance(wanted, Map):
            return {
                str(self._key(entry, wanted, name)): self.value(entry.value, wanted.value, name)
                for entry in node.entries
            }
        if isinstance(node, YamlMapping) and isinstance(wanted, Struct):
            values = self._fields(node, wanted.fields, f"field of {quoted(name)}")
            return {field.name: value for field, value in zip(wanted.fields, values, strict=True)}
        is_json = isinstance(wanted, Primitive) and wanted.name == "string"
        fix = "use text, for example JSON in single quotes" if is_json else _shape(wanted)
        self._misfit(node, wanted, name, f"it is {given(plain(node))}", fix)
        return None

    def _key(self, entry: YamlEntry, wanted: Map, name: str) -> Json:
        if isinstance(wanted.key, Primitive) and wanted.key.name == "binary":
            return entry.key  # JSON keys are text, which Spark casts
        return self._scalar(YamlScalar(entry.key, entry.key, entry.key_location), wanted.key, name)

    def _scalar(self, node: YamlScalar, wanted: DataType, name: str) -> Json:
        if node.value is None:
            return None
        if isinstance(wanted, Array | Map | Struct):
            return self._nested_text(node, wanted, name)
        if isinstance(wanted, Primitive) and wanted.name == "variant":
            return _natural(node)
        problem = value_problem(node.text, wanted)
        if problem is not None:
            self._misfit(
                node, wanted, name, problem, _FIXES.get(str(wanted), "fix the value, or the type of the column")
            )
            return None
        if isinstance(wanted, Primitive) and wanted.name == "binary":
            return base64.b64encode(_bytes(node.text)).decode()  # as Spark's parser of JSON reads bytes
        if isinstance(wanted, Primitive) and wanted.name in ("float", "double"):
            return _YAML_FLOAT.sub(r"\1\2", node.text.strip())  # Spark casts `inf`, and not YAML's `.inf`
        return node.text

    def _nested_text(self, node: YamlScalar, wanted: DataType, name: str) -> Json:
        """Reads a list or mapping from the JSON in a cell of a CSV file."""
        try:
            value = json.loads(node.text, parse_float=Number) if node.text.lstrip()[:1] in ("[", "{") else None
        except ValueError:
            value = None
        if not isinstance(value, list | dict):
            self._misfit(node, wanted, name, f"it is {given(node.value)}", _shape(wanted))
            return None
        return self.value(from_plain(value, node.location), wanted, name)

    def _unknown(self, entry: YamlEntry, names: Sequence[str], what: str) -> None:
        self.findings.append(
            Finding(
                "unit-test-column",
                f"{quoted(entry.key)} is not a {what}",
                f"the names are {quoted_list(names)}" if names else "there are none",
                did_you_mean(entry.key, names),
                entry.key_location,
            )
        )

    def _misfit(self, node: YamlNode, wanted: DataType, name: str, why: str, fix: str) -> None:
        shown = quoted(node.text) if isinstance(node, YamlScalar) else given(plain(node))
        what = f"{shown} does not fit {quoted(name)}, whose type is {wanted}"
        self.findings.append(Finding("unit-test-value", what, why, fix, node.location))


class UnwritableError(ValueError):
    """A value that a fixture cannot contain; the message is a part of a sentence."""


def written_value(value: object, type_: DataType) -> object:
    """Returns the value of a fixture that is read as `value`, which is JSON with `Decimal` for numbers with a point.

    Raises: UnwritableError.
    """
    if value is None or isinstance(type_, Unknown):
        return value
    if isinstance(type_, Array) and isinstance(value, list):
        return [written_value(item, type_.element) for item in value]
    if isinstance(type_, Map) and isinstance(value, dict):
        return {_written_key(key, type_.key): written_value(item, type_.value) for key, item in value.items()}
    if isinstance(type_, Struct) and isinstance(value, dict):
        types = {field.name: field.type for field in type_.fields}
        return {name: written_value(item, types[name]) for name, item in value.items()}
    name = type_.name if isinstance(type_, Primitive) else ""
    if name == "binary" and isinstance(value, str):
        return f"X'{base64.b64decode(value).hex().upper()}'"
    return _written_number(value, exactly=name == "variant")


def _written_key(key: str, type_: DataType) -> str:
    if isinstance(type_, Array | Map | Struct):
        raise UnwritableError(f"a map has keys of the type {type_}")
    if "\ufffd" in key and isinstance(type_, Primitive) and type_.name == "binary":
        raise UnwritableError("a map has binary keys that are not UTF-8 text")
    return key


def _written_number(value: object, *, exactly: bool) -> object:
    """Returns numbers with a point as floats if they keep all digits, otherwise as text, which Spark casts. `exactly`:
    the value is in a variant, which would keep the text.
    """
    if isinstance(value, Number):
        is_exact = value == Number(repr(float(value)))
        if exactly and not is_exact:
            raise UnwritableError(f"the variant {value} has more digits than a float")
        return float(value) if is_exact else str(value)
    if exactly and isinstance(value, dict):
        return {key: _written_number(item, exactly=True) for key, item in value.items()}
    if exactly and isinstance(value, list):
        return [_written_number(item, exactly=True) for item in value]
    return value


def value_problem(text: str, wanted: DataType) -> str | None:
    """Returns why `text` is not a value of a scalar type, None if it is or only Spark can decide."""
    if isinstance(wanted, Decimal):
        return _decimal_problem(text.strip(), wanted)
    if not isinstance(wanted, Primitive):
        return None
    if wanted.name in _WHOLE:
        return _whole_problem(text.strip(), _WHOLE[wanted.name])
    if wanted.name in ("float", "double"):
        return None if _FLOAT.fullmatch(text.strip()) else "it is not a number"
    if wanted.name == "boolean":
        return None if _BOOLEAN.fullmatch(text.strip()) else "it is neither true nor false"
    if wanted.name in ("date", "timestamp", "timestamp_ntz"):
        return _time_problem(text.strip(), with_clock=wanted.name != "date")
    return "its only value is null" if wanted.name == "void" else None


def _whole_problem(text: str, bits: int) -> str | None:
    if not _INTEGER.fullmatch(text):
        return "it is not a whole number"
    half = 2 ** (bits - 1)
    return None if -half <= int(text) < half else f"it must be from {-half} to {half - 1}"


def _decimal_problem(text: str, wanted: Decimal) -> str | None:
    try:
        number = Number(text)
    except InvalidOperation:
        return "it is not a number"
    if not number.is_finite():
        return "it is not a number"
    _, digits, exponent = number.as_tuple()  # arithmetic would round to 28 digits
    written = "".join(map(str, digits))
    if isinstance(exponent, int) and -exponent - (len(written) - len(written.rstrip("0"))) > wanted.scale:
        return f"it has more than {wanted.scale} digits after the point, and Spark would round it"
    if number and number.adjusted() >= wanted.precision - wanted.scale:
        return f"it has more than {wanted.precision - wanted.scale} digits before the point"
    return None


def _time_problem(text: str, *, with_clock: bool) -> str | None:
    day = _DATE.fullmatch(text)
    if day is None:
        return "it is not a date" if not with_clock else "it is not a timestamp"
    year, month, number = int(day[1]), int(day[2] or 1), int(day[3] or 1)
    try:
        # Python knows the years 1 to 9999. In other years, 29 February may exist: Spark decides.
        date(year if 1 <= year <= 9999 else 9996, month, number)
    except ValueError:
        return "this day does not exist"
    rest = day["rest"]
    if rest is None:
        return None
    if not with_clock:
        return "Spark would drop the part after the day"
    clock = _CLOCK.fullmatch(rest)
    if clock is None:
        return "the part after the day is not a time"
    hours, minutes, seconds = (int(clock[part] or 0) for part in (1, 2, 3))
    return None if hours < 24 and minutes < 60 and seconds < 60 else "this time of day does not exist"


def _bytes(text: str) -> bytes:
    """Returns text as UTF-8, or the bytes of a literal as in Spark SQL: X'1C7D'."""
    match = _HEXADECIMAL.fullmatch(text)
    return bytes.fromhex(match[1]) if match else text.encode()


def _natural(node: YamlNode) -> Json:
    """Returns a value as YAML reads it, for a variant."""
    if isinstance(node, YamlSequence):
        return [_natural(item) for item in node.items]
    if isinstance(node, YamlMapping):
        return {entry.key: _natural(entry.value) for entry in node.entries}
    value = node.value
    if isinstance(value, Number):
        return float(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _shape(wanted: DataType) -> str:
    if isinstance(wanted, Array):
        return "use a list: [value, value]"
    if isinstance(wanted, Map):
        return "use a mapping: {key: value}"
    if isinstance(wanted, Struct):
        return "use a mapping: {" + ", ".join(f"{field.name}: value" for field in wanted.fields[:3]) + "}"
    return "use a single value"
