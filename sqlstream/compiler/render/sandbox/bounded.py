"""The base of environments: what filters and generated code need, with a budget and texts of limited size."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from jinja2.environment import Template
from jinja2.runtime import Context, LoopContext, Macro, Undefined
from jinja2.sandbox import SandboxedEnvironment
from jinja2.utils import Cycler

from sqlstream.compiler.render.places.source import TemplateSource
from sqlstream.compiler.render.sandbox.budget import Budget, RenderLimits
from sqlstream.compiler.render.sandbox.problems import LocatedUndefined, TemplateProblem
from sqlstream.compiler.render.sandbox.template_values import TemplateFunction
from sqlstream.compiler.render.values import Reference, TemplateReads
from sqlstream.errors import Finding
from sqlstream.project.values import Located, ModelFile
from sqlstream.project.wording import quoted

OPAQUE = (Macro, LoopContext, TemplateFunction, Cycler, Context, Template)
"""Values without a text: printing one is a mistake, such as missing parentheses."""


class RenderState:
    """The effects of one rendering so far. `calls` are the running calls as (path, offset), the outermost first. They
    stay after a failed call, to locate the error. `quiet`: log() does nothing.
    """

    def __init__(self, limits: RenderLimits, model: ModelFile | None = None, *, quiet: bool = False) -> None:
        self.budget = Budget(limits)
        self.model = model
        self.quiet = quiet
        self.calls: list[tuple[str, int]] = []
        self.references: list[Reference] = []
        self.config: dict[str, Located] = {}
        self.findings: list[Finding] = []
        self.macros_used: dict[str, None] = {}
        self.names_read: set[str] = set()
        self.variables_read: set[str] = set()
        self.environment_read: set[str] = set()
        self.secrets_read: set[str] = set()
        self.logged: list[tuple[str, bool]] = []

    @property
    def reads(self) -> TemplateReads:
        """The names, variables, environment variables and secrets that the rendering has read."""
        read = (self.names_read, self.variables_read, self.environment_read, self.secrets_read)
        return TemplateReads(*(tuple(sorted(names)) for names in read))


class BoundedEnvironment(SandboxedEnvironment):
    """Jinja's sandbox with a budget for the current rendering, whose effects go to `state`.

    `key_offsets` has the 0-based offset of each key in a call of config(), by the call's path and offset.
    """

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
            name = getattr(value, "name", None) or getattr(value, "__name__", None)
            raise TemplateProblem(
                "jinja-failed",
                f"{f'`{name}`' if isinstance(name, str) else 'this value'} is used without a call",
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

    def record_keys(self, call: tuple[str, int], keys: Iterable[tuple[str, int]]) -> None:
        """Records the offset of each key in a call of config(). Raises: TemplateProblem for a key that is set twice."""
        offsets = self.key_offsets[call] = {}
        for key, offset in sorted(keys, key=itemgetter(1)):
            if key in offsets:
                raise TemplateProblem(
                    "jinja-syntax",
                    f"config() sets the key {quoted(key)} twice",
                    "only one of the values can apply",
                    "remove one of them, or merge their values",
                    offset,
                )
            offsets[key] = offset
