"""The names of temp views, and identifiers in Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

RESERVED_WORDS = frozenset(
    """
    all and anti any array as asc at authorization between both by case cast check cluster collate column constraint
    create cross cube current current_date current_time current_timestamp current_user delete desc describe distinct
    distribute drop else end escape except exists explain extract false fetch filter for foreign from full function
    grant group grouping having in inner insert intersect interval into is join lateral leading left like limit local
    map merge minus natural no not null of offset on only or order outer overlaps partition pivot position primary
    qualify range recursive references revoke right rollup row rows select semi session_user set setminus some sort
    sql start stream struct table tablesample then time to trailing transform true truncate union unique unknown
    unpivot update user using values watermark when where window with within
    """.split()  # noqa: SIM905 - a list of a hundred words in quotes cannot be read
)
"""Words that need back-quotes as the name of a relation: the strict non-reserved words and the ANSI reserved words of
https://spark.apache.org/docs/latest/sql-ref-ansi-compliance.html, and those that begin a clause."""


def view_name(parts: Sequence[str]) -> str:
    """Returns the unquoted name of a temp view: that of the model or seed, or `source__table` for a source table."""
    return "__".join(parts)


def quote_identifier(name: str, *, always: bool = False) -> str:
    """Returns `name` as one identifier in Spark SQL: in back-quotes if it needs them, or if `always`."""
    if not always and PLAIN_NAME.fullmatch(name) and name.lower() not in RESERVED_WORDS:
        return name
    return "`" + name.replace("`", "``") + "`"
