"""Applying edits, and mapping offsets back to the original text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstream.compiler.sql.edits import Edit, apply_edits


def test_edits_are_applied_in_order_of_position() -> None:
    """Edits are applied in order of position; insertions at the same position keep their order."""
    edited = apply_edits("abcdef", [Edit(4, 5, ""), Edit(1, 2, "XYZ"), Edit(3, 3, "1"), Edit(3, 3, "2")])
    assert edited.text == "aXYZc12df"
    assert edited.original == "abcdef"


def test_original_offset() -> None:
    """An offset within a replacement maps to the edit's start, any other to the same character."""
    edited = apply_edits("abcdef", [Edit(1, 2, "XYZ"), Edit(3, 3, "12"), Edit(4, 5, "")])
    assert [edited.original_offset(offset) for offset in range(len(edited.text) + 1)] == [0, 1, 1, 1, 2, 3, 3, 3, 5, 6]


@pytest.mark.parametrize("edits", [[Edit(0, 2, ""), Edit(1, 3, "")], [Edit(2, 9, "")], [Edit(2, 1, "")]])
def test_impossible_edits_are_refused(edits: list[Edit]) -> None:
    """Edits that overlap or lie outside the text raise ValueError."""
    with pytest.raises(ValueError, match="edit"):
        apply_edits("abc", edits)


@given(st.text(max_size=30), st.lists(st.tuples(st.integers(0, 30), st.text(max_size=3)), max_size=6))
def test_offsets_outside_replacements_are_exact(text: str, cuts: list[tuple[int, str]]) -> None:
    """Every character outside the edits maps back to its original offset."""
    bounds = sorted({min(cut, len(text)) for cut, _ in cuts})
    edits = [Edit(a, b, cut[1]) for a, b, cut in zip(bounds[::2], bounds[1::2], cuts, strict=False)]
    edited = apply_edits(text, edits)
    position = 0
    for edit in edited.edits:
        for offset in range(position, edit.start):
            new = offset + sum(len(e.replacement) - (e.end - e.start) for e in edits if e.end <= offset)
            assert edited.original_offset(new) == offset
            assert edited.text[new] == text[offset]
        position = edit.end
    assert edited.original_offset(len(edited.text)) == len(text)
