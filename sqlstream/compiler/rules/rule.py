"""Rules: pure functions that yield problems, and decorators that add their codes and severities."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from itertools import chain
from types import ModuleType
from typing import Any, Generic, TypeVar

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.sql.edits import ORIGIN, Where
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location, Place
from sqlstream.project.declarations.on_corrupt import declared_sources
from sqlstream.project.values import SourceTable

Subject = TypeVar("Subject")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Rule(Generic[Subject, Found]):
    """A rule that `check` applies to a subject. docs/rules.md lists all of them."""

    check: Callable[[Subject], Iterable[Found]]
    codes: tuple[str, ...]
    severity: Severity

    def __call__(self, subject: Subject) -> list[Found]:
        """Returns what the rule finds."""
        return list(self.check(subject))

    @property
    def sentence(self) -> str:
        """The rule in words: the first paragraph of the function's docstring, on one line."""
        return " ".join((self.check.__doc__ or "").split("\n\n")[0].split())


@dataclass(frozen=True)
class Problem:
    """A finding of a rule with one code: the rule adds the code and the severity."""

    message: str
    why: str
    fix: str
    location: Location | None


@dataclass(frozen=True)
class QueryProblem:
    """A finding about a query, without its location: `where` is the wrong part of a model's SQL, or a source, and
    `key` then the key of the source that it is about. `origins` are the places that replace each `ORIGIN` in `fix`.

    The rule adds the `code`. A problem may be less severe than its rule.
    """

    where: Where
    message: str
    why: str
    fix: str
    severity: Severity = Severity.ERROR
    key: str = "watermark"
    origins: tuple[Where, ...] = ()
    code: str = ""

    def at(self, place: Place, origins: Iterable[str] = ()) -> Finding:
        """Returns the finding at `place`, which is the place of `where`; `origins` describe its origins."""
        fix = self.fix
        for origin in origins:
            fix = fix.replace(ORIGIN, origin, 1)
        return Finding(self.code, self.message, self.why, fix, place.location, self.severity, place.calls)


Problems = Iterable[Problem | Finding]
ProjectRule = Rule[CompiledProject, Finding]


def rule(
    *codes: str, severity: Severity = Severity.ERROR
) -> Callable[[Callable[[CompiledProject], Problems]], ProjectRule]:
    """Returns the decorator that turns a function of a project into a rule; each of its findings has one of `codes`."""

    def finding(item: Problem | Finding) -> Finding:
        if isinstance(item, Finding):
            return item
        return Finding(codes[0], item.message, item.why, item.fix, item.location, severity)

    def decorate(check: Callable[[CompiledProject], Problems]) -> ProjectRule:
        return Rule(wraps(check)(lambda compiled: map(finding, check(compiled))), codes, severity)

    return decorate


def source_rule(code: str) -> Callable[[Callable[[CompiledProject, SourceTable], Problems]], ProjectRule]:
    """Returns the decorator that turns a function of a project and one declared source table into a rule."""

    def decorate(check: Callable[[CompiledProject, SourceTable], Problems]) -> ProjectRule:
        @wraps(check)
        def check_sources(compiled: CompiledProject) -> Problems:
            return chain.from_iterable(check(compiled, table) for table in declared_sources(compiled.project.sources))

        return rule(code)(check_sources)

    return decorate


def output_rule(
    *codes: str, severity: Severity = Severity.ERROR
) -> Callable[[Callable[[CompiledProject, CompiledModel, Output], Problems]], ProjectRule]:
    """Returns the decorator that turns a function of a project, one terminal model and its output into a rule."""

    def decorate(check: Callable[[CompiledProject, CompiledModel, Output], Problems]) -> ProjectRule:
        @wraps(check)
        def check_outputs(compiled: CompiledProject) -> Problems:
            outputs = terminal_models(compiled)
            found = chain.from_iterable(check(compiled, model, output) for model, output in outputs)
            return dict.fromkeys(found)  # a problem of the model itself is the same for each of its outputs

        return rule(*codes, severity=severity)(check_outputs)

    return decorate


def rules_of(*modules: ModuleType) -> tuple[Rule[Any, Any], ...]:
    """Returns the rules that `modules` define, in the order of their definitions."""
    return tuple(value for module in modules for value in vars(module).values() if isinstance(value, Rule))


def terminal_models(compiled: CompiledProject) -> list[tuple[CompiledModel, Output]]:
    """Returns each terminal model with its output, once for each output."""
    return [(model, output) for model in compiled.models.values() for output in model.outputs]


def declared_outputs(compiled: CompiledProject) -> list[Output]:
    """Returns the output of each terminal model, and of each sink that no model writes to."""
    return [*(output for _, output in terminal_models(compiled)), *compiled.unused_outputs]
