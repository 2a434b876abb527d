"""Misspelt keywords, found with a test parser that stops after the first unknown word."""

from __future__ import annotations

from itertools import pairwise

import pytest

from sqlstream.compiler.spark_versions import SyntaxRefusal
from sqlstream.compiler.sql.grammar import find_typos
from sqlstream.compiler.sql.sql_text import read_sql

KNOWN = frozenset(["a", "b", "t", "1", "2", "and", "between", "by", "from", "group", "having", "select", "where"])


def parse(sql: str) -> SyntaxRefusal | None:
    """Returns a refusal at the token after the first unknown word, or None."""
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
def test_a_word_is_a_typo_if_a_keyword_fixes_it(sql: str, meant: dict[str, str]) -> None:
    """A word is a typo if the parser gets further with the keyword; several typos in one text are found together."""
    text, refusal = read_sql(sql), parse(sql)
    assert refusal is not None

    found = find_typos(text, refusal, parse)

    assert {text.tokens[typo.index].text: typo.keyword for typo in found} == meant


def test_a_refusal_without_a_place_has_no_typos() -> None:
    """A refusal without a place gives no typos."""
    assert find_typos(read_sql("select a form t"), SyntaxRefusal("", None, None), parse) == ()
