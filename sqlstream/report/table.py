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


def _one_line(cell: str) -> str:
    return "".join(repr(letter)[1:-1] if category(letter) in LINE_BREAKERS else letter for letter in cell)


def _enough(cells: Sequence[Sequence[str]]) -> int:
    """A width in which no cell is cut: every column as wide as its longest cell, and the space between them."""
    return sum(max(cell_len(cell) for cell in column) + PADDING for column in zip(*cells, strict=True)) + PADDING
