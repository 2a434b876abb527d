"""The value of `--vars` as variables."""

from __future__ import annotations

import re

import click

from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.project.wording import quoted

EXAMPLE = "{min_fare: 3}"

_NAME = re.compile(r"[^\W\d][\w.-]*")
_NEARLY = re.compile(r"\s*\{?\s*([^\W\d][\w.-]*)\s*[:=]\s*([^\s,:={}\[\]][^,:={}\[\]]*?)\s*\}?\s*")
"""A single variable, written `a=3`, `a:3` or `{a:3}`."""


def read_variables(text: str | None) -> dict[str, object]:
    """Returns the variables that a YAML mapping of names to values sets. Warns about words that are read as booleans.

    Raises: UsageError for any other text, and for keys that are not names. The common case is `a:3`, which YAML reads
    as one key without a value.
    """
    if not text:
        return {}
    from sqlstream.project.configuration.validate import boolean_words  # only --vars needs PyYAML here
    from sqlstream.project.yaml import parse_yaml, plain

    try:
        node = parse_yaml(text, "--vars")
    except FindingsError as error:
        problem = f"{quoted(text)} is not a YAML mapping{_detail(error.findings[0])}"
        raise _refused(problem, text) from error
    found = plain(node)
    variables = dict(found) if isinstance(found, dict) else {}
    for warning in boolean_words(node, ()):
        click.echo(f"--vars: warning: {warning.message}; {warning.fix}", err=True)
    for name, value in variables.items():
        if ":" in name and value is None:
            raise _refused(f"{quoted(name)} has no space after the colon", text)
        if not _NAME.fullmatch(name):
            raise _refused(f"{quoted(name)} is not a valid name for a variable", text)
    return variables


def _detail(finding: Finding) -> str:
    if finding.code == "yaml-syntax":
        return f": {finding.why}"
    return ": it has a duplicate key" if finding.code == "yaml-duplicate-key" else ""


def _refused(problem: str, text: str) -> UsageError:
    meant = _NEARLY.fullmatch(text)
    right = f"--vars '{{{meant[1]}: {meant[2]}}}'" if meant else f"for example --vars '{EXAMPLE}'"
    return UsageError(f"--vars: {problem}; use {right}")
