"""The options of sources and sinks of files, Delta Lake and Iceberg.

`tests/spark/test_option_names.py` compares those of files with Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlstream.project.formats import option_types as takes
from sqlstream.project.formats.format import Option, Use
from sqlstream.project.formats.option_types import OptionType


def options(names: str, type_: OptionType | None = None, use: Use = "anywhere") -> dict[str, Option]:
    """Returns the same option under each of `names`, which are separated by blanks."""
    return dict.fromkeys(names.split(), Option(type_, use))


FILES = {
    **options("basePath ignoredPathSegmentRegex pathGlobFilter", use="source"),
    **options(
        "ignoreCorruptFiles ignoreInvalidPartitionPaths ignoreMissingFiles recursiveFileLookup", takes.BOOLEAN, "source"
    ),
    **options("modifiedAfter modifiedBefore", takes.TIME, "batch_only"),
    **options("timeZone", takes.ZONE, "source"),
    **options("cleanSource", takes.one_of("off", "archive", "delete"), "stream"),
    **options("discardCachedInputRatio", takes.RATIO, "stream"),
    **options("fileNameOnly latestFirst", takes.BOOLEAN, "stream"),
    **options("maxBytesPerTrigger", takes.LONG_COUNT, "stream"),
    **options("maxCachedFiles", takes.NATURAL, "stream"),
    **options("maxFileAge", takes.DURATION, "stream"),
    **options("maxFilesPerTrigger", takes.COUNT, "stream"),
    **options("sourceArchiveDir", use="stream"),
}
"""Of all files (FileIndexOptions and FileSourceOptions), and of streams of files (FileStreamOptions)."""

ALL_DIGITS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""The options with which text holds each time exactly. Spark's own defaults cut times to milliseconds. Five X also
write the seconds of an offset, which local times before about 1900 have.
"""

_PARSED = {
    **FILES,
    **options("columnNameOfCorruptRecord encoding charset enableDateTimeParsingFallback locale singleVariantColumn"),
    **options("timeFormat"),
    **options("compression", takes.codec("none", "uncompressed", "bzip2", "deflate", "gzip", "lz4", "snappy")),
    **options("dateFormat timestampFormat timestampNTZFormat", takes.PATTERN),
    **options("mode", takes.MODE),
    **options("multiLine", takes.BOOLEAN),
    **options("samplingRatio", takes.NUMBER),
    **options("timeZone", takes.ZONE),
}

CSV = {
    **_PARSED,
    **options("codec emptyValue extension nanValue negativeInf nullValue positiveInf"),
    **options(
        "columnPruning enableDateTimeParsingFallback enforceSchema escapeQuotes header ignoreLeadingWhiteSpace "
        "ignoreTrailingWhiteSpace inferSchema preferDate quoteAll",
        takes.BOOLEAN,
    ),
    **options("charToEscapeQuoteEscaping comment escape quote", takes.CHARACTER),
    **options("encoding charset", takes.CHARSET),
    **options("delimiter sep", takes.NON_EMPTY_TEXT),
    **options("inputBufferSize maxColumns", takes.COUNT),
    **options("lineSep", takes.LINE_END),
    **options("maxCharsPerColumn", takes.COUNT_OR_NO_LIMIT),
    **options(
        "unescapedQuoteHandling",
        takes.one_of("STOP_AT_CLOSING_QUOTE", "BACK_TO_DELIMITER", "STOP_AT_DELIMITER", "SKIP_VALUE", "RAISE_ERROR"),
    ),
}

JSON = {
    **_PARSED,
    **options("explodeEmbeddedArray"),
    **options(
        "allowBackslashEscapingAnyCharacter allowComments allowNonNumericNumbers allowNumericLeadingZeros "
        "allowSingleQuotes allowUnquotedControlChars allowUnquotedFieldNames dropFieldIfAllNull "
        "enableDateTimeParsingFallback ignoreNullFields inferTimestamp prefersDecimal pretty primitivesAsString "
        "sortKeys useUnsafeRow writeNonAsciiCharacterAsCodePoint",
        takes.BOOLEAN,
    ),
    **options("encoding charset", takes.CHARSET),
    **options("lineSep", takes.NON_EMPTY_TEXT),
}

_OF_FILES = frozenset({"compression", "encoding", "charset", "lineSep", "multiLine", "samplingRatio"})
_OF_ON_CORRUPT = frozenset({"mode", "columnNameOfCorruptRecord"})

JSON_VALUES = {name: option for name, option in JSON.items() if name not in {*FILES, *_OF_FILES, *_OF_ON_CORRUPT}}
"""The options of JSON in messages: those of `from_json` that do not contradict `on_corrupt`."""

ORC = {
    **FILES,
    **options("compression", takes.codec("none", "uncompressed", "snappy", "zlib", "lzo", "lz4", "zstd", "brotli")),
    **options("mergeSchema", takes.BOOLEAN),
    **options("orc.compress"),
}

PARQUET = {
    **FILES,
    **options(
        "compression", takes.codec("none", "uncompressed", "snappy", "gzip", "lz4", "lz4_raw", "zstd", "lzo", "brotli")
    ),
    **options("mergeSchema", takes.BOOLEAN),
    **options("datetimeRebaseMode int96RebaseMode parquet.compression"),
}

TEXT = {
    **FILES,
    "compression": _PARSED["compression"],
    **options("encoding"),
    **options("lineSep", takes.NON_EMPTY_TEXT),
    **options("wholetext", takes.BOOLEAN),
}

XML = {
    **_PARSED,
    **options("arrayElementName attributePrefix declaration indent nullValue rootTag rowValidationXSDPath"),
    **options("wildcardColName"),
    **options(
        "excludeAttribute ignoreNamespace ignoreSurroundingSpaces inferSchema preferDate prefersDecimal "
        "useLegacyXMLParser validateName",
        takes.BOOLEAN,
    ),
    **options("valueTag", takes.NON_EMPTY_TEXT),
    **options("rowTag", takes.ROW_TAG),
}

_TIMES, _NUMBERS = ("timestamp",), ("float", "double")

LAYOUT: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "arrayelementname": ("item", ("array",)),
    "attributeprefix": ("_", ()),
    "chartoescapequoteescaping": ("", ()),
    "comment": ("", ()),
    "dateformat": ("yyyy-MM-dd", ("date",)),
    "emptyvalue": ('""', ("string", "char", "varchar", "binary")),
    "encoding": ("utf-8", ()),
    "escape": ("\\", ()),
    "header": ("false", ()),
    "linesep": ("\n", ()),
    "locale": ("en-us", ("date", "time", "timestamp", "timestamp_ntz")),
    "nanvalue": ("NaN", _NUMBERS),
    "negativeinf": ("-Inf", _NUMBERS),
    "nullvalue": ("", ()),
    "positiveinf": ("Inf", _NUMBERS),
    "pretty": ("false", ()),
    "quote": ('"', ()),
    "rowtag": ("ROW", ()),
    "sep": (",", ()),
    "timeformat": ("", ("time",)),
    "timestampformat": (ALL_DIGITS["timestampFormat"], _TIMES),
    "timestampntzformat": (ALL_DIGITS["timestampNTZFormat"], ("timestamp_ntz",)),
    "timezone": ("", _TIMES),
    "valuetag": ("_VALUE", ()),
}
"""The options with which text must be read as it was written: their names in lower case, what sqlstream or Spark takes
without them, and words in the types of the columns that they concern (default: all).
"""

_SAME = {"delimiter": "sep", "charset": "encoding"}
"""Other names, which do not count beside the first ones."""

_IGNORES_CASE = ("encoding", "header", "locale", "pretty")


def layout_options(known: Mapping[str, Option], given: Mapping[str, object]) -> dict[str, str]:
    """Returns the options of a sink among `LAYOUT` that differ from the defaults. `known` are those of its format."""
    written = {name.lower() for name, option in known.items() if option.use == "anywhere"}
    named = {name.lower(): str(value) for name, value in given.items() if name.lower() in written}
    found = {_SAME[name]: value for name, value in named.items() if name in _SAME} | named
    return dict(sorted(_differing(found)))


def _differing(found: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in found.items():
        if name in LAYOUT:
            plain = value.lower() if name in _IGNORES_CASE else value.replace("\\t", "\t")
            plain = "utf-8" if name == "encoding" and plain == "utf8" else plain
            if plain != LAYOUT[name][0]:
                yield name, plain


# The options of Delta Lake and Iceberg (`tests/spark/test_lake_options.py` compares them with both).
#
# Delta's are in `DeltaOptions`, Iceberg's in `SparkReadOptions` and `SparkWriteOptions`.

CHANGE_FEED = ("readChangeFeed", "readChangeData")
"""The option with which Delta returns the changes of a table, and its older name."""

DELTA = {
    **options("excludeRegex schemaTrackingLocation schemaLocation streamingSourceTrackingId", use="stream"),
    **options(
        "failOnDataLoss ignoreChanges ignoreDeletes ignoreFileDeletion skipChangeCommits", takes.BOOLEAN, "stream"
    ),
    **options("maxBytesPerTrigger", takes.SIZE, "stream"),
    **options("maxFilesPerTrigger", takes.COUNT, "stream"),
    **options(
        "allowSourceColumnDrop allowSourceColumnRename allowSourceColumnTypeChange", takes.ALWAYS_OR_VERSION, "stream"
    ),
    **options(" ".join(CHANGE_FEED), takes.BOOLEAN, "source"),
    **options("startingVersion", takes.STARTING_VERSION, "source"),
    **options("startingTimestamp", takes.TIME, "source"),
    **options("endingVersion", takes.LONG_NATURAL, "batch"),
    **options("endingTimestamp", takes.TIME, "batch"),
    **options("versionAsOf", takes.LONG_NATURAL, "batch_only"),
    **options("timestampAsOf", takes.TIME, "batch_only"),
    **options("compression", takes.codec("none", "uncompressed", "snappy", "gzip", "lz4", "zstd", "brotli"), "sink"),
    **options("dataChange mergeSchema optimizeWrite overwriteSchema", takes.BOOLEAN, "sink"),
    **options("maxRecordsPerFile", takes.ANY_LONG, "sink"),
    **options("partitionOverwriteMode replaceOn replaceUsing replaceWhere targetAlias userMetadata", use="sink"),
    **options("txnAppId txnVersion", use="sink"),
}

ICEBERG = {
    **options("branch"),
    **options("compression-codec", use="sink"),
    **options("format-version", takes.COUNT, "sink"),
    **options("as-of-timestamp snapshot-id tag", use="source"),  # refused, with a finding that names the new ones
    **options("versionAsOf timestampAsOf", use="batch"),
    **options("start-snapshot-id end-snapshot-id", takes.ANY_LONG, "batch"),
    **options("start-timestamp end-timestamp", takes.MILLISECONDS, "batch"),
    **options("batch-size lookback", takes.COUNT, "source"),
    **options("file-open-cost split-size", takes.LONG_COUNT, "source"),
    **options("aggregate-push-down-enabled locality vectorization-enabled", takes.BOOLEAN, "source"),
    **options("stream-from-timestamp", takes.MILLISECONDS, "stream"),
    **options(
        "async-micro-batch-planning-enabled streaming-skip-delete-snapshots streaming-skip-overwrite-snapshots",
        takes.BOOLEAN,
        "stream",
    ),
    **options("streaming-max-files-per-micro-batch streaming-max-rows-per-micro-batch", takes.COUNT, "stream"),
    **options("async-queue-preload-file-limit async-queue-preload-row-limit", takes.LONG_NATURAL, "stream"),
    **options("streaming-snapshot-polling-interval-ms", takes.LONG_NATURAL, "stream"),
    **options("write-format delete-format", takes.one_of("parquet", "avro", "orc"), "sink"),
    **options("target-file-size-bytes target-delete-file-size-bytes advisory-partition-size", takes.LONG_COUNT, "sink"),
    **options(
        "check-nullability check-ordering fanout-enabled merge-schema mergeSchema shred-variants "
        "use-merge-append-for-streaming use-table-distribution-and-ordering",
        takes.BOOLEAN,
        "sink",
    ),
    **options("output-spec-id output-sort-order-id variant-inference-buffer-size", takes.NATURAL, "sink"),
    **options("distribution-mode", takes.one_of("none", "hash", "range"), "sink"),
    **options("delete-granularity", takes.one_of("file", "partition"), "sink"),
    **options("isolation-level", takes.one_of("serializable", "snapshot"), "sink"),
    **options("compression-level compression-strategy overwrite-mode validate-from-snapshot-id", use="sink"),
}
