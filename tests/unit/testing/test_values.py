"""Which written values fit which types, and how they are converted."""

from __future__ import annotations

import pytest

from sqlstream.project.types.data_types import Field
from sqlstream.project.types.ddl import parse_type
from sqlstream.project.yaml import YamlMapping, parse_yaml
from sqlstream.testing.fixture_values import Json, ValueReader


def read(text: str, data_type: str) -> tuple[Json, list[str]]:
    """Returns the JSON of the YAML value `text`, and the heads of its findings."""
    row = parse_yaml(f"v: {text}", "t.yml")
    assert isinstance(row, YamlMapping)
    reader = ValueReader("the input", [])
    (value,) = reader.row(row, [Field("v", parse_type(data_type))])
    return value, [f"{finding.code} {finding.location}" for finding in reader.findings]


@pytest.mark.parametrize(
    ("text", "data_type", "value"),
    [
        ("01234", "string", "01234"),
        ("12:02", "string", "12:02"),
        ("no", "string", "no"),
        ("1.10", "string", "1.10"),
        ("null", "string", None),
        ("'null'", "string", "null"),
        ("", "int", None),
        ("''", "string", ""),
        ("007", "int", "007"),
        ("-128", "tinyint", "-128"),
        ("9223372036854775807", "bigint", "9223372036854775807"),
        ("1.10", "decimal(4,2)", "1.10"),
        ("99.99", "decimal(4,2)", "99.99"),
        ("1.500", "decimal(4,2)", "1.500"),
        ("1e3", "double", "1e3"),
        (".nan", "double", "nan"),
        ("-.inf", "double", "-inf"),
        ("99999999999999999999999999999999999999", "decimal(38,0)", "99999999999999999999999999999999999999"),
        ("1e3", "decimal(4,0)", "1e3"),
        ("{abc: 1}", "map<binary,int>", {"abc": "1"}),
        ("no", "boolean", "no"),
        ("T", "boolean", "T"),
        ("2024-02-29", "date", "2024-02-29"),
        ("0000-02-29", "date", "0000-02-29"),
        ("2024-01-01 12:02", "timestamp", "2024-01-01 12:02"),
        ("2024-01-01T12:02:03.123456+02:00", "timestamp", "2024-01-01T12:02:03.123456+02:00"),
        ("2024-01-01 12:02 Europe/Vienna", "timestamp", "2024-01-01 12:02 Europe/Vienna"),
        ("2024-01-01 12:02:03", "timestamp_ntz", "2024-01-01 12:02:03"),
        ("abc", "binary", "YWJj"),
        ("X'00ff'", "binary", "AP8="),
        ("[1, null]", "array<int>", ["1", None]),
        ("{a: 1, 2: null}", "map<string,int>", {"a": "1", "2": None}),
        ("{a: {b: [x]}}", "struct<a:struct<b:array<string>>>", {"a": {"b": ["x"]}}),
        ("{A: 1}", "struct<a:int,b:int>", {"a": "1", "b": None}),
        ("{a: [1, x, null, true]}", "variant", {"a": [1, "x", None, True]}),
        ("'[1, 2]'", "array<int>", ["1", "2"]),
        ("'{\"a\": 1.10}'", "struct<a:decimal(4,2)>", {"a": "1.10"}),
    ],
)
def test_a_value_keeps_its_text(text: str, data_type: str, value: Json) -> None:
    """A value keeps its text, which Spark casts; lists, mappings, bytes and variants have their own forms."""
    if text == ".nan":
        assert read("NaN", data_type) == ("NaN", [])
        return
    assert read(text, data_type) == (value, [])


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("x", "int"),
        ("1.5", "int"),
        ("128", "tinyint"),
        ("-2147483649", "int"),
        ("1.234", "decimal(4,2)"),
        ("100", "decimal(4,2)"),
        ("12345678901234567890123456789.125", "decimal(38,2)"),
        ("100000000000000000000000000000000000000", "decimal(38,0)"),
        ("2024-01-01 23:59", "date"),
        ("x", "double"),
        ("maybe", "boolean"),
        ("2024-02-30", "date"),
        ("12:02", "timestamp"),
        ("2024-01-01 25:00", "timestamp"),
        ("2024-01-01 noon", "timestamp"),
        ("1", "void"),
        ("[1]", "int"),
        ("{a: 1}", "string"),
        ("x", "array<int>"),
        ("[1]", "struct<a:int>"),
        ("5", "map<string,int>"),
    ],
)
def test_wrong_values_are_located(text: str, data_type: str) -> None:
    """A value that Spark would refuse or silently change is reported at its location."""
    value, found = read(text, data_type)

    assert value is None
    assert [head.split(":")[0] for head in found] == ["unit-test-value t.yml"]


def test_wrong_values_in_a_list_are_located() -> None:
    """Wrong values in a list are reported at their own locations."""
    assert read("[1, x, {a: 1}]", "array<int>")[1] == ["unit-test-value t.yml:1:8", "unit-test-value t.yml:1:11"]


def test_an_unknown_field_is_located() -> None:
    """An unknown field of a struct is reported at its name, as an unknown column is."""
    assert read("{a: 1, c: 2}", "struct<a:int,b:int>")[1] == ["unit-test-column t.yml:1:11"]
