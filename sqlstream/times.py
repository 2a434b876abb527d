"""Times as text in artifacts, events and JSON."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_text(time: datetime) -> str:
    """Returns a time that has a zone in ISO 8601, as UTC and in milliseconds: `2026-11-25T08:30:00.000Z`."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def utc_now() -> str:
    """Returns the current time as `utc_text`."""
    return utc_text(datetime.now(UTC))
