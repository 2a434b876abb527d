"""Spark's DDL of types and schemas. The lists in schemas/ have one schema per line.

tests/spark/test_types.py checks the same lists with Spark.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstream.project.types.data_types import Array, Decimal, Field, Map, Primitive, Struct, Unknown, read_json_schema
from sqlstream.project.types.ddl import TypeSyntaxError, parse_schema, parse_type

SCHEMAS = Path(__file__).parent / "schemas"
GOOD = (SCHEMAS / "good.txt").read_text().splitlines()
BAD = (SCHEMAS / "bad.txt").read_text().splitlines()
UNSURE = (SCHEMAS / "unsure.txt").read_text().splitlines()


@pytest.mark.parametrize("ddl", GOOD)
def test_a_schema_is_read(ddl: str) -> None:
    """The parser reads all of Spark's types, their aliases and their clauses."""
    schema = parse_schema(ddl)

    assert isinstance(schema, Struct)
    assert all(field.name and not isinstance(field.type, Unknown) for field in schema.fields)


@pytest.mark.parametrize("ddl", BAD)
def test_invalid_types_are_located_errors(ddl: str) -> None:
    """An error is located within the text or at its end; message, why and fix are one line each."""
    with pytest.raises(TypeSyntaxError) as raised:
        parse_schema(ddl)

    assert 0 <= raised.value.offset <= len(ddl)
    assert "\n" not in raised.value.message + raised.value.why + raised.value.fix


@pytest.mark.parametrize("ddl", UNSURE)
def test_types_that_only_spark_can_check_are_accepted(ddl: str) -> None:
    """Collations, spatial references and clauses of CREATE TABLE, which only Spark can check, are no errors."""
    assert isinstance(parse_schema(ddl), Struct | Unknown)


@pytest.mark.parametrize(
    ("ddl", "at", "fix"),
    [
        ("id bigint, kind strng", "strng", "`string`"),
        ("id bigint, kind text", "text", "`string`"),
        ("a array<map<string, struct<b: datetime>>>", "datetime", "`timestamp`"),
        ("a decimal(50, 2)", "decimal(50", "decimal(38,2)"),
        ("a varchar, b int", "varchar, b", "use `string`, or for example varchar(100)"),
        ("a number", "number", "did you mean `double` or `decimal(10,2)`?"),
        ("a: int", ": int", "colon"),
        ("a int b int", "b int", "comma"),
        ("order-id int", "-id", "`back-quotes`"),
        ("a string(20)", "(20)", "varchar(20)"),
        ("a array(int)", "(int)", "array<string>"),
        ("id int, größe int", "größe", "`back-quotes`"),
        ("a string collate", "", "utf8_lcase"),
        ("a varchar(99999999999)", "9999", "varchar(20)"),
    ],
)
def test_a_common_mistake_is_located(ddl: str, at: str, fix: str) -> None:
    """A common mistake is located and has a fix with the probable intention."""
    with pytest.raises(TypeSyntaxError) as raised:
        parse_schema(ddl)

    assert ddl[raised.value.offset :].startswith(at)
    assert fix in raised.value.fix


@pytest.mark.parametrize("blank", "\t\n\v\f\r\xa0\u1680\u2000\u200a\u2028\u202f\u205f\u3000")
def test_white_space_is_that_of_spark(blank: str) -> None:
    """White space is the same as for Spark 4.3, with which all such characters were tested."""
    assert parse_schema(f"a{blank}int") == parse_schema("a int")


@pytest.mark.parametrize("sign", "\x00\x1c\x1d\x1e\x1f\x85\u180e\u200b\u2029\ufeff")
def test_other_blanks_of_unicode_are_refused(sign: str) -> None:
    """Other Unicode blanks are refused as in Spark, although Python treats some as white space."""
    with pytest.raises(TypeSyntaxError) as raised:
        parse_schema(f"a {sign} int")

    assert raised.value.offset == 2


def test_collations_and_comments_in_parts() -> None:
    """A collation may have a schema name, and a comment may consist of several parts."""
    schema = parse_schema("""a string collate system.builtin.UTF8_LCASE comment 'x' "y" r'z'""")

    assert schema == Struct((Field("a", Primitive("string", collation="UTF8_LCASE"), comment="xyz"),))


def test_a_number_of_any_length_is_read() -> None:
    """A number with thousands of digits is read, although Python does not convert such text."""
    assert _error_offset(f"a varchar({'9' * 10_000})") == 10


def test_a_schema_is_a_tree_of_types() -> None:
    """A schema becomes a tree of types, with back-quoted names, aliases, nullability and comments."""
    schema = parse_schema(
        "`order id` LONG NOT NULL COMMENT 'key', lines array<struct<n: dec(5,2), tags map<string, time>>>"
    )

    lines = Array(
        Struct((Field("n", Decimal(5, 2)), Field("tags", Map(Primitive("string"), Primitive("time", ("6",))))))
    )
    assert schema == Struct(
        (Field("order id", Primitive("bigint"), nullable=False, comment="key"), Field("lines", lines))
    )
    assert schema.field("LINES") == Field("lines", lines)
    assert str(lines) == "array<struct<n:decimal(5,2),tags:map<string,time(6)>>>"


def test_the_json_of_a_schema_is_the_same_tree() -> None:
    """A schema in JSON gives the same tree; foreign types become Unknown in place, other text as a whole."""
    text = """{"type": "struct", "fields": [
      {"name": "a", "type": "long", "nullable": false, "metadata": {"comment": "key"}},
      {"name": "b", "type": {"type": "array", "elementType": "decimal(5,2)", "containsNull": false}},
      {"name": "c", "type": {"type": "map", "keyType": "string", "valueType": "interval day to second"}},
      {"name": "d", "type": {"type": "udt", "class": "x"}}]}"""

    schema = read_json_schema(text)

    assert isinstance(schema, Struct)
    assert schema.fields[:2] == (
        Field("a", Primitive("bigint"), nullable=False, comment="key"),
        Field("b", Array(Decimal(5, 2), contains_null=False)),
    )
    assert schema.fields[2].type == Map(Primitive("string"), Primitive("interval day to second"))
    assert isinstance(schema.fields[3].type, Unknown)
    assert isinstance(read_json_schema("[]"), Unknown)
    assert isinstance(read_json_schema("{"), Unknown)


_WORDS = (
    "a",
    "int",
    "array",
    "map",
    "struct",
    "<",
    ">",
    ",",
    ":",
    "(",
    ")",
    "5",
    "not",
    "null",
    "comment",
    "'x'",
    "`",
    "decimal",
    "interval",
    "day",
    "to",
    "-",
    '"',
    "string",
    "collate",
)


@given(st.lists(st.sampled_from(_WORDS), max_size=20).map(" ".join) | st.text(max_size=30))
def test_no_text_breaks_the_parser(ddl: str) -> None:
    """For any text the parser gives a schema, an error within the text, or a result that only Spark can check."""
    assert -1 <= _error_offset(ddl) <= len(ddl)


def _error_offset(ddl: str) -> int:
    try:
        parse_schema(ddl)
    except TypeSyntaxError as error:
        return error.offset
    return -1


def test_types_can_be_nested_deeply() -> None:
    """Types can be nested as deeply as Python's stack allows; deeper ones are left to Spark."""
    assert isinstance(parse_type("array<" * 90 + "int" + ">" * 90), Array)
    assert isinstance(parse_type("array<" * 5000 + "int" + ">" * 5000), Unknown)
