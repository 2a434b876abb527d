"""Renders Jinja in the strings of YAML files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from sqlstream.compiler.render.rendered import RenderOptions, TemplateReads
from sqlstream.location import Location
from sqlstream.project.configuration.docs_blocks import DocsBlock
from sqlstream.project.configuration.templates import MakeRenderYaml, RenderYaml
from sqlstream.project.configuration.validate import is_template
from sqlstream.project.yaml import Located

if TYPE_CHECKING:
    from sqlstream.compiler.render.yaml_texts import YamlEnvironment


def make_yaml_renderer(env: Mapping[str, str], environment_read: set[str] | None = None) -> MakeRenderYaml:
    """Returns a function that creates the renderer of YAML strings once the variables are known. `environment_read`
    gets the names of the environment variables that they read.
    """
    read = set() if environment_read is None else environment_read
    return lambda variables, target: _YamlRenderer(variables, env, target, {}, read)


class SinkRenderer:
    """Renders a sink's path and options for one model: its `name`, `path`, `tags` and `meta`."""

    def __init__(self, model: Mapping[str, object], options: RenderOptions) -> None:
        names, read = {"model": model}, options.environment_read
        self._render = _YamlRenderer(options.variables, options.env, options.target.name, names, read)

    def __call__(self, value: Located, *, secrets: bool) -> object:
        """Returns a rendered text, and other values unchanged. Raises: FindingsError."""
        if not isinstance(value.value, str):
            return value.value
        return self._render(value.value, value.location, secrets=secrets)

    @property
    def reads(self) -> TemplateReads:
        """The reads of everything rendered so far."""
        return self._render.reads


class _YamlRenderer:
    """Implements `RenderYaml`. Loads Jinja for the first text with Jinja."""

    def __init__(
        self,
        variables: Mapping[str, object],
        env: Mapping[str, str],
        target: str | None,
        names: Mapping[str, object],
        environment_read: set[str],
        docs: Sequence[DocsBlock] | None = None,
    ) -> None:
        self._known = (variables, env, target, names, environment_read, docs)

    @cached_property
    def _environment(self) -> YamlEnvironment:
        from sqlstream.compiler.render.yaml_texts import YamlEnvironment

        return YamlEnvironment(*self._known)

    @property
    def reads(self) -> TemplateReads:
        """The reads of everything rendered so far."""
        return self._environment.reads if "_environment" in vars(self) else TemplateReads()

    def with_docs(self, blocks: Sequence[DocsBlock]) -> RenderYaml:
        return _YamlRenderer(*self._known[:-1], blocks)

    def __call__(self, text: str, location: Location, *, secrets: bool) -> object:
        return self._environment.render(text, location, secrets=secrets) if is_template(text) else text
