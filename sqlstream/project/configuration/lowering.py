"""The findings whose severity a project can lower, with `rules:` in project.yml and with comments in models."""

from __future__ import annotations

from sqlstream.codes import CODES, LOWERABLE
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.nearest import did_you_mean
from sqlstream.project.wording import quoted
from sqlstream.project.yaml import YamlMapping, entries_at


def wrong_rules(project: YamlMapping) -> list[Finding]:
    """Returns the errors in the codes that `rules:` of project.yml lowers."""
    found = (lowering_problem(entry.key, entry.key_location) for entry in entries_at(project, ("rules",)))
    return [finding for finding in found if finding is not None]


def lowering_problem(code: str, location: Location) -> Finding | None:
    """Returns why findings of `code` cannot be lowered, None if they can."""
    if code in LOWERABLE:
        return None
    if code in CODES:
        message = f"findings with the code {quoted(code)} cannot be lowered"
        fix = "remove it here, and fix the problem"
        why = "warnings, infos and most errors of rules can be lowered, but not errors with which no query can start"
    else:
        message, fix = f"there is no finding with the code {quoted(code)}", did_you_mean(code, LOWERABLE)
        why = "the code of a finding is in brackets in its first line"
    return Finding("invalid-allow", message, why, fix, location)
