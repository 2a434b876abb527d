"""The findings of each node, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlstream.errors import Finding
from sqlstream.location import Location


class NodeFindings:
    """Finds the findings of a node by their locations."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._by_file: dict[str, list[Finding]] = {}
        for finding in findings:
            for path in {place.path for place in (finding.location, *finding.calls) if place is not None}:
                self._by_file.setdefault(path, []).append(finding)

    def of_file(self, path: str) -> list[dict[str, Any]]:
        """Returns the findings in a file that declares one node."""
        return [finding_entry(finding) for finding in self._by_file.get(path, ())]

    def near(self, location: Location) -> list[dict[str, Any]]:
        """Returns the findings at the line that declares a node."""
        found = self._by_file.get(location.path, ())
        return [finding_entry(item) for item in found if item.location and item.location.line == location.line]


def finding_entry(finding: Finding) -> dict[str, Any]:
    """Returns a finding with the texts that the site shows."""
    return {
        "code": finding.code,
        "severity": str(finding.severity),
        "message": finding.message,
        "why": finding.why,
        "fix": finding.fix,
        "location": str(finding.location) if finding.location else None,
    }
