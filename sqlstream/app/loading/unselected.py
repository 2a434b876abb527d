"""The findings for a selection, or a part of it, that matches nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlstream.app.request import Selection
from sqlstream.compiler.selection.methods import SOURCE_STATUS
from sqlstream.compiler.selection.select import Unmatched
from sqlstream.errors import Finding, Severity
from sqlstream.project.nearest import did_you_mean
from sqlstream.project.wording import alternatives, quoted


def empty_selection(selection: Selection, unmatched: Sequence[Unmatched]) -> list[Finding]:
    """Returns a finding for each criterion that matches nothing, or one for the whole selection if each matches."""
    if unmatched:
        return [unmatched_finding(each, Severity.ERROR) for each in unmatched]
    if given := _as_flags(selection):
        message = f"the selection `{given}` matches nothing"
        why = "each part matches some nodes, but no node matches the combination"
        fix = "run `sqlstream ls --select` to see what each part matches"
    else:
        message = "the project has no nodes to select"
        why = "it has no enabled models, seeds or sources"
        fix = "add a model: a SELECT in a file such as models/first.sql"
    return [Finding("empty-selection", message, why, fix)]


def unmatched_finding(unmatched: Unmatched, severity: Severity) -> Finding:
    """Returns the finding for a criterion that matches nothing."""
    why, fix = (
        "it matches no enabled model, seed, source or exposure of this project",
        "run `sqlstream ls` to list them",
    )
    if unmatched.text.startswith(("unit_test:", "test_name:")):
        why = "it matches no unit test of this project"
        fix = "run `sqlstream ls --resource-type unit_test` to list them"
    if unmatched.compares:
        what = "data newer" if unmatched.text.lstrip("@+0123456789").startswith(f"{SOURCE_STATUS}:") else "a change"
        why = "no node in this project differs in this way from the saved state"
        fix = f"nothing to do; if you expected {what} than before, check the files in --state"
    elif unmatched.nearest:
        fix = f"did you mean {alternatives(unmatched.nearest)}?"
    message = f"the selector `{unmatched.text}` matches nothing"
    return Finding("empty-selection", message, why, fix, unmatched.location, severity)


def unknown_name(name: str, selectors: Collection[str]) -> Finding:
    """Returns the finding for a --selector that selectors.yml does not define."""
    return Finding(
        "unknown-selector",
        f"there is no selector {quoted(name)}",
        "--selector needs the name of a selector in selectors.yml",
        did_you_mean(name, selectors) if selectors else "define it in selectors.yml, or use --select",
    )


def _as_flags(selection: Selection) -> str:
    types = (f"--resource-type {kind}" for kind in selection.resource_types)
    excluded = (f"--exclude-resource-type {kind}" for kind in selection.excluded_types)
    named = [f"--selector {selection.selector}"] if selection.selector is not None else []
    return " ".join(
        [*named, *selection.select, *(f"--exclude {text}" for text in selection.exclude), *types, *excluded]
    )
