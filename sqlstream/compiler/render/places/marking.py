"""The environment that adds marks to the output of templates."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jinja2 import nodes

from sqlstream.compiler.render.places.markers import BEGIN, END, MARK, TEXT, number_of, numbered, without_marks
from sqlstream.compiler.render.sandbox.budget import RenderLimits
from sqlstream.compiler.render.sandbox.environment import TemplateEnvironment
from sqlstream.compiler.render.sandbox.generator import BoundedGenerator, start_of
from sqlstream.location import Location

UNAFFECTED = frozenset({"upper", "lower", "replace", "join", "indent", "string", "format", "map", "list", "trim"})
"""Filters, and methods of text, for which marks make no difference. All others get the text without marks."""

STORING_METHODS = frozenset({"append", "insert", "extend", "update"})
"""Methods of collections that only store their arguments."""

MARKED_LIMITS = RenderLimits(steps=10_000_000, output_characters=100_000_000, value_size=20_000_000)
"""Marks need space. The first rendering, without marks, has shown that the template stays within its limits."""

LINE = re.compile(r"[^\n]*\n|[^\n]+")

CONTENT = re.compile(r"[^\s\U0010f800-\U0010f87f](.*[^\s\U0010f800-\U0010f87f])?", re.DOTALL)
"""Text from its first to its last character that is neither white space nor part of a mark."""


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
    """Renders like its base class, with marks. Operations that look into text, such as comparisons, see it without
    marks.
    """

    code_generator_class = MarkingGenerator

    def __init__(self) -> None:
        super().__init__(MARKED_LIMITS)
        self._marks: list[tuple[str, int]] = []
        self._plain_trim = self.filters["trim"]
        self.filters["trim"] = self._trim

    def new_mark(self, path: str, offset: int) -> int:
        """Returns the number of a new mark for a place."""
        self._marks.append((path, offset))
        return len(self._marks) - 1

    def place_of(self, number: int) -> Location:
        """Returns the location of a mark's number."""
        return self.location(*self._marks[number])

    def marked_output(self, number: int, value: object) -> str:
        """Returns the output of `{{ value }}`, with marks around it unless it is empty."""
        text = self.output(value)
        return numbered(BEGIN, number) + text + END if text else ""

    def plain(self, value: Any, operation: str = "") -> Any:
        """Returns text without marks, unless the operation treats both the same."""
        return without_marks(value) if isinstance(value, str) and operation not in UNAFFECTED else value

    def plain_call(self, method: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """Returns a method and its arguments without marks, unless it treats marked text the same."""
        owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
        if isinstance(owner, str) and name not in UNAFFECTED:
            method = getattr(without_marks(owner), name)
        if name in STORING_METHODS or (isinstance(owner, str) and name in UNAFFECTED):
            return method, args
        return method, tuple(self.plain(argument) for argument in args)

    def _trim(self, value: Any, chars: str | None = None) -> object:
        if chars is not None or not isinstance(value, str):
            return self._plain_trim(self.plain(value), chars)
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
