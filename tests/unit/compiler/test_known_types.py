"""Types that sqlglot reads once."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from sqlstream.compiler.known_types import types_read_once
from sqlstream.compiler.sql.parse import parse_sql

CASTS = "select cast(a as char(3)), cast(b as varchar(9)), cast(c as array<varchar(2)>), cast(d as string), e::char"


def test_the_tree_is_the_same() -> None:
    """However often the types are asked for."""
    expected = sqlglot.parse_one(CASTS, read="spark")

    for _ in range(2):
        with types_read_once():
            assert sqlglot.parse_one(CASTS, read="spark") == expected
    assert parse_sql(CASTS).tree == expected


def test_who_changes_a_type_changes_its_own() -> None:
    """Each gets a copy."""
    with types_read_once():
        mine = exp.DataType.build("varchar")
        mine.set("this", exp.DType.INT)

        assert exp.DataType.build("varchar").sql() == "VARCHAR"


def test_sqlglot_is_as_it_was_afterwards() -> None:
    """Also where the text cannot be read."""
    before = sqlglot.parse_one

    with pytest.raises(sqlglot.ParseError), types_read_once():
        sqlglot.parse_one("select from where", read="spark")

    assert sqlglot.parse_one is before
