"""The checksum of a file's text."""

from __future__ import annotations

import hashlib


def checksum(text: str) -> str:
    """Returns the sha256 of a file's text, as dbt's manifest names it."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
