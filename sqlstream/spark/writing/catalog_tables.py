"""Reads and replaces tables of Spark's catalog to which queries write."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import count

from pyspark.sql import SparkSession

from sqlstream.project.formats.format import TIME_PARSER
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.reading.type_text import type_text
from sqlstream.state.layout import beside_table
from sqlstream.state.ledger import OutputColumn

_PART = re.compile(r"`(?:[^`]|``)+`|[^.`]+")
"""One part of a qualified table name."""

_SETTING = re.compile(r"(\w+)=")
"""The name of an option in the catalog's description of a table: `[timestampFormat=yyyy, sep=;]`."""


def table_provider(session: SparkSession, name: str) -> str | None:
    """Returns the format of the table `name`, None if the table does not exist or its catalog does not report it.

    Spark writes to an existing table only with the table's own format. Raises: Spark's errors.
    """
    return _described(session, name).get("Provider")


def table_options(session: SparkSession, name: str, given: Collection[str]) -> dict[str, str]:
    """Returns the options with which files of the table `name` keep all values, without those that the table itself or
    the sink sets: `given`, names in any letter case. Raises: Spark's errors.
    """
    described = _described(session, name)
    own = _SETTING.findall(described.get("Storage Properties", ""))
    known = {option.lower() for option in (*own, *given)}
    defaults = format_of(described.get("Provider", "").lower()).writer_options({}, session.conf.get(TIME_PARSER) or "")
    return {option: value for option, value in defaults.items() if option.lower() not in known}


def table_folder(session: SparkSession, name: str) -> str | None:
    """Returns the URI of the folder of the table `name`, None if the table does not exist or its format has its own
    list of files. Raises: Spark's errors.
    """
    described = _described(session, name)
    return described.get("Location") if format_of(described.get("Provider", "").lower()).writes_files else None


def _described(session: SparkSession, name: str) -> dict[str, str]:
    """Returns the catalog's description of a table, empty if it does not exist."""
    if not session.catalog.tableExists(name):
        return {}
    rows = session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    # details come after the columns, so a column named `Provider` does not hide the format
    return {str(row["col_name"]): str(row["data_type"]) for row in rows}


def table_columns(session: SparkSession, name: str) -> tuple[str, tuple[OutputColumn, ...]] | None:
    """Returns the format and the columns of the table `name`, None if it does not exist or its catalog does not report
    its format. Raises: Spark's errors.
    """
    provider = table_provider(session, name)
    if provider is None:
        return None
    schema = session.table(name).schema
    return provider.lower(), tuple(OutputColumn(field.name, type_text(field.dataType)) for field in schema)


def replace_table(session: SparkSession, complete: str, name: str) -> str | None:
    """Renames the table `complete` to `name`, and an earlier table of that name to `<name>_archive_1`, `_2` and so on.

    Returns the new name of the earlier table, None if there was none. Raises: Spark's errors.
    """
    # Spark renames no table over an existing one
    archived = None
    if session.catalog.tableExists(name):
        names = (beside_table(name, f"archive_{number}") for number in count(1))
        archived = next(free for free in names if not session.catalog.tableExists(free))
        _rename(session, name, archived)
    _rename(session, complete, name)
    return archived


def _rename(session: SparkSession, name: str, new_name: str) -> None:
    """Renames within the schema, with the last part of the new name, which all catalogs accept."""
    session.sql(f"ALTER TABLE {name} RENAME TO {_PART.findall(new_name)[-1]}")
