"""Renders the Jinja in YAML nodes: which strings, how, and with which results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Protocol

from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.configuration.docs_blocks import DocsBlock
from sqlstream.project.configuration.validate import is_template
from sqlstream.project.secret_text import SecretText
from sqlstream.project.wording import quoted
from sqlstream.project.yaml import YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence, from_plain

CHANNEL_KEYS = ("webhook", "headers", "routing_key")
"""The keys of a channel of alerts that can contain secrets."""


class RenderYaml(Protocol):
    """Renders one YAML string with Jinja. The caller of the loader provides it, because jinja2 is used only in
    compiler/render.
    """

    def __call__(self, text: str, location: Location, *, secrets: bool) -> object:
        """Returns the rendered text, or the value of the expression if the whole text is one `{{ }}`.

        With `secrets`, an environment variable whose name starts with `SECRET_PREFIX` becomes a `SecretText`; without,
        it is a finding. Raises: FindingsError.
        """

    def with_docs(self, blocks: Sequence[DocsBlock]) -> RenderYaml:
        """Returns a renderer whose texts can also include `blocks`, with doc()."""


class MakeRenderYaml(Protocol):
    """Creates a `RenderYaml` once the variables are known."""

    def __call__(self, variables: Mapping[str, object], target: str | None) -> RenderYaml:
        """Returns a renderer that uses `variables` for var() and `target` for `target.name`."""


class RenderPolicy(Enum):
    """What to do with the scalars at and below a path."""

    RENDER = "rendered; secrets are not allowed"
    OPTION = "rendered, with secrets as references; numbers and booleans become the text in the file"
    KEEP = "like OPTION, but Jinja is kept because it needs the model"
    TEXT = "rendered; numbers and booleans become the text in the file"


Rules = Mapping[tuple[str, ...], RenderPolicy]
"""Treatments by path, `*` for any key or index. Paths without a rule are `RENDER`."""

RESOURCE_RULES: Rules = {
    ("sources", "*", "options"): RenderPolicy.OPTION,
    ("sources", "*", "tables", "*", "options"): RenderPolicy.OPTION,
    ("sources", "*", "tables", "*", "value_options"): RenderPolicy.OPTION,
    ("sources", "*", "tables", "*", "schema_registry"): RenderPolicy.OPTION,
    ("sinks", "*", "path"): RenderPolicy.KEEP,
    ("sinks", "*", "table"): RenderPolicy.KEEP,
    ("sinks", "*", "options"): RenderPolicy.KEEP,
    ("models", "*", "config", "options"): RenderPolicy.TEXT,
    ("exposures", "*", "depends_on"): RenderPolicy.KEEP,
}

KEPT_PATHS = tuple(path for path, treatment in RESOURCE_RULES.items() if treatment is RenderPolicy.KEEP)
"""The paths in a resource file at which Jinja stays unchanged until a model is known."""


TARGET_RULES: Rules = {
    **{("alerts", "notify", "*", key): RenderPolicy.OPTION for key in CHANNEL_KEYS},
    ("spark",): RenderPolicy.OPTION,
    ("repositories",): RenderPolicy.OPTION,
    ("sources", "*", "options"): RenderPolicy.OPTION,
    ("sources", "*", "value_options"): RenderPolicy.OPTION,
    ("sources", "*", "schema_registry"): RenderPolicy.OPTION,
    ("sinks", "*", "path"): RenderPolicy.KEEP,
    ("sinks", "*", "table"): RenderPolicy.KEEP,
    ("sinks", "*", "options"): RenderPolicy.KEEP,
}

UNIT_TEST_RULES: Rules = {("upgrade_from", "sql"): RenderPolicy.KEEP}

PROJECT_RULES: Rules = {
    ("version",): RenderPolicy.TEXT,
    **{("alerts", "notify", "*", key): RenderPolicy.OPTION for key in CHANNEL_KEYS},
}


def render_node(node: YamlNode, render: RenderYaml | None, rules: Rules, findings: list[Finding]) -> YamlNode:
    """Returns the node with its strings rendered by `rules`. A string that fails stays, and adds to `findings`. Without
    `render` all Jinja stays.
    """
    if render is None and not rules:
        return node
    treatment = rules.get((), RenderPolicy.RENDER)
    if isinstance(node, YamlScalar):
        return _render_scalar(node, render, treatment, findings)
    if isinstance(node, YamlSequence):
        below = _narrowed(rules, "*")
        items = tuple(render_node(item, render, below, findings) for item in node.items)
        return YamlSequence(items, node.location)
    entries = (
        YamlEntry(
            entry.key, entry.key_location, render_node(entry.value, render, _narrowed(rules, entry.key), findings)
        )
        for entry in node.entries
    )
    return YamlMapping(tuple(entries), node.location)


def render_mapping(node: YamlMapping, render: RenderYaml | None, rules: Rules, findings: list[Finding]) -> YamlMapping:
    """Returns the mapping with its strings rendered by `rules`, as `render_node` does."""
    rendered = render_node(node, render, rules, findings)
    return rendered if isinstance(rendered, YamlMapping) else node


def as_written(node: YamlNode) -> YamlNode:
    """Returns numbers and booleans as their text in the file, so that `010` stays `010`: Spark's options are text."""
    if isinstance(node, YamlMapping):
        return YamlMapping(
            tuple(entry._replace(value=as_written(entry.value)) for entry in node.entries), node.location
        )
    if isinstance(node, YamlSequence) or node.value is None or isinstance(node.value, str | SecretText):
        return node
    text = str(node.value).lower() if isinstance(node.value, bool) else node.text
    return YamlScalar(text, node.text, node.location)


def _narrowed(rules: Rules, key: str) -> Rules:
    if not rules or () in rules:
        return rules
    return {path[1:]: treatment for path, treatment in rules.items() if path[0] in ("*", key)}


def _render_scalar(
    node: YamlScalar, render: RenderYaml | None, treatment: RenderPolicy, findings: list[Finding]
) -> YamlNode:
    if not is_template(node.value):
        return node if treatment is RenderPolicy.RENDER else as_written(node)
    if render is None or treatment is RenderPolicy.KEEP:
        return node
    try:
        value = render(str(node.value), node.location, secrets=treatment is RenderPolicy.OPTION)
        rendered = from_plain(value, node.location)
    except FindingsError as error:
        findings.extend(error.findings)
        return node
    except RecursionError:
        findings.append(_too_deep(node))
        return node
    return as_written(rendered) if treatment is not RenderPolicy.RENDER else rendered


def _too_deep(node: YamlScalar) -> Finding:
    return Finding(
        "invalid-value",
        f"the value of {quoted(node.text)} is nested too deeply",
        "the expression returns a list or mapping that contains itself, or has hundreds of levels",
        "use a flat value",
        node.location,
    )
