"""Undefined names and attributes of a template, as findings with suggestions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jinja2 import nodes

from sqlstream.compiler.render.model_functions import ConfigFunction
from sqlstream.compiler.render.sandbox.environment import TemplateEnvironment
from sqlstream.compiler.render.sandbox.methods import METHODS
from sqlstream.compiler.render.sandbox.problems import UndefinedUse
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.dbt_words import TEMPLATE_NAMES
from sqlstream.project.nearest import did_you_mean

LONGEST_MESSAGE = 300
"""The most characters of a Python error's message that are shown."""

_UNQUOTED = re.compile(r"\b(?:ref|source|var|env_var)\(\s*(?:[^(){}]*,\s*)?$")
"""The text before an argument of a function that takes names as text."""


def undefined_finding(
    error: UndefinedUse, environment: TemplateEnvironment, path: str, offset: int, calls: tuple[Location, ...]
) -> Finding:
    """Returns the finding for an undefined name or attribute, located in the template of `path`."""
    name = str(error.name) if error.name is not None else ""
    source = environment.sources[path]
    location = source.location(source.find_word(name, offset) if name else offset)
    if not name or "was not provided" in str(error) or "No caller" in str(error):
        message, why = one_line(error).replace("'", "`"), "the template uses a value that its caller does not pass"
        fix = "pass the argument in the call, or give the parameter of the macro a default"
    elif error.owner is None:
        message = f"`{name}` is not defined"
        why = "a template can use the functions of sqlstream, the macros in macros/ and the variables that it sets"
        fix = _fix_of_name(name, source.text[: source.find_word(name, offset)], _known_names(environment, path))
    else:
        message = f"this {_kind(error.owner)} has no `{name}`"
        why = f"the template uses it here, but the value has {_contents(error.owner)}"
        fix = _fix_of_attribute(name, error.owner)
    return Finding("jinja-undefined", message, why, fix, location, calls=calls)


def _fix_of_name(name: str, before: str, known: Iterable[str]) -> str:
    """The fix for an unknown name after the text `before`. The name may be a text without quotes."""
    function = _UNQUOTED.search(before)
    if function is not None:
        ending = ", '...')" if function.group().startswith("source") and "," not in function.group() else ")"
        return f"put the name in quotes: {' '.join(function.group().split())}'{name}'{ending}".replace(",'", ", '")
    return TEMPLATE_NAMES.get(name) or did_you_mean(name, known)


def _fix_of_attribute(name: str, owner: object) -> str:
    if isinstance(owner, ConfigFunction):
        return f"use config.get('{name}')"
    names = _attributes(owner)
    return did_you_mean(name, names) if names else f"remove `.{name}`"


def _known_names(environment: TemplateEnvironment, path: str) -> Iterable[str]:
    """All names that the template can use: those of the environment, and those that it assigns."""
    tree = environment.parse_source(environment.sources[path])
    assigned = [name.name for name in tree.find_all(nodes.Name) if name.ctx != "load"]
    return [*environment.names, *assigned, *(macro.name for macro in tree.find_all(nodes.Macro))]


KINDS = {"dict": "mapping", "tuple": "list", "str": "text", "int": "number", "float": "number", "Relation": "relation"}
KINDS |= {"TemplateFunction": "function", "ConfigFunction": "function", "TargetName": "target", "Macro": "macro"}


def _kind(owner: object) -> str:
    """The user's word for a value of this type."""
    name = type(owner).__name__
    return KINDS.get(name, name.lower())


def type_in_words(type_name: str) -> str:
    """Returns the user's word for a Python type."""
    known = {"str": "text", "NoneType": "nothing"}.get(type_name)
    return known or f"a {KINDS.get(type_name, type_name)}"


def _attributes(owner: object) -> list[str]:
    if isinstance(owner, dict):
        return [key for key in owner if isinstance(key, str)]
    if type(owner) in METHODS:
        return list(METHODS[type(owner)])
    return [name for name in dir(owner) if not name.startswith("_") and not (callable(owner) and name == "name")]


def _contents(owner: object) -> str:
    if isinstance(owner, list | tuple | dict):
        return f"{len(owner)} entries"
    return "none with that name"


def one_line(error: Exception) -> str:
    """Returns the message of a Python error on one line, shortened."""
    text = re.sub(r"[\w.<>]*<locals>\.(\w+)\(\)", r"\1()", " ".join(str(error).split())).rstrip(".")
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + "…"
