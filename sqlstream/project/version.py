"""Checks the installed sqlstream against `require_sqlstream` of the project."""

from __future__ import annotations

import re

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.wording import quoted

_REQUIREMENT = re.compile(r"\s*(==|!=|>=|<=|>|<)?\s*(\d{1,9}(?:\.\d{1,9})*)\s*", re.ASCII)
_RELEASE = re.compile(r"\d+(?:\.\d+)*", re.ASCII)


def check_version(required: str, installed: str, location: Location) -> Finding | None:
    """Returns the finding for an installed version that does not meet all requirements, which are separated by commas.

    Only release numbers are compared, as in PEP 440; `1.0.dev1` counts as `1.0`.
    """
    requirements = [_REQUIREMENT.fullmatch(part) for part in required.split(",")]
    release = _RELEASE.match(installed)
    if any(match is None for match in requirements):
        return _not_a_requirement(required, location)
    if release and all(_meets(release[0], match[1] or "==", match[2]) for match in requirements if match):
        return None
    return Finding(
        "unsupported-version",
        f"the project needs sqlstream {required}",
        f"the installed version is {installed}",
        f"install sqlstream {required.strip()}, or change `require_sqlstream`",
        location,
    )


def _meets(installed: str, operator: str, required: str) -> bool:
    ours, theirs = [int(part) for part in installed.split(".")], [int(part) for part in required.split(".")]
    longest = max(len(ours), len(theirs))
    ours += [0] * (longest - len(ours))
    theirs += [0] * (longest - len(theirs))
    return {
        "==": ours == theirs,
        "!=": ours != theirs,
        ">=": ours >= theirs,
        "<=": ours <= theirs,
        ">": ours > theirs,
        "<": ours < theirs,
    }[operator]


def _not_a_requirement(required: str, location: Location) -> Finding:
    return Finding(
        "invalid-value",
        f"`require_sqlstream` cannot be {quoted(required)}",
        "it must list versions with ==, !=, >=, <=, > or <, separated by commas",
        "for example, use `>=0.1,<1`",
        location,
    )
