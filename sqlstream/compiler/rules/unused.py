"""Rules about use: what a project declares and nothing uses. Disabled models use what they name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.node_ids import source_id
from sqlstream.compiler.rules.rule import rule
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location, location_at

_MACRO = re.compile(r"\{%-?\s*macro\s+(?P<name>\w+)")
_COMMENT = re.compile(r"(?s)\{#.*?#\}")


@rule("unwritten-model", severity=Severity.WARNING)
def unwritten_models(compiled: CompiledProject) -> list[Finding]:
    """A model that nobody reads and that names no sink does nothing."""
    return [
        Finding(
            "unwritten-model",
            f"`{model.name}` goes nowhere",
            "no other model reads it, and it names no sink, so `sqlstream run` has nothing to do with it",
            "add config(sink='...') to it, read it with ref() in another model, or delete it",
            model.file.location,
            Severity.WARNING,
        )
        for unique_id, model in compiled.models.items()
        if model.output is None and not compiled.graph.children[unique_id]
    ]


@rule("unused-source", severity=Severity.INFO)
def unused_sources(compiled: CompiledProject) -> list[Finding]:
    """A source that no model reads."""
    name = compiled.project.name
    elsewhere = _words(_disabled_texts(compiled))
    return [
        _unused("unused-source", f"source `{table.full_name}`", "no model reads it", table.location)
        for table in compiled.project.sources
        if not compiled.graph.children.get(source_id(name, table)) and table.name not in elsewhere
    ]


@rule("unused-sink", severity=Severity.INFO)
def unused_sinks(compiled: CompiledProject) -> list[Finding]:
    """A sink that no model writes to."""
    used = {model.output.sink for model in compiled.models.values() if model.output is not None}
    used |= _words(_disabled_texts(compiled))
    return [
        _unused("unused-sink", f"sink `{sink.name}`", "no model writes to it", sink.location)
        for sink in compiled.project.sinks
        if sink.name not in used
    ]


@rule("unused-macro", severity=Severity.INFO)
def unused_macros(compiled: CompiledProject) -> list[Finding]:
    """A macro whose name stands nowhere but in its own definition."""
    project = compiled.project
    texts = [*(file.text for file in project.models), *(_MACRO.sub("", file.text) for file in project.macros)]
    unnamed = {match["name"] for file in project.macros for match in _MACRO.finditer(_without_comments(file.text))}
    for text in texts:
        if any(name in text for name in unnamed):
            unnamed -= _words([text])
    found: list[Finding] = []
    for file in project.macros:
        for match in _MACRO.finditer(_without_comments(file.text)):
            if match["name"] in unnamed:
                location = location_at(file.path, file.text, match.start("name"))
                found.append(_unused("unused-macro", f"macro `{match['name']}`", "nothing calls it", location))
    return found


def _without_comments(text: str) -> str:
    """The text with blanks in place of Jinja comments, so that offsets stay."""
    return _COMMENT.sub(lambda comment: " " * len(comment[0]), text)


def _disabled_texts(compiled: CompiledProject) -> list[str]:
    enabled = {model.name for model in compiled.models.values()}
    return [file.text for file in compiled.project.models if file.name not in enabled]


def _words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in re.findall(r"\w+", text)}


def _unused(code: str, what: str, why: str, location: Location) -> Finding:
    return Finding(code, f"{what} is not used", why, "delete it, or use it", location, Severity.INFO)
