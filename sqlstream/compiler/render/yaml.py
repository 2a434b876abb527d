"""Jinja in the strings of YAML files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jinja2 import nodes
from jinja2.environment import Template

from sqlstream.compiler.render.failures import reading_finding, running_finding
from sqlstream.compiler.render.model_functions import TargetName
from sqlstream.compiler.render.plain_values import plain_value
from sqlstream.compiler.render.secret_environment import SecretEnvironment
from sqlstream.compiler.render.source import TemplateSource
from sqlstream.compiler.render.state import RenderState
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.values import Located, MakeRenderYaml, RenderYaml

OPENINGS = ("{{", "{%", "{#")
"""What a text without Jinja does not hold."""


def make_yaml_renderer(env: Mapping[str, str]) -> MakeRenderYaml:
    """Returns what makes a renderer of YAML strings, once the variables are known; `env` is the environment."""

    def make(variables: Mapping[str, object], target: str | None) -> RenderYaml:
        return _YamlRenderer(variables, env, target, {})

    return make


def render_sink_value(
    value: Located,
    model: Mapping[str, object],
    variables: Mapping[str, object],
    env: Mapping[str, str],
    target_name: str,
    *,
    secrets: bool,
) -> object:
    """Returns a sink's path or option for one model: its text rendered with `model`, other values as they are.

    `model` has the keys that templates may read (`name`, `path`, `tags`, `meta`). Raises: FindingsError.
    """
    if not isinstance(value.value, str) or not holds_jinja(value.value):
        return value.value
    render = _YamlRenderer(variables, env, target_name, {"model": model})
    return render(value.value, value.location, secrets=secrets)


def holds_jinja(text: str) -> bool:
    """Returns whether `text` is more than plain text."""
    return any(opening in text for opening in OPENINGS)


class _YamlRenderer:
    """Implements `RenderYaml`; its environment is made when the first text with Jinja comes."""

    def __init__(
        self,
        variables: Mapping[str, object],
        env: Mapping[str, str],
        target: str | None,
        names: Mapping[str, object],
    ) -> None:
        self._variables = variables
        self._env = env
        self._names = {**names, **({} if target is None else {"target": TargetName(target)})}
        self._environment: SecretEnvironment | None = None

    def __call__(self, text: str, location: Location, *, secrets: bool) -> object:
        if not holds_jinja(text):
            return text
        if self._environment is None:
            self._environment = SecretEnvironment(self._variables, self._env)
            self._environment.names.update(self._names)
        self._environment.secrets = secrets
        self._environment.state = RenderState(self._environment.limits)
        return self._render(self._environment, text, location)

    def _render(self, environment: SecretEnvironment, text: str, location: Location) -> object:
        source = TemplateSource(location.path, text)
        try:
            template, native = _load(environment, source)
        except Exception as error:
            raise _located(reading_finding(error, environment, source), location) from error
        try:
            return environment.with_secrets(_run(environment, template, native))
        except Exception as error:
            raise _located(running_finding(error, environment, source), location) from error


def _load(environment: SecretEnvironment, source: TemplateSource) -> tuple[Template, bool]:
    """The compiled template, and whether it is one expression and nothing else, whose own value is wanted."""
    environment.sources[source.path] = source
    tree = environment.parse_source(source)
    expressions = [node for output in tree.body if isinstance(output, nodes.Output) for node in output.nodes]
    kept = [node for node in expressions if not (isinstance(node, nodes.TemplateData) and node.data.isspace())]
    native = all(isinstance(node, nodes.Output) for node in tree.body) and len(kept) == 1
    native = native and not isinstance(kept[0], nodes.TemplateData)
    return environment.load_tree(tree, source.path), native


def _run(environment: SecretEnvironment, template: Template, native: bool) -> object:
    environment.captured = [] if native else None
    text = environment.run(template)
    if environment.captured is None:
        return text
    value = environment.captured[0]
    environment.budget.weigh(value)
    return plain_value(value)


def _located(finding: Finding, location: Location) -> FindingsError:
    """The finding at the YAML value: offsets in the text are not those in the file, where quotes may stand."""
    return FindingsError([replace(finding, location=location, calls=())])
