"""From rendered SQL to the very text that Spark runs, with the smallest edits: watermark hints become Spark's clause,
and the second reference to a stream within one text gets a name of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlstream.compiler.compiled import Read
from sqlstream.compiler.edits import EditedText, apply_edits
from sqlstream.compiler.graph import Names
from sqlstream.compiler.hints import HintProblem
from sqlstream.compiler.render.model import ModelRenderer
from sqlstream.compiler.render.values import RenderedModel
from sqlstream.compiler.second_references import name_second_references
from sqlstream.compiler.tokens import SqlTokenError, tokenize
from sqlstream.compiler.watermarks import place_watermarks
from sqlstream.errors import Finding


@dataclass(frozen=True)
class Rewritten:
    """The text that runs, its way back to the rendered one, and the views it reads in order of first appearance."""

    text: EditedText
    reads: tuple[Read, ...]
    findings: tuple[Finding, ...]


def rewrite_model(
    rendered: RenderedModel, renderer: ModelRenderer, names: Names, parents: Sequence[str], streaming: frozenset[str]
) -> Rewritten:
    """Returns the rewritten SQL of one model whose parents are `parents`; `streaming` are all nodes that stream."""
    views = {view_of(node): node for node in parents}
    clash = _clash(parents, rendered)
    try:
        tokens = tokenize(rendered.sql)
    except SqlTokenError as error:
        place = renderer.source_map(rendered).locate(error.offset)
        finding = Finding(
            "sql-syntax",
            f"the SQL of `{rendered.file.name}` cannot be read",
            error.message,
            "close what is left open",
            place.location,
            calls=place.calls,
        )
        return Rewritten(apply_edits(rendered.sql, ()), _reads(views), (finding,))
    edits, problems = place_watermarks(rendered.sql, tokens)
    taken = {view_of(node) for node in (*names.nodes.values(), *names.sources.values())}
    repeated = frozenset(view for view, node in views.items() if node in streaming)
    renames, occurrences = name_second_references(rendered.sql, tokens, repeated, taken)
    reads = {
        occurrence.name_in_text: Read(occurrence.name_in_text, views[occurrence.view]) for occurrence in occurrences
    }
    for view, node in views.items():
        reads.setdefault(view, Read(view, node))
    findings = tuple(_finding(problem, rendered, renderer) for problem in problems)
    return Rewritten(apply_edits(rendered.sql, (*edits, *renames)), tuple(reads.values()), (*clash, *findings))


def view_of(node_id: str) -> str:
    """Returns the plain (unquoted) name of the temp view of a node."""
    kind, _, *parts = node_id.split(".")
    return "__".join(parts) if kind == "source" else parts[-1]


def _clash(parents: Sequence[str], rendered: RenderedModel) -> tuple[Finding, ...]:
    """The finding for two different inputs of one model whose views Spark could not tell apart."""
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


def _reads(views: dict[str, str]) -> tuple[Read, ...]:
    return tuple(Read(view, node) for view, node in views.items())


def _finding(problem: HintProblem, rendered: RenderedModel, renderer: ModelRenderer) -> Finding:
    place = renderer.source_map(rendered).locate(problem.offset)
    return Finding(
        problem.code, problem.message, problem.why, problem.fix, place.location, problem.severity, place.calls
    )
