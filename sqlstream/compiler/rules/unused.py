"""Rules about unused declarations. Disabled models count as users."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.rules.rule import rule
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location, location_at
from sqlstream.project.wording import quoted_list

_MACRO = re.compile(r"\{%-?\s*macro\s+(?P<name>\w+)")
_COMMENT = re.compile(r"(?s)\{#.*?#\}")


@rule("no-models", severity=Severity.WARNING)
def no_models(compiled: CompiledProject) -> list[Finding]:
    """A project needs an enabled model."""
    if any(model.file.declared_at is None for model in compiled.models.values()):
        return []
    is_disabled = bool(compiled.project.models)
    fix = "enable one of them" if is_disabled else "add a SELECT in a file such as models/first.sql"
    return [
        Finding(
            "no-models",
            "the project has no models" if not is_disabled else "all models of the project are disabled",
            "a model is a .sql or .py file in models/",
            fix,
            severity=Severity.WARNING,
        )
    ]


@rule("unwritten-model", severity=Severity.WARNING)
def unwritten_models(compiled: CompiledProject) -> list[Finding]:
    """A model without readers and without a sink has no effect."""
    return [
        Finding(
            "unwritten-model",
            f"nothing uses the output of `{model.name}`",
            "no other model reads it and it has no sink, so `sqlstream run` does not run it",
            "add config(sink='...') to it, read it with ref() in another model, or delete it",
            model.file.location,
            Severity.WARNING,
        )
        for unique_id, model in compiled.models.items()
        if model.output is None and not compiled.graph.children[unique_id]
    ]


@rule("unused-source", severity=Severity.INFO)
def unused_sources(compiled: CompiledProject) -> list[Finding]:
    """No model reads the source."""
    elsewhere = _words(_disabled_texts(compiled))
    unused = {
        table.location: table.full_name
        for node, table in compiled.sources.items()
        if not compiled.graph.children.get(node) and table.name not in elsewhere
    }
    return _unused("unused-source", "no model reads", "source", unused)


@rule("unused-sink", severity=Severity.INFO)
def unused_sinks(compiled: CompiledProject) -> list[Finding]:
    """No model writes to the sink."""
    used = {model.output.sink for model in compiled.models.values() if model.output is not None}
    used |= _words(_disabled_texts(compiled))
    unused = {sink.location: sink.name for sink in compiled.project.sinks if sink.name not in used}
    return _unused("unused-sink", "no model writes to", "sink", unused)


@rule("unused-macro", severity=Severity.INFO)
def unused_macros(compiled: CompiledProject) -> list[Finding]:
    """No template uses the macro's name outside the macro."""
    project = compiled.project
    texts = [*(file.text for file in project.models), *(_MACRO.sub("", file.text) for file in project.macros)]
    unnamed = {match["name"] for file in project.macros for match in _MACRO.finditer(_without_comments(file.text))}
    for text in texts:
        if any(name in text for name in unnamed):
            unnamed -= _words([text])
    unused = {
        location_at(file.path, file.text, match.start("name")): match["name"]
        for file in project.macros
        for match in _MACRO.finditer(_without_comments(file.text))
        if match["name"] in unnamed
    }
    return _unused("unused-macro", "nothing calls", "macro", unused)


def _without_comments(text: str) -> str:
    """The text with blanks in place of Jinja comments, so that offsets stay."""
    return _COMMENT.sub(lambda comment: " " * len(comment[0]), text)


def _disabled_texts(compiled: CompiledProject) -> list[str]:
    enabled = {model.name for model in compiled.models.values()}
    return [file.text for file in compiled.project.models if file.name not in enabled]


def _words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in re.findall(r"\w+", text)}


def _unused(code: str, what: str, kind: str, unused: Mapping[Location, str]) -> list[Finding]:
    """The one finding about all that is unused of one kind, at the first of them."""
    if not unused:
        return []
    names = [unused[place] for place in sorted(unused)]
    named = f"the {kind}{'s' if len(names) > 1 else ''} {quoted_list(names, most=len(names))}"
    why, fix = (
        f"the project declares {named} but does not use {'it' if len(names) == 1 else 'them'}",
        "remove what you do not need, or use it",
    )
    return [Finding(code, f"{what} {named}", why, fix, min(unused), Severity.INFO)]
