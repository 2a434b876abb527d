"""What a project allows: findings lowered by `rules:` in project.yml and by comments in models and macros.

Only warnings and infos can be lowered. A comment `-- sqlstream: allow CODE because ...` allows what is found in its own
file, and names its reason for whoever reads the model next. The other forms of comments, `/* */` and Jinja's `{# #}`,
say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlstream.errors import Finding, Severity
from sqlstream.location import Location, location_at
from sqlstream.project.lowering import lowering_problem
from sqlstream.project.values import MacroFile, ModelFile, Project
from sqlstream.project.wording import quoted

_COMMENT = re.compile(r"(?:--|/\*|\{#[-+]?)[\s*]*sqlstream:[ \t]*(?P<words>.*?)[ \t]*(?:-?#\}|\*/|$)", re.MULTILINE)
_PYTHON_COMMENT = re.compile(r"#\s*sqlstream:[ \t]*(?P<words>.*?)[ \t]*$", re.MULTILINE)
_ALLOW = re.compile(r"allow\s+(?P<code>\S+)\s+because\s+\S.*")


@dataclass(frozen=True)
class Allowance:
    """One comment: the code that it allows in its file."""

    code: str
    location: Location

    def covers(self, finding: Finding) -> bool:
        """Whether it allows `finding`: one of its code whose place, or a call that led there, is in the same file."""
        places = (finding.location, *finding.calls)
        return finding.code == self.code and any(place and place.path == self.location.path for place in places)


def lower_findings(project: Project, findings: Sequence[Finding], *, complete: bool) -> tuple[Finding, ...]:
    """Returns `findings` without those that the project allows, and with what is wrong with its allowances.

    `complete` says that `findings` are all that there are, so that an allowance that covers none is of no use.
    """
    allowances, problems = _read_allowances(project)
    kept = [finding for finding in findings if finding.is_error or not any(a.covers(finding) for a in allowances)]
    unused = [item for item in allowances if complete and not any(map(item.covers, findings))]
    problems += [_unused(item) for item in unused]
    return tuple(_by_rules(project, [*kept, *problems]))


def _by_rules(project: Project, findings: Iterable[Finding]) -> Iterator[Finding]:
    for finding in findings:
        rule = None if finding.is_error else project.rules.get(finding.code)
        if rule is None:
            yield finding
        elif rule != "ignore":
            yield replace(finding, severity=Severity(rule))


def _read_allowances(project: Project) -> tuple[list[Allowance], list[Finding]]:
    allowances: list[Allowance] = []
    problems: list[Finding] = []
    files: list[ModelFile | MacroFile] = [*project.models, *project.macros]
    for file in files:
        if "sqlstream:" not in file.text:
            continue
        pattern = _PYTHON_COMMENT if file.path.endswith(".py") else _COMMENT
        for comment in pattern.finditer(file.text):
            location = location_at(file.path, file.text, comment.start())
            form = _ALLOW.fullmatch(comment["words"].strip())
            problem = lowering_problem(form["code"], location) if form else _not_of_the_form(comment["words"], location)
            if problem is not None:
                problems.append(problem)
            elif form is not None:
                allowances.append(Allowance(form["code"], location))
    return allowances, problems


def _not_of_the_form(words: str, location: Location) -> Finding:
    return Finding(
        "invalid-allow",
        f"{quoted(words.strip())} is not what a comment can say to sqlstream",
        "its form is `allow CODE because ...`, so that whoever reads it later knows the reason",
        "write for example `-- sqlstream: allow unbounded-state because there are only 40 devices`",
        location,
    )


def _unused(allowance: Allowance) -> Finding:
    return Finding(
        "unused-allow",
        f"nothing in this file has the finding {quoted(allowance.code)}",
        "the comment would hide one that somebody brings in later",
        "delete the comment",
        allowance.location,
        Severity.INFO,
    )
