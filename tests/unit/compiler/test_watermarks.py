"""WATERMARK hints, with the cases in fixtures/watermarks, and properties for any SQL."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstream.compiler.rewrite.watermarks import place_watermarks
from sqlstream.compiler.sql.edits import SqlProblem, apply_edits
from sqlstream.compiler.sql.sql_text import read_sql
from sqlstream.compiler.sql.tokens import SqlTokenError, tokenize
from sqlstream.location import location_at
from tests.support.sql_cases import SqlCase, read_cases

CASES = read_cases("watermarks")


def _text(problem: SqlProblem, sql: str) -> str:
    at = location_at("", sql, problem.offset)
    return f"{problem.severity}: {problem.code} {at.line}:{at.column}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_place_watermarks(case: SqlCase) -> None:
    """Each case compiles to its expected SQL and findings."""
    edits, problems = place_watermarks(read_sql(case.before))
    assert tuple(_text(problem, case.before) for problem in problems) == case.findings
    if case.after is not None:
        assert apply_edits(case.before, edits).text == case.after


@pytest.mark.parametrize("case", [case for case in CASES if case.after], ids=lambda case: case.name)
def test_compiling_twice_changes_nothing(case: SqlCase) -> None:
    """Compiling compiled SQL again changes nothing, and every line keeps its number."""
    assert case.after is not None
    assert place_watermarks(read_sql(case.after))[0] == ()
    assert case.after.count("\n") == case.before.count("\n")


def test_each_text_of_a_problem_is_one_line() -> None:
    """Message, why and fix of a problem have one line, even if they quote SQL of several lines."""
    for case in CASES:
        spread = case.before.replace(" ", "\n") if "--" not in case.before else case.before
        for problem in place_watermarks(read_sql(spread))[1]:
            assert "\n" not in problem.message + problem.why + problem.fix
            assert not problem.message.endswith(".")


_PIECES = (
    *("select", "from", "join", "x", "y a", "(", ")", ",", "as", "where", "union", "|>", "with c as (", "on", "window"),
    *("/*+ WATERMARK(ts, '1 day') */", "/*+ WATERMARK(x.ts, '1 day'), BROADCAST(x) */", "lateral view", "group by"),
    *("-- it's\n", "/* ( */", "'from x'", "`ü`", "😀", "stream", "table", "values", "tablesample (1 rows)", "pivot ("),
    *("WATERMARK ts DELAY OF INTERVAL 1 DAY", "timestamp as of", "trim(from", ".", "*", "except", "from x", "select 1"),
)


@given(st.lists(st.sampled_from(_PIECES), max_size=25).map(" ".join))
def test_rewriting_keeps_all_other_tokens(sql: str) -> None:
    """Tokens outside the edits stay unchanged, and their offsets map back to the original text."""
    try:
        text = read_sql(sql)
    except SqlTokenError:
        return
    edited = apply_edits(sql, place_watermarks(text)[0])
    kept = [
        token
        for token in text.tokens
        if not any(edit.start < token.end and token.start < edit.end for edit in edited.edits)
    ]
    after = {edited.original_offset(token.start): token.text for token in tokenize(edited.text)[::-1]}
    for token in kept:
        assert edited.text.count(token.text) >= 1
        assert after[token.start] == token.text or any(edit.start == token.start for edit in edited.edits)
