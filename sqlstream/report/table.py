"""Plain tables, drawn by rich."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from unicodedata import category

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

LINE_BREAKERS = frozenset({"Cc", "Zl", "Zp"})
"""The Unicode categories of control characters and of the separators of lines and paragraphs."""
PADDING = 3
"""Cells of the screen between two columns, at most."""
NARROWEST = 12
"""Cells of the screen that a cut column keeps at least: a date, or what tells one text from another."""


def table_text(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Returns a table as text; the columns whose numbers (from 0) are in `right` are aligned to the right.

    A row is one line, however long: control characters in cells are shown escaped and no cell is cut or folded, so that
    a path can be copied.
    """
    cells = [[_one_line(cell) for cell in row] for row in (header, *rows)]
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, name in enumerate(cells[0]):
        table.add_column(Text(name), justify="right" if index in right else "left", no_wrap=True)
    for row in cells[1:]:
        table.add_row(*(Text(cell) for cell in row))
    buffer = StringIO()
    Console(file=buffer, width=_enough(cells), color_system=None, legacy_windows=False).print(table)
    return "\n".join(line.rstrip() for line in buffer.getvalue().rstrip("\n").split("\n"))


def fit_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int], width: int | None
) -> tuple[str, tuple[str, ...]]:
    """Returns `table_text` cut to `width` cells of the screen, and the names of the columns that have no room in it.

    The widest columns are cut first, each to `NARROWEST` cells at the least; `…` stands for what is left out.
    Nothing is cut where `width` is None.
    """
    cells = [[_one_line(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    count, widest = _room(widths, width)
    cut = [[_cut(cell, widest) for cell in row[:count]] for row in cells]
    if not cut[0]:
        return "", tuple(header)
    return table_text(cut[0], cut[1:], [at for at in right if at < count]), tuple(cells[0][count:])


def _room(widths: Sequence[int], width: int | None) -> tuple[int, int]:
    """How many columns fit into `width`, and how wide the widest may be."""
    if width is None:
        return len(widths), max(widths, default=0)

    def taken(count: int, widest: int) -> int:
        return sum(min(each, widest) for each in widths[:count]) + PADDING * (count - 1)

    count = len(widths)
    while count > 1 and taken(count, NARROWEST) > width:
        count -= 1
    widest = max(widths, default=0)
    while widest > 1 and taken(count, widest) > width:
        widest -= 1
    return count, widest


def _cut(cell: str, widest: int) -> str:
    text = Text(cell)
    text.truncate(widest, overflow="ellipsis")
    return text.plain


def _one_line(cell: str) -> str:
    return "".join(repr(letter)[1:-1] if category(letter) in LINE_BREAKERS else letter for letter in cell)


def _enough(cells: Sequence[Sequence[str]]) -> int:
    """A width in which no cell is cut: every column as wide as its longest cell, and the space between them."""
    return sum(max(cell_len(cell) for cell in column) + PADDING for column in zip(*cells, strict=True)) + PADDING
