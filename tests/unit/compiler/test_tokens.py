"""Tokens of SQL by Spark's lexical rules; tests/spark compares them with Spark's own lexer."""

from __future__ import annotations

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from sqlstream.compiler.sql.tokens import SqlTokenError, TokenKind, Tokens, find_comments, tokenize


def _texts(sql: str) -> list[str]:
    return [token.text for token in tokenize(sql)]


@pytest.mark.parametrize(
    ("sql", "texts"),
    [
        ("select `a``b`, `c`", ["select", "`a``b`", ",", "`c`"]),
        ("'it''s' 'a\\'b' \"x\"\"y\"", ["'it''s'", "'a\\'b'", '"x""y"']),
        ("r'\\' R\"\\\"", ["r'\\'", 'R"\\"']),
        ("a -- b \\\n c\n d", ["a", "d"]),
        ("a /* b /* c */ d */ e", ["a", "e"]),
        ("1a.2b 1.5 1e5 1e-5 .5 2.5BD 10L", ["1a", ".", "2b", "1.5", "1e5", "1e-5", ".5", "2.5BD", "10L"]),
        ("a:b::int |> x -> y => z <=> w", ["a", ":", "b", "::", "int", "|>", "x", "->", "y", "=>", "z", "<=>", "w"]),
        ("array<array<int>> << 1", ["array", "<", "array", "<", "int", ">", ">", "<<", "1"]),
        ("$$ it's $$ $a$ $$ $a$", ["$$ it's $$", "$a$ $$ $a$"]),
        ("{# a #} {% b %}", ["{", "#", "a", "#", "}", "{", "%", "b", "%", "}"]),
    ],
)
def test_tokenize(sql: str, texts: list[str]) -> None:
    """Literals, identifiers, comments and operators end where Spark's lexer ends them."""
    assert _texts(sql) == texts


def test_a_hint_is_one_token() -> None:
    """A hint is one token with its own tokens inside, and a `*/` in a string does not end it."""
    hint = tokenize("select /*+ A('*/'), b /* c */ */ 1")[1]
    assert (hint.kind, hint.text) == (TokenKind.HINT, "/*+ A('*/'), b /* c */ */")
    assert [token.text for token in hint.inside] == ["A", "(", "'*/'", ")", ",", "b"]


def test_positions_are_characters() -> None:
    """Positions count characters, not bytes, also outside ASCII."""
    sql = "select '😀', `Grüße` from straße"
    assert [sql[token.start : token.end] for token in tokenize(sql)] == _texts(sql)
    assert tokenize(sql)[-1].start == sql.index("straße")


def test_quoted_words_are_not_keywords() -> None:
    """Only words and symbols have a key, so a quoted identifier is never a keyword."""
    assert [token.key for token in tokenize("Select `from` 'from' from ,")] == ["SELECT", "", "", "FROM", ","]
    assert [token.name for token in tokenize("`a``b` c")] == ["a`b", "c"]


@pytest.mark.parametrize(
    ("sql", "offset"),
    [
        ("select 'abc", 7),
        ("a 'it''s", 2),
        ('a "', 2),
        ("a `b``", 2),
        ("a /* b /* c */", 2),
        ("select /*+ a", 7),
        ("a $x$ b $$", 2),
        ("r'a", 1),
    ],
)
def test_a_missing_end_is_reported_at_the_start(sql: str, offset: int) -> None:
    """A string, quoted identifier, comment or hint without an end is reported where it starts."""
    with pytest.raises(SqlTokenError) as caught:
        tokenize(sql)
    assert caught.value.offset == offset


def _readable(sql: str) -> tuple[str, Tokens]:
    """Returns the readable beginning of `sql` and its tokens; an open hint may contain another open string."""
    try:
        return sql, tokenize(sql)
    except SqlTokenError as error:
        event("refused")
        return _readable(sql[: error.offset])


@example("/*+`")
@given(st.text(alphabet="a1.'\"`-/*+\\\n $e(é😀"))
def test_tokens_are_in_order(sql: str) -> None:
    """Tokens are in order, do not overlap, and equal the text at their position."""
    sql, tokens = _readable(sql)
    position = 0
    for token in tokens:
        assert position <= token.start < token.end
        assert sql[token.start : token.end] == token.text
        position = token.end


@given(st.text(alphabet="a1.'\"`-/*+\\\n $e(é😀"))
def test_only_blanks_and_comments_are_between_tokens(sql: str) -> None:
    """Tokens, comments and blanks together cover the whole text."""
    sql, tokens = _readable(sql)
    pieces = [(token.start, token.text) for token in tokens] + list(find_comments(sql))
    uncovered = list(sql)
    for start, text in pieces:
        assert sql.startswith(text, start)
        if not any(token.kind is TokenKind.HINT and token.start < start < token.end for token in tokens):
            assert None not in uncovered[start : start + len(text)]
        uncovered[start : start + len(text)] = [None] * len(text)  # type: ignore[list-item] # None: it is covered
    assert not "".join(filter(None, uncovered)).strip()
