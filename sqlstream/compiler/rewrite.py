"""From rendered SQL to the very text that Spark runs, with the smallest edits: watermark hints become Spark's clause,
and the second reference to a stream within one text gets a name of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlstream.compiler.bare_names import Spellings, bare_name_problems
from sqlstream.compiler.compiled import Read
from sqlstream.compiler.edits import Edit, EditedText, apply_edits
from sqlstream.compiler.hints import ignored_hints
from sqlstream.compiler.node_ids import view_of
from sqlstream.compiler.problem import SqlProblem
from sqlstream.compiler.render.model import ModelRenderer
from sqlstream.compiler.render.values import RenderedModel
from sqlstream.compiler.second_references import name_second_references
from sqlstream.compiler.sql_text import SqlText, read_sql
from sqlstream.compiler.statement import statement_problem
from sqlstream.compiler.tokens import SqlTokenError
from sqlstream.compiler.watermarks import place_watermarks
from sqlstream.errors import Finding
from sqlstream.location import Place


@dataclass(frozen=True)
class Inputs:
    """What the models of a project may read: how each input is written, and the nodes that stream."""

    spellings: Spellings
    streaming: frozenset[str]


@dataclass(frozen=True)
class Rewritten:
    """The text that runs, its way back to the rendered one, and the views it reads in order of first appearance."""

    text: EditedText
    reads: tuple[Read, ...]
    findings: tuple[Finding, ...]


def rewrite_model(
    rendered: RenderedModel, renderer: ModelRenderer, parents: Sequence[str], inputs: Inputs
) -> Rewritten:
    """Returns the rewritten SQL of one model whose parents are `parents`."""
    views = {view_of(node): node for node in parents}
    try:
        text = read_sql(rendered.sql)
    except SqlTokenError as error:
        reads = tuple(Read(view, node) for view, node in views.items())
        finding = _finding(_unreadable(error, rendered), rendered, renderer)
        return Rewritten(apply_edits(rendered.sql, ()), reads, (finding,))
    marks, problems = place_watermarks(text)
    renames, reads = _name_reads(text, views, inputs)
    problems += _other_problems(rendered, text, views, inputs)
    findings = [_finding(problem, rendered, renderer) for problem in problems]
    return Rewritten(apply_edits(rendered.sql, (*marks, *renames)), reads, (*_clash(parents, rendered), *findings))


def _other_problems(
    rendered: RenderedModel, text: SqlText, views: Mapping[str, str], inputs: Inputs
) -> tuple[SqlProblem, ...]:
    statement = statement_problem(text.tokens, rendered.file.name)
    if statement is not None:
        return (statement,)
    names = bare_name_problems(text, rendered.file.name, views, inputs.spellings)
    return (*ignored_hints(text.sql, text.tokens), *names)


def _name_reads(text: SqlText, views: Mapping[str, str], inputs: Inputs) -> tuple[tuple[Edit, ...], tuple[Read, ...]]:
    """Returns the edits that name second references, and all views that the edited text reads."""
    repeated = frozenset(view for view, node in views.items() if node in inputs.streaming)
    renames, occurrences = name_second_references(text, repeated, views)
    reads = {found.name_in_text: Read(found.name_in_text, views[found.view]) for found in occurrences}
    for view, node in views.items():
        reads.setdefault(view, Read(view, node))
    return renames, tuple(reads.values())


def _unreadable(error: SqlTokenError, rendered: RenderedModel) -> SqlProblem:
    message = f"the SQL of `{rendered.file.name}` cannot be read"
    return SqlProblem(error.offset, "sql-syntax", message, error.message, "close what is left open")


def _clash(parents: Sequence[str], rendered: RenderedModel) -> tuple[Finding, ...]:
    """The finding for two different inputs of one model whose views Spark could not tell apart.

    Inputs of different models may share a view's name: each text is analysed with its own inputs' views.
    """
    by_view: dict[str, list[str]] = {}
    for node in parents:
        by_view.setdefault(view_of(node).lower(), []).append(node)
    return tuple(
        Finding(
            "duplicate-name",
            f"`{rendered.file.name}` reads two inputs that would both be the view `{view}`",
            " and ".join(nodes) + " have the same view name, whatever its letters' case",
            "rename one of them",
            rendered.file.location,
        )
        for view, nodes in by_view.items()
        if len(nodes) > 1
    )


def _finding(problem: SqlProblem, rendered: RenderedModel, renderer: ModelRenderer) -> Finding:
    is_blank = not rendered.sql.strip()  # the place of a text that a template left blank is its end
    place = Place(rendered.file.location) if is_blank else renderer.source_map(rendered).locate(problem.offset)
    return problem.at(place)
