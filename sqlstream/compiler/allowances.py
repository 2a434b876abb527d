"""Lowers findings as a project allows it, with `rules:` in project.yml and with comments in its files.

Warnings and infos can be lowered, and errors that Spark itself checks when a query starts. A comment
`-- sqlstream: allow CODE because ...` removes such findings in its file, and gives the reason to later readers. It can
also be a comment of the form `/* */`, Jinja's `{# #}`, or `#` in YAML and Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlstream.codes import CODES, FOUND_BY_RUNS, LOWERABLE
from sqlstream.compiler.spark_versions import on_spark
from sqlstream.errors import Finding, Severity, can_be_lowered
from sqlstream.location import Location, location_at
from sqlstream.project.configuration.resources import COMMENT_START, CommentedFile, may_have_comments
from sqlstream.project.configuration.settings import lowering_problem
from sqlstream.project.values import MacroFile, ModelFile, Project
from sqlstream.project.wording import nearest, quoted

_NAMED = r"(?P<name>[A-Za-z]+)(?P<colon>[ \t]*:|\b)[ \t]*(?P<words>.*?)[ \t]*"
_COMMENT = re.compile(rf"(?:--|/\*|\{{#[-+]?)[\s*]*{_NAMED}(?:-?#\}}|\*/|$)", re.MULTILINE)
_HASH_COMMENT = re.compile(rf"#[ \t]*{_NAMED}$", re.MULTILINE)
_ALLOW = re.compile(r"allow\s+(?P<code>\S+)\s+because\s+\S.*")
_SEVERITIES = {"warn": Severity.WARNING, "info": Severity.INFO}
"""The severities in `rules:`. Other words ignore the finding."""
_ALMOST = re.compile(r"allow[\s:]+(?P<code>[\w-]+)(?P<because>\s+because\b)?.*", re.IGNORECASE)

LIKENESS = 0.8
"""The least similarity of a misspelled `sqlstream:` (1.0 is the same word)."""


@dataclass(frozen=True)
class Allowance:
    """One comment, and the code that it allows in its file."""

    code: str
    location: Location


def lower_findings(project: Project, findings: Sequence[Finding], *, spark: str, complete: bool) -> tuple[Finding, ...]:
    """Returns `findings` for the Spark version `spark` without those that the project allows, and the findings about
    its allowances.

    With `complete`, which says that no findings are missing, these include unused allowances.
    """
    allowances, problems = _read_allowances(project)
    findings = tuple(on_spark(findings, spark))
    kept = list(_not_allowed(findings, allowances))
    if complete:
        used = {scope for finding in findings for scope in _scopes(finding)}
        known = [item for item in allowances if item.code not in FOUND_BY_RUNS]
        problems += [_unused(item) for item in known if (item.code, item.location.path) not in used]
    return tuple(lowered_by_rules(project, [*kept, *problems]))


def lowered(project: Project, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yields `findings` of a run without those that the project allows, with the severities from its rules."""
    allowances, _ = _read_allowances(project)
    yield from lowered_by_rules(project, _not_allowed(findings, allowances))


def allows(file: ModelFile, code: str) -> bool:
    """Returns whether a comment in `file` allows findings with `code`."""
    found = _read_comments(file.path, file.text) if may_have_comments(file.text) else ()
    return any(isinstance(item, Allowance) and item.code == code for item in found)


def _not_allowed(findings: Iterable[Finding], allowances: Iterable[Allowance]) -> Iterator[Finding]:
    allowed = {(allowance.code, allowance.location.path) for allowance in allowances}
    for finding in findings:
        if not can_be_lowered(finding) or allowed.isdisjoint(_scopes(finding)):
            yield finding


def _scopes(finding: Finding) -> set[tuple[str, str]]:
    """Returns the code of a finding with its file, and with each file whose call led there."""
    return {(finding.code, place.path) for place in (finding.location, *finding.calls) if place is not None}


def lowered_by_rules(project: Project, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yields `findings` with the severities from `rules:` in project.yml, without those that it ignores."""
    for finding in findings:
        rule = project.rules.get(finding.code) if can_be_lowered(finding) else None
        if rule is None or (rule == "warn" and not finding.is_error):
            yield finding
        elif rule in _SEVERITIES:
            yield replace(finding, severity=_SEVERITIES[rule])


def _read_allowances(project: Project) -> tuple[list[Allowance], list[Finding]]:
    files: list[ModelFile | MacroFile | CommentedFile] = [*project.models, *project.macros, *project.commented]
    read = [item for file in files if may_have_comments(file.text) for item in _read_comments(file.path, file.text)]
    allowances = [item for item in read if isinstance(item, Allowance)]
    return allowances, [item for item in read if isinstance(item, Finding)]


def _read_comments(path: str, text: str) -> Iterator[Allowance | Finding]:
    pattern = _COMMENT if path.endswith(".sql") else _HASH_COMMENT
    for comment in filter(_is_meant, pattern.finditer(text)):
        location = location_at(path, text, comment.start())
        form = _ALLOW.fullmatch(comment["words"]) if _is_named(comment) else None
        if form is None:
            yield _invalid_comment(comment, location)
        else:
            yield lowering_problem(form["code"], location) or Allowance(form["code"], location)


def _is_named(comment: re.Match[str]) -> bool:
    return f"{comment['name']}{comment['colon']}" == COMMENT_START


def _is_meant(comment: re.Match[str]) -> bool:
    """Whether a comment is for sqlstream, possibly with a misspelled name. In that case it must allow an existing code
    or give a reason.
    """
    if _is_named(comment):
        return True
    almost = _ALMOST.fullmatch(comment["words"])
    if almost is None or not (almost["because"] or almost["code"].lower() in CODES):
        return False
    return bool(nearest(comment["name"], [COMMENT_START.rstrip(":")], likeness=LIKENESS))


def _invalid_comment(comment: re.Match[str], location: Location) -> Finding:
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
    message = f"no finding {quoted(allowance.code)} in this file"
    why = "the comment would hide the finding if it appears later"
    return Finding("unused-allow", message, why, "remove the comment", allowance.location, Severity.INFO)
