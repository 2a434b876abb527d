"""Runs template files: the macros of a project, which all templates know by name, and its models."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import NoneType
from typing import Any

from jinja2 import nodes
from jinja2.runtime import Macro

from sqlstream.compiler.render.model_functions import names_of_model
from sqlstream.compiler.render.rendered import MacroIndex
from sqlstream.compiler.render.sandbox.allowed import TemplateFunction
from sqlstream.compiler.render.sandbox.environment import RenderState, TemplateEnvironment, TemplateSource
from sqlstream.compiler.render.template_errors import template_finding
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.values import MacroFile, ModelFile

IMMUTABLE = (Macro, str, int, float, bool, NoneType)
"""Values that macros cannot change. A macro file with other values can keep state between models."""


def render_file(environment: TemplateEnvironment, file: ModelFile, state: RenderState) -> str:
    """Returns the output of a model's template, and records its effects in `state`. Raises: FindingsError."""
    environment.names.update(names_of_model(file))
    environment.state = state
    source = TemplateSource(file.path, file.text)
    try:
        return environment.run(environment.load(source)[1])
    except Exception as error:
        raise FindingsError([template_finding(error, environment, source)]) from error


def load_macros(environment: TemplateEnvironment, files: Iterable[MacroFile]) -> tuple[Finding, ...]:
    """Adds every macro of `files` to the environment's names and index. Returns the findings in the files."""
    findings: list[Finding] = []
    states: dict[str, RenderState] = {}
    paths: dict[str, str] = {}
    stateful: set[str] = set()
    locations: dict[str, Location] = {}
    builtin = frozenset(environment.names)
    for source in (TemplateSource(file.path, file.text) for file in files):
        try:
            tree, values = _run_macro_file(environment, source)
        except Exception as error:
            findings.append(template_finding(error, environment, source))
            continue
        macros = {name: value for name, value in values.items() if isinstance(value, Macro)}
        states[source.path] = environment.state
        paths |= dict.fromkeys(macros, source.path)
        if not all(isinstance(value, IMMUTABLE) for value in values.values()):
            stateful.add(source.path)
        findings += _name_findings(_global_macros(tree, macros), source, locations, builtin)
        environment.names.update({name: macro for name, macro in macros.items() if name not in builtin})
    reads = {path: state.reads for path, state in states.items()}
    logged = tuple(message for state in states.values() for message in state.logged)
    environment.macro_index = MacroIndex(paths, reads, frozenset(stateful), logged)
    return tuple(findings)


def override_macros(environment: TemplateEnvironment, results: Mapping[str, object]) -> None:
    """Makes calls of the names in `results`, with any arguments, return these values."""
    for name, result in results.items():
        environment.names[name] = TemplateFunction(name, lambda *_arguments, value=result, **_named: value)


def _run_macro_file(environment: TemplateEnvironment, source: TemplateSource) -> tuple[nodes.Template, dict[str, Any]]:
    """The parsed file, and its macros and other values by name. Runs text outside of macros, and drops its output."""
    environment.state = RenderState(environment.limits)
    tree, template = environment.load(source)
    context = environment.context_for(template)
    deque(template.root_render_func(context), maxlen=0)
    return tree, dict(context.vars)


def _global_macros(tree: nodes.Template, macros: dict[str, Any]) -> list[nodes.Macro]:
    """The definitions of `macros`: the top-level ones, and the first one of each name inside an `if`."""
    found = [node for node in tree.body if isinstance(node, nodes.Macro)]
    chosen = {node.name: node for node in reversed(list(tree.find_all(nodes.Macro))) if node.name in macros}
    names = {node.name for node in found}
    return found + [node for name, node in chosen.items() if name not in names]


def _name_findings(
    macros: Iterable[nodes.Macro], source: TemplateSource, locations: dict[str, Location], builtin: frozenset[str]
) -> Iterator[Finding]:
    """The findings for names that sqlstream or other macros already use. Adds the macros to `locations`."""
    for node in macros:
        location = source.location(source.find_word(node.name, node.lineno - 1))
        first = locations.setdefault(node.name, location)
        if node.name in builtin:
            why, fix = f"`{node.name}` is a built-in name of sqlstream", "rename the macro"
        elif first is not location:
            why, fix = f"{first} also defines it, and macro names are global", "rename one of them"
        else:
            continue
        yield Finding("duplicate-name", f"the macro `{node.name}` is defined twice", why, fix, location)
