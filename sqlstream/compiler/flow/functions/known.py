"""Spark's built-in functions by name, those of its registry and of its grammar, and the notation of their signatures.

`tests/spark/test_function_names.py` compares them with the installed Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest

from sqlstream.compiler.flow.functions import scalars
from sqlstream.compiler.flow.functions import scalars as aggregates
from sqlstream.compiler.flow.types.families import common_type, common_type_of, element_of_both
from sqlstream.compiler.flow.types.values import array_of, map_of, struct_of, text_of
from sqlstream.project.types.parser import parse_type
from sqlstream.project.types.types import Array, DataType, Field, Map, Struct, Unknown
from sqlstream.project.wording import counted

# The notation for the signatures of Spark's functions.
#
# Each entry is `COUNTS (ARGUMENTS) -> RESULT: NAMES`, and a line that begins with blanks continues the one before it:
#
# - COUNTS are the accepted numbers of arguments: `2`, `1,2`, `0-4`, `1+` (at least one), `*` (any) or `even`. The
#   default
#   is the number of ARGUMENTS.
# - An argument is `any`, families of types such as `number|string` (`compiler.flow.types.families`; `span`, `basic`
#   and
#   `atomic` are groups of them), or a type with variables such as `array<T>` or `map<K, V>`. `T=number` is a variable
#   of
#   one family, and `T...` any number of arguments. Which families Spark accepts can depend on further arguments, so
#   families apply only to the first argument of a call with the fewest arguments.
# - RESULT is the type of the call, in which `text` is STRING with the collation of the arguments; unknown if they
#   have
#   several. A function without a result needs code (`compiler.flow.types`), or its type is unknown.

_SPAN = "year-month|day-time"
_BASIC = f"boolean|number|string|binary|datetime|{_SPAN}"
_GROUPS = {"span": _SPAN, "basic": _BASIC, "atomic": f"{_BASIC}|interval|variant"}

_TEXT = "text"
_VARIABLES = frozenset({"T", "K", "V", _TEXT})

_ENTRY = re.compile(r"(?:(?P<counts>\S+) )?\((?P<arguments>.*?)\)(?: -> (?P<result>.+?))?: (?P<names>[a-z0-9_ ]+)")
_COMMA = re.compile(r",\s*(?![^<]*>)")
"""A comma outside of `<` and `>`."""


@dataclass(frozen=True)
class Counts:
    """The numbers of arguments that a function accepts: those `listed`, or any from `least` on, only `even` ones."""

    listed: tuple[int, ...] = ()
    least: int = 0
    even: bool = False

    @property
    def smallest(self) -> int:
        """The smallest accepted number of arguments, except zero."""
        if self.listed:
            return next((count for count in self.listed if count), 0)
        return max(self.least, 2 if self.even else 1)

    def wanted(self, count: int) -> str | None:
        """Returns the accepted numbers in words; None if `count` is one of them."""
        if self.listed and count not in self.listed:
            *most, last = self.listed
            words = f"{', '.join(map(str, most))} or {last}" if most else str(last)
            return f"{words} argument{'' if self.listed == (1,) else 's'}" if last else "no arguments"
        if count < self.least:
            return f"at least {counted(self.least, 'argument')}"
        return "pairs of arguments, so an even number" if self.even and count % 2 else None


@dataclass(frozen=True)
class Argument:
    """One argument of a signature: its `families` (empty: any), and the `pattern` of its type if it has variables."""

    families: frozenset[str] = frozenset()
    pattern: DataType | None = None


@dataclass(frozen=True)
class Signature:
    """The signature of a function: the number and types of its arguments, and the type of its result."""

    counts: Counts
    arguments: tuple[Argument, ...]
    repeats: bool
    result: DataType | None
    is_fixed: bool

    def families(self, count: int) -> frozenset[str]:
        """Returns the families of the first argument in a call with `count` arguments; empty if any is accepted."""
        return self.arguments[0].families if self.arguments and count == self.counts.smallest else frozenset()

    def result_type(self, types: Sequence[DataType | None]) -> DataType | None:
        """Returns the type of a call with arguments of `types`; None if it is unknown. If `is_fixed`, ignores them."""
        if self.result is None or self.is_fixed:
            return self.result
        bound: dict[str, list[DataType | None]] = {_TEXT: [text_of(types)]}
        patterns = [argument.pattern for argument in self.arguments]
        pairs = zip_longest(patterns * len(types) if self.repeats else patterns, types)
        if not all(pattern is None or _bind(pattern, type_, bound) for pattern, type_ in pairs):
            return None
        common = element_of_both if any(isinstance(pattern, Array) for pattern in patterns) else common_type
        return _fill(self.result, {name: common_type_of(found, common) for name, found in bound.items()})


def _bind(pattern: DataType, type_: DataType | None, bound: dict[str, list[DataType | None]]) -> bool:
    """Adds the types of the variables of `pattern` in `type_` to `bound`, and returns whether the pattern matches."""
    if isinstance(pattern, Unknown):
        bound.setdefault(pattern.text, []).append(type_)
        return type_ is not None
    if isinstance(pattern, Array) and isinstance(type_, Array):
        return _bind(pattern.element, type_.element, bound)
    if isinstance(pattern, Map) and isinstance(type_, Map):
        return _bind(pattern.key, type_.key, bound) and _bind(pattern.value, type_.value, bound)
    return False


def _fill(pattern: DataType, bound: Mapping[str, DataType | None]) -> DataType | None:
    """Returns `pattern` with the types of its variables; None if one of them is unknown."""
    if isinstance(pattern, Unknown):
        return bound.get(pattern.text)
    if isinstance(pattern, Array):
        return array_of(_fill(pattern.element, bound))
    if isinstance(pattern, Map):
        return map_of(_fill(pattern.key, bound), _fill(pattern.value, bound))
    if isinstance(pattern, Struct):
        return struct_of((field.name, _fill(field.type, bound)) for field in pattern.fields)
    return pattern


def read_signatures(text: str) -> Iterator[tuple[str, Signature]]:
    """Yields the functions of `text` by name. Raises: ValueError for an entry that is not of the form above."""
    for line in text.strip().replace("\n    ", " ").splitlines():
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            raise ValueError(f"not a signature: {line}")
        written = _COMMA.split(entry["arguments"]) if entry["arguments"] else []
        arguments = tuple(_argument(each.removesuffix("...")) for each in written)
        counts = _counts(entry["counts"] or str(len(written)))
        repeats = bool(written) and written[-1].endswith("...")
        result = _pattern(entry["result"]) if entry["result"] else None
        is_fixed = not _VARIABLES.intersection(re.findall(r"\w+", entry["result"] or ""))
        signature = Signature(counts, arguments, repeats, result, is_fixed)
        yield from ((name, signature) for name in entry["names"].split())


def _counts(written: str) -> Counts:
    if written in ("*", "even"):
        return Counts(even=written == "even")
    if written.endswith("+"):
        return Counts(least=int(written[:-1]))
    first, _, last = written.partition("-")
    return Counts(tuple(range(int(first), int(last) + 1)) if last else tuple(map(int, written.split(","))))


@cache
def _argument(written: str) -> Argument:
    if written == "any":
        return Argument()
    variable, _, families = written.rpartition("=")
    if variable or families in _VARIABLES:
        pattern = Unknown(variable or families)
        return Argument(_families(families) if variable else frozenset(), pattern)
    if "<" in written:
        return Argument(_families(written.partition("<")[0]), _pattern(written))
    return Argument(_families(written))


def _families(written: str) -> frozenset[str]:
    return frozenset("|".join(_GROUPS.get(name, name) for name in written.split("|")).split("|"))


@cache
def _pattern(written: str) -> DataType:
    """Returns the type that `written` names, with its variables as unknown types."""
    if written in _VARIABLES:
        return Unknown(written)
    outer, _, inner = written.removesuffix(">").partition("<")
    if outer == "array":
        return Array(_pattern(inner))
    if outer == "map":
        key, value = _COMMA.split(inner)
        return Map(_pattern(key), _pattern(value))
    if outer == "struct":
        fields = (field.split(": ") for field in _COMMA.split(inner))
        return Struct(tuple(Field(name, _pattern(type_)) for name, type_ in fields))
    return parse_type(written)


_AGGREGATES = dict(read_signatures(aggregates.AGGREGATES))
_GENERATORS = dict(read_signatures(aggregates.GENERATORS))
_WINDOW_FUNCTIONS = dict(read_signatures(aggregates.WINDOW_FUNCTIONS))

FUNCTIONS = {**_AGGREGATES, **_GENERATORS, **_WINDOW_FUNCTIONS, **dict(read_signatures(scalars.SCALARS))}
"""The signatures of all functions that can be used in an expression, by name in lower case."""

AGGREGATES = frozenset(_AGGREGATES)
GENERATORS = frozenset(_GENERATORS)
WINDOW_FUNCTIONS = frozenset(_WINDOW_FUNCTIONS)
TABLE_FUNCTIONS = GENERATORS | frozenset(aggregates.TABLE_FUNCTIONS.split())

ROW_IDS = frozenset({"monotonically_increasing_id"})
"""Functions that Spark rejects in a streaming query, also in its static parts."""

RANDOM = ROW_IDS | frozenset(
    """
    input_file_block_length input_file_block_start input_file_name rand randn random randstr shuffle spark_partition_id
    uniform uuid
    """.split()  # noqa: SIM905 - as a list of quoted words this would be three times as long
)
"""The functions that are not `deterministic` in Spark 4.3."""
