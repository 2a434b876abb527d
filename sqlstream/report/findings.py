"""Formats findings as three lines each, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby

from sqlstream.codes import BRIEF
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.wording import excerpt

NOWHERE = Location("")
"""The sort key of findings without a location."""


def finding_text(finding: Finding) -> str:
    """Returns the three lines of a finding, with another one for each call that led into a macro. Repeated calls from
    the same location, as in a recursive macro, are one line. A finding that is `BRIEF` has only its first line.
    """
    if finding.code in BRIEF:
        return excerpt(finding.head)
    why, fix = excerpt(finding.why), excerpt(finding.fix)
    calls = [_call_line(call, len(list(same))) for call, same in groupby(reversed(finding.calls))]
    return "\n".join([excerpt(finding.head), *calls, f"  why: {why}", f"  fix: {fix}"])


def _call_line(call: Location, times: int) -> str:
    return f"  called from: {call}" + (", repeatedly" if times > 1 else "")


def findings_text(findings: Iterable[Finding]) -> str:
    """Returns all findings in the order of `sort_findings`. If there are several errors, the last line counts them."""
    ordered = sort_findings(findings)
    texts = [finding_text(finding) for finding in ordered]
    errors = sum(finding.is_error for finding in ordered)
    if errors > 1:
        texts.append(f"{errors} errors")
    return "\n".join(texts)


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Returns each finding once, by file, line and column. Findings without a location are last."""
    return sorted(dict.fromkeys(findings), key=lambda finding: (finding.location is None, finding.location or NOWHERE))


def findings_json(findings: Iterable[Finding]) -> list[dict[str, object]]:
    """Returns all findings as plain data in the order of `sort_findings`."""
    return [finding.as_json() for finding in sort_findings(findings)]


def refusal_json(findings: Iterable[Finding]) -> str:
    """Returns the JSON object that a command prints instead of its result when findings refuse it."""
    return json.dumps({"succeeded": False, "findings": findings_json(findings)}, indent=2)
