"""SQL over static tables runs at the time that a case sets."""

from __future__ import annotations

import pytest

from sqlstream.testing.harness import pin_time_in_sql

NOW = "timestamp_millis(7)"


@pytest.mark.parametrize(
    ("sql", "pinned"),
    [
        ("select now() as n", f"select {NOW} as n"),
        ("select Current_Timestamp, current_timestamp ( ) x", f"select {NOW}, {NOW} x"),
        ("where day = current_date", f"where day = date({NOW})"),
        ("where day = curdate()", f"where day = date({NOW})"),
        ("select localtimestamp()", f"select cast({NOW} as timestamp_ntz)"),
        ("select unix_timestamp()", f"select unix_seconds({NOW})"),
    ],
)
def test_functions_of_the_current_time_are_replaced(sql: str, pinned: str) -> None:
    """Functions of the current time are replaced, with or without brackets and in any letter case."""
    assert pin_time_in_sql(sql, 7) == pinned


@pytest.mark.parametrize(
    "sql",
    [
        "select 'now()', `now`(), t.current_date, x as current_date -- now()",
        "select now, unix_timestamp(at), unix_timestamp",
    ],
)
def test_other_text_stays_the_same(sql: str) -> None:
    """Text, comments, columns and functions of a given time stay the same."""
    assert pin_time_in_sql(sql, 7) == sql
