"""What a rule is: a pure function, and the codes of the findings that it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlstream.errors import Severity

Subject = TypeVar("Subject")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Rule(Generic[Subject, Found]):
    """A rule that `check` carries out on a subject; the table of rules in the documentation is made from these."""

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
    """Returns the decorator that makes a rule of a function, whose findings have one of `codes`."""
    return lambda check: Rule(check, codes, severity)
