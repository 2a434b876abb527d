"""Renders the strings of YAML files one by one. This part needs Jinja, and is loaded with the first of them.

A secret is a mark in the rendered text that no operation can read or change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jinja2 import nodes
from jinja2.environment import Template

from sqlstream.compiler.render.jinja_functions import UNSET, common_functions, docs_function, refuse_secret
from sqlstream.compiler.render.model_functions import TargetName
from sqlstream.compiler.render.rendered import TemplateReads, merge_reads
from sqlstream.compiler.render.sandbox.allowed import plain_value
from sqlstream.compiler.render.sandbox.environment import RenderState, TemplateEnvironment, TemplateSource
from sqlstream.compiler.render.sandbox.render_errors import TemplateProblem
from sqlstream.compiler.render.source_map import BEGIN, MARK, number_of, numbered
from sqlstream.compiler.render.template_errors import reading_finding, running_finding
from sqlstream.errors import FindingsError
from sqlstream.location import Location
from sqlstream.project.configuration.docs_blocks import DocsBlock
from sqlstream.project.secret_text import SecretName, SecretText

JOINING = frozenset({"join", "format", "string"})
"""Operations that only join texts."""

REMAINS = re.compile(r"[\U0010f800-\U0010f87f]|\\U0010f8|\\udbfe", re.IGNORECASE)
"""The remains of a mark that was cut or escaped."""


class YamlEnvironment(TemplateEnvironment):
    """Renders one YAML string at a time. `names` are known to templates besides the functions, and `reads` covers all
    strings so far. `environment_read` gets the names of environment variables. With `docs`, templates can include docs
    blocks.
    """

    def __init__(
        self,
        variables: Mapping[str, object],
        env: Mapping[str, str],
        target: str | None,
        names: Mapping[str, object],
        environment_read: set[str],
        docs: Sequence[DocsBlock] | None = None,
    ) -> None:
        super().__init__()
        self.reads = TemplateReads()
        self._env = env
        self._secrets_allowed = False
        self._secret_names: list[str] = []
        self._captured: list[object] | None = None
        self.names.update(common_functions(self, variables, env, self._read_secret, environment_read))
        if docs is not None:
            self.names["doc"] = docs_function(docs)
        self.names.update(names if target is None else {**names, "target": TargetName(target)})

    def render(self, text: str, location: Location, *, secrets: bool) -> object:
        """Returns the rendered value. `secrets`: env_var() can name secrets in it. Raises: FindingsError."""
        self._secrets_allowed = secrets
        self._captured = None
        self.state = RenderState(self.limits)
        source = TemplateSource(location.path, text)
        to_finding = reading_finding
        try:
            tree, template = self.load(source)
            to_finding = running_finding
            value = self._with_secrets(self._value(template) if _is_expression(tree) else self.run(template))
        except Exception as error:
            # offsets in the text differ from those in the file because of quotes
            finding = replace(to_finding(error, self, source), location=location, calls=())
            raise FindingsError([finding]) from error
        self.reads = merge_reads((self.reads, self.state.reads))
        return value

    def _value(self, template: Template) -> object:
        """The value of a template that is a single expression."""
        self._captured = []
        self.run(template)
        value = self._captured[0]
        self.budget.weigh(value)
        return plain_value(value)

    def _read_secret(self, name: str, default: object) -> object:
        if not self._secrets_allowed:
            return refuse_secret(name)
        self.state.secrets_read.add(name)
        if name not in self._env and default is not UNSET:
            return default
        self._secret_names.append(name)
        return numbered(BEGIN, len(self._secret_names) - 1)

    def output(self, value: object) -> str:
        """Returns the output of `{{ value }}`. If the value itself is needed, keeps it instead."""
        if self._captured is None:
            return super().output(value)
        self._captured.append(value)
        return ""

    def plain(self, value: Any, operation: str = "") -> Any:
        """Returns the value. Raises: TemplateProblem for a secret that the operation would read."""
        if isinstance(value, str) and MARK.search(value) and operation not in JOINING:
            raise _changed_secret()
        return value

    def plain_call(self, method: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """Returns the method and its arguments. Raises: TemplateProblem for a method of a secret."""
        self.plain(getattr(method, "__self__", None), getattr(method, "__name__", ""))
        return method, args

    def _with_secrets(self, value: object) -> object:
        """The rendered value with its marks as a `SecretText`. Raises: TemplateProblem."""
        if isinstance(value, str):
            return self._split(value)
        parts = value if isinstance(value, list) else [*value, *value.values()] if isinstance(value, dict) else []
        if any(isinstance(self._with_secrets(part), SecretText) for part in parts):
            raise _changed_secret()
        return value

    def _split(self, text: str) -> str | SecretText:
        parts: list[str | SecretName] = []
        at = 0
        for match in MARK.finditer(text):
            parts += [text[at : match.start()], SecretName(self._secret_names[number_of(match.group())])]
            at = match.end()
        parts.append(text[at:])
        if any(isinstance(part, str) and REMAINS.search(part) for part in parts):
            raise _changed_secret()
        return SecretText(tuple(part for part in parts if part)) if len(parts) > 1 else text


def _changed_secret() -> TemplateProblem:
    return TemplateProblem(
        "secret-not-allowed",
        "a secret cannot be filtered, compared, or put into a list",
        "its value is unknown while the project compiles: it stays a reference until sqlstream calls Spark",
        "use {{ env_var('SQLSTREAM_SECRET_...') }} unchanged, with text before or after it",
    )


def _is_expression(tree: nodes.Template) -> bool:
    """Whether a template is a single expression, so that its value is the result."""
    parts = [part for node in tree.body for part in getattr(node, "nodes", [node])]
    kept = [part for part in parts if not (isinstance(part, nodes.TemplateData) and part.data.isspace())]
    return len(kept) == 1 and isinstance(kept[0], nodes.Expr) and not isinstance(kept[0], nodes.TemplateData)
