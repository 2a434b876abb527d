"""Times as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from sqlstream.times import utc_now, utc_text


def test_a_time_of_another_zone_is_utc() -> None:
    """The text of a time in any zone is UTC with milliseconds."""
    paris = timezone(timedelta(hours=1))

    assert utc_text(datetime(2026, 11, 25, 9, 30, 0, 1500, paris)) == "2026-11-25T08:30:00.001Z"


def test_now_is_a_time_with_a_zone() -> None:
    """The current time is read back as UTC."""
    before = datetime.now(UTC)

    assert timedelta(milliseconds=-1) <= datetime.fromisoformat(utc_now()) - before < timedelta(minutes=1)
