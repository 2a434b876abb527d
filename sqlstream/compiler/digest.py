"""Digests of plain values and of declarations, the keys of the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass

from sqlstream.location import Location
from sqlstream.project.configuration.fields import Document

WORDS_ABOUT = frozenset({"description", "tags", "meta", "locations", "location"})
"""Fields of declarations that do not change any query."""


def digest(*values: object) -> str:
    """Returns 32 hexadecimal digits for `values`: texts, numbers, None, and tuples, lists and mappings of them.

    Equal values of different types have different digests, and so have mappings in another order: templates can see
    the difference.
    """
    made = hashlib.blake2b(digest_size=16)
    for value in values:
        text, kind = (value, b"'") if type(value) is str else (repr(value), b" ")  # repr of a long text is slow
        content = text.encode("utf-8", "surrogatepass")
        made.update(b"%d%c" % (len(content), kind))
        made.update(content)
    return made.hexdigest()


def declared(value: object) -> object:
    """Returns a declaration as a value for `digest`, without its locations and the fields in `WORDS_ABOUT`."""
    if isinstance(value, Location):
        return None
    names: Iterable[str] | None = None
    if isinstance(value, Document):
        names = type(value).model_fields
    elif is_dataclass(value) and not isinstance(value, type):
        names = (field.name for field in fields(value))
    if names is not None:
        kept = [name for name in names if name not in WORDS_ABOUT]
        return (type(value).__name__, *((name, declared(getattr(value, name))) for name in kept))
    if isinstance(value, Mapping):
        return tuple((key, declared(item)) for key, item in value.items())
    if isinstance(value, tuple | list):
        return tuple(map(declared, value))
    return value
