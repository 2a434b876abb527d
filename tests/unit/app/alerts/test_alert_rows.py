"""Alerts as rows of a sink."""

from __future__ import annotations

from sqlstream.app.alerts.payloads import RunNames, alert_row, message_of
from sqlstream.compiler.own_rows import ALERT_COLUMNS
from sqlstream.state.runs.events import AlertChanged


def test_a_count_is_a_double() -> None:
    """Spark reads a whole number in a column of doubles as null, so counts are written as doubles."""
    change = AlertChanged("orders", "late_rows_over", "raised", "3 late rows", "a", "2024-01-01T00:00:00Z", 3, 0)
    message = message_of(change, RunNames("shop", "prod", "run"), "m", "2024-01-01T00:00:01Z")

    row = dict(zip((name for name, _, _ in ALERT_COLUMNS), alert_row(message), strict=True))

    assert [(type(row[name]), row[name]) for name in ("value", "threshold")] == [(float, 3.0), (float, 0.0)]
