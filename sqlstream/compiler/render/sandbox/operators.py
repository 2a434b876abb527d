"""The binary operators of templates and the formatting of text. The size of each result is checked in advance."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jinja2.environment import Environment
from jinja2.sandbox import SandboxedFormatter

from sqlstream.compiler.render.sandbox.budget import Budget
from sqlstream.compiler.render.sandbox.problems import TemplateProblem

SEQUENCES = (str, bytes, list, tuple)

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "**": operator.pow,
    "%": operator.mod,
}
"""Every operator that Jinja lets an environment intercept."""

LONGEST_TIME_FORMAT = 1_000
"""The most characters in a format for times: C's strftime allocates a multiple of it."""

CONVERSION = re.compile(r"[-#0 +]*(\*|\d+)?(?:\.(\*|\d+)?)?")
DIGITS = re.compile(r"\d+")


def apply_operator(budget: Budget, symbol: str, left: Any, right: Any) -> object:
    """Returns `left <symbol> right`. Raises: TemplateProblem for a result that is too large; Python's errors."""
    budget.spend(1)
    if symbol == "%" and isinstance(left, str):
        return percent_format(budget, left, right)
    if isinstance(left, int) and isinstance(right, int):
        _require_number(budget, symbol, left, right)
    else:
        _require_sequence(budget, symbol, left, right)
    return budget.check(OPERATIONS[symbol](left, right))


def _require_number(budget: Budget, symbol: str, left: int, right: int) -> None:
    bits, other = left.bit_length(), right.bit_length()
    budget.require_bits(max(bits, other))
    if symbol == "*":
        budget.require_bits(bits + other)
    if symbol == "**" and abs(left) > 1 and right > 0:
        budget.require_bits(int(right * math.log2(abs(left))) if right < budget.limits.int_bits else right)


def _require_sequence(budget: Budget, symbol: str, left: object, right: object) -> None:
    if symbol == "*" and isinstance(left, SEQUENCES) and isinstance(right, int):
        budget.require_size(len(left) * right)
    elif symbol == "*" and isinstance(right, SEQUENCES) and isinstance(left, int):
        budget.require_size(len(right) * left)
    elif symbol == "+" and isinstance(left, SEQUENCES) and isinstance(right, SEQUENCES):
        budget.require_size(len(left) + len(right))
    else:
        budget.weigh(left)
        budget.weigh(right)


def percent_format(budget: Budget, template: str, values: object) -> str:
    """Returns `template % values` after checking the size of the result. Raises: TemplateProblem."""
    widths, specs, starred = _conversions(template)
    weight = budget.weigh(values)
    if starred and isinstance(values, tuple):
        widths += sum(abs(value) for value in values if isinstance(value, int))
    uses = 1 if isinstance(values, tuple) else specs
    budget.require_size(len(template) + widths + weight * uses)
    result = template % values
    budget.check(result)
    return result


def _conversions(template: str) -> tuple[int, int, bool]:
    """The sum of all widths and precisions in a %-format, the number of conversions, and whether a width is `*`."""
    widths, specs, starred, at = 0, 0, False, template.find("%")
    while at >= 0:
        at = _after_key(template, at + 1)
        match = CONVERSION.match(template, at)
        numbers = [number for number in match.groups() if number] if match else []
        starred = starred or "*" in numbers
        widths += sum(_number(number) for number in numbers if number != "*")
        specs += 1
        at = template.find("%", max(match.end() if match else at, at) + 1)
    return widths, specs, starred


def _after_key(template: str, at: int) -> int:
    """The offset after a `(key)`, whose parentheses can nest, or `at` without one."""
    if template[at : at + 1] != "(":
        return at
    depth = 0
    for index in range(at, len(template)):
        depth += {"(": 1, ")": -1}.get(template[index], 0)
        if depth == 0:
            return index + 1
    return len(template)


def _number(digits: str) -> int:
    """The value of digits, at most a billion, because a huge width may have more digits than Python converts."""
    return int(digits) if len(digits) < 10 else 10**9


class BoundedFormatter(SandboxedFormatter):
    """str.format() in the sandbox. Checks the size of each field in advance."""

    def __init__(self, environment: Environment, budget: Budget) -> None:
        super().__init__(environment)
        self._budget = budget
        self._total = 0

    def convert_field(self, value: Any, conversion: Any) -> Any:
        """Returns the value converted by `!r`, `!s` or `!a`."""
        self._budget.weigh(value)
        return super().convert_field(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> str:
        """Returns the text of one field."""
        widths = sum(_number(digits) for digits in DIGITS.findall(format_spec))
        self._budget.spend(4)
        self._budget.require_size(self._total + widths + self._budget.weigh(value))
        if hasattr(value, "strftime"):
            require_time_format(format_spec)
        result = str(super().format_field(value, format_spec))
        self._total += len(result)
        self._budget.require_size(self._total)
        return result


def brace_format(
    environment: Environment, budget: Budget, template: str, args: Sequence[object], named: Mapping[str, object]
) -> str:
    """Returns `template.format(*args, **named)`, sandboxed and bounded. Raises: TemplateProblem."""
    budget.spend_text(len(template))
    result = BoundedFormatter(environment, budget).vformat(template, args, named)
    budget.check(result)
    return result


def require_time_format(text: object) -> None:
    """Checks that a format for times has an ordinary length and no large padding. Raises: TemplateProblem."""
    if isinstance(text, str) and (len(text) > LONGEST_TIME_FORMAT or re.search(r"%[-_0^#+]*\d{3}", text)):
        raise TemplateProblem(
            "jinja-limit",
            f"the format of a time is longer than {LONGEST_TIME_FORMAT:,} characters, or asks for a width of hundreds",
            "the C library formats times, and allocates memory for the full width",
            "use a format such as '%Y-%m-%d'",
        )
