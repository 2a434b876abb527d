"""Finds models, seeds and sources that a query reads without ref() or source(), and tables that cannot exist.

A bare name is not part of the graph. Spark finds no table with that name, or the view that another model of the same
query registered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sqlstream.compiler.graph import NodeNames
from sqlstream.compiler.sql.clauses import at
from sqlstream.compiler.sql.edits import SqlProblem
from sqlstream.compiler.sql.relations import SqlRelation
from sqlstream.compiler.sql.sql_text import SqlText, view_name
from sqlstream.compiler.sql.tokens import Tokens
from sqlstream.errors import Severity
from sqlstream.project.configuration.target import Target
from sqlstream.project.formats.formats import format_of
from sqlstream.project.values import Project
from sqlstream.project.wording import nearest, quoted

WAREHOUSE = "spark.sql.warehouse.dir"
"""The setting for the folder of tables, which can outlast a run."""

CONFIGURED_ELSEWHERE = ("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME")
"""Environment variables through which Spark can find a catalog that the target does not configure."""


@dataclass(frozen=True)
class Spellings:
    """The ref() or source() call for each input of a project, by the name that SQL would use, in lower case.

    A source table has up to three such names: `source.table`, the name of its view, and `table` if it is unique. With
    `has_catalog`, Spark can know other tables, so a bare name is only a warning. Without `may_have_tables`, no table
    exists except the inputs.
    """

    calls: Mapping[str, str]
    has_catalog: bool
    may_have_tables: bool = True


def spellings_in(project: Project, names: NodeNames, env: Mapping[str, str]) -> Spellings:
    """Returns the spellings of the inputs of `project`."""
    has_catalog = _has_catalog(project.target)
    return spellings_of(names, has_catalog=has_catalog, may_have_tables=has_catalog or _may_have_tables(project, env))


def _has_catalog(target: Target) -> bool:
    """Whether Spark can have tables before sqlstream starts it. On one machine it starts with an empty catalog."""
    named = any(key.startswith(("spark.sql.catalog", "spark.sql.extensions")) for key in target.spark)
    return named or target.remote is not None or not target.is_local


def _may_have_tables(project: Project, env: Mapping[str, str]) -> bool:
    """Whether a query of the project can create tables or views, or Spark is configured outside the project."""
    formats = {sink.format for sink in project.sinks} | {table.format for table in project.sources}
    return (
        any(format_of(name).may_make_tables for name in formats)
        or any(model.is_python for model in project.models)
        or WAREHOUSE in project.target.spark
        or any(name in env for name in CONFIGURED_ELSEWHERE)
    )


def spellings_of(names: NodeNames, *, has_catalog: bool, may_have_tables: bool = True) -> Spellings:
    """Returns the spellings of all inputs in `names`."""
    calls: dict[str, str] = {}
    for source, table in names.sources:
        call = f"{{{{ source('{source}', '{table}') }}}}"
        calls[f"{source}.{table}".lower()] = calls[view_name((source, table)).lower()] = call
        calls.setdefault(table.lower(), call)
    calls |= {name.lower(): f"{{{{ ref('{name}') }}}}" for name in names.nodes}
    return Spellings(calls, has_catalog, may_have_tables)


def bare_names(text: SqlText, views: Collection[str]) -> tuple[tuple[int, str], ...]:
    """Returns the offset and the name of each relation that is neither a CTE nor in `views`.

    `views` are the views that the model reads with ref() and source().
    """
    read = {view.lower() for view in views}
    named = [
        _dotted_name(text.tokens, text.starts[relation.name_start], relation)
        for relation in text.relations
        if relation.name is not None and not relation.is_cte
    ]
    return tuple((offset, name) for offset, name in named if name.lower() not in read)


def _dotted_name(tokens: Tokens, last: int, relation: SqlRelation) -> tuple[int, str]:
    """Returns the offset and the full name of a relation. The token at `last` is the last part of the name."""
    first, parts = last, [tokens[last].name]
    while relation.is_qualified and at(tokens, first - 1).key == ".":
        first -= 2
        parts.insert(0, at(tokens, first).name)
    return at(tokens, first).start, ".".join(parts)


def bare_name_problems(names: Iterable[tuple[int, str]], model: str, known: Spellings) -> list[SqlProblem]:
    """Returns a problem for each of the bare `names` in the SQL of `model` that is an input or cannot exist."""
    severity = Severity.WARNING if known.has_catalog else Severity.ERROR
    explained = [(offset, _explained(name, model, known)) for offset, name in names]
    return [SqlProblem(offset, "missing-ref", *texts, severity) for offset, texts in explained if texts is not None]


def _explained(name: str, model: str, known: Spellings) -> tuple[str, str, str] | None:
    """Returns the message, reason and fix for a bare name; None if it may be a table or a file."""
    call = known.calls.get(name.lower())
    if call is not None and name.lower() == model.lower():
        return (
            f"`{model}` reads itself",
            "a stream cannot read its own output, so a model can depend only on its upstream models",
            "read its input instead; to read the data of a sink, declare it as a source",
        )
    if call is not None:
        why = "Spark knows only the inputs that a model names with ref() and source()"
        return f"`{name}` is read without ref() or source()", why, f"use {call}"
    if known.may_have_tables or "." in name:  # json.`in/orders` names a file
        return None
    meant = " or ".join(dict.fromkeys(known.calls[near] for near in nearest(name, known.calls)))
    return (
        f"table {quoted(name)} does not exist",
        "the target starts Spark without tables, so a model can read only what ref() and source() name",
        f"did you mean {meant}?" if meant else "use {{ ref('MODEL') }} or {{ source('SOURCE', 'TABLE') }}",
    )
