"""What is wrong with a name, in words."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.compiler.flow.scope import Ambiguous, Missing, Resolved
from sqlstream.compiler.flow.spark_functions import ALL
from sqlstream.compiler.problem import SqlProblem
from sqlstream.project.nearest import did_you_mean, nearest
from sqlstream.project.types import Array, Struct
from sqlstream.project.wording import quoted, quoted_list


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
    listed = f"{why} {quoted_list(found.candidates, most=20)}" if found.candidates else "no relation is read here"
    return SqlProblem(offset, "unknown-column", what, listed, did_you_mean(name, found.candidates))


def _ambiguous(found: Ambiguous, written: str, offset: int) -> SqlProblem:
    return SqlProblem(
        offset,
        "ambiguous-column",
        f"{quoted(written)} is a column of more than one relation",
        f"{quoted_list(found.relations)} have a column of that name",
        f"write for example {quoted(f'{found.relations[0]}.{written}')}",
    )


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


def function_problem(name: str, offset: int) -> SqlProblem:
    """Returns the problem of a function that Spark does not have."""
    close = nearest(name, sorted(ALL))
    return SqlProblem(
        offset,
        "unknown-function",
        f"{quoted(name)} is not a function of Spark's",
        "the target adds no packages, jars or extensions that could bring it",
        f"did you mean {' or '.join(map(quoted, close))}?" if close else "Spark's SQL reference lists its functions",
    )


def count_problem(left: int, right: int, offset: int) -> SqlProblem:
    """Returns the problem of a set operation whose queries differ in their number of columns."""
    return SqlProblem(
        offset,
        "column-count",
        f"the first query has {left} columns and this one has {right}",
        "UNION, EXCEPT and INTERSECT put the columns of their queries one below the other",
        "select the same columns in both; null as name stands for one that is missing",
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
