"""What a project allows: findings lowered by `rules:` in project.yml and by comments in models, macros and YAML files.

Warnings and infos can be lowered, and errors on which Spark itself decides when a query starts. A comment
`-- sqlstream: allow CODE because ...` allows what is found in its own file, and names its reason for whoever reads the
file next. The other forms of comments, `/* */`, Jinja's `{# #}` and the `#` of YAML and Python, say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlstream.codes import CODES, LOWERABLE
from sqlstream.compiler.spark_versions import on_spark
from sqlstream.errors import Finding, Severity, can_be_lowered
from sqlstream.location import Location, location_at
from sqlstream.project.configuration.lowering import lowering_problem
from sqlstream.project.nearest import nearest
from sqlstream.project.values import COMMENT_START, CommentedFile, MacroFile, ModelFile, Project, may_have_comments
from sqlstream.project.wording import quoted

_NAMED = r"(?P<name>[A-Za-z]+)(?P<colon>[ \t]*:|\b)[ \t]*(?P<words>.*?)[ \t]*"
_COMMENT = re.compile(rf"(?:--|/\*|\{{#[-+]?)[\s*]*{_NAMED}(?:-?#\}}|\*/|$)", re.MULTILINE)
_HASH_COMMENT = re.compile(rf"#[ \t]*{_NAMED}$", re.MULTILINE)
_ALLOW = re.compile(r"allow\s+(?P<code>\S+)\s+because\s+\S.*")
_SEVERITIES = {"warn": Severity.WARNING, "info": Severity.INFO}
"""What `rules:` lowers to; any other word ignores."""
_ALMOST = re.compile(r"allow[\s:]+(?P<code>[\w-]+)(?P<because>\s+because\b)?.*", re.IGNORECASE)

LIKENESS = 0.8
"""How like its name a word must be that was meant for it (1.0 is the same word)."""


@dataclass(frozen=True)
class Allowance:
    """One comment: the code that it allows in its file."""

    code: str
    location: Location

    def covers(self, finding: Finding) -> bool:
        """Whether it allows `finding`: one of its code whose place, or a call that led there, is in the same file."""
        places = (finding.location, *finding.calls)
        return finding.code == self.code and any(place and place.path == self.location.path for place in places)


def lower_findings(project: Project, findings: Sequence[Finding], *, spark: str, complete: bool) -> tuple[Finding, ...]:
    """Returns `findings` as they are on Spark version `spark`, without those that the project allows, and with what is
    wrong with its allowances.

    `complete` says that `findings` are all that there are, so that an allowance that covers none is of no use.
    """
    allowances, problems = _read_allowances(project)
    findings = tuple(on_spark(findings, spark))
    kept = [item for item in findings if not (can_be_lowered(item) and any(a.covers(item) for a in allowances))]
    unused = [item for item in allowances if complete and not any(map(item.covers, findings))]
    problems += [_unused(item) for item in unused]
    return tuple(lowered_by_rules(project, [*kept, *problems]))


def lowered_by_rules(project: Project, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Gives `findings` as `rules:` in project.yml lower them, and without those that it ignores."""
    for finding in findings:
        rule = project.rules.get(finding.code) if can_be_lowered(finding) else None
        if rule is None or (rule == "warn" and not finding.is_error):
            yield finding
        elif rule in _SEVERITIES:
            yield replace(finding, severity=_SEVERITIES[rule])


def _read_allowances(project: Project) -> tuple[list[Allowance], list[Finding]]:
    allowances: list[Allowance] = []
    problems: list[Finding] = []
    files: list[ModelFile | MacroFile | CommentedFile] = [*project.models, *project.macros, *project.commented]
    for file in files:
        pattern = _COMMENT if file.path.endswith(".sql") else _HASH_COMMENT
        for comment in pattern.finditer(file.text) if may_have_comments(file.text) else ():
            if not _is_meant(comment):
                continue
            location = location_at(file.path, file.text, comment.start())
            form = _ALLOW.fullmatch(comment["words"]) if _is_named(comment) else None
            problem = lowering_problem(form["code"], location) if form else _not_of_the_form(comment, location)
            if problem is not None:
                problems.append(problem)
            elif form is not None:
                allowances.append(Allowance(form["code"], location))
    return allowances, problems


def _is_named(comment: re.Match[str]) -> bool:
    return f"{comment['name']}{comment['colon']}" == COMMENT_START


def _is_meant(comment: re.Match[str]) -> bool:
    """Whether a comment speaks to sqlstream, or would with its name and colon as they should be: it then allows a code
    that there is, or gives a reason. All else is prose.
    """
    if _is_named(comment):
        return True
    almost = _ALMOST.fullmatch(comment["words"])
    if almost is None or not (almost["because"] or almost["code"].lower() in CODES):
        return False
    return bool(nearest(comment["name"], [COMMENT_START.rstrip(":")], likeness=LIKENESS))


def _not_of_the_form(comment: re.Match[str], location: Location) -> Finding:
    words = comment["words"] if _is_named(comment) else comment["name"] + comment["colon"] + " " + comment["words"]
    code = next((word for word in re.findall(r"[\w-]+", comment["words"].lower()) if word in LOWERABLE), None)
    opening = "--" if location.path.endswith(".sql") else "#"
    example = f"{code} because ..." if code else "unbounded-state because there are only 40 devices"
    return Finding(
        "invalid-allow",
        f"{quoted(words)} is not a valid comment for sqlstream",
        "the form is `sqlstream: allow CODE because ...`; the reason helps later readers",
        f"write {'' if code else 'for example '}`{opening} {COMMENT_START} allow {example}`",
        location,
    )


def _unused(allowance: Allowance) -> Finding:
    return Finding(
        "unused-allow",
        f"no finding {quoted(allowance.code)} in this file",
        "the comment would hide the finding if it appears later",
        "remove the comment",
        allowance.location,
        Severity.INFO,
    )
