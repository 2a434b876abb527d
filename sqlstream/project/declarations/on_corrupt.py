"""The key `on_corrupt` of a source table: its checks, and the stream and model of a quarantine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.columns import Schema, fields_of
from sqlstream.project.configuration.config import ConfigPatch
from sqlstream.project.configuration.documents import SourceColumn
from sqlstream.project.configuration.folder_config import FolderConfig
from sqlstream.project.configuration.properties import NO_PROPERTIES, Properties
from sqlstream.project.configuration.resources import written_config
from sqlstream.project.formats.formats import format_of
from sqlstream.project.messages.message_format import DEBEZIUM
from sqlstream.project.types.data_types import Primitive
from sqlstream.project.values import ModelFile, SourceTable
from sqlstream.project.wording import did_you_mean, quoted
from sqlstream.project.yaml import Located

CORRUPT_SUFFIX = "__corrupt"
"""The suffix of the names of a table of corrupt records and of the model that writes them."""

CORRUPT_OPTION = "columnNameOfCorruptRecord"
CORRUPT_COLUMN = "_corrupt_record"
"""The column for corrupt records that Spark fills if the schema declares it, unless the option names another."""

INHERITED_CONFIG = ("trigger", "retries", "pool", "tags", "meta")
"""The keys of the configuration of all models that also apply to the model of a quarantine: how a query runs."""


def _column(name: str, data_type: str, description: str) -> SourceColumn:
    return SourceColumn(name=name, data_type=data_type, description=description)


_QUARANTINED_AT = _column("quarantined_at", "timestamp", "The start time of the batch that found it")
CORRUPT_COLUMNS = (
    _column("record", "string", "The record as it is in the file"),
    _column("file", "string", "The file of the record"),
    _column("reason", "string", "Why it is corrupt"),
    _QUARANTINED_AT,
)
"""The columns of a table of corrupt records."""

CORRUPT_MESSAGE_COLUMNS = (
    _column("key", "binary", "The key of the message"),
    _column("value", "binary", "The value of the message"),
    _column("topic", "string", "The topic"),
    _column("partition", "int", "The partition"),
    _column("offset", "bigint", "The offset in the partition"),
    _column("timestamp", "timestamp", "The timestamp of the message"),
    _column("reason", "string", "Why it is corrupt"),
    _QUARANTINED_AT,
)
"""The columns of a table of corrupt messages of a Kafka source."""


def on_corrupt_problems(table: SourceTable) -> Iterator[Finding]:
    """Yields the errors in `on_corrupt` and `quarantine_sink` of `table` that the table alone shows."""
    if table.quarantine_sink is not None and table.on_corrupt != "quarantine":
        yield _problem(
            table,
            "quarantine_sink",
            "has a quarantine_sink but no on_corrupt: quarantine",
            "the sink receives the corrupt records only with on_corrupt: quarantine",
            "add on_corrupt: quarantine, or remove quarantine_sink",
        )
    if table.on_corrupt is None:
        return
    if table.format == "kafka" and table.messages is None:
        yield _problem(
            table,
            "on_corrupt",
            "sets on_corrupt but no value_format",
            "without value_format the values are bytes, which sqlstream does not parse",
            "for example, add `value_format: json` and the columns of the values, or remove `on_corrupt`",
        )
        return
    if not format_of(table.format).is_parsed and table.messages is None:
        yield _problem(
            table,
            "on_corrupt",
            f"sets on_corrupt, but its format is {quoted(table.format)}",
            "Spark parses single records only for json, csv, xml, and the values of kafka",
            "remove `on_corrupt`; to parse text, use from_json or try_cast in a model",
        )
        return
    if table.messages is None:
        yield from _conflicts(table)
    if table.on_corrupt == "quarantine":
        yield from _quarantine_problems(table)


def time_problems(table: SourceTable) -> Iterator[Finding]:
    """Yields the errors in `timestamp_unit` and `max_event_time` of `table`."""
    parsed = table.messages.value_format if table.messages is not None else table.format
    if table.timestamp_unit is not None and parsed != "json":
        yield _problem(
            table,
            "timestamp_unit",
            f"sets timestamp_unit, but its records are not JSON but {quoted(parsed)}",
            "only in JSON can a timestamp be a number",
            "remove `timestamp_unit`; for Debezium, set timeUnit in value_options",
        )
    if table.max_event_time is None:
        return
    has_records = format_of(table.format).is_parsed if table.messages is None else not table.messages.is_plain
    if not has_records or option_of(table, "mode") is not None or captures_corrupt(table):
        yield _problem(
            table,
            "max_event_time",
            "sets max_event_time, but sqlstream does not check its records",
            "it checks records of json, csv, xml and Kafka's value_format, unless options handle corrupt ones",
            "remove `max_event_time`, and filter in front of the watermark: in an upstream model or a subquery in FROM",
        )
    elif event_column(table) is None:
        yield _problem(
            table,
            "max_event_time",
            "sets max_event_time, but its event time is unknown",
            "it has no `watermark`, and not exactly one column of the type timestamp",
            "declare the watermark in the source: `watermark: {column: ..., delay: ...}`",
        )


def required_problems(table: SourceTable) -> Iterator[Finding]:
    """Yields the errors in `required` of columns of `table` that the table alone shows."""
    required = [column for column in table.columns if column.required]
    if not required:
        return
    messages = table.messages
    has_columns = (
        format_of(table.format).is_parsed
        if messages is None
        else not messages.is_plain and messages.value_format != DEBEZIUM
    )
    place = table.locations.get("columns", table.location)
    if not has_columns or option_of(table, "mode") is not None or captures_corrupt(table):
        yield Finding(
            "invalid-value",
            f"source {quoted(table.full_name)} has required columns, but sqlstream does not check its records",
            "it checks records of json, csv, xml and Kafka's value_format (but for debezium, text and raw), unless "
            "options handle corrupt ones",
            "remove `required`, and add the data test `not_null` to the model that reads the source",
            place,
        )
    known = [field.name for field in (fields_of(table.spark_schema) if messages is None else messages.columns)]
    if not known and has_columns:
        yield _problem(
            table,
            "columns",
            "has required columns but no schema",
            "Spark needs the declared columns to find records without them",
            'add `data_type:` to each column, or declare schema:, for example schema: "id bigint, ts timestamp"',
            code="missing-schema",
        )
    for column in required if known else ():
        if column.name.lower() not in map(str.lower, known):
            yield Finding(
                "unknown-column",
                f"the required column {quoted(column.name)} of source {quoted(table.full_name)} is not declared",
                f"the schema has the columns {', '.join(known)}",
                f"correct the name; {did_you_mean(column.name, known)}",
                place,
            )


def required_names(table: SourceTable) -> frozenset[str]:
    """Returns the columns without which a record of `table` is corrupt, in lower case."""
    return frozenset(column.name.lower() for column in table.columns if column.required)


def event_column(table: SourceTable) -> str | None:
    """Returns the column that `max_event_time` is about: that of the watermark, or else the only timestamp. None
    without the key, or if there is no such column.
    """
    whole = table.corrupt_of or table
    if whole.max_event_time is None:
        return None
    if whole.watermark is not None:
        return whole.watermark.column
    fields = whole.messages.columns if whole.messages is not None else fields_of(whole.spark_schema)
    times = [field.name for field in fields if field.type == Primitive("timestamp")]
    return times[0] if len(times) == 1 else None


def _conflicts(table: SourceTable) -> Iterator[Finding]:
    """Yields the errors in other keys of a table with `on_corrupt`."""
    sets_both = f"sets both on_corrupt: {table.on_corrupt} and"
    why = "both define how to handle corrupt records"
    if option_of(table, "mode") is not None:
        yield _problem(table, "options.mode", f"{sets_both} the option mode", why, "remove one of them")
    if captures_corrupt(table):
        fix = "remove `on_corrupt`, or the column and its option"
        yield _problem(table, "on_corrupt", f"{sets_both} a column for corrupt records", why, fix)
    if table.on_corrupt != "fail" and not _declares_types(table):
        yield _problem(
            table,
            "on_corrupt",
            f"sets on_corrupt: {table.on_corrupt} but has no schema",
            "Spark needs the declared columns to detect corrupt records",
            'declare columns: or schema:, for example schema: "id bigint, ts timestamp"',
            code="missing-schema",
        )


def _quarantine_problems(table: SourceTable) -> Iterator[Finding]:
    if table.quarantine_sink is None:
        yield _problem(
            table,
            "on_corrupt",
            "sets on_corrupt: quarantine but no quarantine_sink",
            "a separate query writes the corrupt records to a sink",
            "add quarantine_sink: with the name of a sink in sinks.yml, or use on_corrupt: drop",
            code="missing-key",
        )
    if table.mode == "batch":
        yield _problem(
            table,
            "on_corrupt",
            "sets both on_corrupt: quarantine and mode: batch",
            "each run would quarantine the records of a static table again, so only streams can use it",
            "use on_corrupt: drop, or remove `mode: batch`",
        )
    clean = option_of(table, "cleanSource")
    if clean is not None and str(table.options[clean]).lower() != "off":
        yield _problem(
            table,
            f"options.{clean}",
            "sets both on_corrupt: quarantine and the option cleanSource",
            "two queries read the files, and one could remove files that the other has not read",
            "use cleanSource: off, or on_corrupt: drop",
        )


def _problem(table: SourceTable, key: str, problem: str, why: str, fix: str, code: str = "invalid-value") -> Finding:
    """The finding at `key` of the table, in any letter case."""
    written = next((place for place in table.locations if place.lower() == key.lower()), key)
    place = table.locations.get(written, table.locations.get("on_corrupt", table.location))
    return Finding(code, f"source `{table.full_name}` {problem}", why, fix, place)


def option_of(table: SourceTable, name: str) -> str | None:
    """Returns the name of the option `name` as the table spells it, None without the option."""
    return next((key for key in table.options if key.lower() == name.lower()), None)


def captures_corrupt(table: SourceTable, default: str = CORRUPT_COLUMN) -> bool:
    """Returns whether the models of the project handle corrupt records: an option names a column for them, or the
    schema declares the column `default`.
    """
    if option_of(table, CORRUPT_OPTION) is not None:
        return True
    return any(field.name.lower() == default.lower() for field in fields_of(table.spark_schema))


def corrupt_table(table: SourceTable) -> SourceTable | None:
    """Returns the stream of the corrupt records of `table`, None if it has no quarantine."""
    if table.on_corrupt != "quarantine":
        return None
    place = table.locations["on_corrupt"]
    columns = CORRUPT_COLUMNS if table.messages is None else CORRUPT_MESSAGE_COLUMNS
    ddl = ", ".join(f"`{column.name}` {column.data_type}" for column in columns)
    return table.model_copy(
        update={
            "name": table.name + CORRUPT_SUFFIX,
            "spark_schema": Schema(place, ddl=ddl),
            "watermark": None,
            "columns": columns,
            "description": f"The records of {table.full_name} that cannot be parsed.",
            "location": place,
            "corrupt_of": table,
            "freshness": None,
            "previous_name": table.previous_name and table.previous_name + CORRUPT_SUFFIX,
        }
    )


def declared_sources(sources: Sequence[SourceTable]) -> tuple[SourceTable, ...]:
    """Returns the tables that the YAML declares, without the streams of corrupt records."""
    return tuple(table for table in sources if table.corrupt_of is None)


def quarantine_models(
    sources: Sequence[SourceTable], folders: FolderConfig, properties: Mapping[str, Properties]
) -> tuple[ModelFile, ...]:
    """Returns a model for each stream of corrupt records among `sources`, which writes it to the table's sink.

    Of the configuration of all models, only `INHERITED_CONFIG` applies to it. Properties can set more.
    """
    return tuple(
        _quarantine_model(table, table.corrupt_of, folders, properties.get(quarantine_name(table), NO_PROPERTIES))
        for table in sources
        if table.corrupt_of is not None
    )


def quarantine_name(table: SourceTable) -> str:
    """Returns the name of the model that writes `table`, a stream of corrupt records."""
    return f"{table.source}__{table.name}"


def quarantine_names(sources: Sequence[SourceTable]) -> Mapping[str, Location]:
    """Returns the names of all such models, with the locations of their `on_corrupt`."""
    return {quarantine_name(table): table.location for table in sources if table.corrupt_of is not None}


def _quarantine_model(
    table: SourceTable, whole: SourceTable, folders: FolderConfig, properties: Properties
) -> ModelFile:
    name = quarantine_name(table)
    place = whole.locations.get("quarantine_sink", table.location)
    sink = {"sink": Located(whole.quarantine_sink, place)}
    if table.previous_name is not None:
        sink["previous_name"] = Located(table.previous_name.replace(".", "__", 1), place)
    configs = (*map(_inherited, folders.patches_for((), name)), sink, properties.config)
    written = (*map(_inherited, folders.written_for((), name)), sink, properties.written)
    columns = ", ".join(column.name for column in table.columns)
    return ModelFile(
        name=name,
        path=f"{table.location.path}/{name}.sql",  # as in dbt for nodes that YAML declares
        text=f"select {columns}\nfrom {{{{ source('{table.source}', '{table.name}') }}}}\n",
        folders=(),
        description=properties.description or table.description,
        columns=table.columns,
        configs=configs,
        properties_location=properties.location,
        written=written_config(*written),
        declared_at=table.location,
    )


def _inherited(patch: ConfigPatch) -> ConfigPatch:
    return {key: located for key, located in patch.items() if key in INHERITED_CONFIG}


def _declares_types(table: SourceTable) -> bool:
    """Whether there is a schema, or an invalid one, which is another finding."""
    return bool(table.locations.keys() & {"schema", "schema_file"}) or any(column.data_type for column in table.columns)
