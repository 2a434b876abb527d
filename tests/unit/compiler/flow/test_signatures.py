"""The notation for function signatures: argument counts, type families and result types."""

from __future__ import annotations

import pytest

from sqlstream.compiler.flow.expressions.literals import WITHOUT_PLACE
from sqlstream.compiler.flow.functions import FUNCTIONS, Signature, read_signatures
from sqlstream.project.types.ddl import parse_type


def signature(entry: str) -> Signature:
    """Returns the signature of one entry."""
    ((_, found),) = read_signatures(f"{entry}: f")
    return found


@pytest.mark.parametrize(
    ("entry", "accepted", "refused", "words"),
    [
        ("()", [0], 1, "no arguments"),
        ("(any)", [1], 0, "1 argument"),
        ("(any, any)", [2], 3, "2 arguments"),
        ("1,3 (any)", [1, 3], 2, "1 or 3 arguments"),
        ("0-2 (any)", [0, 1, 2], 3, "0, 1 or 2 arguments"),
        ("2+ (any)", [2, 9], 1, "at least 2 arguments"),
        ("even (any)", [0, 2], 3, "pairs of arguments, so an even number"),
        ("* (any)", [0, 1, 7], None, None),
    ],
)
def test_wrong_numbers_of_arguments_are_described(
    entry: str, accepted: list[int], refused: int | None, words: str | None
) -> None:
    """A wrong number of arguments gives a description of the accepted numbers."""
    counts = signature(entry).counts

    assert [counts.wanted(count) for count in accepted] == [None] * len(accepted)
    assert refused is None or counts.wanted(refused) == words


def test_families_apply_to_the_call_with_the_fewest_arguments() -> None:
    """Type families apply only to the shortest call, because Spark may accept other types with more arguments."""
    found = signature("1,2 (number|span) -> double")

    assert found.families(1) == {"number", "year-month", "day-time"}
    assert found.families(2) == set()


@pytest.mark.parametrize(
    ("entry", "types", "result"),
    [
        ("(any) -> bigint", ["string"], "bigint"),
        ("(T) -> T", ["date"], "date"),
        ("(T=number) -> T", ["int"], "int"),
        ("1,2 (T) -> array<T>", ["date", "int"], "array<date>"),
        ("1+ (T...) -> T", ["int", "bigint", "decimal(5,2)"], "decimal(22,2)"),
        ("1+ (T...) -> T", ["int", "array<int>"], None),
        ("(any, T, T) -> T", ["boolean", "int", "string"], "bigint"),
        ("(array<T>, T) -> array<T>", ["array<int>", "bigint"], "array<bigint>"),
        ("(array<T>, T) -> array<T>", ["array<int>", "string"], None),
        ("(array<T>, T) -> array<T>", ["array<int>"], None),
        ("(array<T>) -> T", ["string"], None),
        ("(map<K, V>) -> array<struct<key: K, value: V>>", ["map<string,int>"], "array<struct<key:string,value:int>>"),
        ("(array<K>, array<V>) -> map<K, V>", ["array<int>", "array<date>"], "map<int,date>"),
        ("(atomic) -> text", ["string"], "string"),
        ("(atomic) -> text", ["string collate UTF8_LCASE"], "string collate UTF8_LCASE"),
        ("1+ (any) -> text", ["string collate UTF8_LCASE", "int"], "string collate UTF8_LCASE"),
        ("1+ (any) -> text", ["string collate UTF8_LCASE", "string"], None),
        ("(any)", ["int"], None),
    ],
)
def test_results(entry: str, types: list[str], result: str | None) -> None:
    """Type variables are bound by the arguments; if one cannot be bound, the result type is unknown."""
    found = signature(entry).result_type([parse_type(each) for each in types])

    assert (None if found is None else str(found)) == result


def test_an_argument_of_unknown_type_leaves_the_result_unknown() -> None:
    """An argument of unknown type makes the result unknown only if the result depends on that argument."""
    assert signature("(T) -> T").result_type([None]) is None
    assert str(signature("(any) -> int").result_type([None])) == "int"


@pytest.mark.parametrize("entry", ["any -> int: f", "(any) => int: f", "(any) -> int"])
def test_a_malformed_entry_is_refused(entry: str) -> None:
    """A malformed entry in the signature table raises an error when the table is read."""
    with pytest.raises(ValueError, match="not a signature"):
        list(read_signatures(entry))


def test_every_function_without_a_place_is_in_the_table() -> None:
    """The function names listed for sqlglot classes are all in the table of known functions."""
    assert {name for names in WITHOUT_PLACE.values() for name in names} <= FUNCTIONS.keys()
