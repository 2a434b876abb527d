"""One rendering of one model's template."""

from __future__ import annotations

from sqlstream.compiler.render.model_functions import names_of_model
from sqlstream.compiler.render.places.source import TemplateSource
from sqlstream.compiler.render.sandbox.environment import TemplateEnvironment
from sqlstream.compiler.render.sandbox.failures import reading_finding, running_finding
from sqlstream.compiler.render.sandbox.state import RenderState
from sqlstream.errors import FindingsError
from sqlstream.project.values import ModelFile


def render_file(environment: TemplateEnvironment, file: ModelFile, state: RenderState) -> str:
    """Returns the output of a model's template, its effects in `state`. Raises: FindingsError."""
    environment.names.update(names_of_model(file))
    return render_source(environment, TemplateSource(file.path, file.text), state)


def render_source(environment: TemplateEnvironment, source: TemplateSource, state: RenderState) -> str:
    """Returns the output of any template, its effects in `state`. Raises: FindingsError."""
    environment.state = state
    try:
        template = environment.load(source)
    except Exception as error:
        raise FindingsError([reading_finding(error, environment, source)]) from error
    try:
        return environment.run(template)
    except Exception as error:
        raise FindingsError([running_finding(error, environment, source)]) from error
