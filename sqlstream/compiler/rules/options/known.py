# ruff: noqa: SIM905 - as a list of quoted words this would be five times as long
"""The options that Spark's own readers and writers know, by format.

`tests/spark/test_option_names.py` compares them with the installed Spark. Spark ignores every other option in silence.
"""

from __future__ import annotations

FILE_STREAM = frozenset(
    """
    cleanSource discardCachedInputRatio fileNameOnly latestFirst maxBytesPerTrigger maxCachedFiles maxFileAge
    maxFilesPerTrigger sourceArchiveDir
    """.split()
)
"""Of streams of files (org.apache.spark.sql.execution.streaming.runtime.FileStreamOptions)."""

FILE_INDEX = frozenset(
    """
    basePath ignoreCorruptFiles ignoreInvalidPartitionPaths ignoreMissingFiles ignoredPathSegmentRegex modifiedAfter
    modifiedBefore pathGlobFilter recursiveFileLookup timeZone
    """.split()
)
"""Of all files (FileIndexOptions and FileSourceOptions)."""

REFUSED_IN_STREAMS = ("endingOffsets", "endingOffsetsByTimestamp", "modifiedAfter", "modifiedBefore")
"""Options of batches with which Spark starts no stream of files or of Kafka."""

_TIMES = """
    columnNameOfCorruptRecord dateFormat enableDateTimeParsingFallback encoding charset locale mode multiLine
    compression timeFormat timeZone timestampFormat timestampNTZFormat singleVariantColumn samplingRatio
    """

FILE_OPTIONS = {
    "binaryFile": frozenset[str](),
    "csv": frozenset(
        f"""
        {_TIMES} charToEscapeQuoteEscaping codec columnPruning comment delimiter emptyValue enforceSchema escape
        escapeQuotes extension header ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace inferSchema inputBufferSize
        lineSep maxCharsPerColumn maxColumns nanValue negativeInf nullValue positiveInf preferDate quote quoteAll sep
        unescapedQuoteHandling
        """.split()
    ),
    "json": frozenset(
        f"""
        {_TIMES} allowBackslashEscapingAnyCharacter allowComments allowNonNumericNumbers allowNumericLeadingZeros
        allowSingleQuotes allowUnquotedControlChars allowUnquotedFieldNames dropFieldIfAllNull explodeEmbeddedArray
        ignoreNullFields inferTimestamp lineSep prefersDecimal pretty primitivesAsString sortKeys useUnsafeRow
        writeNonAsciiCharacterAsCodePoint
        """.split()
    ),
    "orc": frozenset("compression mergeSchema orc.compress".split()),
    "parquet": frozenset("compression datetimeRebaseMode int96RebaseMode mergeSchema parquet.compression".split()),
    "text": frozenset("compression encoding lineSep wholetext".split()),
    "xml": frozenset(
        f"""
        {_TIMES} arrayElementName attributePrefix declaration excludeAttribute ignoreNamespace ignoreSurroundingSpaces
        indent inferSchema nullValue preferDate prefersDecimal rootTag rowTag rowValidationXSDPath useLegacyXMLParser
        validateName valueTag wildcardColName
        """.split()
    ),
}
"""Of each format of files, read or written."""

KAFKA = frozenset(
    """
    assign failOnDataLoss fetchOffset.numRetries fetchOffset.retryIntervalMs groupIdPrefix includeHeaders
    kafkaConsumer.pollTimeoutMs maxRecordsPerPartition minPartitions startingOffsets startingOffsetsByTimestamp
    startingOffsetsByTimestampStrategy startingTimestamp subscribe subscribePattern
    """.split()
)
"""Of every Kafka source (KafkaSourceProvider). What begins with `kafka.` goes to Kafka itself."""

KAFKA_STREAM = frozenset("maxOffsetsPerTrigger maxTriggerDelay minOffsetsPerTrigger".split())
KAFKA_BATCH = frozenset("endingOffsets endingOffsetsByTimestamp endingTimestamp".split())

OTHER_SOURCES = {
    "kafka": KAFKA | KAFKA_STREAM | KAFKA_BATCH,
    "rate": frozenset("numPartitions rampUpTime rowsPerSecond useManualClock".split()),
    "rate-micro-batch": frozenset("advanceMillisPerBatch numPartitions rowsPerBatch startTimestamp".split()),
    "socket": frozenset("host includeTimestamp numPartitions port".split()),
}

OTHER_SINKS = {
    "console": frozenset("numRows truncate".split()),
    "kafka": frozenset("includeHeaders topic".split()),
    "memory": frozenset[str](),
    "noop": frozenset[str](),
}

OF_WRITERS = frozenset("checkpointLocation path queryName retention".split())
"""What every streaming writer takes beside those of its format (DataStreamWriter, FileStreamSink)."""

REQUIRED = {
    "jdbc": (("url", "the address of the database", "url: 'jdbc:postgresql://host/shop'"),),
    "kafka": (
        ("kafka.bootstrap.servers", "the addresses of the brokers", "kafka.bootstrap.servers: 'localhost:9092'"),
    ),
    "rate-micro-batch": (("rowsPerBatch", "the number of rows in each batch", "rowsPerBatch: 100"),),
    "socket": (
        ("host", "the host to connect to", "host: localhost"),
        ("port", "the port to connect to", "port: 9999"),
    ),
    "xml": (("rowTag", "the name of the XML element for a row", "rowTag: row"),),
}
"""Options without which Spark reads or writes nothing, what each says, and an example."""

_TEXT_CODECS = ("none", "uncompressed", "bzip2", "deflate", "gzip", "lz4", "snappy")

CODECS = {
    **dict.fromkeys(("csv", "json", "text", "xml"), _TEXT_CODECS),
    "orc": ("none", "uncompressed", "snappy", "zlib", "lzo", "lz4", "zstd", "brotli"),
    "parquet": ("none", "uncompressed", "snappy", "gzip", "lz4", "lz4_raw", "zstd", "lzo", "brotli"),
}
"""What `compression` takes when files are written. Text formats also take the name of a class, which has dots."""
