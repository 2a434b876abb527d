"""Alerts as rows of a sink, and their links."""

from __future__ import annotations

from sqlstream.app.alerts.payloads import AlertMessage, RunNames, alert_row, message_of, payload
from sqlstream.compiler.own_rows import ALERT_COLUMNS
from sqlstream.state.runs.events import AlertChanged


def test_a_count_is_a_double() -> None:
    """Spark reads a whole number in a column of doubles as null, so counts are written as doubles."""
    change = AlertChanged("orders", "late_rows_over", "raised", "3 late rows", "a", "2024-01-01T00:00:00Z", 3, 0)
    message = message_of(change, RunNames("shop", "prod", "run"), "m", "2024-01-01T00:00:01Z")

    row = dict(zip((name for name, _, _ in ALERT_COLUMNS), alert_row(message), strict=True))

    assert [(type(row[name]), row[name]) for name in ("value", "threshold")] == [(float, 3.0), (float, 0.0)]


def test_messages_link_to_the_page_of_the_query() -> None:
    """With the URL of the target's page, a message has that of the query, also in the forms of Slack and PagerDuty.
    Without it, and in a message of an older version, there is none.
    """
    change = AlertChanged("größe & b", "failed", "raised", "it failed", "a", "2024-01-01T00:00:00Z", 1, 0)
    names = RunNames("shop", "prod eu", "run", "https://streams.example.com/shop/")
    linked = message_of(change, names, "m", "2024-01-01T00:00:01Z")
    plain = message_of(change, RunNames("shop", "prod", "run"), "m", "2024-01-01T00:00:01Z")

    url = "https://streams.example.com/shop/#/query/gr%C3%B6%C3%9Fe%20%26%20b?target=prod%20eu"
    assert (linked.url, payload(linked, "json")["url"]) == (url, url)
    assert f"<{url}|größe &amp; b>" in payload(linked, "slack")["blocks"][1]["elements"][0]["text"]
    assert payload(linked, "pagerduty")["links"] == [{"href": url, "text": "The page of größe & b"}]
    assert plain.url is None
    assert "links" not in payload(plain, "pagerduty")
    older = {name: value for name, value in linked.as_json().items() if name != "url"}
    assert AlertMessage.from_json(older).url is None
    assert AlertMessage.from_json(linked.as_json()) == linked
