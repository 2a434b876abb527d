"""What the macros of a project say, apart from how they look, read from the text of their files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlstream.compiler.manifest.template_words import TemplateWords, read_pieces
from sqlstream.compiler.render.places.template_code import Code, Piece, split_template


def read_macros(texts: Iterable[str]) -> Mapping[str, tuple[TemplateWords, ...]]:
    """Returns what each macro says, by name: its own words, and those that stand outside of all macros of its file.

    A macro within a macro belongs to the outer one.
    """
    macros: dict[str, tuple[TemplateWords, ...]] = {}
    for text in texts:
        own, around = _split_file(split_template(text))
        outside = read_pieces(around)
        macros |= {name: (*macros.get(name, ()), read_pieces(pieces), outside) for name, pieces in own.items()}
    return macros


def _split_file(pieces: Iterable[Piece]) -> tuple[dict[str, list[Piece]], list[Piece]]:
    """The pieces of each macro, from its first tag to its last, and those around all of them."""
    own: dict[str, list[Piece]] = {}
    around: list[Piece] = []
    open_macro: list[Piece] | None = None
    depth = 0
    for piece in pieces:
        tag = piece.tokens[0] if isinstance(piece, Code) and not piece.is_output and piece.tokens else ""
        if isinstance(piece, Code) and tag == "macro" and len(piece.tokens) > 1:
            depth += 1
            open_macro = own.setdefault(piece.tokens[1], []) if depth == 1 else open_macro
        (around if open_macro is None else open_macro).append(piece)
        depth -= tag == "endmacro"
        open_macro = None if depth == 0 else open_macro
    return own, around
