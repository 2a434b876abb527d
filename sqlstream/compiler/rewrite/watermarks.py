"""Compiles the hint `/*+ WATERMARK(column, delay) */` to Spark's clause `WATERMARK column DELAY OF INTERVAL ...`.

Spark ignores unknown hints, so a hint that cannot be compiled is always an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise

from sqlstream.compiler.sql.edits import Edit, SqlProblem, spaced
from sqlstream.compiler.sql.hints import Hint, HintItem, read_hints, unknown_hint
from sqlstream.compiler.sql.intervals import NEGATIVE, NO_DELAY, IntervalError, parse_interval
from sqlstream.compiler.sql.relations import SqlRelation
from sqlstream.compiler.sql.sql_text import SqlText
from sqlstream.compiler.sql.tokens import Token, TokenKind, Tokens

_EXAMPLE = "WATERMARK(ts, '10 minutes')"


class _MisplacedError(Exception):
    """One hint cannot be compiled. It is caught for each hint, so that all errors are reported."""

    def __init__(self, offset: int, message: str, why: str, fix: str) -> None:
        self.problem = SqlProblem(offset, "misplaced-watermark", message, why, fix)


@dataclass(frozen=True)
class _Watermark:
    """A well-formed hint: the column as written and its offset, its qualifier or None, and the delay as Spark's
    interval literal.
    """

    qualifier: Token | None
    column: str
    column_start: int
    delay: str


def place_watermarks(text: SqlText) -> tuple[tuple[Edit, ...], tuple[SqlProblem, ...]]:
    """Returns the edits that replace every WATERMARK hint by Spark's clause, and the errors in hints.

    Hints with errors and other hints are left unchanged. A hint that Spark does not know is an error too.
    """
    sql, hints = text.sql, read_hints(text.tokens)
    relations = text.relations if hints else ()
    edits: list[Edit] = []
    problems: list[SqlProblem] = []
    taken: set[int] = set()
    for hint in hints:
        watermarks = [item for item in hint.items if item.is_watermark]
        results = [_try_to_place(sql, hint, item, relations, taken) for item in watermarks]
        edits += [result for result in results if isinstance(result, Edit)]
        problems += [result for result in results if isinstance(result, SqlProblem)]
        problems += filter(None, map(unknown_hint, hint.items))
        placed = [item for item, result in zip(watermarks, results, strict=True) if isinstance(result, Edit)]
        edits += _removals(sql, hint, placed)
    return tuple(edits), tuple(sorted(problems, key=lambda problem: problem.offset))


def _try_to_place(
    sql: str, hint: Hint, item: HintItem, relations: tuple[SqlRelation, ...], taken: set[int]
) -> Edit | SqlProblem:
    try:
        return _place(sql, hint, item, relations, taken)
    except _MisplacedError as error:
        return error.problem


def _place(sql: str, hint: Hint, item: HintItem, relations: tuple[SqlRelation, ...], taken: set[int]) -> Edit:
    """Returns the edit that adds the clause, and adds its offset to `taken`, the offsets that already have a clause."""
    watermark = _read(item)
    relation = _choose(item, watermark, _in_reach(hint, item, relations))
    label = f"`{relation.visible_name}`" if relation.visible_name else "this relation"
    if not relation.takes_clauses:
        why = "Spark's grammar does not allow a WATERMARK clause here"
        raise _MisplacedError(item.start, f"{label} cannot have a watermark", why, "read it in a subquery")
    if relation.has_watermark or relation.primary_end in taken:
        first = "Spark's WATERMARK clause" if relation.has_watermark else "an earlier WATERMARK hint"
        why = f"{first} already sets it, and Spark accepts one per relation"
        raise _MisplacedError(item.start, f"{label} already has a watermark", why, "keep one of them")
    taken.add(relation.primary_end)
    clause = f" WATERMARK {watermark.column} DELAY OF {watermark.delay}"
    at = relation.primary_end
    return Edit(at, at, spaced(sql, at, clause), watermark.column_start)


def _in_reach(hint: Hint, item: HintItem, relations: tuple[SqlRelation, ...]) -> list[SqlRelation]:
    """Returns the relations in the FROM clause of the hint's SELECT, at least one."""
    if hint.select is None:
        why = "Spark reads hints only directly after SELECT, before DISTINCT and the first column"
        fix = f"write it directly after SELECT: SELECT /*+ {_EXAMPLE} */"
        raise _MisplacedError(item.start, "a WATERMARK hint must directly follow SELECT", why, fix)
    found = [relation for relation in relations if relation.select == hint.select]
    if not found:
        why = "the hint names a column of a relation in the FROM clause of the same SELECT"
        fix = "move it to the SELECT that reads the stream, or use Spark's clause after the relation there"
        raise _MisplacedError(item.start, "this SELECT has no FROM clause for the watermark", why, fix)
    return found


def _read(item: HintItem) -> _Watermark:
    """Parses the two arguments of a hint."""
    arguments = item.arguments or ()
    if len(arguments) != 2 or not all(arguments):
        why = "WATERMARK takes a column and a delay"
        raise _MisplacedError(item.start, "this WATERMARK hint needs exactly two arguments", why, f"write {_EXAMPLE}")
    column, delay = arguments
    parts = column[::2]
    is_path = (
        len(column) % 2 == 1 and all(part.is_name for part in parts) and all(dot.key == "." for dot in column[1::2])
    )
    if not is_path or len(parts) > 2:
        raise _not_a_column(column, is_path=is_path)
    return _Watermark(parts[0] if len(parts) == 2 else None, parts[-1].text, parts[-1].start, _delay(delay))


def _not_a_column(argument: Tokens, *, is_path: bool) -> _MisplacedError:
    """Returns the error for an expression or a field of a struct. Spark's clause accepts both, but adds a column."""
    text = _as_written(argument)
    if argument[0].kind is TokenKind.STRING:
        why = "the first argument of WATERMARK is the column, without quotes"
        return _MisplacedError(argument[0].start, f"the text {text} is not a column", why, f"write {_EXAMPLE}")
    return _MisplacedError(
        argument[0].start,
        f"`{text}` is not a column but {'a field of a struct' if is_path else 'an expression'}",
        "Spark would put the watermark on a new column, not on the one that the query uses later",
        f"use Spark's clause, WATERMARK {text} AS event_time DELAY OF ..., and then event_time",
    )


def _delay(tokens: Tokens) -> str:
    """Returns a delay, in quotes or as an INTERVAL literal, in the form of Spark's clause."""
    first, rest = tokens[0], tokens[1:]
    try:
        if first.kind is TokenKind.STRING and not rest:
            return parse_interval(_value(first)).clause
        if first.key == "INTERVAL" and any(token.key == "TO" for token in rest):
            _check_sign(rest)
            return " ".join(["INTERVAL", *(token.text for token in rest)])
        return parse_interval(" ".join(map(_value, rest)) if first.key == "INTERVAL" else _one_line(first.text)).clause
    except IntervalError as error:
        text = _as_written(tokens)
        raise _MisplacedError(first.start, f"{text} is not a delay", error.why, error.fix) from error


def _check_sign(tokens: Tokens) -> None:
    if any(token.key == "-" or _value(token).lstrip().startswith("-") for token in tokens):
        raise IntervalError(NEGATIVE, NO_DELAY)


def _value(token: Token) -> str:
    """Returns the text of a token, of a string literal without its quotes."""
    return token.text.lstrip("rR")[1:-1] if token.kind is TokenKind.STRING else token.text


def _as_written(tokens: Tokens) -> str:
    """Returns the text of tokens on one line, with a blank for each gap between them."""
    gaps = ["", *(" " if after.start > before.end else "" for before, after in pairwise(tokens))]
    return "".join(gap + _one_line(token.text) for gap, token in zip(gaps, tokens, strict=True))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _choose(item: HintItem, watermark: _Watermark, found: list[SqlRelation]) -> SqlRelation:
    """Returns the relation that the hint refers to."""
    if watermark.qualifier is None:
        outer = [relation for relation in found if not relation.is_nested]
        if len(outer) == 1:
            return outer[0]
        names = [relation.visible_name for relation in found if relation.visible_name]
        fix = f"for example WATERMARK({names[0]}.{watermark.column}, ...)" if names else "add aliases to the relations"
        why = f"the FROM clause has {len(outer)} relations" + (f": {', '.join(names)}" if names else "")
        raise _MisplacedError(item.start, f"the relation of `{watermark.column}` is ambiguous", why, fix)
    qualifier = watermark.qualifier.name
    same = [relation for relation in found if (relation.visible_name or "").lower() == qualifier.lower()]
    if len(same) == 1:
        return same[0]
    if same:
        why, fix = "the FROM clause contains it more than once", "give each one an alias"
        raise _MisplacedError(watermark.qualifier.start, f"`{qualifier}` is more than one relation", why, fix)
    raise _no_relation(watermark.qualifier, watermark.column, found)


def _no_relation(qualifier: Token, column: str, found: list[SqlRelation]) -> _MisplacedError:
    names = {relation.visible_name.lower(): relation.visible_name for relation in found if relation.visible_name}
    hidden = {relation.name.lower(): relation.alias for relation in found if relation.name and relation.alias}
    first = next(iter(names.values()), "x")
    near = get_close_matches(qualifier.name.lower(), sorted(names), n=1)
    meant = hidden.get(qualifier.name.lower()) or (names[near[0]] if near else None)
    fix = (
        f"use WATERMARK({first}.{column}, ...), or for a field of a struct Spark's clause: {first} WATERMARK "
        f"{qualifier.text}.{column} AS event_time DELAY OF INTERVAL ..., and then event_time"
    )
    return _MisplacedError(
        qualifier.start,
        f"`{qualifier.name}` is not a relation of this FROM clause",
        f"it has {', '.join(names.values())}" if names else "its relations have no aliases",
        f"did you mean `{meant}.{column}`?" if meant else fix,
    )


def _removals(sql: str, hint: Hint, placed: list[HintItem]) -> list[Edit]:
    """Returns the edits that remove the `placed` hints with their commas, or the whole comment if no hint is left."""
    if not placed:
        return []
    if len(placed) == len(hint.items):
        return [_without(sql, hint.token.start, hint.token.end)]
    # Each item goes with the comma after it; those behind the last kept one go with the comma before them.
    kept = [index for index, item in enumerate(hint.items) if item not in placed]
    edits = [
        Edit(item.start, hint.items[index + 1].start, _newlines(sql[item.start : hint.items[index + 1].start]))
        for index, item in enumerate(hint.items)
        if item in placed and index < kept[-1]
    ]
    last, end = hint.items[kept[-1]].end, hint.items[-1].end
    return [*edits, Edit(last, end, _newlines(sql[last:end]))] if end > last else edits


def _without(sql: str, start: int, end: int) -> Edit:
    """Returns the edit that removes a comment, and the blank before it if a blank follows."""
    newlines = _newlines(sql[start:end])
    before, after = sql[start - 1 : start], sql[end : end + 1]
    if before in (" ", "\t") and (after.isspace() or not after or newlines):
        return Edit(start - 1, end, newlines)
    return Edit(start, end, newlines if newlines or before.isspace() or after.isspace() else " ")


def _newlines(text: str) -> str:
    return "\n" * text.count("\n")
