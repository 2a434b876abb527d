"""Encoding cached values as text and decoding them."""

from __future__ import annotations

import json

import pytest

from sqlstream.compiler.cache import CodecError, decode, encode
from sqlstream.compiler.digest import digest
from sqlstream.compiler.flow.columns import Column
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.project.secret_text import SecretName, SecretText
from sqlstream.project.types.data_types import Array, Decimal, Field, Struct
from sqlstream.project.yaml import Located

COLUMNS = (Column("a", Struct((Field("b", Array(Decimal(10, 2))),)), origins=frozenset({("source.p.s.t", "a")})),)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -5,
        10**40,
        1.5,
        "",
        "text with \x00 and ß",
        (),
        [],
        {},
        {1: [1, 1.0, True, "1"], "1": {"deep": (None,)}},
        frozenset({("a", "b")}),
        Finding("code", "message", "why", "fix", Location("a.sql", 2, 3), Severity.WARNING, (Location("b.sql"),)),
        Located({"a": [1]}, Location("a.yml")),
        SecretText(("x", SecretName("SQLSTREAM_SECRET_A"))),
        COLUMNS,
    ],
)
def test_decoding_restores_the_value(value: object) -> None:
    """Decoding returns an equal value with the same types at every level."""
    found = decode(encode(value))
    assert found == value
    assert repr(found) == repr(value)


def test_shared_objects_stay_shared() -> None:
    """An object that occurs twice is decoded as one object, and two equal objects stay two."""
    shared, equal = Column("a"), Column("a")
    first, second, third = decode(encode((shared, shared, equal)))
    assert first is second
    assert first is not third
    assert first == third


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", Location, print, "half a letter: \ud800"])
def test_other_values_are_refused(value: object) -> None:
    """Values that cannot be encoded without loss raise an error."""
    with pytest.raises(CodecError):
        encode((value,))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "7",
        "nonsense",
        '[["os.system","true"],["last",0]]',
        '[["Popen","true"],["last",0]]',
        '[["Location","a"],["last",0]]',
        '[["Location","a",[1],[1],[1]],["last",0]]',
        '[["tuple",5],["last",0]]',
        '[["dict","key"],["last",0]]',
        '[["severity","odd"],["last",0]]',
        "[" * 100_000,
    ],
)
def test_invalid_text_is_refused(text: str) -> None:
    """Invalid text raises an error, and no class outside the known ones is created."""
    with pytest.raises(CodecError):
        decode(text)


def test_rows_are_plain_json() -> None:
    """An encoded row is JSON and starts with the name of its class."""
    assert json.loads(encode(Location("a.sql", 2, 3))) == [["Location", "a.sql", [2], [3]], ["last", 0]]


def test_digests_depend_on_types_and_order() -> None:
    """Values that differ only in type or order have different digests, because templates see the difference."""
    values = [1, "1", 1.0, True, None, (), [1], ["1"], {"a": 1, "b": 2}, {"b": 2, "a": 1}]
    assert len({digest(value) for value in values}) == len(values)
    assert digest("a", "b") != digest("ab")
