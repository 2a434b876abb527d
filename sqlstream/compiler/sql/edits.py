"""Small edits of a text, and the way back from the edited text to the original."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Edit:
    """Puts `replacement` where the characters from `start` up to, not including, `end` stand; offsets start at 0.

    With `start == end` the replacement is inserted before the character at `start`. `origin` is the offset of what the
    replacement was made from, None where that is what it replaces.
    """

    start: int
    end: int
    replacement: str
    origin: int | None = None


@dataclass(frozen=True)
class EditedText:
    """A text after edits: `text` is the result, `original` what it was made from, `edits` are in ascending order."""

    text: str
    original: str
    edits: tuple[Edit, ...]

    def original_offset(self, offset: int) -> int:
        """Returns the offset in `original` of the character at `offset` of `text`.

        For a character that an edit put there, it is the edit's origin, or else its start.
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
    """Returns `text` with all `edits` made; their offsets are those of `text`, in any order.

    Insertions at one offset keep the order in which they are given.

    Raises:
        ValueError: two edits overlap, or one lies outside the text.
    """
    ordered = tuple(sorted(edits, key=lambda edit: (edit.start, edit.end)))
    _check_apart(text, ordered)
    pieces: list[str] = []
    position = 0
    for edit in ordered:
        pieces += [text[position : edit.start], edit.replacement]
        position = edit.end
    return EditedText("".join([*pieces, text[position:]]), text, ordered)


def spaced(text: str, at: int, insertion: str) -> str:
    """Returns `insertion` for offset `at` of SQL, with a space after it where it would run into the next word."""
    following = text[at : at + 1]
    return f"{insertion} " if following.isalnum() or following in ("_", "`") else insertion


def _check_apart(text: str, edits: tuple[Edit, ...]) -> None:
    for edit in edits:
        if not 0 <= edit.start <= edit.end <= len(text):
            raise ValueError(f"the edit {edit} lies outside a text of {len(text)} characters")
    for before, after in pairwise(edits):
        if after.start < before.end:
            raise ValueError(f"the edits {before} and {after} overlap")
