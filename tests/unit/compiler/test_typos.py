"""Misspelt keywords, by a parser that stops at the word after each word that it does not know."""

from __future__ import annotations

from itertools import pairwise

import pytest

from sqlstream.compiler.spark_parser import SyntaxRefusal
from sqlstream.compiler.sql.sql_text import read_sql
from sqlstream.compiler.sql.typos import find_typos

KNOWN = frozenset(["a", "b", "t", "1", "2", "and", "between", "by", "from", "group", "having", "select", "where"])


def parse(sql: str) -> SyntaxRefusal | None:
    """Takes an unknown word for a name, and stops at what follows it."""
    tokens = read_sql(sql).tokens
    for token, following in pairwise(tokens):
        if token.text.lower() not in KNOWN:
            return SyntaxRefusal("", None, following.start)
    return None


@pytest.mark.parametrize(
    ("sql", "meant"),
    [
        ("select a from t gruop by a", {"gruop": "GROUP"}),
        ("select a form t wher a betwen 1 and 2", {"form": "FROM", "wher": "WHERE", "betwen": "BETWEEN"}),
        ("SELECT a FROM t GRUOP BY a", {"GRUOP": "GROUP"}),
        ("select a from t xyzzy by a", {}),
        ("select a from t `gruop` by a", {}),
    ],
)
def test_a_word_is_a_typo_where_the_parser_then_reads_on(sql: str, meant: dict[str, str]) -> None:
    """Several in one text are found together; what resembles no keyword, or is quoted, is none."""
    text, refusal = read_sql(sql), parse(sql)
    assert refusal is not None

    found = find_typos(text, refusal, parse)

    assert {text.tokens[typo.index].text: typo.keyword for typo in found} == meant


def test_a_refusal_without_a_place_has_no_typos() -> None:
    """Nobody knows where to look."""
    assert find_typos(read_sql("select a form t"), SyntaxRefusal("", None, None), parse) == ()
