"""Rules about unused declarations: disabled models count as users."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.graph import EXPOSURE, kind_of
from sqlstream.compiler.rules.rule import Problem, Problems, rule
from sqlstream.errors import Severity
from sqlstream.location import Location, location_at
from sqlstream.project.wording import quoted_list

_MACRO = re.compile(r"\{%-?\s*macro\s+(?P<name>\w+)")
_COMMENT = re.compile(r"(?s)\{#.*?#\}")


@rule("unwritten-model", severity=Severity.WARNING)
def unwritten_models(compiled: CompiledProject) -> Problems:
    """A model without readers and without a sink has no effect."""
    return (
        Problem(
            f"nothing uses the output of `{model.name}`",
            "no other model reads it and it has no sink, so `sqlstream run` does not run it",
            "add config(sink='...') to it, read it with ref() in another model, or delete it",
            model.file.location,
        )
        for unique_id, model in compiled.models.items()
        if model.output is None and all(kind_of(child) == EXPOSURE for child in compiled.graph.children[unique_id])
    )


@rule("unused-source", severity=Severity.INFO)
def unused_sources(compiled: CompiledProject) -> Problems:
    """No model reads the source."""
    elsewhere = _words(_disabled_texts(compiled))
    unused = {
        table.location: table.full_name
        for node, table in compiled.sources.items()
        if not compiled.graph.children.get(node) and table.name not in elsewhere
    }
    return _unused("no model reads", "source", unused)


@rule("unused-sink", severity=Severity.INFO)
def unused_sinks(compiled: CompiledProject) -> Problems:
    """No model writes to the sink."""
    writers = [*compiled.models.values(), *compiled.own_rows]
    used = {output.sink for model in writers for output in compiled.outputs_of(model)}
    used |= _words(_disabled_texts(compiled))
    unused = {sink.location: sink.name for sink in compiled.project.sinks if sink.name not in used}
    return _unused("no model writes to", "sink", unused)


@rule("unused-macro", severity=Severity.INFO)
def unused_macros(compiled: CompiledProject) -> Problems:
    """No template uses the macro's name outside the macro."""
    project = compiled.project
    macros = [(file, match) for file in project.macros for match in _MACRO.finditer(_without_comments(file.text))]
    uncalled = {match["name"] for _, match in macros}
    for text in (*(file.text for file in project.models), *(_MACRO.sub("", file.text) for file in project.macros)):
        # Splitting a text into words takes longer than searching it, and most texts call no macro.
        if any(name in text for name in uncalled):
            uncalled -= _words([text])
    unused = {
        location_at(file.path, file.text, match.start("name")): match["name"]
        for file, match in macros
        if match["name"] in uncalled
    }
    return _unused("nothing calls", "macro", unused)


def _without_comments(text: str) -> str:
    """Returns the text with blanks instead of Jinja comments, so that offsets do not change."""
    return _COMMENT.sub(lambda comment: " " * len(comment[0]), text)


def _disabled_texts(compiled: CompiledProject) -> list[str]:
    enabled = {model.name for model in compiled.models.values()}
    return [file.text for file in compiled.project.models if file.name not in enabled]


def _words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in re.findall(r"\w+", text)}


def _unused(what: str, kind: str, unused: Mapping[Location, str]) -> Problems:
    """Yields one problem about everything unused of one kind, at the first location."""
    names = [unused[place] for place in sorted(unused)]
    if names:
        named = f"the {kind}{'s' if len(names) > 1 else ''} {quoted_list(names, most=len(names))}"
        why = f"the project declares {named} but does not use {'it' if len(names) == 1 else 'them'}"
        yield Problem(f"{what} {named}", why, "remove what you do not need, or use it", min(unused))
