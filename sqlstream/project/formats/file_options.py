"""The options of Spark's file sources and sinks (`tests/spark/test_option_names.py` compares them with Spark)."""

from __future__ import annotations

from sqlstream.project.formats.format import Option, Use
from sqlstream.project.formats.option_types import (
    BOOLEAN,
    CHARACTER,
    CHARSET,
    COUNT,
    COUNT_OR_NO_LIMIT,
    DURATION,
    LINE_END,
    LONG_COUNT,
    MODE,
    NATURAL,
    NUMBER,
    PATTERN,
    RATIO,
    ROW_TAG,
    SOME_TEXT,
    TIME,
    ZONE,
    OptionType,
    codec,
    one_of,
)


def options(names: str, takes: OptionType | None = None, use: Use = "anywhere") -> dict[str, Option]:
    """Returns the same option under each of `names`, which are separated by blanks."""
    return dict.fromkeys(names.split(), Option(takes, use))


FILES = {
    **options("basePath ignoredPathSegmentRegex pathGlobFilter", use="source"),
    **options(
        "ignoreCorruptFiles ignoreInvalidPartitionPaths ignoreMissingFiles recursiveFileLookup", BOOLEAN, "source"
    ),
    **options("modifiedAfter modifiedBefore", TIME, "batch_only"),
    **options("timeZone", ZONE, "source"),
    **options("cleanSource", one_of("off", "archive", "delete"), "stream"),
    **options("discardCachedInputRatio", RATIO, "stream"),
    **options("fileNameOnly latestFirst", BOOLEAN, "stream"),
    **options("maxBytesPerTrigger", LONG_COUNT, "stream"),
    **options("maxCachedFiles", NATURAL, "stream"),
    **options("maxFileAge", DURATION, "stream"),
    **options("maxFilesPerTrigger", COUNT, "stream"),
    **options("sourceArchiveDir", use="stream"),
}
"""Of all files (FileIndexOptions and FileSourceOptions), and of streams of files (FileStreamOptions)."""

_PARSED = {
    **FILES,
    **options("columnNameOfCorruptRecord encoding charset enableDateTimeParsingFallback locale singleVariantColumn"),
    **options("timeFormat"),
    **options("compression", codec("none", "uncompressed", "bzip2", "deflate", "gzip", "lz4", "snappy")),
    **options("dateFormat timestampFormat timestampNTZFormat", PATTERN),
    **options("mode", MODE),
    **options("multiLine", BOOLEAN),
    **options("samplingRatio", NUMBER),
    **options("timeZone", ZONE),
}

CSV = {
    **_PARSED,
    **options("codec emptyValue extension nanValue negativeInf nullValue positiveInf"),
    **options(
        "columnPruning enableDateTimeParsingFallback enforceSchema escapeQuotes header ignoreLeadingWhiteSpace "
        "ignoreTrailingWhiteSpace inferSchema preferDate quoteAll",
        BOOLEAN,
    ),
    **options("charToEscapeQuoteEscaping comment escape quote", CHARACTER),
    **options("encoding charset", CHARSET),
    **options("delimiter sep", SOME_TEXT),
    **options("inputBufferSize maxColumns", COUNT),
    **options("lineSep", LINE_END),
    **options("maxCharsPerColumn", COUNT_OR_NO_LIMIT),
    **options(
        "unescapedQuoteHandling",
        one_of("STOP_AT_CLOSING_QUOTE", "BACK_TO_DELIMITER", "STOP_AT_DELIMITER", "SKIP_VALUE", "RAISE_ERROR"),
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
        BOOLEAN,
    ),
    **options("encoding charset", CHARSET),
    **options("lineSep", SOME_TEXT),
}

ORC = {
    **FILES,
    **options("compression", codec("none", "uncompressed", "snappy", "zlib", "lzo", "lz4", "zstd", "brotli")),
    **options("mergeSchema", BOOLEAN),
    **options("orc.compress"),
}

PARQUET = {
    **FILES,
    **options(
        "compression", codec("none", "uncompressed", "snappy", "gzip", "lz4", "lz4_raw", "zstd", "lzo", "brotli")
    ),
    **options("mergeSchema", BOOLEAN),
    **options("datetimeRebaseMode int96RebaseMode parquet.compression"),
}

TEXT = {
    **FILES,
    "compression": _PARSED["compression"],
    **options("encoding"),
    **options("lineSep", SOME_TEXT),
    **options("wholetext", BOOLEAN),
}

XML = {
    **_PARSED,
    **options("arrayElementName attributePrefix declaration indent nullValue rootTag rowValidationXSDPath"),
    **options("wildcardColName"),
    **options(
        "excludeAttribute ignoreNamespace ignoreSurroundingSpaces inferSchema preferDate prefersDecimal "
        "useLegacyXMLParser validateName",
        BOOLEAN,
    ),
    **options("valueTag", SOME_TEXT),
    **options("rowTag", ROW_TAG),
}
