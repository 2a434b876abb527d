"""The bounds of a rendering: the work that a template can do, and the size of everything that can grow in it.

Jinja's sandbox keeps templates away from Python, and bounds nothing but range(). So `{{ 'a' * 10**9 }}` would exhaust
the memory, and nested loops would never end. Three bounds stop both:

- each run of a loop's or a macro's body spends as many steps as the body has code;
- each operation spends the size of the values that it looks into, and of its result;
- what grows faster than its operands (powers, repetition, widths, replacements) is measured before Python computes it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence, Sized, ValuesView
from dataclasses import dataclass
from typing import Any

from jinja2.environment import Environment
from jinja2.sandbox import SandboxedFormatter
from jinja2.utils import Cycler, Namespace

from sqlstream.compiler.render.sandbox.render_errors import TemplateProblem

CHARACTERS_PER_STEP = 32
"""Characters of text that cost one step: processing a million characters at every step would take a minute."""

MADE_PER_STEP = 8
"""Characters that cost one step where Python code makes them one by one, as in `wordwrap`."""

SMALL_TEXT = 64
"""Texts of at most this many characters are free: the code that handles them costs more."""

COMPARISONS_PER_STEP = 1_024
"""Comparisons of characters that cost one step, where Python searches a text in quadratic time."""

CONTAINERS = (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)


@dataclass(frozen=True)
class RenderLimits:
    """The limits of one template. A step is about a microsecond of work, so all steps take about a second.

    `tokens` counts the words and signs in the tags of the template, from which Jinja generates Python code.
    `value_size` counts the items of a collection, including nested ones, and the characters of text. `int_bits` is the
    size of an integer.
    """

    steps: int = 1_000_000
    output_characters: int = 10_000_000
    value_size: int = 1_000_000
    int_bits: int = 10_000
    tokens: int = 50_000


class Budget:
    """The remaining steps of one rendering. Everything that exceeds the limits raises TemplateProblem."""

    __slots__ = ("left", "limits")

    def __init__(self, limits: RenderLimits) -> None:
        self.limits = limits
        self.left = limits.steps

    def spend(self, steps: int) -> None:
        """Subtracts `steps`."""
        self.left -= steps
        if self.left < 0:
            raise TemplateProblem(
                "jinja-limit",
                f"the template takes more than {self.limits.steps:,} steps",
                "loops, calls and large values cost steps; the limit keeps an endless template from blocking "
                "the compiler",
                "loop over fewer items, or move the work to the SQL, which Spark runs in parallel",
            )

    def spend_search(self, text: str, searched: object) -> None:
        """Subtracts the cost of comparing every character of `text` with every character of `searched`, if it is text.
        Python does that for rfind(), strip() and the like.
        """
        if isinstance(searched, str):
            self.spend(len(text) * len(searched) // COMPARISONS_PER_STEP)

    def require_size(self, size: int) -> None:
        """Checks that a value of `size` items or characters is allowed."""
        if size > self.limits.value_size:
            raise TemplateProblem(
                "jinja-limit",
                f"a value in the template has more than {self.limits.value_size:,} characters or items",
                "template values are kept in memory while the project compiles",
                "make it smaller, or build it in SQL (repeat, sequence, explode)",
            )

    def require_bits(self, bits: int) -> None:
        """Checks that an integer of `bits` bits is allowed."""
        if bits > self.limits.int_bits:
            raise TemplateProblem(
                "jinja-limit",
                f"a number in the template has more than {self.limits.int_bits:,} bits",
                "arithmetic with such large numbers takes minutes",
                "compute it in SQL, or use a smaller power",
            )

    def weigh(self, value: object) -> int:
        """Returns the size of `value` with everything in it, and spends the cost of visiting it.

        A shared value counts each time it is reached, as in str() or ==.
        """
        if value is None or isinstance(value, bool | float):
            return 1
        if type(value) is str and len(value) <= SMALL_TEXT:
            return len(value)
        items, characters, waiting = 0, 0, [value]
        while waiting:
            part = waiting.pop()
            if isinstance(part, str):
                characters += len(part)
            elif isinstance(part, int):
                self.require_bits(part.bit_length())
                characters += part.bit_length() // 3  # about its decimal digits
            inside = _parts(part)
            items += 1 + len(inside)
            self.require_size(items + characters - 1)
            if not isinstance(inside, range):
                waiting.extend(inside)
        self.spend(items + characters // CHARACTERS_PER_STEP)
        return items + characters

    def check(self, value: object) -> object:
        """Returns `value`, the result of an operation, and spends its cost. An iterator becomes a list.

        Only the outermost level is measured. The values inside were measured when they were created.
        """
        if isinstance(value, Iterator):
            value = list(value)
        if isinstance(value, int):
            self.require_bits(value.bit_length())
            self.spend(value.bit_length() // 256)
        elif isinstance(value, (str, *CONTAINERS, dict)):
            self.require_size(len(value))
            self.spend(len(value) // (CHARACTERS_PER_STEP if isinstance(value, str) else 1))
        return value

    def require_growth(self, name: str, value: object, *more: object) -> None:
        """Checks the size of what the filter or method `name` makes of its arguments, and spends it."""
        growth = GROWTH.get(name)
        if growth is not None:
            size = growth(value, *more)
            self.require_size(size)
            self.spend(size // MADE_PER_STEP)

    def joined(self, separator: str, parts: Any) -> None:
        """Checks the size of `separator.join(parts)`."""
        weight = self.weigh(parts)
        self.require_size(weight + len(separator) * (len(parts) if isinstance(parts, Sized) else weight))


def _parts(value: object) -> list[object] | range:
    """The values directly inside `value` that str() or == would visit."""
    if isinstance(value, CONTAINERS):
        return [*value]
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, range):
        return value
    if isinstance(value, Namespace):
        return list(value._Namespace__attrs.values())  # noqa: SLF001 - its repr shows them
    if isinstance(value, Cycler):
        return list(value.items)
    return []


# Filters and methods whose result can be larger than their arguments


def _largest(values: Any, default: int = 0) -> int:
    """The largest of the numbers and of the lengths of texts in `values`."""
    sizes = [abs(value) if isinstance(value, int) else len(value) for value in values if isinstance(value, int | str)]
    return max(sizes, default=default)


def _texts(values: Any) -> int:
    return _largest([value for value in values if isinstance(value, str)])


def replaced_size(text: str, old: str, new: str, count: int = -1) -> int:
    """Returns the size of `text.replace(old, new, count)`."""
    found = text.count(old) if count < 0 else min(text.count(old), count)
    return len(text) + found * max(len(new) - len(old), 0)


def time_format_size(text: object, *_more: object) -> int:
    """Returns the memory that formatting a time takes. Python gives C's strftime 256 times the size of the format."""
    return 256 * (len(text) + _widths(text)) if isinstance(text, str) else 0


def _wrapped_size(text: str, options: tuple[object, ...]) -> int:
    """The size and the work of breaking `text` into lines. A long word is copied once for each of its lines."""
    longest = max(map(len, text.split()), default=0)
    width = min((option for option in options if type(option) is int), default=79)
    return len(text) * (MADE_PER_STEP + _texts(options)) + longest * longest // max(width, 1)


GROWTH: dict[str, Callable[..., int]] = {
    **dict.fromkeys(("center", "ljust", "rjust", "zfill", "batch", "slice"), lambda _value, *more: _largest(more)),
    "expandtabs": lambda text, *more: len(text) + text.count("\t") * _largest(more, 8),
    "indent": lambda text, *more: len(str(text)) + (str(text).count("\n") + 1) * _largest(more, 4),
    "title": lambda text, *_: len(str(text)),
    "wordwrap": lambda text, *more: _wrapped_size(str(text), more),
    "translate": lambda text, table, *_: len(text) * max(_texts(table.values()), 1),
    # it computes 10 to the power of the decimal places
    "round": lambda _value, *more: 100 * _largest(more),
    # it copies the sum so far for each list that it adds
    "sum": lambda lists, *more: len(lists) ** 2 if any(isinstance(start, list | tuple) for start in more) else 0,
}
"""The size of the result, or of the work, of filters and methods of text, from their value and other arguments."""


# Operators and formats

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

SEQUENCES = (str, list, tuple)

CONVERSION = re.compile(
    r"%(?:\([^()]*\))?[-#0 +_^]*(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d+)?)?(?P<kind>.)?", re.DOTALL
)
"""A conversion in a format with percent signs, of texts (`%-10.3f`) or times (`%_3d`)."""


def apply_operator(budget: Budget, symbol: str, left: Any, right: Any) -> object:
    """Returns `left <symbol> right`. Raises: TemplateProblem for a result that is too large; Python's errors."""
    if symbol == "%" and isinstance(left, str):
        budget.require_size(_percent_size(budget, left, right))
    elif symbol == "*" and isinstance(left, SEQUENCES) and isinstance(right, int):
        budget.require_size(len(left) * right)
    elif symbol == "*" and isinstance(right, SEQUENCES) and isinstance(left, int):
        budget.require_size(len(right) * left)
    elif symbol == "**" and isinstance(left, int) and isinstance(right, int):
        budget.require_bits((left.bit_length() - 1) * right)
    return budget.check(OPERATIONS[symbol](left, right))


def _percent_size(budget: Budget, template: str, values: object) -> int:
    """A size that `template % values` hardly exceeds. The values of a tuple are used once each, others each time."""
    weight = budget.weigh(values)
    if not isinstance(values, tuple):
        return len(template) + _widths(template) + template.count("%") * weight
    return len(template) + _widths(template, sum(abs(value) for value in values if isinstance(value, int))) + weight


def _widths(text: str, starred: int = 0) -> int:
    """The sum of the widths and precisions in a format with percent signs. `starred` is that of all written as `*`."""
    total, stars = 0, False
    for match in CONVERSION.finditer(text):
        if match["kind"] == "(":  # a key that contains parentheses can hide a width
            return _sum_of_numbers(text) + starred
        numbers = [number for number in match.group("width", "precision") if number]
        stars = stars or "*" in numbers
        total += sum(_number(number) for number in numbers if number != "*")
    return total + starred * stars


def _sum_of_numbers(text: str) -> int:
    return sum(_number(number) for number in re.findall(r"\d+", text))


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
        size = time_format_size(format_spec) if hasattr(value, "strftime") else _sum_of_numbers(format_spec)
        self._budget.spend(4)
        self._budget.require_size(self._total + size + self._budget.weigh(value))
        result = str(super().format_field(value, format_spec))
        self._total += len(result)
        return result


def brace_format(
    environment: Environment, budget: Budget, template: str, args: Sequence[object], named: Mapping[str, object]
) -> object:
    """Returns `template.format(*args, **named)`, sandboxed and bounded. Raises: TemplateProblem."""
    budget.check(template)
    return budget.check(BoundedFormatter(environment, budget).vformat(template, args, named))
