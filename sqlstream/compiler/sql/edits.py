"""Edits of a text, the map from offsets in the edited text to the original, and what reading a text gives: problems
located by offset, the views that it reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlstream.errors import Finding, Severity
from sqlstream.location import Place

ORIGIN = "\ufffc"
"""A placeholder for the location of an origin in `why`: the cache stores no locations, which move with other lines."""


@dataclass(frozen=True)
class Edit:
    """Replaces the characters from `start` (0-based) up to, not including, `end`, or inserts text if they are equal.

    `origin` is the offset of the text that the replacement was made from; None for the text that it replaces.
    """

    start: int
    end: int
    replacement: str
    origin: int | None = None


@dataclass(frozen=True)
class EditedText:
    """A text after edits: `text` is the result, `original` the text before. `edits` are in ascending order."""

    text: str
    original: str
    edits: tuple[Edit, ...]

    def original_offset(self, offset: int) -> int:
        """Returns the offset in `original` of the character at `offset` of `text`.

        A character from an edit has the offset of the edit's origin, or else of its start.
        """
        shift = 0
        for edit in self.edits:
            start = edit.start + shift
            if offset < start:
                break
            if offset < start + len(edit.replacement):
                return edit.start if edit.origin is None else edit.origin
            shift += len(edit.replacement) - (edit.end - edit.start)
        return offset - shift


def apply_edits(text: str, edits: Iterable[Edit]) -> EditedText:
    """Returns `text` with all `edits`, whose offsets refer to `text`, in any order.

    Insertions at the same offset keep their order.

    Raises:
        ValueError: two edits overlap, or one lies outside the text.
    """
    ordered = tuple(sorted(edits, key=lambda edit: (edit.start, edit.end)))
    pieces: list[str] = []
    position = 0
    for edit in ordered:
        if not position <= edit.start <= edit.end <= len(text):
            raise ValueError(f"the edit {edit} overlaps another one, or lies outside a text of {len(text)} characters")
        pieces += [text[position : edit.start], edit.replacement]
        position = edit.end
    return EditedText("".join([*pieces, text[position:]]), text, ordered)


def spaced(text: str, at: int, insertion: str) -> str:
    """Returns `insertion` for offset `at` of `text`, with a space if it would run into the next word."""
    following = text[at : at + 1]
    return f"{insertion} " if following.isalnum() or following in ("_", "`") else insertion


@dataclass(frozen=True)
class Where:
    """A place in compiled SQL: the model's unique id, and an offset in characters from 0."""

    model: str
    offset: int


@dataclass(frozen=True)
class SqlProblem:
    """A `Finding` without its location: `offset` (0-based, in characters) is the place of the error in the SQL.

    `origins` are the places that replace each `ORIGIN` in `why`, in order.
    """

    offset: int
    code: str
    message: str
    why: str
    fix: str
    severity: Severity = Severity.ERROR
    origins: tuple[Where, ...] = ()

    def at(self, place: Place, origins: Iterable[str] = ()) -> Finding:
        """Returns the finding at `place`, the place of the offset. `origins` are the places of the origins in words."""
        why = self.why
        for origin in origins:
            why = why.replace(ORIGIN, origin, 1)
        return Finding(self.code, self.message, why, self.fix, place.location, self.severity, place.calls)


@dataclass(frozen=True)
class ViewReference:
    """A temp view that a model's SQL reads (`view`, unquoted), and the node that it shows."""

    view: str
    node_id: str


@dataclass(frozen=True)
class Rewriting:
    """The edits of one text, the views that the edited text reads in order of first appearance, the errors in it, and
    the relations that are not its views: the offset and name of each.
    """

    edits: tuple[Edit, ...]
    reads: tuple[ViewReference, ...]
    problems: tuple[SqlProblem, ...] = ()
    bare_names: tuple[tuple[int, str], ...] = ()
