"""PostgreSQL: https://www.postgresql.org/docs/current/sql-insert.html#SQL-ON-CONFLICT and datatype.html."""

from __future__ import annotations

from sqlstream.project.databases.dialect import (
    AS_JSON,
    UNSTORED,
    Dialect,
    Stored,
    add_unique_key,
    digits_of,
    on_conflict,
    type_family,
)
from sqlstream.project.types.data_types import DataType, Decimal

_TEXTS = frozenset({"text", "varchar", "bpchar", "citext", "name"})
_WHOLE = ("int2", "smallserial", "int4", "serial", "int8", "bigserial", "numeric")
"""The types of whole numbers by size, as the driver names them. The serial types are columns with a sequence."""

_TYPES = {
    "boolean": Stored("boolean", accepts=frozenset({"bool"})),
    **dict.fromkeys(("tinyint", "smallint"), Stored("smallint", accepts=frozenset(_WHOLE))),
    "int": Stored("integer", accepts=frozenset(_WHOLE[2:])),
    "bigint": Stored("bigint", accepts=frozenset(_WHOLE[4:])),
    "float": Stored("real", accepts=frozenset({"float4", "float8"})),
    "double": Stored("double precision", accepts=frozenset({"float8"})),
    **dict.fromkeys(("string", "char", "varchar"), Stored("text", accepts=_TEXTS)),
    "void": Stored("text", spark="cast({} as string)", accepts=_TEXTS),
    "binary": Stored("bytea"),
    "date": Stored("date"),
    "timestamp": Stored("timestamptz", read="to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || 'Z'"),
    "timestamp_ntz": Stored("timestamp", read="CAST({} AS text)"),
    "interval": Stored("text", spark="cast({} as string)", accepts=_TEXTS),
    **dict.fromkeys(AS_JSON, Stored("jsonb", "text", "to_json({})", "CAST({} AS jsonb)", _TEXTS | {"json"})),
}


def _store(type_: DataType, _is_key: bool) -> Stored | None:
    name = type_family(type_)
    if isinstance(type_, Decimal):
        return Stored(
            f"numeric({type_.precision},{type_.scale})", accepts=frozenset({"numeric"}), digits=digits_of(type_)
        )
    return None if name in UNSTORED else _TYPES.get(name)


def _delete(table: str, staging: str, keys: list[tuple[str, str]], is_deleted: str) -> str:
    same = " AND ".join(f"t.{key} = {value}" for key, value in keys)
    return f"DELETE FROM {table} AS t USING {staging} AS s WHERE s.{is_deleted} AND {same}"


def _change_type(table: str, column: str, type_: str) -> str:
    return f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {type_}"


def _unique_columns(table: str) -> str:
    name = table.replace("'", "''")
    return (
        "SELECT i.indexrelid::text, a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid "
        f"AND a.attnum = ANY(i.indkey) WHERE i.indrelid = '{name}'::regclass AND i.indisunique "
        "AND i.indpred IS NULL AND i.indexprs IS NULL"
    )


def _tables_beside(table: str, start: str) -> str:
    name = table.replace("'", "''")
    return (
        f"SELECT relname FROM pg_class WHERE relkind = 'r' AND left(relname, {len(start)}) = '{start}' "
        f"AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = '{name}'::regclass)"
    )


POSTGRESQL = Dialect(
    name="postgresql",
    title="PostgreSQL",
    quote_mark='"',
    store=_store,
    on_conflict=on_conflict,
    delete=_delete,
    add_key=add_unique_key,
    change_type=_change_type,
    staging="CREATE UNLOGGED TABLE",
    insert_new="INSERT INTO",
    ignore=" ON CONFLICT DO NOTHING",
    driver="org.postgresql.Driver",
    unique_columns=_unique_columns,
    longest_name=63,
    exact='{} COLLATE "C"',
    tables_beside=_tables_beside,
    session="SET lock_timeout = '60s'",
    bulk_options={"reWriteBatchedInserts": "true", "tcpKeepAlive": "true", "ApplicationName": "sqlstream"},
    timeouts={"connectTimeout": "10", "loginTimeout": "15", "socketTimeout": "20"},
)
