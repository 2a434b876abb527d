"""One rendering of one model's template."""

from __future__ import annotations

from sqlstream.compiler.render.model_functions import names_of_model
from sqlstream.compiler.render.places.source import TemplateSource
from sqlstream.compiler.render.sandbox.environment import TemplateEnvironment
from sqlstream.compiler.render.sandbox.failures import template_finding
from sqlstream.compiler.render.sandbox.state import RenderState
from sqlstream.errors import FindingsError
from sqlstream.project.values import ModelFile


def render_file(environment: TemplateEnvironment, file: ModelFile, state: RenderState) -> str:
    """Returns the output of a model's template, and records its effects in `state`. Raises: FindingsError."""
    environment.names.update(names_of_model(file))
    environment.state = state
    source = TemplateSource(file.path, file.text)
    try:
        return environment.run(environment.load(source))
    except Exception as error:
        raise FindingsError([template_finding(error, environment, source)]) from error
