"""Spark's DDL of types and schemas; the lists in schemas/ are one schema a line.

tests/spark/test_types.py asks Spark about the same lists.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstream.project.types.cursor import TypeSyntaxError
from sqlstream.project.types.parser import parse_schema, parse_type
from sqlstream.project.types.types import Array, Decimal, Field, Map, Primitive, Struct, Unknown, read_json_schema

SCHEMAS = Path(__file__).parent / "schemas"
GOOD = (SCHEMAS / "good.txt").read_text().splitlines()
BAD = (SCHEMAS / "bad.txt").read_text().splitlines()
UNSURE = (SCHEMAS / "unsure.txt").read_text().splitlines()


@pytest.mark.parametrize("ddl", GOOD)
def test_a_schema_is_read(ddl: str) -> None:
    """Each of Spark's types, its aliases, and what may follow it."""
    schema = parse_schema(ddl)

    assert isinstance(schema, Struct)
    assert all(field.name and not isinstance(field.type, Unknown) for field in schema.fields)


@pytest.mark.parametrize("ddl", BAD)
def test_what_spark_refuses_is_an_error_with_a_place(ddl: str) -> None:
    """The place lies within the text, or is its end; message, why and fix are one line each."""
    with pytest.raises(TypeSyntaxError) as raised:
        parse_schema(ddl)

    assert 0 <= raised.value.offset <= len(ddl)
    assert "\n" not in raised.value.message + raised.value.why + raised.value.fix


@pytest.mark.parametrize("ddl", UNSURE)
def test_what_only_spark_can_judge_is_no_error(ddl: str) -> None:
    """Collations, spatial references, and clauses of CREATE TABLE."""
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
def test_a_common_mistake_is_found_where_it_stands(ddl: str, at: str, fix: str) -> None:
    """With what was probably meant."""
    with pytest.raises(TypeSyntaxError) as raised:
        parse_schema(ddl)

    assert ddl[raised.value.offset :].startswith(at)
    assert fix in raised.value.fix


@pytest.mark.parametrize("blank", "\t\n\v\f\r\xa0\u1680\u2000\u200a\u2028\u202f\u205f\u3000")
def test_white_space_is_what_spark_takes_for_it(blank: str) -> None:
    """As all characters of these kinds were tried with Spark 4.3."""
    assert parse_schema(f"a{blank}int") == parse_schema("a int")


@pytest.mark.parametrize("sign", "\x00\x1c\x1d\x1e\x1f\x85\u180e\u200b\u2029\ufeff")
def test_other_blanks_of_unicode_are_refused(sign: str) -> None:
    """Python takes some of them for white space, and Spark does not."""
    with pytest.raises(TypeSyntaxError) as raised:
        parse_schema(f"a {sign} int")

    assert raised.value.offset == 2


def test_collations_and_comments_in_parts() -> None:
    """A collation may be named with its schema, and a comment given in pieces."""
    schema = parse_schema("""a string collate system.builtin.UTF8_LCASE comment 'x' "y" r'z'""")

    assert schema == Struct((Field("a", Primitive("string", collation="UTF8_LCASE"), comment="xyz"),))


def test_a_number_of_any_length_is_read() -> None:
    """Python itself turns no text of many thousand digits into a number."""
    assert _error_offset(f"a varchar({'9' * 10_000})") == 10


def test_a_schema_is_a_tree_of_types() -> None:
    """Names in back-quotes, aliases, nullability and comments included."""
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
    """A type of another library is Unknown at its place; text that is no schema is so as a whole."""
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
    """It gives a schema, an error within the text, or nothing that it can judge."""
    assert -1 <= _error_offset(ddl) <= len(ddl)


def _error_offset(ddl: str) -> int:
    try:
        parse_schema(ddl)
    except TypeSyntaxError as error:
        return error.offset
    return -1


def test_types_may_be_nested_deeply() -> None:
    """Up to what Python's own stack bears; beyond that, Spark judges."""
    assert isinstance(parse_type("array<" * 90 + "int" + ">" * 90), Array)
    assert isinstance(parse_type("array<" * 5000 + "int" + ">" * 5000), Unknown)
