"""Plain-text tables, drawn by rich."""

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
"""The Unicode categories of control characters and of line and paragraph separators."""
PADDING = 3
"""The maximal space between two columns, in terminal cells."""
NARROWEST = 12
"""The minimal width of a cut column, in terminal cells: enough for a date."""

LINE_WIDTH = 88
"""The position of `[RUN]`, `[SUCCESS]` and so on, so that they form a column."""


def table_text(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Returns a table as text. Columns with the indexes in `right` are aligned to the right.

    Each row is one line. Control characters are escaped, and cells are neither cut nor wrapped, so that paths can be
    copied.
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
    """Returns `table_text` cut to `width` terminal cells (None: uncut), and the names of the columns that do not fit.

    The widest columns are cut first, with `…` at the end, to at least `NARROWEST` cells.
    """
    cells = [[_one_line(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    count, widest = _room(widths, width)
    cut = [[_cut(cell, widest) for cell in row[:count]] for row in cells]
    if not cut[0]:
        return "", tuple(header)
    return table_text(cut[0], cut[1:], [at for at in right if at < count]), tuple(cells[0][count:])


def _room(widths: Sequence[int], width: int | None) -> tuple[int, int]:
    """Returns how many columns fit into `width`, and the maximal width of a column."""
    if width is None:
        return len(widths), max(widths, default=0)

    def total(count: int, widest: int) -> int:
        return sum(min(each, widest) for each in widths[:count]) + PADDING * (count - 1)

    count = len(widths)
    while count > 1 and total(count, NARROWEST) > width:
        count -= 1
    widest = max(widths, default=0)
    while widest > 1 and total(count, widest) > width:
        widest -= 1
    return count, widest


def _cut(cell: str, widest: int) -> str:
    text = Text(cell)
    text.truncate(widest, overflow="ellipsis")
    return text.plain


def _one_line(cell: str) -> str:
    return "".join(repr(letter)[1:-1] if category(letter) in LINE_BREAKERS else letter for letter in cell)


def _enough(cells: Sequence[Sequence[str]]) -> int:
    """Returns a width in which no cell is cut: the longest cell of each column, and the space between columns."""
    return sum(max(cell_len(cell) for cell in column) + PADDING for column in zip(*cells, strict=True)) + PADDING


def node_line(index: int, total: int, what: str, end: str) -> str:
    """Returns the line of a node, in dbt's style: `1 of 3 START stream orders ..... [RUN]`."""
    start = f"{index} of {total} {what} "
    return f"{start.ljust(LINE_WIDTH, '.')} [{end}]" if len(start) < LINE_WIDTH else f"{start}[{end}]"
