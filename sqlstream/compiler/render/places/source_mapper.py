"""Maps rendered SQL back to templates by a second rendering with marks, only when a finding needs it."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cached_property

from sqlstream.compiler.render.model_functions import model_names
from sqlstream.compiler.render.places.marking import MARKED_LIMITS, MarkingEnvironment, read_marks
from sqlstream.compiler.render.running import load_macros, render_file
from sqlstream.compiler.render.sandbox.environment import RenderState
from sqlstream.compiler.render.sandbox.source import TemplateSource
from sqlstream.compiler.render.values import RenderedModel, RenderOptions
from sqlstream.errors import FindingsError
from sqlstream.location import Location, Place, Segment, SourceMap
from sqlstream.project.values import MacroFile

MOST_LINES = 5_000
"""Lines of SQL that are compared: difflib's time grows with their square in the worst case."""


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
        text, segments = read_marks(marked, self._environment.place_of, rendered.file.location)
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
