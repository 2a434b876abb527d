"""The base of environments: what filters and generated code need, with a budget and texts of limited size."""

from __future__ import annotations

from typing import Any

from jinja2.environment import Template
from jinja2.runtime import Context, LoopContext, Macro, Undefined
from jinja2.sandbox import SandboxedEnvironment
from jinja2.utils import Cycler

from sqlstream.compiler.render.places.source import TemplateSource
from sqlstream.compiler.render.sandbox.budget import Budget, RenderLimits
from sqlstream.compiler.render.sandbox.problems import LocatedUndefined, TemplateProblem
from sqlstream.compiler.render.sandbox.state import RenderState
from sqlstream.compiler.render.sandbox.template_function import TemplateFunction

OPAQUE = (Macro, LoopContext, TemplateFunction, Cycler, Context, Template)
"""Values without a text: printing one is a mistake, such as missing parentheses."""


class BoundedEnvironment(SandboxedEnvironment):
    """Jinja's sandbox with a budget for the current rendering, whose effects go to `state`."""

    def __init__(self, limits: RenderLimits) -> None:
        super().__init__(
            undefined=LocatedUndefined,
            keep_trailing_newline=True,
            optimized=False,
            extensions=["jinja2.ext.do"],
            cache_size=0,
        )
        self.limits = limits
        self.state = RenderState(limits)
        self.sources: dict[str, TemplateSource] = {}
        self.key_offsets: dict[tuple[str, int], dict[str, int]] = {}

    @property
    def budget(self) -> Budget:
        """The budget of the current rendering."""
        return self.state.budget

    def text(self, value: object) -> str:
        """Returns `value` as text of limited size. Raises: TemplateProblem for a value without a text."""
        if type(value) is str:
            return value
        if isinstance(value, OPAQUE) or (callable(value) and not isinstance(value, Undefined)):
            raise TemplateProblem(
                "jinja-failed",
                f"{_callable_name(value)} is used without a call",
                "a function or macro returns its text only when it is called",
                "add parentheses with its arguments",
            )
        self.budget.weigh(value)
        result = str(value)
        self.budget.require_size(len(result))
        return result

    def operand(self, value: Any, operation: str = "") -> Any:
        """Returns the value for an operation that looks into it, and measures it."""
        self.budget.weigh(value)
        return self.plain(value, operation)

    def plain(self, value: Any, operation: str = "") -> Any:  # noqa: ARG002 - for those that override it
        """Returns the value for `operation`. Environments that add marks to text override it."""
        return value


def _callable_name(value: object) -> str:
    name = getattr(value, "name", None) or getattr(value, "__name__", None)
    return f"`{name}`" if isinstance(name, str) else "this value"
