"""The trees of all models of a project, each built once, parents first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.flow.build import Builder
from sqlstream.compiler.flow.expressions import Text
from sqlstream.compiler.flow.inputs import seed_node, source_node
from sqlstream.compiler.flow.nodes import Node, View
from sqlstream.compiler.node_ids import seed_id, source_id
from sqlstream.compiler.parse import ParsedSql, parse_sql
from sqlstream.compiler.problem import SqlProblem
from sqlstream.project.values import Project, Target


@dataclass(frozen=True)
class Analysis:
    """What is known of one model without Spark: its operators, what is wrong with names in its own text, and whether
    sqlglot could read it.
    """

    node: Node
    problems: tuple[SqlProblem, ...]
    is_read: bool


CHANGES_SPARK = (
    "spark.sql.ansi.",
    "spark.sql.caseSensitive",
    "spark.sql.legacy.",
    "spark.sql.parser.",
    "spark.sql.streaming.statefulOperator.",
    "spark.sql.streaming.unsupportedOperationCheck",
    "spark.sql.timestampType",
)
"""Settings, or what their names begin with, that change what Spark accepts or how it reads a name or a type."""


def is_judged(target: Target) -> bool:
    """Returns whether Spark behaves on `target` as it does by default, so that it can be foretold."""
    return not any(name.startswith(CHANGES_SPARK) for name in target.spark)


def analyse_models(project: Project, models: Mapping[str, CompiledModel]) -> dict[str, Analysis]:
    """Returns the analysis of each of `models`, which are in the order of the graph, by unique id."""
    nodes: dict[str, Node] = {
        source_id(project.name, table): source_node(project.name, table) for table in project.sources
    }
    nodes |= {seed_id(project.name, seed.name): seed_node(project.name, seed) for seed in project.seeds}
    found: dict[str, Analysis] = {}
    knows = _knows_functions(project.target)
    for unique_id, model in models.items():
        views = {read.view.lower(): nodes[read.node_id] for read in model.reads if read.node_id in nodes}
        found[unique_id] = analysis = _analyse(model, views, knows_functions=knows)
        here = analysis.node.where
        nodes[unique_id] = View(where=here, columns=analysis.node.columns, children=(analysis.node,))
    return found


def _knows_functions(target: Target) -> bool:
    """Whether Spark has no functions but its own: packages, jars, extensions and catalogs bring others."""
    brings = ("spark.jars", "spark.sql.extensions", "spark.sql.catalog", "spark.submit", "spark.driver.extra")
    return not target.packages and not any(name.startswith(brings) for name in target.spark) and target.remote is None


def _analyse(model: CompiledModel, views: Mapping[str, Node], *, knows_functions: bool) -> Analysis:
    parsed = parse_sql(model.sql)
    builder = Builder(Text(model.unique_id, model.sql), parsed, knows_functions)
    try:
        node = builder.build(views)
    except RecursionError:  # hundreds of queries put together by UNION are too deep to follow, and no fault
        builder = replace(builder, parsed=ParsedSql(None), problems=[])
        node = builder.build(views)
    return Analysis(node, tuple(dict.fromkeys(builder.problems)), builder.parsed.tree is not None)
