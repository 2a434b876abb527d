"""What is wrong with a name, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlstream.compiler.flow.columns import Where
from sqlstream.compiler.flow.scope import Ambiguous, Missing, Resolved
from sqlstream.compiler.flow.spark_functions import ALL
from sqlstream.compiler.intervals import NEGATIVE, NO_DELAY
from sqlstream.compiler.problem import SqlProblem
from sqlstream.project.nearest import did_you_mean, nearest
from sqlstream.project.types import Array, Struct
from sqlstream.project.wording import quoted, quoted_list

METADATA = "_metadata"
"""The hidden column of Spark's file sources, which a view does not hand on."""


def name_problem(found: Missing | Ambiguous, parts: tuple[str, ...], offset: int) -> SqlProblem:
    """Returns the problem of a name that means nothing, or several things."""
    if isinstance(found, Ambiguous):
        return _ambiguous(found, ".".join(parts), offset)
    if found.relation is not None:
        name, relation = parts[1], quoted(found.relation.name or "")
        what, why = f"{quoted(name)} is not a column of {relation}", f"{relation} has"
    else:
        name = parts[0]
        what = f"{quoted(name)} is {'neither a relation nor' if len(parts) > 1 else 'not'} a column here"
        why = "the columns here are"
    if name.lower() == METADATA:
        return _metadata_problem(what, offset)
    listed = f"{why} {quoted_list(found.candidates, most=20)}" if found.candidates else "no relation is read here"
    return SqlProblem(offset, "unknown-column", what, listed, did_you_mean(name, found.candidates))


def _metadata_problem(what: str, offset: int) -> SqlProblem:
    return SqlProblem(
        offset,
        "unknown-column",
        what,
        "models read a source as a view, which has the columns that are declared and no hidden ones",
        "use input_file_name() for the path of a row's file",
    )


def _ambiguous(found: Ambiguous, written: str, offset: int) -> SqlProblem:
    names = list(dict.fromkeys(found.relations))
    own = [name for name in names if name and found.relations.count(name) == 1]
    fix = f"write for example {quoted(f'{own[0]}.{written}')}" if own else "give the columns names of their own with AS"
    shown = [quoted(name) if name else "a relation without a name" for name in names]
    what, why = f"{quoted(written)} is a column of more than one relation", "have a column of that name"
    if len(names) == 1:
        what, why = f"{quoted(written)} is the name of more than one column", "has several of that name"
    return SqlProblem(offset, "ambiguous-column", what, f"{' and '.join(shown)} {why}", fix)


def field_problem(found: Resolved, offset: int) -> SqlProblem | None:
    """Returns the problem of the first field that its struct does not have; None where all is well or not known."""
    kind, path = found.column.type, found.column.name
    for name in found.fields:
        struct = kind.element if isinstance(kind, Array) else kind
        if not isinstance(struct, Struct):
            return None
        field = struct.field(name)
        if field is None:
            names = [item.name for item in struct.fields]
            why = f"its fields are {quoted_list(names, most=20)}"
            return SqlProblem(
                offset, "unknown-field", f"{quoted(path)} has no field {quoted(name)}", why, did_you_mean(name, names)
            )
        kind, path = field.type, f"{path}.{name}"
    return None


def function_problem(name: str, offset: int, own: Iterable[str] = ()) -> SqlProblem:
    """Returns the problem of a function that neither Spark nor the project, whose functions are `own`, has."""
    close = nearest(name, [*own, *sorted(ALL)])
    return SqlProblem(
        offset,
        "unknown-function",
        f"{quoted(name)} is not a function of Spark's",
        "the target adds no packages, jars or extensions that could bring it",
        f"did you mean {' or '.join(map(quoted, close))}?" if close else "Spark's SQL reference lists its functions",
    )


def grouping_problem(written: str, keys: Sequence[str], offset: int) -> SqlProblem:
    """Returns the problem of a column that an aggregation neither groups by nor aggregates."""
    why = f"it groups by {quoted_list(keys)}" if keys else "it has no GROUP BY, so it gives one row for all"
    return SqlProblem(
        offset,
        "not-grouped",
        f"{quoted(written)} is neither grouped by nor in an aggregate function",
        f"{why}; which of the many values would stand there is not said",
        f"add {quoted(written)} to GROUP BY, or take one value: any_value({written}), max({written})",
    )


def stage_problem(keyword: str, offset: int) -> SqlProblem:
    """Returns the problem of a stage of pipe syntax that Spark does not have."""
    return SqlProblem(
        offset,
        "sql-syntax",
        f"pipe syntax has no {keyword}",
        "the stages of Spark's pipe syntax are SELECT, EXTEND, SET, DROP, AS, WHERE, AGGREGATE, JOIN, ORDER BY, LIMIT, "
        "OFFSET, UNION, PIVOT, UNPIVOT and TABLESAMPLE",
        "use |> EXTEND explode(...) AS name, or |> JOIN LATERAL explode(...) AS t(name)",
    )


def version_problem(offset: int) -> SqlProblem:
    """Returns the problem of a relation that is read as of a time or a version and is a view."""
    return SqlProblem(
        offset,
        "time-travel",
        "this relation cannot be read as of a version or a time",
        "sources, seeds, models and CTEs are views to Spark, and a view has no versions",
        "give the version to the source's reader, in its options: where the format has versions, it has an option",
    )


def variant_key_problem(written: str, where: Where) -> SqlProblem:
    """Returns the problem of a key of GROUP BY that holds a VARIANT."""
    return SqlProblem(
        where.offset,
        "type-mismatch",
        f"{quoted(written)} holds a VARIANT, by which rows cannot be grouped",
        "values of VARIANT have no equality",
        f"group by a part of it, for example {written}:name::string, or by to_json({written})",
    )


def negative_delay(delay: str, offset: int) -> SqlProblem:
    """Returns the problem of a watermark clause whose delay is negative."""
    return SqlProblem(offset, "misplaced-watermark", f"the delay {quoted(delay)} is negative", NEGATIVE, NO_DELAY)
