"""Tables of Spark's catalog that a query writes into."""

from __future__ import annotations

import re
from itertools import count

from pyspark.sql import SparkSession

from sqlstream.project.formats.formats import format_of
from sqlstream.spark.reading.type_text import type_text
from sqlstream.state.layout import beside_table
from sqlstream.state.ledger import OutputColumn

_PART = re.compile(r"`(?:[^`]|``)+`|[^.`]+")
"""A part of a table's name."""


def table_provider(session: SparkSession, name: str) -> str | None:
    """Returns the format of the table `name`, None where there is no such table or its catalog does not say.

    Spark writes into a table that is there only when it is told the table's own format. Raises: Spark's errors.
    """
    return _described(session, name).get("Provider")


def table_folder(session: SparkSession, name: str) -> str | None:
    """Returns the URI of the folder that holds the files of the table `name`, None where there is no such table or its
    format keeps its own account of its files. Raises: Spark's errors.
    """
    described = _described(session, name)
    return described.get("Location") if format_of(described.get("Provider", "").lower()).writes_files else None


def _described(session: SparkSession, name: str) -> dict[str, str]:
    """What the catalog says of a table, nothing where there is no such table."""
    if not session.catalog.tableExists(name):
        return {}
    rows = session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    return {str(row["col_name"]): str(row["data_type"]) for row in rows}


def table_columns(session: SparkSession, name: str) -> tuple[str, tuple[OutputColumn, ...]] | None:
    """Returns the format and the columns of the table `name`, None where there is no such table or its catalog does not
    say its format. Raises: Spark's errors.
    """
    provider = table_provider(session, name)
    if provider is None:
        return None
    schema = session.table(name).schema
    return provider.lower(), tuple(OutputColumn(field.name, type_text(field.dataType)) for field in schema)


def replace_table(session: SparkSession, complete: str, name: str) -> str | None:
    """Gives the table `complete` the name `name`, and the table that had it `<name>_archive_1`, `_2` and so on.

    Returns the name that the earlier table has now, None where there was none. Raises: Spark's errors.
    """
    archived = None
    if session.catalog.tableExists(name):
        names = (beside_table(name, f"archive_{number}") for number in count(1))
        archived = next(free for free in names if not session.catalog.tableExists(free))
        _rename(session, name, archived)
    _rename(session, complete, name)
    return archived


def _rename(session: SparkSession, name: str, new_name: str) -> None:
    """All catalogs take the last part of the new name for one in the schema of the old one, and some nothing else."""
    session.sql(f"ALTER TABLE {name} RENAME TO {_PART.findall(new_name)[-1]}")
