"""Renders each escape from escapes.yml in every kind of file and prints the outcomes.

Each line is JSON: the escape's name, the kind of file (model, macro, YAML value, ...), the finding's code (or None),
the rendered text or the finding's texts, and the audit events that the interpreter raised and that no template should
cause.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import yaml

from sqlstream.compiler.render.yaml import SinkRenderer, make_yaml_renderer
from sqlstream.errors import FindingsError
from sqlstream.location import Location
from sqlstream.project.yaml import Located
from tests.support.rendering import ENV, VARIABLES, model, options, renderer

PLACE = Location("sources.yml", 3, 5)
WATCHED = (
    "os.",
    "subprocess.",
    "socket.",
    "shutil.",
    "ctypes.",
    "pty.",
    "open",
    "import",
    "tempfile.",
    "sys._getframe",
)
"""Names or prefixes of Python's audit events (https://docs.python.org/3/library/audit_events.html)."""


def read_escapes() -> list[dict[str, str]]:
    """Returns the escapes with `name`, `template` and `gives`."""
    text = (Path(__file__).parent / "escapes.yml").read_text(encoding="utf-8")
    escapes: list[dict[str, str]] = yaml.load(text, Loader=yaml.CSafeLoader)
    return escapes


def in_model(template: str) -> object:
    """Returns the SQL of a model that consists of the template."""
    return renderer().render(model(template)).sql


def in_macro(template: str) -> object:
    """Returns the SQL of a model that calls a macro with the template as its body. Raises: FindingsError."""
    made = renderer("{% macro harmless() %}" + template + "{% endmacro %}")
    if made.macro_findings:
        raise FindingsError(made.macro_findings)
    return made.render(model("{{ harmless() }}")).sql


def in_macro_file(template: str) -> object:
    """Returns an empty text after reading a macro file with the template outside any macro. Raises: FindingsError."""
    made = renderer(template)
    if made.macro_findings:
        raise FindingsError(made.macro_findings)
    return ""


def in_yaml(template: str) -> object:
    """Returns the value of a YAML option that may contain secrets, which are kept as references."""
    return make_yaml_renderer(ENV)(VARIABLES, "local")(template, PLACE, secrets=True)


def in_sink(template: str) -> object:
    """Returns a sink's path, which is rendered for each model."""
    facts = {"name": "orders", "tags": ["a"], "meta": {"owner": "ana"}}
    return SinkRenderer(facts, options())(Located(template, PLACE), secrets=False)


SETTINGS: dict[str, Callable[[str], object]] = {
    "model": in_model,
    "macro": in_macro,
    "macro file": in_macro_file,
    "yaml": in_yaml,
    "sink": in_sink,
}


def main() -> None:
    """Prints the outcome of every escape with its own audit events."""
    events: list[str] = []
    escapes = read_escapes()
    for render in SETTINGS.values():  # modules that are imported on first use are imported now
        for template in ("{{ nope }}", "{{ ''.__class__ }}", "{{ ''['__class__'] }}", "{{ 1 / 0 }}", "{% nope %}"):
            outcome_of(render, template)
    sys.addaudithook(lambda event, _: events.append(event) if event.startswith(WATCHED) else None)
    for escape in escapes:
        for setting, render in SETTINGS.items():
            events.clear()
            code, text = outcome_of(render, escape["template"])
            seen = sorted(set(events))
            print(json.dumps([escape["name"], setting, code, text, seen]), flush=True)


def outcome_of(render: Callable[[str], object], template: str) -> tuple[str | None, str]:
    """Returns a finding's code and texts, or None and the rendered value."""
    try:
        return None, str(render(template))
    except FindingsError as error:
        finding = error.findings[0]
        return finding.code, f"{finding.head} {finding.why} {finding.fix}"


if __name__ == "__main__":
    main()
