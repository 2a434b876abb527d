"""The functions that models and YAML share: var, env_var, fromjson, tojson, Jinja's own safe ones; doc of YAML."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2.utils import Cycler, Joiner, Namespace

from sqlstream.compiler.render.sandbox.allowed import TemplateFunction, from_json, to_json
from sqlstream.compiler.render.sandbox.environment import TemplateEnvironment
from sqlstream.compiler.render.sandbox.render_errors import TemplateProblem
from sqlstream.project.configuration.docs_blocks import FOLDERS, DocsBlock
from sqlstream.project.secret_text import SECRET_PREFIX
from sqlstream.project.wording import did_you_mean, quoted

UNSET: Any = object()
"""Marks an argument that is missing."""

ReadSecret = Callable[[str, object], object]
"""Returns the value of env_var(name, default) for the name of a secret."""


def common_functions(
    environment: TemplateEnvironment,
    variables: Mapping[str, object],
    env: Mapping[str, str],
    read_secret: ReadSecret,
    environment_read: set[str],
) -> dict[str, TemplateFunction]:
    """Returns the shared functions by name. `read_secret` gets `UNSET` as the default if the template has none.
    `environment_read` gets the names that env_var() reads.
    """
    shared = CommonFunctions(environment, variables, env, read_secret, environment_read)
    functions: dict[str, Callable[..., object]] = {
        "var": shared.var,
        "env_var": shared.env_var,
        "tojson": shared.to_json,
        "fromjson": shared.from_json,
        "range": shared.range_,
        "cycler": Cycler,
        "joiner": shared.joiner,
        "dict": shared.dict_,
        "namespace": shared.namespace,
    }
    return {name: TemplateFunction(name, function) for name, function in functions.items()}


@dataclass(frozen=True)
class CommonFunctions:
    """The shared functions. They return copies, so a template cannot change anything outside of it."""

    _environment: TemplateEnvironment
    _variables: Mapping[str, object]
    _env: Mapping[str, str]
    _read_secret: ReadSecret
    _environment_read: set[str]

    def var(self, name: object, default: object = UNSET) -> object:
        """Returns a variable's value, or `default`."""
        name = text_argument("var", name)
        self._environment.state.variables_read.add(name)
        if name in self._variables:
            value = self._variables[name]
            self._environment.budget.weigh(value)
            return copy.deepcopy(value)
        if default is not UNSET:
            return default
        raise TemplateProblem(
            "missing-var",
            f"the variable {quoted(name)} is not set",
            "project.yml, the target and --vars do not set it, and var() has no default",
            f"{_nearest_variable(name, self._variables)} otherwise add a default as the second argument of var()",
        )

    def env_var(self, name: object, default: object = UNSET) -> object:
        """Returns an environment variable's text, or `default`. `read_secret` handles secrets."""
        name = text_argument("env_var", name)
        self._environment_read.add(name)
        if name.upper().startswith(SECRET_PREFIX):
            return self._read_secret(name, default)
        self._environment.state.environment_read.add(name)
        if name in self._env:
            return self._env[name]
        if default is not UNSET:
            return default
        raise TemplateProblem(
            "missing-env-var",
            f"the environment variable {quoted(name)} is not set",
            "the environment of this command does not have it, and env_var() has no default",
            "set it before you run the command, or add a default as the second argument of env_var()",
        )

    def to_json(self, value: object, default: object = None, sort_keys: bool = False) -> object:
        """Returns `value` as JSON text, or `default` (if there is one) for a value that JSON cannot represent."""
        try:
            text = to_json(self._environment.budget, value, sort_keys=sort_keys)
        except (TypeError, ValueError):
            if default is not None:
                return default
            raise
        return self._environment.plain(text, "tojson")

    def from_json(self, text: object, default: object = None) -> object:
        """Returns the value of JSON text."""
        return from_json(self._environment.budget, text_argument("fromjson", text), default)

    def range_(self, *bounds: int) -> range:
        """Returns a range of limited length."""
        numbers = range(*bounds)
        limit = self._environment.limits.value_size
        self._environment.budget.require_size(limit + bool(numbers[limit:]))  # len() can overflow
        return numbers

    def dict_(self, *mappings: Any, **named: Any) -> dict[Any, Any]:
        """Returns a new mapping."""
        return dict(*mappings, **named)

    def namespace(self, *mappings: Any, **named: Any) -> Namespace:
        """Returns an object whose attributes templates can set, also inside loops."""
        return Namespace(self.dict_(*mappings, **named))

    def joiner(self, sep: str = ", ") -> Joiner:
        """Returns a function that returns an empty text on the first call and `sep` on later calls."""
        return Joiner(text_argument("joiner", sep))


def _nearest_variable(name: str, variables: Mapping[str, object]) -> str:
    hint = did_you_mean(name, variables) if variables else "set it under vars: in project.yml"
    return hint if hint.endswith("?") else f"{hint};"


def text_argument(function: str, value: object) -> str:
    """Returns `value`, the first argument of `function`. Raises: TemplateProblem unless it is text."""
    if isinstance(value, str):
        return value
    str(value)  # raises an error that names the undefined value
    raise TemplateProblem(
        "jinja-failed",
        f"{function}() needs text, not a value of type {type(value).__name__}",
        f"{function}() looks up its argument by name",
        f"put the name in quotes: {function}('...')",
    )


def refuse_secret(name: str, _default: object = None) -> object:
    """Refuses to read a secret, whether it is set or not. Raises: TemplateProblem."""
    raise TemplateProblem(
        "secret-not-allowed",
        f"the secret {quoted(name)} cannot be read here",
        "the values that a template reads become SQL or configuration, which is written to target/, ledgers and logs",
        "read it in options: of a source or sink, or in spark: of a target, where it stays a reference",
    )


def docs_function(blocks: Sequence[DocsBlock]) -> TemplateFunction:
    """Returns doc(name), which also accepts doc(project, name) as dbt does. It returns a block's text unrendered."""
    texts = {block.name: block.text for block in blocks}

    def doc(name: object, second: object = None) -> str:
        wanted = text_argument("doc", name if second is None else second)
        if wanted not in texts:
            raise _unknown_doc(wanted, [known for known in texts if known.isidentifier()])
        return texts[wanted]

    return TemplateFunction("doc", doc)


def _unknown_doc(name: str, known: Sequence[str]) -> TemplateProblem:
    *folders, last = (f"{folder}/" for folder in FOLDERS)
    example = f"add `{{% docs {name} %}} ... {{% enddocs %}}` to such a file"
    return TemplateProblem(
        "unknown-doc",
        f"there is no docs block {quoted(name)}",
        f"no Markdown file in {', '.join(folders)} or {last} has a block with that name",
        did_you_mean(name, known) if known else example,
    )
