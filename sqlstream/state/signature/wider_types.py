"""Columns of sources that have a wider type than in an earlier signature, and the uses of them with which a state keeps
its meaning: Spark stores the same types, and computes the same values from all values of the earlier type.

In texts, a column with a wider type has both types. Each use that does not depend on the difference replaces them by
the earlier one. A use that does keeps the new type, so its signature differs from the earlier one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sqlstream.project.types.data_types import Array, DataType, Decimal, Field, Map, Struct, includes
from sqlstream.project.types.ddl import known_type

_INTEGERS = frozenset({"tinyint", "smallint", "int"})
"""The whole numbers for which there is a type with larger ones."""

Types = Mapping[str, Mapping[str, str]]
"""The types that columns had, by source and column, as in a signature."""


def is_wider(old: DataType, new: DataType) -> bool:
    """Returns whether a column of the type `new` has a value for each value of the type `old`, and null for no other
    ones: a larger number, more digits, a time in place of a date, new fields in a struct.
    """
    if isinstance(old, Struct) and isinstance(new, Struct):
        fields = {field.name: field for field in new.fields}
        pairs = [(field, fields.get(field.name)) for field in old.fields]
        return all(now and then.nullable == now.nullable and is_wider(then.type, now.type) for then, now in pairs)
    if isinstance(old, Array) and isinstance(new, Array):
        return old.contains_null == new.contains_null and is_wider(old.element, new.element)
    if isinstance(old, Map) and isinstance(new, Map):
        is_same = old.key == new.key and old.value_contains_null == new.value_contains_null
        return is_same and is_wider(old.value, new.value)
    return includes(new, old) or (str(old) == "date" and str(new) in ("timestamp", "timestamp_ntz"))


def _has_more_integers(old: DataType, new: DataType) -> bool:
    """Returns whether both types are whole numbers, and `new` has those of `old` and larger ones."""
    return str(old) in _INTEGERS and old != new and includes(new, old)


def _is_double(old: DataType, new: DataType) -> bool:
    return (str(old), str(new)) == ("float", "double")


def marked(text: str, old: str | None, new: str, *, exact: bool) -> str:
    """Returns the text of a column with both types if `new` is wider than `old`. With `exact`, a number that was read
    as a float is the same as a double: not if it is in a text, which has more digits than a float.
    """
    if old is None or old == new or not is_wider(known_type(old), known_type(new)):
        return text
    text = text if text.endswith("\ue003") else f"{_OPEN}{text}{_CLOSE}"
    return f"{text}{_START}{new}{_EARLIER if exact else _ROUNDED}{old}{_END}"


def as_earlier_if_same_type(text: str) -> str:
    """Returns the text of a column, or of a field in it, with the earlier type of the column if the type at this place
    is still the same.
    """
    types = _types_at(text)
    return _with_earlier(text) if types is not None and types[0] == types[1] else text


def as_earlier(text: str) -> str:
    """Returns the text of a column, or of a field in it, with the earlier type: for a use that the type does not matter
    to, such as the number of items.
    """
    return _with_earlier(text) if _types_at(text) is not None else text


def marked_item(text: str, items: str) -> str:
    """Returns the text of an item of a list, or of a value of a map, with both types if the list has both."""
    types = _types_at(items)
    if types is None:
        return text
    inner = [_items_of(each) for each in types]
    return text if None in inner else marked(text, str(inner[0]), str(inner[1]), exact=_ROUNDED not in items)


def as_earlier_element_field(text: str, field: str) -> tuple[str, dict[str, str]]:
    """Returns the texts of a list and of the positions of a field of its items (`name type`). They are the earlier ones
    if the field has the same type in both types of the list; otherwise the list as it is, and no positions.
    """
    items = [_items_of(each) for each in _types_at(text) or ()]
    name = _split_name(field)[0]
    fields = [_field(each, name) for each in items]
    if len(fields) != 2 or fields[0] is None or fields[1] is None or fields[0].type != fields[1].type:
        return text, {}
    of_items = items[0].fields if isinstance(items[0], Struct) else ()
    return _with_earlier(text), {"ordinal": str(of_items.index(fields[0])), "numFields": str(len(of_items))}


def as_earlier_in_sum(text: str) -> str:
    """Returns the operand of `sum` or `avg`, whose state is a bigint or a double for all integers and floats."""
    types = _types_at(text)
    if types is None:
        return text
    is_same = _has_more_integers(*types) or (_is_double(*types) and _ROUNDED not in text)
    return _with_earlier(text) if is_same else text


def as_earlier_if_same_values(text: str) -> str:
    """Returns an operand of which only the value counts, and not its type."""
    types = _types_at(text)
    return _with_earlier(text) if types is not None and _has_same_values(*types) else text


def as_earlier_in_cast(text: str, type_: str) -> str:
    """Returns the operand of a cast to the type `type_`, as Spark's JSON has it."""
    return as_earlier_if_same_values(text) if _FREE_CASTS.fullmatch(type_) else text


def compared_type(text: str, type_: str) -> str | None:
    """Returns the earlier type of an operand that is compared with literals of the type `type_`, None if the operand
    has no such type now, or if Spark could have found another result.
    """
    types = _types_at(text)
    if types is None or known_type(type_) != types[1] or not _has_same_values(*types):
        return None
    return _JSON_NAMES.get(str(types[0]), str(types[0]))


def _has_same_values(old: DataType, new: DataType) -> bool:
    if isinstance(old, Decimal) and isinstance(new, Decimal):
        return old.scale == new.scale and is_wider(old, new)
    return _has_more_integers(old, new)


def plain_types(text: str) -> str:
    """Returns a text in which the columns that still have both types have the new one. It is the type of a column of a
    source, and stands after any other one.
    """
    text = _MARK.sub(lambda found: found[1] or f" {found[2]}", text)
    return text.replace(_OPEN, "").replace(_CLOSE, "")


def types_in(line: str) -> dict[str, str]:
    """Returns the types of the columns in the line of a source: `shop.orders(id integer, item struct<sku string>)`."""
    listed = line.strip().partition("(")[2].removesuffix(")")
    pairs = (_split_name(each) for each in _items(listed))
    return dict(pair for pair in pairs if pair[0] and pair[1])


def _items(listed: str) -> Iterator[str]:
    depth, item = 0, ""
    for piece in _PIECE.findall(listed):
        depth += {"(": 1, "<": 1, "{": 1, ")": -1, ">": -1, "}": -1}.get(piece, 0)
        if piece == ", " and depth == 0:
            yield item
            item = ""
        else:
            item += piece
    yield item


def _split_name(item: str) -> tuple[str, str]:
    found = _NAMED.fullmatch(item)
    return (found[1], found[2]) if found else ("", "")


_PIECE = re.compile(r'(?s)`(?:[^`]|``)*`|"(?:[^"\\]|\\.)*"|, |.')
_NAMED = re.compile(r"(\w+|`(?:[^`]|``)*`) (.+)", re.DOTALL)

_START, _EARLIER, _ROUNDED, _END = "\ue020", "\ue021", "\ue022", "\ue023"
"""Around the two types of a column: the new one, then the earlier one."""

_OPEN, _CLOSE = "\ue024", "\ue025"
"""Around a text with two types that is no column of a source, such as an item of a list."""

_TYPES = rf"{_START}([^{_START}{_END}]*)[{_EARLIER}{_ROUNDED}]([^{_START}{_END}]*){_END}"
_MARK = re.compile(rf"(\ue003)?{_TYPES}")
_FIELD = r"\.(\w+|`(?:[^`]|``)*`)"
_PLACE = re.compile(rf"(?:\ue000[^\ue000\ue003]*\ue003|{_OPEN}[^{_OPEN}{_CLOSE}]*{_CLOSE}){_TYPES}((?:{_FIELD})*)")

_FREE_CASTS = re.compile(r"string|boolean|byte|short|integer|long|float|double|decimal\([0-9,]+\)|timestamp")
"""Types to which a number is cast by its value. A cast to binary, for example, has the bytes of the type."""

_JSON_NAMES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
"""The names of types that Spark's JSON spells in another way."""


def _types_at(text: str) -> tuple[DataType, DataType] | None:
    """Returns the earlier and the new type of a column with both, or of a field in it; None for any other text."""
    found = _PLACE.fullmatch(text)
    if found is None:
        return None
    old, new = known_type(found[2]), known_type(found[1])
    for name in re.findall(_FIELD, found[3]):
        before, after = _field(old, name), _field(new, name)
        if before is None or after is None:
            return None
        old, new = before.type, after.type
    return old, new


def _items_of(type_: DataType) -> DataType | None:
    return type_.element if isinstance(type_, Array) else type_.value if isinstance(type_, Map) else None


def _field(type_: DataType | None, name: str) -> Field | None:
    """Returns the field of a struct that an expression names, in the letter case of the query or of the declaration."""
    if not isinstance(type_, Struct):
        return None
    plain = name[1:-1].replace("``", "`") if name.startswith("`") else name
    return next((field for field in type_.fields if field.name == plain), None) or type_.field(plain)


def _with_earlier(text: str) -> str:
    """Returns the text of a column with its earlier type alone."""
    found = _MARK.search(text)
    if found is None:
        return text
    before = text[: found.start()]
    if found[1]:  # the column of a source, which has its type after its name
        name = before.rpartition("\ue002")[0]
        before = f"{name}\ue002{found[3]}\ue003"
    return before.replace(_OPEN, "").replace(_CLOSE, "") + text[found.end() :]
