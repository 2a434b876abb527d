"""The table of formats: every fact about a format is in its entry here.

Spark's own packages and Delta Lake provide these formats (`DataSourceRegister` in META-INF/services).
"""

from __future__ import annotations

from dataclasses import replace

from sqlstream.project.formats import option_types as takes
from sqlstream.project.formats.file_options import (
    ALL_DIGITS,
    CSV,
    DELTA,
    FILES,
    ICEBERG,
    JSON,
    JSON_VALUES,
    ORC,
    PARQUET,
    TEXT,
    XML,
    options,
)
from sqlstream.project.formats.format import BATCHES, NEITHER, STREAMS, Format, RequiredOption

_NOT_CONTINUOUS, _NOT_REAL_TIME = frozenset({"continuous", "real_time"}), frozenset({"real_time"})
"""Formats that Spark reads and writes in micro-batches only, and those that real-time mode does not allow."""

_PLACES = frozenset({"geometry", "geography"})
_UNITS = (("year", "month"), ("day", "hour", "minute", "second"))
_INTERVALS = frozenset(
    f"interval {first}" + (f" to {last}" if first != last else "")
    for units in _UNITS
    for at, first in enumerate(units)
    for last in units[at:]
)
_TICKS = "timestamp timestamp, value bigint"

# The file source and sink: append mode only, with a path
# https://spark.apache.org/docs/latest/streaming/apis-on-dataframes-and-datasets.html#output-sinks
# A stream needs a schema:
# https://spark.apache.org/docs/latest/streaming/apis-on-dataframes-and-datasets.html#schema-inference-and-partition-of-streaming-dataframesdatasets
_FILE = Format("", is_file=True, schema="required", refused_triggers=_NOT_CONTINUOUS, replaces_rows=True)
_LAKE = Format(
    "",
    lists_all_options=True,
    refused_triggers=_NOT_CONTINUOUS,
    replaces_rows=True,
    takes_keys=True,
    updates_by_key=True,
    is_table=True,
    needs_fields=True,
)
_KNOWN_FILE = replace(_FILE, options=FILES, lists_all_options=True)

_FORMATS = (
    replace(_FILE, name="avro", layout="typed", connector="avro"),
    replace(
        _KNOWN_FILE,
        name="binaryFile",
        writes=NEITHER,
        schema="extended",
        columns="path string, modificationTime timestamp, length bigint, content binary",
    ),
    Format(
        "console",
        reads=NEITHER,
        counts_rows=True,
        options=options("numRows", takes.COUNT, "sink") | options("truncate", takes.BOOLEAN, "sink"),
        lists_all_options=True,
        replaces_rows=True,
        ignores_partition_by=True,
    ),
    replace(
        _KNOWN_FILE,
        name="csv",
        layout="positional",
        unwritten_types=frozenset({"void", "variant", "interval", "array", "map", "struct"}) | _PLACES,
        file_format_class="csv.CSVFileFormat",
        options=CSV,
        write_defaults=ALL_DIGITS,
    ),
    replace(
        _LAKE,
        name="delta",
        unwritten_types=frozenset({"interval"}) | _PLACES,
        options=DELTA,
        properties=("delta.",),
        name_refuses=" ,;{}()\n\t=",  # InvalidColumnNames of Delta without column mapping
        connector="delta",
    ),
    replace(
        _LAKE,
        name="iceberg",
        unwritten_types=frozenset({"void", "variant", "interval"}) | _PLACES,
        options=ICEBERG,
        properties=("format-version", "write.", "read.", "commit.", "history.", "gc."),
        connector="iceberg",
    ),
    Format("image", writes=NEITHER),
    Format(
        "jdbc",
        reads=BATCHES,
        refused_triggers=_NOT_CONTINUOUS | _NOT_REAL_TIME,
        options={
            **options(
                "cascadeTruncate preferTimestampNTZ pushDownAggregate pushDownLimit pushDownOffset pushDownPredicate "
                "pushDownTableSample refreshKrb5Config truncate",
                takes.BOOLEAN,
            ),
            **options("fetchsize queryTimeout", takes.NATURAL),
            **options("batchsize numPartitions", takes.COUNT),
        },
        required=(RequiredOption("url", "the address of the database", "url: 'jdbc:postgresql://host/shop'"),),
        ignores_partition_by=True,
        takes_keys=True,
        is_database=True,
    ),
    replace(
        _KNOWN_FILE,
        name="json",
        layout="named",
        unwritten_types=frozenset({"interval"}) | _PLACES,
        file_format_class="json.JsonFileFormat",
        options=JSON,
        write_defaults=ALL_DIGITS,
    ),
    Format(
        "kafka",
        schema="fixed",
        columns="key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
        "timestampType int",
        optional_columns=("includeHeaders", "headers array<struct<key: string, value: binary>>"),
        options={  # KafkaSourceProvider
            **options("includeHeaders", takes.BOOLEAN),
            **options("topic", use="sink"),
            **options("groupIdPrefix", use="source"),
            **options("failOnDataLoss", takes.BOOLEAN, "source"),
            **options("assign", takes.ASSIGNMENT, "source"),
            **options("fetchOffset.numRetries minPartitions", takes.COUNT, "source"),
            **options("fetchOffset.retryIntervalMs", takes.LONG_NATURAL, "source"),
            **options("kafkaConsumer.pollTimeoutMs", takes.ANY_LONG, "source"),
            **options("maxRecordsPerPartition", takes.LONG_COUNT, "source"),
            **options("startingOffsets", takes.STARTING_OFFSETS, "source"),
            **options("startingOffsetsByTimestamp", takes.TIMES_BY_PARTITION, "source"),
            **options("startingOffsetsByTimestampStrategy", takes.one_of("error", "latest"), "source"),
            **options("startingTimestamp", takes.MILLISECONDS, "source"),
            **options("subscribe", takes.NAMES, "source"),
            **options("subscribePattern", takes.NON_EMPTY_TEXT, "source"),
            **options("maxOffsetsPerTrigger", takes.LONG_COUNT, "stream"),  # with 0 Spark never reads anything
            **options("maxTriggerDelay", takes.DELAY, "stream"),
            **options("minOffsetsPerTrigger", takes.ANY_LONG, "stream"),
            **options("endingTimestamp", takes.MILLISECONDS, "batch"),
            **options("endingOffsets", takes.ENDING_OFFSETS, "batch_only"),
            **options("endingOffsetsByTimestamp", takes.TIMES_BY_PARTITION, "batch_only"),
        },
        lists_all_options=True,
        client_prefix="kafka.",
        required=(
            RequiredOption(
                "kafka.bootstrap.servers", "the addresses of the brokers", "kafka.bootstrap.servers: 'localhost:9092'"
            ),
        ),
        address_options=("kafka.bootstrap.servers",),
        connector="kafka",
        counts_rows=True,
        ignores_partition_by=True,
        takes_keys=True,
    ),
    Format("libsvm"),
    Format(
        "memory",
        reads=NEITHER,
        counts_rows=True,
        needs_separate_query=True,
        lists_all_options=True,
        refused_triggers=_NOT_REAL_TIME,
        is_restartable=False,
        replaces_rows=True,
        refuses_partition_by=STREAMS,
        ignores_partition_by=True,
        takes_keys=True,
        is_data_source=False,
    ),
    Format(
        "noop",
        reads=NEITHER,
        counts_rows=True,
        lists_all_options=True,
        refused_triggers=_NOT_REAL_TIME,
        replaces_rows=True,
        refuses_partition_by=BATCHES,
        ignores_partition_by=True,
    ),
    replace(
        _KNOWN_FILE,
        name="orc",
        layout="typed",
        unwritten_types=frozenset({"void", "variant", "interval"}) | _PLACES,
        file_format_class="orc.OrcFileFormat",
        options=ORC,
    ),
    replace(
        _KNOWN_FILE,
        name="parquet",
        layout="typed",
        unwritten_types=frozenset({"interval"}),
        needs_fields=True,
        file_format_class="parquet.ParquetFileFormat",
        options=PARQUET,
    ),
    Format("python", takes_keys=True, is_data_source=False, may_make_tables=True),
    Format(
        "rate",
        reads=STREAMS,
        writes=NEITHER,
        schema="fixed",
        columns=_TICKS,
        options={
            **options("numPartitions", takes.COUNT),
            **options("rampUpTime", takes.DURATION),
            **options("rowsPerSecond", takes.LONG_COUNT),
            **options("useManualClock", takes.BOOLEAN),
        },
        lists_all_options=True,
        refused_triggers=_NOT_REAL_TIME,
    ),
    Format(
        "rate-micro-batch",
        reads=STREAMS,
        writes=NEITHER,
        schema="fixed",
        columns=_TICKS,
        options={
            **options("advanceMillisPerBatch startTimestamp", takes.LONG_NATURAL),
            **options("numPartitions", takes.COUNT),
            **options("rowsPerBatch", takes.LONG_COUNT),
        },
        lists_all_options=True,
        required=(RequiredOption("rowsPerBatch", "the number of rows in each batch", "rowsPerBatch: 100"),),
        refused_triggers=_NOT_CONTINUOUS,
    ),
    Format(
        "socket",
        reads=STREAMS,
        writes=NEITHER,
        schema="fixed",
        columns="value string",
        optional_columns=("includeTimestamp", "timestamp timestamp"),
        options={
            **options("host"),
            **options("includeTimestamp", takes.BOOLEAN),
            **options("numPartitions", takes.COUNT),
            **options("port", takes.PORT),
        },
        lists_all_options=True,
        required=(
            RequiredOption("host", "the host to connect to", "host: localhost"),
            RequiredOption("port", "the port to connect to", "port: 9999"),
        ),
        address_options=("host", "port"),
        refused_triggers=_NOT_REAL_TIME,
        is_restartable=False,
    ),
    Format(
        "sqlite",
        reads=NEITHER,
        lists_all_options=True,
        refused_triggers=_NOT_CONTINUOUS | _NOT_REAL_TIME,
        replaces_rows=True,
        refuses_partition_by=STREAMS | BATCHES,
        is_data_source=False,
        takes_keys=True,
        is_database=True,
        is_embedded=True,
    ),
    Format("state-metadata", reads=BATCHES, writes=NEITHER),
    Format("statestore", reads=BATCHES, writes=NEITHER),
    Format("table", replaces_rows=True, is_data_source=False, may_make_tables=True, needs_separate_query=True),
    replace(
        _KNOWN_FILE,
        name="text",
        schema="optional",
        columns="value string",
        holds_one_string=True,
        file_format_class="text.TextFileFormat",
        options=TEXT,
    ),
    replace(
        _KNOWN_FILE,
        name="xml",
        layout="named",
        unwritten_types=frozenset({"interval"}) | _INTERVALS | _PLACES,
        options=XML,
        write_defaults=ALL_DIGITS,
        required=(RequiredOption("rowTag", "the name of the XML element for a row", "rowTag: row"),),
    ),
)

MESSAGES = {
    "json": Format("json", options=JSON_VALUES, lists_all_options=True),
    "avro": Format("avro", options=options("datetimeRebaseMode"), lists_all_options=True),
    "debezium": Format(
        "debezium",
        options=JSON_VALUES
        | options("timeUnit", takes.one_of("millis", "micros", "nanos"))
        | options("decimalMode", takes.one_of("precise", "string", "double"))
        | options("unavailableValue")
        | options("listUnavailable", takes.BOOLEAN),
        lists_all_options=True,
    ),
    "protobuf": Format(
        "protobuf",
        required=(
            RequiredOption("descriptor", "a file of protoc --descriptor_set_out", "descriptor: shop.desc"),
            RequiredOption("message", "the full name of the message", "message: shop.Order"),
        ),
    ),
}
"""The formats of the values of messages that have options."""

FORMATS = {entry.name: entry for entry in _FORMATS}
"""All known formats, by name."""


def format_of(name: str) -> Format:
    """Returns the facts about a format; for an unknown name, the defaults."""
    return FORMATS.get(name) or Format(name)
