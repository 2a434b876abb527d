"""Models' templates to SQL."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.compiler.render.model_functions import model_names, names_of_model
from sqlstream.compiler.render.places.source import TemplateSource
from sqlstream.compiler.render.places.source_mapper import SourceMapper
from sqlstream.compiler.render.plain_templates import read_plain, run_plain
from sqlstream.compiler.render.sandbox.environment import TemplateEnvironment
from sqlstream.compiler.render.sandbox.macros import load_macros, override_macros
from sqlstream.compiler.render.sandbox.running import render_file
from sqlstream.compiler.render.sandbox.state import RenderState
from sqlstream.compiler.render.values import MacroIndex, RenderedModel, RenderOptions
from sqlstream.errors import Finding
from sqlstream.location import SourceMap
from sqlstream.project.values import MacroFile, ModelFile


class ModelRenderer:
    """Renders the models of one project, one at a time; made once, since the macros are compiled only then.

    `macro_findings` is what is wrong with the macro files. Not for several threads.
    """

    def __init__(self, macros: Sequence[MacroFile], options: RenderOptions) -> None:
        self._environment = TemplateEnvironment()
        self._environment.names.update(model_names(self._environment, options))
        self.macro_findings: tuple[Finding, ...] = load_macros(self._environment, macros)
        override_macros(self._environment, options.macros)
        self._mapper = SourceMapper(macros, options)

    @property
    def macro_index(self) -> MacroIndex:
        """What is known of the macro files."""
        return self._environment.macro_index

    def render(self, file: ModelFile) -> RenderedModel:
        """Returns the model's SQL and what its template said. Raises: FindingsError with the first failure."""
        sql, state = self._plain(file) or self._by_jinja(file)
        return RenderedModel(
            file,
            sql,
            tuple(state.references),
            state.config,
            tuple(state.findings),
            tuple(state.macros_used),
            state.reads,
            tuple(state.logged),
        )

    def _by_jinja(self, file: ModelFile, logged: Sequence[tuple[str, bool]] = ()) -> tuple[str, RenderState]:
        """The output and the effects of a template; what was `logged` at a first attempt is not logged again."""
        state = RenderState(self._environment.limits, file)
        state.quiet = bool(logged)
        sql = render_file(self._environment, file, state)
        state.logged = state.logged or list(logged)
        return sql, state

    def _plain(self, file: ModelFile) -> tuple[str, RenderState] | None:
        """The output and the effects of a plain template; None where it is not one."""
        template = read_plain(TemplateSource(file.path, file.text))
        if template is None:
            return None
        self._environment.names.update(names_of_model(file))
        state = self._environment.state = RenderState(self._environment.limits, file)
        try:
            return run_plain(self._environment, template), state
        except Exception:  # Jinja finds it too, and says where
            return self._by_jinja(file, state.logged)

    def source_map(self, rendered: RenderedModel) -> SourceMap:
        """Returns the way back from `rendered.sql` to the lines that it was written on.

        The first call for a model renders its template a second time, with marks: it is meant for findings.
        """
        return self._mapper.source_map(rendered)
