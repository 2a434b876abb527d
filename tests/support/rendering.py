"""Helpers of the rendering tests: options, model files and shortcuts to render."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from sqlstream.compiler.render.model import ModelRenderer
from sqlstream.compiler.render.rendered import RenderedModel, RenderOptions
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.configuration.config import ConfigPatch
from sqlstream.project.configuration.target import Target
from sqlstream.project.values import MacroFile, ModelFile

VARIABLES: Mapping[str, object] = {"days": 7, "columns": ["a", "b"], "name": "shop"}
ENV = {"HOME": "/home/ana", "SQLSTREAM_SECRET_TOKEN": "canary-4711"}
LOGGED: list[tuple[str, bool]] = []


def options() -> RenderOptions:
    """Returns the options that all rendering tests use."""
    return RenderOptions(
        variables=VARIABLES,
        env=ENV,
        target=Target(name="local", master="local[*]", storage=".sqlstream/local", location=Location("project.yml", 5)),
        project_name="examples",
        run_started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        invocation_id="0000-1",
        log=lambda message, info: LOGGED.append((message, info)),
    )


def model(text: str, name: str = "orders", configs: tuple[ConfigPatch, ...] = ()) -> ModelFile:
    """Returns a model file with this text."""
    return ModelFile(name, f"models/{name}.sql", text, (), "", (), configs)


def renderer(*macros: str) -> ModelRenderer:
    """Returns a renderer whose macro files `macros/0.sql`, `macros/1.sql`, ... have these texts."""
    return ModelRenderer([MacroFile(f"macros/{index}.sql", text) for index, text in enumerate(macros)], options())


def render(text: str, *macros: str) -> RenderedModel:
    """Returns the rendered model after checking that the macros have no findings."""
    made = renderer(*macros)
    assert made.macro_findings == ()
    return made.render(model(text))


def finding_of(text: str, *macros: str) -> Finding:
    """Returns the only finding that rendering raises."""
    with pytest.raises(FindingsError) as caught:
        render(text, *macros)
    (finding,) = caught.value.findings
    return finding


def place_of(finding: Finding) -> str:
    """Returns a finding's code, line and column, such as `jinja-syntax 3:7`."""
    assert finding.location is not None
    return f"{finding.code} {finding.location.line}:{finding.location.column}"
