"""Models, seeds and sources that a query names without ref() or source(), and tables that cannot exist.

Such a name is no part of the graph: its view is not registered for the query, so Spark finds no table of that name, or
finds the view that another model of the same query happens to have left behind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sqlstream.compiler.graph import NodeNames
from sqlstream.compiler.sql.clauses import at
from sqlstream.compiler.sql.names import view_name
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.compiler.sql.relations import SqlRelation
from sqlstream.compiler.sql.sql_text import SqlText
from sqlstream.compiler.sql.tokens import Tokens
from sqlstream.errors import Severity
from sqlstream.project.formats.formats import format_of
from sqlstream.project.nearest import nearest
from sqlstream.project.values import Project, Target
from sqlstream.project.wording import quoted

WAREHOUSE = "spark.sql.warehouse.dir"
"""A folder of tables that may outlast a run."""

CONFIGURED_ELSEWHERE = ("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME")
"""Environment variables by which Spark may find a catalog that the target does not name."""


@dataclass(frozen=True)
class Spellings:
    """How each input of a project is written in a template, by the name that SQL would use, in lower case.

    A source's table has three of those: `source.table`, its view's name and, where no other input has it, `table`.
    With `has_catalog` Spark may know tables of its own, one of which may be meant: a bare name is only a warning then.
    Without `may_have_tables` there are none but the inputs, neither from before nor from the project's own queries.
    """

    calls: Mapping[str, str]
    has_catalog: bool
    may_have_tables: bool = True


def spellings_in(project: Project, names: NodeNames, env: Mapping[str, str]) -> Spellings:
    """Returns how the inputs of `project`, which `names` knows, are written."""
    has_catalog = _has_catalog(project.target)
    return spellings_of(names, has_catalog=has_catalog, may_have_tables=has_catalog or _may_have_tables(project, env))


def _has_catalog(target: Target) -> bool:
    """Whether tables may exist in Spark before sqlstream starts it: on one machine it starts with an empty catalog."""
    named = any(key.startswith(("spark.sql.catalog", "spark.sql.extensions")) for key in target.spark)
    return named or target.remote is not None or not target.is_local


def _may_have_tables(project: Project, env: Mapping[str, str]) -> bool:
    """Whether a query of the project may make tables or views, or Spark may be configured elsewhere."""
    formats = {sink.format for sink in project.sinks} | {table.format for table in project.sources}
    return (
        any(format_of(name).may_make_tables for name in formats)
        or any(model.is_python for model in project.models)
        or WAREHOUSE in project.target.spark
        or any(name in env for name in CONFIGURED_ELSEWHERE)
    )


def spellings_of(names: NodeNames, *, has_catalog: bool, may_have_tables: bool = True) -> Spellings:
    """Returns how the inputs that `names` knows are written."""
    calls: dict[str, str] = {}
    for source, table in names.sources:
        call = f"{{{{ source('{source}', '{table}') }}}}"
        calls[f"{source}.{table}".lower()] = calls[view_name((source, table)).lower()] = call
        calls.setdefault(table.lower(), call)
    calls |= {name.lower(): f"{{{{ ref('{name}') }}}}" for name in names.nodes}
    return Spellings(calls, has_catalog, may_have_tables)


def bare_names(text: SqlText, views: Collection[str]) -> tuple[tuple[int, str], ...]:
    """Returns the offset and the name of each relation of the SQL that is neither a CTE nor one of `views`.

    `views` are the views that the model reads by ref() and source().
    """
    read = {view.lower() for view in views}
    named = [
        _written(text.tokens, text.starts[relation.name_start], relation)
        for relation in text.relations
        if relation.name is not None and not relation.is_cte
    ]
    return tuple((offset, name) for offset, name in named if name.lower() not in read)


def bare_name_problems(names: Iterable[tuple[int, str]], model: str, known: Spellings) -> list[SqlProblem]:
    """Returns a problem for each of the bare `names` in the SQL of `model` that is that of an input, or of no table."""
    problems: list[SqlProblem] = []
    for offset, name in names:
        if name.lower() in known.calls:
            problems.append(_problem(offset, name, model, known))
        elif not known.may_have_tables and "." not in name:  # others may name a file, as in json.`in/orders`
            problems.append(_no_table(offset, name, known))
    return problems


def _no_table(offset: int, name: str, known: Spellings) -> SqlProblem:
    close = [known.calls[call] for call in nearest(name, known.calls)]
    meant = " or ".join(dict.fromkeys(close))
    return SqlProblem(
        offset,
        "missing-ref",
        f"table {quoted(name)} does not exist",
        "the target starts Spark without tables, so a model can read only what ref() and source() name",
        f"did you mean {meant}?" if meant else "use {{ ref('MODEL') }} or {{ source('SOURCE', 'TABLE') }}",
    )


def _written(tokens: Tokens, last: int, relation: SqlRelation) -> tuple[int, str]:
    """Returns the offset and the whole dotted name of a relation, whose last part is the token at `last`."""
    first, parts = last, [tokens[last].name]
    while relation.is_qualified and at(tokens, first - 1).key == ".":
        first -= 2
        parts.insert(0, at(tokens, first).name)
    return at(tokens, first).start, ".".join(parts)


def _problem(offset: int, name: str, model: str, known: Spellings) -> SqlProblem:
    severity = Severity.WARNING if known.has_catalog else Severity.ERROR
    if name.lower() == model.lower():
        return SqlProblem(
            offset,
            "missing-ref",
            f"`{model}` reads itself",
            "a stream cannot read its own output, so a model can depend only on its upstream models",
            "read its input instead; to read the data of a sink, declare it as a source",
            severity,
        )
    return SqlProblem(
        offset,
        "missing-ref",
        f"`{name}` is read without ref() or source()",
        "Spark knows only the inputs that a model names with ref() and source()",
        f"use {known.calls[name.lower()]}",
        severity,
    )
