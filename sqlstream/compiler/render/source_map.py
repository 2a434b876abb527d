"""Maps rendered SQL back to templates by a second rendering with marks, only when a finding needs it.

The environment adds the marks, and `read_marks` turns them into locations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jinja2 import nodes

from sqlstream.compiler.render.model_functions import model_names
from sqlstream.compiler.render.rendered import RenderedModel, RenderOptions
from sqlstream.compiler.render.running import load_macros, render_file
from sqlstream.compiler.render.sandbox.bounds import RenderLimits
from sqlstream.compiler.render.sandbox.environment import (
    BoundedGenerator,
    RenderState,
    TemplateEnvironment,
    TemplateSource,
    start_of,
)
from sqlstream.errors import FindingsError
from sqlstream.location import Location, Place, Segment, SourceMap
from sqlstream.project.values import MacroFile

TEXT, BEGIN, END = "\U0010f800", "\U0010f801", "\U0010f802"
"""The kinds of marks: template text follows; an expression's output begins; it ends.

Marks and the digits of their numbers are private-use characters, which no filter changes or treats as a word.
"""

ZERO = 0x10F840
DIGITS = 4
"""A mark's number has four digits to base 64, enough for 16 million locations."""

MARK = re.compile(f"([{TEXT}{BEGIN}])([\U0010f840-\U0010f87f]{{{DIGITS}}})|{END}")

UNAFFECTED = frozenset({"upper", "lower", "replace", "join", "indent", "string", "format", "map", "list", "trim"})
"""Filters, and methods of text, for which marks make no difference. All others get the text without marks."""

STORING_METHODS = frozenset({"append", "insert", "extend", "update"})
"""Methods of collections that only store their arguments."""

MARKED_LIMITS = RenderLimits(steps=10_000_000, output_characters=100_000_000, value_size=20_000_000)
"""Marks need space. The first rendering, without marks, has shown that the template stays within its limits."""

LINE = re.compile(r"[^\n]*\n|[^\n]+")

CONTENT = re.compile(r"[^\s\U0010f800-\U0010f87f](.*[^\s\U0010f800-\U0010f87f])?", re.DOTALL)
"""Text from its first to its last character that is neither white space nor part of a mark."""

MOST_LINES = 5_000
"""Lines of SQL that are compared: difflib's time grows with their square in the worst case."""


def numbered(kind: str, number: int) -> str:
    """Returns the mark of a kind with a number."""
    return kind + "".join(chr(ZERO + (number >> 6 * digit & 63)) for digit in reversed(range(DIGITS)))


def number_of(mark: str) -> int:
    """Returns the number of a mark made by `numbered`."""
    number = 0
    for letter in mark[1:]:
        number = number << 6 | ord(letter) - ZERO
    return number


def read_marks(marked: str, location_of: Callable[[int], Location], start: Location) -> tuple[str, tuple[Segment, ...]]:
    """Returns the text without marks, and its segments. `location_of` returns the location of a mark's number. Unmarked
    text is at `start`.
    """
    pieces: list[str] = []
    segments: list[Segment] = []
    opened: list[Location] = []
    place, linear, length, at = Place(start), False, 0, 0
    for mark in (*MARK.finditer(marked), None):
        piece = marked[at : mark.start() if mark else None]
        # Adjacent pieces of one output have the same place, and share a segment.
        if piece and (linear or not segments or segments[-1].linear or segments[-1].place != place):
            segments.append(Segment(length, place, linear))
        pieces.append(piece)
        length += len(piece)
        if mark is not None:
            at, linear = mark.end(), mark[1] == TEXT
            place = _place_after(mark, location_of, opened) or Place(start)
    return "".join(pieces), tuple(segments) or (Segment(0, Place(start), linear=False),)


def _place_after(mark: re.Match[str], location_of: Callable[[int], Location], opened: list[Location]) -> Place | None:
    """The place of the text after a mark. `opened` are the locations of the open expressions, which it updates."""
    if mark[1] == TEXT:
        return Place(location_of(number_of(mark[0])), tuple(opened))
    if mark[1] == BEGIN:
        opened.append(location_of(number_of(mark[0])))
    else:
        del opened[-1:]
    return Place(opened[-1], tuple(opened[:-1])) if opened else None


class MarkingGenerator(BoundedGenerator):
    """Writes code that emits marks: one at each line of template text, two around each expression's output."""

    if TYPE_CHECKING:
        environment: MarkingEnvironment

    def output_call(self, node: nodes.Node | None) -> str:
        """Returns the start of the call that converts an expression's value to marked text."""
        offset = start_of(node) - 1 if node is not None else 0
        return f"environment.marked_output({self.environment.new_mark(self.name or '', offset)}, "

    def data_text(self, node: nodes.TemplateData) -> str:
        """Returns template text with a mark at the start of each of its lines."""
        lines, offset = [], node.lineno - 1
        for line in LINE.findall(node.data):
            lines.append(numbered(TEXT, self.environment.new_mark(self.name or "", offset)) + line)
            offset += len(line)
        return "".join(lines)


class MarkingEnvironment(TemplateEnvironment):
    """Renders with marks. Operations that look into text, such as comparisons, see it without marks."""

    code_generator_class = MarkingGenerator

    def __init__(self) -> None:
        super().__init__(MARKED_LIMITS)
        self._marks: list[tuple[str, int]] = []
        self._plain_trim = self.filters["trim"]
        self.filters["trim"] = self._trim

    def new_mark(self, path: str, offset: int) -> int:
        """Returns the number of a new mark at an offset of a file."""
        self._marks.append((path, offset))
        return len(self._marks) - 1

    def location_of(self, number: int) -> Location:
        """Returns the location of a mark's number."""
        return self.location(*self._marks[number])

    def marked_output(self, number: int, value: object) -> str:
        """Returns the output of `{{ value }}`, with marks around it unless it is empty."""
        text = self.output(value)
        return numbered(BEGIN, number) + text + END if text else ""

    def plain(self, value: Any, operation: str = "") -> Any:
        """Returns text without marks, unless the operation treats both the same."""
        return MARK.sub("", value) if isinstance(value, str) and operation not in UNAFFECTED else value

    def plain_call(self, method: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """Returns a method and its arguments without marks, unless it treats marked text the same."""
        owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
        if isinstance(owner, str) and name not in UNAFFECTED:
            method = getattr(MARK.sub("", owner), name)
        if name in STORING_METHODS or (isinstance(owner, str) and name in UNAFFECTED):
            return method, args
        return method, tuple(self.plain(argument) for argument in args)

    def _trim(self, value: Any, chars: str | None = None) -> object:
        if chars is not None or not isinstance(value, str):
            return self._plain_trim(self, self.plain(value), chars)
        content = CONTENT.search(value)
        if content is None:
            return ""
        before, after = value[: content.start()], value[content.end() :]
        return self._moved_marks(before) + content[0] + "".join(match[0] for match in MARK.finditer(after))

    def _moved_marks(self, blank: str) -> str:
        """The marks of a stripped beginning. A mark of template text moves by the blanks stripped after it."""
        kept: list[str] = []
        for match in MARK.finditer(blank):
            mark = match[0]
            if mark[0] == TEXT:
                path, offset = self._marks[number_of(mark)]
                following = MARK.search(blank, match.end())
                end = following.start() if following else len(blank)
                mark = numbered(TEXT, self.new_mark(path, offset + end - match.end()))
            kept.append(mark)
        return "".join(kept)


class SourceMapper:
    """Creates and keeps the source maps of one project's models."""

    def __init__(self, macros: Sequence[MacroFile], options: RenderOptions) -> None:
        self._macros = tuple(macros)
        self._options = options
        self._maps: dict[str, tuple[RenderedModel, SourceMap]] = {}

    def source_map(self, rendered: RenderedModel) -> SourceMap:
        """Returns the map of `rendered.sql`: exact if marks do not change the text, else line by line."""
        path = rendered.file.path
        known = self._maps.get(path)
        if known is None or known[0] is not rendered:
            exact = self.exact_map(rendered)
            known = (rendered, exact or align_lines(rendered.sql, TemplateSource(path, rendered.file.text)))
            self._maps[path] = known
        return known[1]

    def exact_map(self, rendered: RenderedModel) -> SourceMap | None:
        """Returns the map from a rendering with marks, or None if its text differs from the one without."""
        state = RenderState(MARKED_LIMITS, rendered.file, quiet=True)
        try:
            marked = render_file(self._environment, rendered.file, state)
        except FindingsError:
            return None
        text, segments = read_marks(marked, self._environment.location_of, rendered.file.location)
        return SourceMap(segments) if text == rendered.sql else None

    @cached_property
    def _environment(self) -> MarkingEnvironment:
        environment = MarkingEnvironment()
        environment.names.update(model_names(environment, self._options))
        load_macros(environment, self._macros)
        return environment


def align_lines(sql: str, source: TemplateSource) -> SourceMap:
    """Returns a map in which each line that is also in the template maps to it, and any other line to the nearest such
    line before it. It serves templates whose output marks would change.
    """
    lines = sql.split("\n")
    matcher = SequenceMatcher(None, lines[:MOST_LINES], source.text.split("\n"), autojunk=False)
    matched = {block.a + at: block.b + at for block in matcher.get_matching_blocks() for at in range(block.size)}
    segments, start, nearest = [], 0, 0
    for index, line in enumerate(lines):
        nearest = matched.get(index, nearest)
        segments.append(Segment(start, Place(Location(source.path, nearest + 1)), linear=index in matched))
        start += len(line) + 1
    return SourceMap(tuple(segments))
