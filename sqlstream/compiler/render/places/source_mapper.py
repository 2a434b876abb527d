"""Maps rendered SQL back to templates by a second rendering with marks, only when a finding needs it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.compiler.render.model_functions import model_names
from sqlstream.compiler.render.places.alignment import align_lines
from sqlstream.compiler.render.places.markers import read_marks
from sqlstream.compiler.render.places.marking import MARKED_LIMITS, MarkingEnvironment
from sqlstream.compiler.render.places.source import TemplateSource
from sqlstream.compiler.render.sandbox.macros import load_macros
from sqlstream.compiler.render.sandbox.running import render_file
from sqlstream.compiler.render.sandbox.state import RenderState
from sqlstream.compiler.render.values import RenderedModel, RenderOptions
from sqlstream.errors import FindingsError
from sqlstream.location import SourceMap
from sqlstream.project.values import MacroFile


class SourceMapper:
    """Creates and keeps the source maps of one project's models."""

    def __init__(self, macros: Sequence[MacroFile], options: RenderOptions) -> None:
        self._macros = tuple(macros)
        self._options = options
        self._environment: MarkingEnvironment | None = None
        self._maps: dict[str, tuple[RenderedModel, SourceMap]] = {}

    def source_map(self, rendered: RenderedModel) -> SourceMap:
        """Returns the map of `rendered.sql`: exact if marks do not change the text, else line by line."""
        known = self._maps.get(rendered.file.path)
        if known is None or known[0] is not rendered:
            exact = self.exact_map(rendered)
            known = (
                rendered,
                exact or align_lines(rendered.sql, TemplateSource(rendered.file.path, rendered.file.text)),
            )
            self._maps[rendered.file.path] = known
        return known[1]

    def exact_map(self, rendered: RenderedModel) -> SourceMap | None:
        """Returns the map from a rendering with marks, or None if its text differs from the one without."""
        environment = self._marking_environment()
        state = RenderState(MARKED_LIMITS, rendered.file)
        state.quiet = True
        try:
            marked = render_file(environment, rendered.file, state)
        except FindingsError:
            return None
        text, segments = read_marks(marked, environment.place_of, rendered.file.location)
        return SourceMap(segments) if text == rendered.sql else None

    def _marking_environment(self) -> MarkingEnvironment:
        if self._environment is None:
            self._environment = MarkingEnvironment()
            self._environment.names.update(model_names(self._environment, self._options))
            load_macros(self._environment, self._macros)
        return self._environment
