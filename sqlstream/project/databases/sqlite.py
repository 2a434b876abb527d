"""SQLite: https://www.sqlite.org/lang_upsert.html and https://www.sqlite.org/datatype3.html."""

from __future__ import annotations

from sqlstream.project.databases.dialect import AS_JSON, UNSTORED, Dialect, Stored, on_conflict, type_family
from sqlstream.project.types.data_types import DataType, Decimal

EXACT_DIGITS = 15
"""SQLite compares and sorts numbers as 64-bit floats, which keep 15 decimal digits. Longer decimals are text."""

# SQLite's % has the sign of its left side, and times before 1970 are negative.
_MICROS = "((({0} % 1000000) + 1000000) % 1000000)"
_TIME = (
    "strftime('%Y-%m-%dT%H:%M:%S', ({0} - " + _MICROS + ") / 1000000, 'unixepoch') || printf('.%06dZ', " + _MICROS + ")"
)
"""A number of microseconds since 1970 as a time of fixed length, so that text sorts by time."""

_TYPES = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), Stored("INTEGER")),
    "boolean": Stored("BOOLEAN"),
    **dict.fromkeys(("float", "double"), Stored("REAL")),
    **dict.fromkeys(("string", "char", "varchar", "void"), Stored("TEXT", spark="cast({} as string)")),
    "binary": Stored("BLOB"),
    "date": Stored("TEXT", spark="cast({} as string)"),
    "interval": Stored("TEXT", spark="cast({} as string)"),
    "timestamp": Stored("TEXT", "INTEGER", "unix_micros({})", "CASE WHEN {0} IS NOT NULL THEN " + _TIME + " END"),
    "timestamp_ntz": Stored("TEXT", spark="date_format({}, \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\")"),
    **dict.fromkeys(AS_JSON, Stored("TEXT", spark="to_json({})")),
}


def _store(type_: DataType, _is_key: bool) -> Stored | None:
    name = type_family(type_)
    if isinstance(type_, Decimal):
        is_exact = type_.precision <= EXACT_DIGITS
        column = f"DECIMAL({type_.precision},{type_.scale})" if is_exact else "TEXT"
        return Stored(column, "TEXT", "cast({} as string)")
    return None if name in UNSTORED else _TYPES.get(name)


def _delete(table: str, staging: str, keys: list[tuple[str, str]], is_deleted: str) -> str:
    listed, values = ", ".join(key for key, _ in keys), ", ".join(value for _, value in keys)
    return f"DELETE FROM {table} WHERE ({listed}) IN (SELECT {values} FROM {staging} AS s WHERE s.{is_deleted})"


def _add_key(table: str, keys: list[str]) -> str:
    # The name of the index is within the quotes of the table's name.
    return f'CREATE UNIQUE INDEX {table[:-1]}_unique_key" ON {table} ({", ".join(keys)})'


SQLITE = Dialect(
    name="sqlite",
    title="SQLite",
    quote_mark='"',
    store=_store,
    on_conflict=on_conflict,
    delete=_delete,
    add_key=_add_key,
    change_type=None,
    staging="CREATE TEMP TABLE",
    insert_new="INSERT OR IGNORE INTO",
    for_update="",
    exact="{} COLLATE BINARY",
    differs="{} IS NOT {}",
)
