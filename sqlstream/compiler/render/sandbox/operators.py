"""The binary operators of templates. The size of each result is checked before it is computed."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from sqlstream.compiler.render.sandbox.budget import Budget
from sqlstream.compiler.render.sandbox.formatting import percent_format

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


def apply_operator(budget: Budget, symbol: str, left: Any, right: Any) -> object:
    """Returns `left <symbol> right`. Raises: TemplateProblem if the result would be too large, and Python's errors for
    values that do not fit together.
    """
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
