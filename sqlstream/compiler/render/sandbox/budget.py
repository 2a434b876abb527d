"""The budget of one rendering: how much work its template may do, and how large its values may grow."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Sized, ValuesView
from dataclasses import dataclass
from typing import Any, NoReturn

from jinja2.runtime import Undefined
from jinja2.utils import Cycler, Namespace

from sqlstream.compiler.render.sandbox.problems import TemplateProblem

CHARACTERS_PER_STEP = 32
"""Characters of text that cost one step: a million characters handled anew at every step would take a minute."""

SMALL_TEXT = 64
"""Characters of a text that is not worth weighing."""

CONTAINERS = (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)


@dataclass(frozen=True)
class RenderLimits:
    """The most that one template may do. A step is about a microsecond of work, so all of them take about a second.

    `tokens` counts the words and signs of the template itself, its text aside, which Jinja makes Python code of;
    `value_size` counts the items of a collection and of those in it, and the characters of text; `int_bits` is the size
    of a whole number.
    """

    steps: int = 1_000_000
    output_characters: int = 10_000_000
    value_size: int = 1_000_000
    int_bits: int = 10_000
    tokens: int = 50_000


class Budget:
    """What is left of the limits. Every operation of a template spends from it, and fails when nothing is left."""

    __slots__ = ("left", "limits")

    def __init__(self, limits: RenderLimits) -> None:
        self.limits = limits
        self.left = limits.steps

    def spend(self, steps: int) -> None:
        """Takes `steps` off what is left. Raises: TemplateProblem."""
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
        """Takes the price of handling a text off what is left."""
        self.spend(1 + characters // CHARACTERS_PER_STEP)

    def require_size(self, size: int) -> None:
        """Guarantees that a value of `size` items or characters may exist. Raises: TemplateProblem."""
        if size > self.limits.value_size:
            self._refuse_size()

    def _refuse_size(self) -> NoReturn:
        raise TemplateProblem(
            "jinja-limit",
            f"a value in the template has more than {self.limits.value_size:,} characters or items",
            "template values are kept in memory while the project compiles",
            "make it smaller, or build it in SQL (repeat, sequence, explode)",
        )

    def require_bits(self, bits: int) -> None:
        """Guarantees that a whole number of `bits` bits may exist. Raises: TemplateProblem."""
        if bits > self.limits.int_bits:
            raise TemplateProblem(
                "jinja-limit",
                f"a number in the template has more than {self.limits.int_bits:,} bits",
                "arithmetic with such large numbers takes minutes",
                "compute it in SQL, or use a smaller power",
            )

    def weigh(self, value: object) -> int:
        """Returns the size of `value` with all that is in it, having spent the price of walking through it.

        Something shared counts as often as it is reached, as it does for str() or ==. Raises: TemplateProblem.
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
        """Returns `value`, the result of an operation, having spent its price; an iterator becomes a list.

        Only the outermost level is measured: what lies inside was measured when it was made.
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
        """Yields the items, each for one step."""
        for item in iterable:
            self.spend(1)
            yield item


def _parts(value: object) -> list[object] | range:
    """What lies directly inside `value`, as much as str() or == would look at."""
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


class CountedIterable:
    """A for loop's iterable whose items cost a step each; it has a length where the original has one."""

    __slots__ = ("_budget", "_iterable")

    def __init__(self, iterable: Any, budget: Budget) -> None:
        self._iterable = iterable
        self._budget = budget

    def __len__(self) -> int:
        if not isinstance(self._iterable, Sized) or isinstance(self._iterable, Undefined):
            raise TypeError("its length is unknown")
        return len(self._iterable)

    def __iter__(self) -> Iterator[object]:
        return self._budget.count(self._iterable)  # what cannot be iterated says so itself
