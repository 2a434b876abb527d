"""Runs `compile`, `ls`, `lineage` and `compile --explain` on one fuzzed project, and checks the form of every finding."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path

from sqlstream.app.compile.compile import CompileOutput, compile_models
from sqlstream.app.compile.emission_text import emission_json, emission_text, refused_text
from sqlstream.app.compile.explain_model import explain_model
from sqlstream.app.compile.lineage import lineage_json, lineage_text, trace
from sqlstream.app.compile.ls import list_nodes
from sqlstream.app.request import ProjectRequest
from sqlstream.codes import CODES
from sqlstream.compiler.rendering import OF_THE_MOMENT
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.location import Location
from sqlstream.report.compiled import compiled_json, compiled_text
from sqlstream.report.findings import findings_text, refusal_json

SECRET = "canary-4711"
ENVIRONMENT = {"HOME": "/home/ana", "SQLSTREAM_SECRET_X": SECRET}

LONGEST_LINE = 2_000
"""The maximal length of a finding's line that people can read."""

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Outcome:
    """`result` is `compiled`, `refused` or `usage`. `codes` are those of the findings. `faults` are errors found."""

    result: str
    codes: frozenset[str]
    faults: tuple[str, ...]


def check_project(folder: Path) -> Outcome:
    """Returns the result of the commands on the project in `folder`. Raises: any exception that they should not raise."""
    request = ProjectRequest(folder, env=ENVIRONMENT)
    try:
        compiled = compile_models(request)
    except FindingsError as error:
        texts = (findings_text(error.findings), refusal_json(error.findings))
        return _outcome("refused", error.findings, folder, texts)
    except UsageError as error:
        return Outcome("usage", frozenset(), _text_faults(str(error), "the error"))
    outcome = _outcome("compiled", compiled.findings, folder, _printed(request, compiled))
    again = compile_models(request)
    same = (again.models, again.findings) == (compiled.models, compiled.findings) or _is_of_the_moment(compiled)
    return outcome if same else replace(outcome, faults=(*outcome.faults, "the cache changes what compile gives"))


def _is_of_the_moment(compiled: CompileOutput) -> bool:
    """Whether a template may use values that differ each time, such as the present time."""
    project = compiled.loaded.compiled.project
    texts = [*(model.text for model in project.models), *(macros.text for macros in project.macros)]
    return any(name in text for text in texts for name in OF_THE_MOMENT)


def _printed(request: ProjectRequest, compiled: CompileOutput) -> tuple[str, ...]:
    """Returns all output of the commands for a project that compiles. Some commands get the last of its models."""
    whole, models, findings = compiled.loaded.compiled, compiled.models, compiled.findings
    texts = [compiled_text(whole, models), compiled_json(whole, models, findings), findings_text(findings)]
    texts += list_nodes(request).names
    for output, model in product((_lineage, _explanation), models[-1:]):
        try:
            texts += output(request, model.name)
        except UsageError as error:
            texts.append(str(error))
    return tuple(texts)


def _lineage(request: ProjectRequest, name: str) -> tuple[str, ...]:
    found = trace(request, name)
    return lineage_text(found.columns), lineage_json(found.model, found.columns)


def _explanation(request: ProjectRequest, name: str) -> tuple[str, ...]:
    found = explain_model(request, name)
    if found.emission is None:
        return (refused_text(found.model), findings_text(found.errors))
    shown = (emission_text, emission_json)
    return tuple(show(found.model, found.emission, found.locate, is_foreseen=found.is_foreseen) for show in shown)


def _outcome(result: str, findings: Iterable[Finding], folder: Path, texts: Iterable[str]) -> Outcome:
    found = tuple(findings)
    faults = [fault for finding in found for fault in finding_faults(finding, folder)]
    if result == "refused" and not any(finding.is_error for finding in found):
        faults.append("refused without an error")
    for text in texts:
        if SECRET in text:
            faults.append("a secret was printed")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            faults.append("a text cannot be printed")
    return Outcome(result, frozenset(finding.code for finding in found), tuple(dict.fromkeys(faults)))


def finding_faults(finding: Finding, folder: Path) -> list[str]:
    """Returns errors in the form of a finding of the project in `folder`."""
    faults = [] if finding.code in CODES else [f"the code {finding.code} is unknown"]
    if not finding.head.isprintable():
        faults.append(f"the first line of {finding.code} is more than one line")
    for name in ("message", "why", "fix"):
        faults += _text_faults(getattr(finding, name), f"the {name} of {finding.code}")
    if finding.message.endswith("."):
        faults.append(f"the message of {finding.code} ends with a full stop")
    for location in filter(None, (finding.location, *finding.calls)):
        if not _is_inside(location, folder):
            faults.append(f"{finding.code} is at {location}, which is not in its file")
    return faults


def _is_inside(location: Location, folder: Path) -> bool:
    """Whether a location exists in its file, or is the end of a line. A missing file has only the location 1:1."""
    if not location.line >= 1 or not location.column >= 1:
        return False
    lines = _lines(folder / location.path)
    return location.line <= len(lines) and location.column <= len(lines[location.line - 1]) + 1


@lru_cache(maxsize=8)
def _lines(path: Path) -> list[str]:
    if not path.is_file():
        return [""]
    return _LINE_END.split(path.read_bytes().decode("utf-8", "replace").removeprefix("\ufeff"))


def _text_faults(text: str, what: str) -> tuple[str, ...]:
    faults = []
    if not text.strip():
        faults.append(f"{what} is empty")
    if not text.isprintable():
        odd = next(letter for letter in text if not letter.isprintable())
        faults.append(f"{what} contains {odd!r}")
    if len(text) > LONGEST_LINE:
        faults.append(f"{what} is too long")
    return tuple(faults)
