"""Renders the strings of YAML files one by one. This part needs Jinja, and is loaded with the first of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jinja2 import nodes
from jinja2.environment import Template

from sqlstream.compiler.render.model_functions import TargetName
from sqlstream.compiler.render.places.source import TemplateSource
from sqlstream.compiler.render.sandbox.failures import reading_finding, running_finding
from sqlstream.compiler.render.sandbox.plain_values import plain_value
from sqlstream.compiler.render.sandbox.secret_environment import SecretEnvironment
from sqlstream.compiler.render.sandbox.state import RenderState
from sqlstream.compiler.render.values import Reads, merge_reads
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location


class YamlTexts:
    """Renders texts in one environment. `names` are known to templates besides the functions."""

    def __init__(
        self,
        variables: Mapping[str, object],
        env: Mapping[str, str],
        target: str | None,
        names: Mapping[str, object],
    ) -> None:
        self._environment = SecretEnvironment(variables, env)
        self._environment.names.update({**names, **({} if target is None else {"target": TargetName(target)})})
        self.reads = Reads()

    def render(self, text: str, location: Location, *, secrets: bool) -> object:
        """Returns the rendered value, and adds to `reads`. Raises: FindingsError."""
        environment = self._environment
        environment.secrets = secrets
        environment.state = RenderState(environment.limits)
        source = TemplateSource(location.path, text)
        try:
            template, native = _load(environment, source)
        except Exception as error:
            raise _located(reading_finding(error, environment, source), location) from error
        try:
            value = environment.with_secrets(_run(environment, template, native))
        except Exception as error:
            raise _located(running_finding(error, environment, source), location) from error
        self.reads = merge_reads((self.reads, environment.state.reads))
        return value


def _load(environment: SecretEnvironment, source: TemplateSource) -> tuple[Template, bool]:
    """The compiled template, and whether it is a single expression, so that its value is the result."""
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
    """The finding with the location of the YAML value. Offsets in the text differ from those in the file because of
    quotes.
    """
    return FindingsError([replace(finding, location=location, calls=())])
