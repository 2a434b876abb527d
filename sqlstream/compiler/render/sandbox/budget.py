"""The budget of one rendering: how much work its template can do, and how large its values can grow."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, ValuesView
from dataclasses import dataclass

from jinja2.utils import Cycler, Namespace

from sqlstream.compiler.render.sandbox.problems import TemplateProblem

CHARACTERS_PER_STEP = 32
"""Characters of text that cost one step: processing a million characters at every step would take a minute."""

SMALL_TEXT = 64
"""Texts of at most this many characters are not measured."""

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
    """The remaining budget. Every operation of a template spends from it, and fails when nothing is left."""

    __slots__ = ("left", "limits")

    def __init__(self, limits: RenderLimits) -> None:
        self.limits = limits
        self.left = limits.steps

    def spend(self, steps: int) -> None:
        """Subtracts `steps`. Raises: TemplateProblem."""
        self.left -= steps
        if self.left < 0:
            raise TemplateProblem(
                "jinja-limit",
                f"the template takes more than {self.limits.steps:,} steps",
                "loops, calls and large values cost steps; the limit keeps an endless template from blocking "
                "the compiler",
                "loop over fewer items, or move the work to the SQL, which Spark runs in parallel",
            )

    def spend_text(self, characters: int) -> None:
        """Subtracts the cost of processing a text."""
        self.spend(1 + characters // CHARACTERS_PER_STEP)

    def require_size(self, size: int) -> None:
        """Checks that a value of `size` items or characters is allowed. Raises: TemplateProblem."""
        if size > self.limits.value_size:
            raise TemplateProblem(
                "jinja-limit",
                f"a value in the template has more than {self.limits.value_size:,} characters or items",
                "template values are kept in memory while the project compiles",
                "make it smaller, or build it in SQL (repeat, sequence, explode)",
            )

    def require_bits(self, bits: int) -> None:
        """Checks that an integer of `bits` bits is allowed. Raises: TemplateProblem."""
        if bits > self.limits.int_bits:
            raise TemplateProblem(
                "jinja-limit",
                f"a number in the template has more than {self.limits.int_bits:,} bits",
                "arithmetic with such large numbers takes minutes",
                "compute it in SQL, or use a smaller power",
            )

    def weigh(self, value: object) -> int:
        """Returns the size of `value` with everything in it, and spends the cost of visiting it.

        A shared value counts each time it is reached, as in str() or ==. Raises: TemplateProblem.
        """
        self.left -= 1
        if type(value) is str:
            size = len(value)
            if size > SMALL_TEXT:
                self.require_size(size)
                self.spend_text(size)
            return size
        if value is None or isinstance(value, bool | float):
            return 1
        if isinstance(value, int):
            self.require_bits(value.bit_length())
            return 1 + value.bit_length() // 3
        return self._weigh_deep(value)

    def _weigh_deep(self, value: object) -> int:
        items, characters = 0, 0
        waiting = [value]
        while waiting:
            part = waiting.pop()
            if isinstance(part, str):
                characters += len(part)
            elif isinstance(part, int):
                self.require_bits(part.bit_length())
                characters += part.bit_length() // 3
            inside = _parts(part)
            items += 1 + len(inside)
            self.require_size(items + characters)
            if not isinstance(inside, range):
                waiting.extend(inside)
        self.spend(items + characters // CHARACTERS_PER_STEP)
        return items + characters

    def check(self, value: object) -> object:
        """Returns `value`, the result of an operation, and spends its cost. An iterator becomes a list.

        Only the outermost level is measured. The values inside were measured when they were created.
        """
        if isinstance(value, str):
            self.require_size(len(value))
            self.spend_text(len(value))
        elif isinstance(value, int):
            self.require_bits(value.bit_length())
            self.spend(1 + value.bit_length() // 256)
        elif isinstance(value, Iterator):
            return list(self.count(value))
        elif isinstance(value, (*CONTAINERS, dict)):
            self.require_size(len(value))
            self.spend(1 + len(value))
        return value

    def count(self, iterable: Iterable[object]) -> Iterator[object]:
        """Yields the items, one step each."""
        for item in iterable:
            self.spend(1)
            yield item


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
