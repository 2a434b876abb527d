"""What `promote` and `rollback` print, and the history of versions as text."""

from __future__ import annotations

from sqlstream.app.versions.stored_versions import QueryHistory, Switched, VersionHistory
from sqlstream.app.versions.versions_text import history_text, no_promotion_text, no_rollback_text, switched_text
from sqlstream.state.query_versions import Switch, Versions
from sqlstream.state.runs.lease_rules import holder_text

PROMOTED = Switch("2026-11-25T04:00:49+00:00", "promote", 2, 1)
BACK = Switch("2026-11-25T05:00:00+00:00", "rollback", 1, 2)


def test_each_line_names_the_version_it_is_about() -> None:
    """The process that still runs the version before is a sentence, with its start in parentheses."""
    done = Switched(
        "totals",
        1,
        2,
        ("/store/totals",),
        "process 19152 on vm, since 2026-11-25 04:00:00 UTC",
        ("version 1 has not read 1 file, 127 B of shop.orders yet",),
    )
    assert switched_text(done).splitlines() == [
        "totals: version 1 is the current one (was version 2)",
        "   its rows are in /store/totals",
        "   process 19152 on vm (since 2026-11-25 04:00:00 UTC) still runs version 2 until you stop it",
        "   version 1 has not read 1 file, 127 B of shop.orders yet",
    ]
    assert holder_text("another process") == "another process"


def test_a_current_version_cannot_be_promoted_again() -> None:
    """The text says since when it is current; only if nothing was promoted it says how to start a version."""
    promoted = Versions(2, previous=1, history=(PROMOTED,))
    text = "version 2 of `totals` is already the current one (promoted 2026-11-25 04:00:49 UTC)"
    assert no_promotion_text("totals", promoted).startswith(text)

    refreshed = Versions(3, previous=2, history=(PROMOTED,))
    for parts in (Versions(1), refreshed):
        assert "`totals` has no parallel version; " in no_promotion_text("totals", parts)


def test_a_second_rollback_names_the_way_back() -> None:
    """Only a version that was rolled back and is still there can become current again."""
    back = Versions(1, parallel=2, history=(PROMOTED, BACK))
    assert no_rollback_text("totals", back).endswith("; `sqlstream promote totals` makes version 2 current again")
    for parts in (Versions(1), Versions(1, parallel=3, history=(PROMOTED, BACK))):
        assert no_rollback_text("totals", parts) == "`totals` has no earlier version to go back to"


def test_the_history_has_times_like_the_status() -> None:
    """All times are UTC to the second, without a T and an offset."""
    version = VersionHistory(2, 1, "/store/totals", PROMOTED.at, "no ledger", part="current")
    refreshed = Switch("2026-11-25T06:00:00+00:00", "refresh", 3, 2)
    text = history_text(QueryHistory("totals", (version,), (PROMOTED, refreshed)))

    assert text.count("2026-11-25 04:00:49 UTC") == len((version, PROMOTED))
    (line,) = (line for line in text.splitlines() if "refresh" in line)
    assert line.split() == ["2026-11-25", "06:00:00", "UTC", "refresh", "3", "2"]
