"""MariaDB and MySQL: https://mariadb.com/kb/en/insert-on-duplicate-key-update/."""

from __future__ import annotations

from dataclasses import replace

from sqlstream.project.databases.dialect import (
    AS_JSON,
    UNSTORED,
    Dialect,
    Stored,
    add_unique_key,
    digits_of,
    type_family,
)
from sqlstream.project.types.data_types import DataType, Decimal

LONGEST_KEY = 255
"""Characters of a text in a key: an index has at most 3,072 bytes, and a character up to four."""

_EXACT = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
"""The default collations take `a`, `A` and `á` for the same key."""

_TEXTS = frozenset({"longtext", "mediumtext", "text", "varchar", "char", "tinytext", "json"})
_WHOLE = ("tinyint", "smallint", "mediumint", "int", "integer", "bigint", "decimal")
"""The types of whole numbers by size, as the drivers name them."""

_SPARK_QUOTES = "sql_mode='ANSI_QUOTES,STRICT_TRANS_TABLES'"
"""Spark has no dialect for jdbc:mariadb: and quotes names with double quotes, which are for text by default."""

_EPOCH = "TIMESTAMP '1970-01-01 00:00:00'"
_FINITE = "CASE WHEN isnan({0}) OR abs({0}) = double('infinity') THEN null ELSE {0} END"
"""NaN and infinite numbers do not exist in MySQL."""

_TYPES = {
    "boolean": Stored("BOOLEAN", accepts=frozenset({"bit", "tinyint"})),
    "tinyint": Stored("TINYINT", accepts=frozenset(_WHOLE)),
    "smallint": Stored("SMALLINT", accepts=frozenset(_WHOLE[1:])),
    "int": Stored("INT", accepts=frozenset(_WHOLE[3:])),
    "bigint": Stored("BIGINT", accepts=frozenset(_WHOLE[5:])),
    "float": Stored("FLOAT", spark=_FINITE, accepts=frozenset({"float", "double"}), read="CAST({} AS DOUBLE)"),
    "double": Stored("DOUBLE", spark=_FINITE, accepts=frozenset({"double"})),
    **dict.fromkeys(("string", "char", "varchar"), Stored("LONGTEXT", accepts=_TEXTS)),
    "void": Stored("LONGTEXT", spark="cast({} as string)", accepts=_TEXTS),
    "binary": Stored("LONGBLOB", accepts=frozenset({"blob", "mediumblob", "varbinary", "binary"})),
    "date": Stored("DATE"),
    "timestamp": Stored(
        "DATETIME(6)",
        "BIGINT",
        "unix_micros({})",
        f"TIMESTAMPADD(MICROSECOND, {{}}, {_EPOCH})",
        frozenset({"datetime", "timestamp"}),
        read="CONCAT(CAST({} AS CHAR), 'Z')",
    ),
    "timestamp_ntz": Stored(
        "DATETIME(6)",
        "VARCHAR(32)",
        "cast({} as string)",
        "CAST({} AS DATETIME(6))",
        frozenset({"datetime", "timestamp"}),
        read="CAST({} AS CHAR)",
    ),
    "interval": Stored("LONGTEXT", spark="cast({} as string)", accepts=_TEXTS),
    **dict.fromkeys(AS_JSON, Stored("LONGTEXT", spark="to_json({})", accepts=_TEXTS)),
}


def _store(type_: DataType, is_key: bool) -> Stored | None:
    name = type_family(type_)
    if isinstance(type_, Decimal):
        return Stored(
            f"DECIMAL({type_.precision},{type_.scale})", accepts=frozenset({"decimal"}), digits=digits_of(type_)
        )
    stored = None if name in UNSTORED else _TYPES.get(name)
    if not is_key or stored is None or not stored.type.startswith("LONG"):
        return stored
    if name in ("string", "char", "varchar"):
        return replace(stored, type=f"VARCHAR({LONGEST_KEY}) {_EXACT}")
    return None


def _on_conflict(keys: list[str], others: list[str]) -> str:
    # MySQL prefers an alias for the new row to VALUES(), but MariaDB has none; keys alone update nothing
    changes = ", ".join(f"{name} = VALUES({name})" for name in others or keys)
    return f" ON DUPLICATE KEY UPDATE {changes}"


def _delete(table: str, staging: str, keys: list[tuple[str, str]], is_deleted: str) -> str:
    same = " AND ".join(f"t.{key} = {value}" for key, value in keys)
    return f"DELETE t FROM {table} AS t JOIN {staging} AS s ON {same} WHERE s.{is_deleted}"


def _drop_unique(table: str, index: str) -> str:
    return f"ALTER TABLE {table} DROP " + ("PRIMARY KEY" if index == "PRIMARY" else f"INDEX `{index}`")


def _change_type(table: str, column: str, type_: str) -> str:
    return f"ALTER TABLE {table} MODIFY COLUMN {column} {type_}"


def name_parts(table: str) -> tuple[str, str]:
    """Returns the schema and the name of a table as SQL expressions."""
    parts = [part.strip('`"').replace("'", "''") for part in table.split(".")]
    return (f"'{parts[0]}'" if len(parts) > 1 else "DATABASE()"), f"'{parts[-1]}'"


def _unique_columns(table: str) -> str:
    schema, name = name_parts(table)
    return (
        "SELECT index_name, column_name FROM information_schema.statistics "
        f"WHERE table_schema = {schema} AND table_name = {name} AND non_unique = 0"
    )


def _tables_beside(table: str, start: str) -> str:
    schema, _ = name_parts(table)
    return (
        "SELECT table_name FROM information_schema.tables "
        f"WHERE table_schema = {schema} AND LEFT(table_name, {len(start)}) = '{start}'"
    )


MARIADB = Dialect(
    name="mariadb",
    title="MariaDB",
    quote_mark="`",
    store=_store,
    on_conflict=_on_conflict,
    delete=_delete,
    add_key=add_unique_key,
    drop_unique=_drop_unique,
    change_type=_change_type,
    staging="CREATE TABLE",
    insert_new="INSERT IGNORE INTO",
    text="varchar(255)",
    driver="org.mariadb.jdbc.Driver",
    unique_columns=_unique_columns,
    exact="CAST({} AS BINARY)",
    tables_beside=_tables_beside,
    differs="NOT ({} <=> {})",
    session="SET SESSION lock_wait_timeout = 60, innodb_lock_wait_timeout = 60, time_zone = '+00:00'",
    bulk_options={"useBulkStmts": "true", "tcpKeepAlive": "true", "sessionVariables": _SPARK_QUOTES},
    timeouts={"connectTimeout": "10000", "socketTimeout": "20000"},
)

MYSQL = replace(
    MARIADB,
    name="mysql",
    title="MySQL",
    driver="com.mysql.cj.jdbc.Driver",
    bulk_options={"rewriteBatchedStatements": "true", "tcpKeepAlive": "true"},
)
