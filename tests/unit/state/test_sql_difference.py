"""Finds the first difference between two texts of SQL."""

from __future__ import annotations

import pytest

from sqlstream.state.sql_difference import sql_difference

SQL = (
    "select /*+ WATERMARK(ts, '10 minutes') */ window.start as hour, sum(amount) as total\n"
    "from orders\ngroup by window(ts, '1 hour'), kind"
)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("sum(amount)", "sum(amount * 1000)", "`sum(amount) as total` is now `sum(amount * 1000) as total`"),
        ("from orders", "from orders where amount > 3", "`where amount > 3` is new"),
        ("'1 hour'", "'5 minutes'", "`'1 hour'` is now `'5 minutes'`"),
        ("'10 minutes'", "'20 minutes'", "`'10 minutes'` is now `'20 minutes'`"),
        (", kind", "", "`, kind` was removed"),
        ("sum(amount)", "count(*) as orders, sum(amount)", None),
        (
            "as total\nfrom orders",
            "as t\nfrom o",
            "`sum(amount) as total` is now `sum(amount) as t`, and 1 other change",
        ),
    ],
)
def test_a_difference_is_quoted_as_a_whole_item_or_clause(old: str, new: str, text: str | None) -> None:
    """A difference has the whole item or clause before and after, and its offset in the new text."""
    changed = SQL.replace(old, new)

    difference = sql_difference(SQL, changed)

    assert difference is not None
    assert text is None or str(difference) == text
    assert changed[difference.offset :].startswith(difference.after.split(" ")[0])


@pytest.mark.parametrize(
    ("old", "new", "quoted"),
    [
        ("split(w, ';')[0]", "split(w, ';')[1]", None),
        ("m[f(a, ']')].b", "m[f(a, ']')].c", None),
        ("listagg(v) within group (order by w asc)", "listagg(v) within group (order by w desc)", None),
        ("row_number() over (partition by k, j order by w)", "row_number() over (partition by k, i order by w)", None),
        ("sum(v) filter (where w > 1)", "sum(v) filter (where w > 2)", None),
        ("count(a)", "count(distinct a)", None),
        ("count(distinct a, b)", "count(distinct a, c)", None),
        ("a between 1 and 2", "a between 1 and 3", None),
        ("a between f(1, 2) and 2", "a between f(1, 3) and 2", ("2", "3")),
        ("(select max(v) from u where v > 1)", "(select max(v) from u where v > 2)", ("v > 1", "v > 2")),
        (f"max_by({'v' * 60} order by w)", f"max_by({'v' * 60} order by x)", ("w", "x")),
    ],
)
def test_a_part_of_a_call_is_quoted_with_its_call(old: str, new: str, quoted: tuple[str, str] | None) -> None:
    """An excerpt has whole expressions: not the half of a subscript, of BETWEEN, or of a clause within a short call."""
    before, after = (f"select k, {each} as x, count(*) as n from t where y group by k" for each in (old, new))
    expected = quoted or (f"{old} as x", f"{new} as x")

    assert str(sql_difference(before, after)) == f"`{expected[0]}` is now `{expected[1]}`"


@pytest.mark.parametrize(
    "same", [SQL.upper().replace("MINUTES'", "minutes'").replace("1 HOUR", "1 hour"), f"{SQL} -- more", f"{SQL}\n;"]
)
def test_formatting_is_no_difference(same: str) -> None:
    """Comments, white space, letter case and a semicolon at the end are no difference."""
    assert sql_difference(SQL, same) is None


def test_invalid_sql_has_no_difference() -> None:
    """SQL with an unterminated string has no difference."""
    assert sql_difference("select 'a", SQL) is None


def test_only_the_ends_of_long_texts_are_compared() -> None:
    """For thousands of different words, only the ends are compared, and the excerpt has a limit."""
    old, new = (f"select {', '.join(f'{letter}{number}' for number in range(5_000))} from t" for letter in "ab")

    difference = sql_difference(old, new)

    assert difference is not None
    assert difference.offset == new.index("b0")
    assert len(difference.after) < 100
