"""A rule: a pure function, and the codes of its findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlstream.errors import Severity

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


def rule(
    *codes: str, severity: Severity = Severity.ERROR
) -> Callable[[Callable[[Subject], Iterable[Found]]], Rule[Subject, Found]]:
    """Returns the decorator that turns a function into a rule; each of its findings has one of `codes`."""
    return lambda check: Rule(check, codes, severity)
