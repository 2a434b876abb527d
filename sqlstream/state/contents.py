"""What decides the rows of a query's inputs, beside the columns that they declare."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.digest import digest
from sqlstream.compiler.graph import seed_id
from sqlstream.compiler.sql.sql_text import read_sql
from sqlstream.compiler.sql.tokens import SqlTokenError, Token, TokenKind
from sqlstream.project.declarations.on_corrupt import required_names
from sqlstream.project.declarations.schema_changes import CSV
from sqlstream.project.declarations.seeds import SeedContent, seed_content
from sqlstream.project.files.paths import plain_path
from sqlstream.project.formats.formats import FORMATS
from sqlstream.project.types.data_types import Field, Struct
from sqlstream.project.types.ddl import TypeSyntaxError, parse_schema
from sqlstream.project.values import SourceTable
from sqlstream.state.ledger import QueryIdentity, SourceUse
from sqlstream.state.readers import PYTHON, SERVERS
from sqlstream.state.signature.harmless import ISOLATION, is_harmless_option, was_harmless_option
from sqlstream.state.signature.signature import shown_source
from sqlstream.state.spark_settings import is_credential, without_credentials

SHOWN_ROWS = 6
"""The most changed rows of a seed to show."""


def contents_of(
    compiled: CompiledProject, model: CompiledModel, uses: tuple[SourceUse, ...]
) -> Iterator[tuple[str, str, str]]:
    """Yields the name of each input of a query, and its format and options; of static ones also the path or the
    checksum. The third is the end of this text that an earlier sqlstream left out. Passwords are left out, and secrets
    are shown as the names of their variables.
    """
    by_name = {table.full_name: table for table in compiled.tables_of(model.unique_id)}
    for use in uses:
        if use.table in by_name:
            yield shown_source(use.name), *_table_text(by_name[use.table])
    for table in by_name.values():
        if table.mode != "stream":
            yield table.full_name, *_table_text(table)
    upstream = compiled.upstream(model.unique_id)
    for seed in compiled.project.seeds:
        if seed_id(compiled.project.name, seed.name) in upstream:
            added = "" if seed.delimiter == "," else f" and delimiter {seed.delimiter!r}"
            yield seed.name, f"seed with checksum {seed.checksum}{added}", added


def seeds_of(compiled: CompiledProject, model: CompiledModel) -> Iterator[tuple[str, SeedContent]]:
    """Yields the name of each seed of a query, and its rows."""
    upstream, project = compiled.upstream(model.unique_id), compiled.project
    for seed in project.seeds:
        if seed_id(project.name, seed.name) in upstream:
            content = seed_content(project.root, seed.path, seed.delimiter, seed.checksum)
            if content is not None:
                yield seed.name, content


def read_seed_columns(seed: SeedContent, parts: Sequence[CompiledModel]) -> tuple[str, ...]:
    """Returns the columns of a seed that a query of these models can read, which is not less than what it reads: those
    whose names are anywhere in its SQL, and all if it takes columns without their names.
    """
    texts = [part.sql.lower() for part in parts]
    if any(part.file.is_python or _takes_unnamed(part.sql) for part in parts):
        return tuple(seed.columns)
    # SQL writes a backtick in a name twice, so its text does not have such a name as it is.
    return tuple(name for name in seed.columns if "`" in name or any(name.lower() in text for text in texts))


_UNNAMED = frozenset({"NATURAL", "PIVOT", "UNPIVOT", "TABLE", "IDENTIFIER", "DESCRIBE", "|>"})
"""Words after which SQL can take columns that it does not name."""


def _takes_unnamed(sql: str) -> bool:
    """Returns whether SQL takes columns by `*`, other than in `count(*)` and multiplications, or in another way without
    their names: by the names of an alias (`codes as c(x, y)`), or all of them in a query without SELECT (`from codes`).
    """
    try:
        text = read_sql(sql)
    except SqlTokenError:
        return True
    tokens = text.tokens
    if any(each.select is None or (each.names_columns and not each.is_cte) for each in text.relations):
        return True
    for index, token in enumerate(tokens):
        if token.key in _UNNAMED or (token.kind is TokenKind.QUOTED and not _PLAIN_NAME.fullmatch(token.name)):
            return True
        if token.key != "*":
            continue
        before, after = (tokens[at] if 0 <= at < len(tokens) else None for at in (index - 1, index + 1))
        is_count = index > 1 and before is not None and before.key == "(" and tokens[index - 2].key == "COUNT"
        if not is_count and not (_ends_operand(before) and _starts_operand(after)):
            return True
    return False


_PLAIN_NAME = re.compile(r"[\w. -]+")
"""A quoted name that Spark cannot read as a pattern of names (spark.sql.parser.quotedRegexColumnNames)."""

_BEFORE_STAR = frozenset({"SELECT", "DISTINCT", "ALL", "BY", "AS", "ON", "WHERE", "AND", "OR", "NOT", "MAP", "REDUCE"})
_AFTER_STAR = frozenset({"FROM", "EXCEPT", "REPLACE", "RENAME", "ILIKE", "LIKE", "WHERE", "UNION", "GROUP", "ORDER"})


def _ends_operand(token: Token | None) -> bool:
    if token is None or token.key in _BEFORE_STAR:
        return False
    return token.key in (")", "]") or token.is_name or token.kind in (TokenKind.NUMBER, TokenKind.STRING)


def _starts_operand(token: Token | None) -> bool:
    if token is None or token.key in _AFTER_STAR:
        return False
    return token.key in ("(", "-", "+") or token.is_name or token.kind in (TokenKind.NUMBER, TokenKind.STRING)


def same_seed(old: QueryIdentity, new: QueryIdentity, name: str) -> bool:
    """Returns whether a seed is known to have the same rows in the columns that either query can read."""
    before, after = old.seeds.get(name), new.seeds.get(name)
    if before is None or after is None or before.count != after.count:
        return False
    if name not in old.seed_columns or name not in new.seed_columns:
        return False
    read = {*old.seed_columns[name], *new.seed_columns[name]}
    # Different defaults, so that a column that neither has counts as changed.
    return all(before.columns.get(column, "") == after.columns.get(column) for column in read)


def seed_difference(old: QueryIdentity, new: QueryIdentity, name: str) -> tuple[str, str] | None:
    """Returns what a seed had before and has now, in words; one of them can be empty. None if a ledger does not say."""
    before, after = old.seeds.get(name), new.seeds.get(name)
    if before is None or after is None:
        return None
    if list(before.columns) != list(after.columns):
        return f"the columns {', '.join(before.columns)}", f"the columns {', '.join(after.columns)}"
    if before.rows is None or after.rows is None:
        changed = ", ".join(column for column, digest in after.columns.items() if before.columns[column] != digest)
        return f"{before.count} rows", f"{after.count} rows with other values of {changed}"
    removed, added = Counter(before.rows) - Counter(after.rows), Counter(after.rows) - Counter(before.rows)
    if not removed and not added:
        return _rows(before.rows), f"{_rows(after.rows)}, in another order"
    return _rows(list(removed.elements())), _rows(list(added.elements()))


def _rows(rows: Sequence[Sequence[str | None]]) -> str:
    texts = [f"({', '.join('null' if value is None else value for value in row)})" for row in rows]
    more = [f"and {len(texts) - SHOWN_ROWS} more rows"] if len(texts) > SHOWN_ROWS else []
    return ", ".join([*texts[:SHOWN_ROWS], *more])


def static_paths(compiled: CompiledProject, model: CompiledModel) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yields the name of each static table that has a path, and the path: as written, and in its normal form."""
    for table in compiled.tables_of(model.unique_id):
        if table.mode != "stream" and table.path is not None:
            yield table.full_name, (table.path, plain_path(str(compiled.project.root), table.path))


def schemas_of(compiled: CompiledProject, model: CompiledModel) -> Iterator[tuple[str, str]]:
    """Yields the name of each input of a query that declares columns, and the columns with their types. Schemas of Avro
    decide more than types: also their digests are there, with the name of the input, a space, and `key` or `value`.
    """
    for table in compiled.tables_of(model.unique_id):
        if table.spark_schema is not None:
            yield table.full_name, table.spark_schema.ddl or table.spark_schema.json or ""
        parts = {"key": table.messages.key_avro, "value": table.messages.avro} if table.messages else {}
        for part, avro in parts.items():
            if avro is not None:
                yield f"{table.full_name} {part}", digest(_without_words(json.loads(avro.reader)))
    upstream = compiled.upstream(model.unique_id)
    for seed in compiled.project.seeds:
        if seed.columns and seed_id(compiled.project.name, seed.name) in upstream:
            yield seed.name, ", ".join(f"{column.name} {column.data_type}" for column in seed.columns)


def _without_words(schema: object) -> object:
    """Returns an Avro schema without its documentation."""
    if isinstance(schema, dict):
        return tuple((key, _without_words(value)) for key, value in sorted(schema.items()) if key != "doc")
    return tuple(map(_without_words, schema)) if isinstance(schema, list) else schema


def reads_by_position(identity: QueryIdentity, table: str) -> bool:
    """Returns whether Spark finds the columns of an input by their position in each row, not by their names."""
    uses = (shown_source(use.name) for use in identity.sources if use.table == table)
    texts = (identity.contents.get(name, "") for name in (table, *uses))
    # The text begins with the format, then those of keys and values in messages: see `_table_text`.
    return any("csv" in text.split()[:3] and f"{_COLUMNS} {_BY_NAME}" not in text for text in texts)


_COLUMNS, _BY_NAME = "columns", "by name"
"""What the text of a CSV table with `schema_changes` says: without it, columns are found by their position."""


def numbers_as_text(identity: QueryIdentity) -> frozenset[str]:
    """Returns the inputs of a query, as signatures name them, whose numbers may be texts: all but those of formats that
    store a float as such.
    """
    formats = {name: text.partition(" ")[0] for name, text in identity.contents.items()}
    names = (shown_source(use.name) for use in identity.sources)
    return frozenset(name for name in names if formats.get(name) not in _BINARY)


_BINARY = frozenset({"parquet", "orc", "avro", "delta", "iceberg"})


def earlier_names(old: QueryIdentity, new: QueryIdentity) -> dict[str, dict[str, str]]:
    """Returns the names that columns of inputs had in `old`, by the input as signatures name it and the name in `new`,
    for inputs whose columns are read by their position and have changed. A column at a new position has no earlier
    name, and is marked. Raises: ValueError if the columns before cannot be read.
    """
    found = {}
    for use in new.sources:
        then, now = old.schemas.get(use.table), new.schemas.get(use.table)
        if then is None or now is None or then == now or not reads_by_position(new, use.table):
            continue
        before, after = ([field.name for field in _fields(ddl)] for ddl in (then, now))
        padded = [*before, *(f"{name} (new)" for name in after[len(before) :])]
        found[shown_source(use.name)] = dict(zip(after, padded, strict=False))
    return found


def _fields(ddl: str) -> tuple[Field, ...]:
    try:
        schema = parse_schema(ddl)
    except TypeSyntaxError as error:
        raise ValueError(f"the columns are unknown: {error}") from error
    if not isinstance(schema, Struct):
        raise ValueError("the columns are unknown")  # noqa: TRY004 - the text is wrong, not its type
    return schema.fields


def _table_text(table: SourceTable) -> tuple[str, str]:
    """Returns what decides the rows of a table, and the end of it that an earlier sqlstream left out."""
    is_static = table.mode != "stream"
    options = {**table.options, **(table.messages.options if table.messages else {})}
    required = ", ".join(sorted(required_names(table))) or None
    keys = {
        "timestamp_unit": table.timestamp_unit,
        "max_event_time": table.max_event_time,
        "required": required,
        _COLUMNS: _BY_NAME if table.format == CSV and table.schema_changes is not None else None,
    }
    options |= {key: value for key, value in keys.items() if value is not None}
    counted = [name for name in sorted(options) if _counts(name, table.format, is_static=is_static)]
    added = [name for name in counted if name.lower() == ISOLATION or was_harmless_option(name)]
    formats = " ".join(table.messages.formats.values()) if table.messages else ""
    # Where a stream reads is in its `SourceUse`: Spark can continue at some other places.
    place = (table.table or table.python or table.path or "") if is_static else ""
    known = [name for name in counted if name not in added]
    texts = []
    for names in (known, [*known, *added]):
        shown = ", ".join(f"{name} {_option(name, options[name])}" for name in names)
        texts.append(" ".join(part for part in (table.format, formats, place, shown) if part))
    return texts[1], texts[1].removeprefix(texts[0])


def _counts(option: str, format_name: str, *, is_static: bool) -> bool:
    """Returns whether an option can decide the rows of a table. Of a source in Python, or of a format that sqlstream
    does not know, each option can.
    """
    if is_credential(option):
        return False
    is_unknown = is_static and (format_name == PYTHON or format_name not in FORMATS)
    return is_unknown or not is_harmless_option(option, static=is_static)


def _option(name: str, value: object) -> str:
    """Returns the value of an option as text, in quotes if it could be taken for other options."""
    text = without_credentials(str(value))
    # The order of brokers has no meaning.
    if name.lower() == SERVERS:
        text = ",".join(sorted(each.strip() for each in text.split(",")))
    return repr(text) if ", " in text else text
