"""The environment of templates in YAML. A secret is a mark in it that no operation can read or change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlstream.compiler.render.functions import UNSET, common_functions, refuse_secret
from sqlstream.compiler.render.places.markers import BEGIN, MARK, number_of, numbered
from sqlstream.compiler.render.sandbox.environment import TemplateEnvironment
from sqlstream.compiler.render.sandbox.problems import TemplateProblem
from sqlstream.project.secrets import SecretName, SecretText

JOINING = frozenset({"join", "format", "string"})
"""Operations that only join texts."""

REMAINS = re.compile(r"[\U0010f800-\U0010f87f]|\\U0010f8|\\udbfe", re.IGNORECASE)
"""The remains of a mark that was cut or escaped."""


class SecretEnvironment(TemplateEnvironment):
    """Renders one YAML string at a time. `secrets`: env_var() can name secrets in it."""

    def __init__(self, variables: Mapping[str, object], env: Mapping[str, str]) -> None:
        super().__init__()
        self.secrets = False
        self.captured: list[object] | None = None
        self._env = env
        self._secret_names: list[str] = []
        self.names.update(common_functions(self, variables, env, self._read_secret))

    def _read_secret(self, name: str, default: object) -> object:
        if not self.secrets:
            return refuse_secret(name)
        self.state.secrets_read.add(name)
        if name not in self._env and default is not UNSET:
            return default
        self._secret_names.append(name)
        return numbered(BEGIN, len(self._secret_names) - 1)

    def output(self, value: object) -> str:
        """Returns the output of `{{ value }}`. If the value itself is needed, keeps it instead."""
        if self.captured is None:
            return super().output(value)
        self.captured.append(value)
        return ""

    def plain(self, value: Any, operation: str = "") -> Any:
        """Returns the value. Raises: TemplateProblem for a secret that the operation would read."""
        if isinstance(value, str) and MARK.search(value) and operation not in JOINING:
            raise changed_secret()
        return value

    def plain_call(self, method: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """Returns the method and its arguments. Raises: TemplateProblem for a method of a secret."""
        owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
        self.plain(owner, name)
        return method, args

    def with_secrets(self, value: object) -> object:
        """Returns a rendered value with its marks as a `SecretText`. Raises: TemplateProblem."""
        if isinstance(value, str):
            return self._split(value)
        if isinstance(value, list | dict):
            for part in value if isinstance(value, list) else [*value, *value.values()]:
                if isinstance(self.with_secrets(part), SecretText):
                    raise changed_secret()
        return value

    def _split(self, text: str) -> str | SecretText:
        parts: list[str | SecretName] = []
        at = 0
        for match in MARK.finditer(text):
            parts += [text[at : match.start()], SecretName(self._secret_names[number_of(match.group())])]
            at = match.end()
        parts.append(text[at:])
        if any(isinstance(part, str) and REMAINS.search(part) for part in parts):
            raise changed_secret()
        return SecretText(tuple(part for part in parts if part)) if len(parts) > 1 else text


def changed_secret() -> TemplateProblem:
    """Returns the problem of a template that would change or read a secret."""
    return TemplateProblem(
        "secret-not-allowed",
        "a secret cannot be filtered, compared, or put into a list",
        "its value is unknown while the project compiles: it stays a reference until sqlstream calls Spark",
        "use {{ env_var('SQLSTREAM_SECRET_...') }} unchanged, with text before or after it",
    )
