"""The checksum of a file's text."""

from __future__ import annotations

import hashlib


def checksum(text: str) -> str:
    """Returns the sha256 of a file's text under the name that dbt's manifest uses."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
