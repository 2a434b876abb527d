"""What values the options of Spark's own readers and writers take, by format.

`tests/spark/test_option_values.py` asks the installed Spark about each form. A value with which Spark fails, or reads
nothing but nulls, is none that an option takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sqlstream.compiler.flow.types.time_zones import may_be_zone
from sqlstream.compiler.rules.options.date_patterns import is_date_pattern
from sqlstream.compiler.rules.options.kafka_values import (
    EARLIEST,
    LATEST,
    is_assignment,
    is_numbers_by_partition,
    is_offsets,
    is_positions,
)
from sqlstream.compiler.rules.options.known import CODECS, FILE_OPTIONS
from sqlstream.project.wording import alternatives

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


@dataclass(frozen=True)
class Form:
    """What an option takes: in words, as a test of its text, and the `keywords` among what it takes."""

    words: str
    takes: Callable[[str], bool]
    keywords: tuple[str, ...] = ()


def _whole(least: int, most: int) -> Form:
    """A whole number as Java reads it: a sign and leading zeros, and no blanks."""

    def takes(text: str) -> bool:
        return re.fullmatch(r"[+-]?\d{1,30}", text, re.ASCII) is not None and least <= int(text) <= most

    return Form("a whole number" if least < 0 else f"a whole number of at least {least}", takes)


def _one_of(*words: str) -> Form:
    return Form(alternatives(words), lambda text: text.lower() in map(str.lower, words), words)


def _matching(words: str, pattern: str) -> Form:
    compiled = re.compile(pattern, re.IGNORECASE | re.ASCII | re.DOTALL)
    return Form(words, lambda text: compiled.fullmatch(text) is not None)


def _number(words: str, least: float, most: float) -> Form:
    def takes(text: str) -> bool:
        try:
            return least <= float(text) <= most
        except ValueError:
            return False

    return Form(words, takes)


BOOLEAN = Form("true or false", lambda text: text.lower() in ("true", "false"), ("true", "false"))
COUNT, LONG_COUNT = _whole(1, INT_MAX), _whole(1, LONG_MAX)
NATURAL, LONG_NATURAL = _whole(0, INT_MAX), _whole(0, LONG_MAX)
ANY_LONG = _whole(-LONG_MAX - 1, LONG_MAX)
RATIO = _number("a number from 0 to 1", 0, 1)
NUMBER = _number("a number", float("-inf"), float("inf"))
DURATION = _matching("a whole number with a unit, such as 7d, 12h or 30m", r"\s*\d+(us|ms|s|m|min|h|d)?\s*")
"""What Spark's JavaUtils.timeStringAs reads; without a unit it depends on the option."""
CHARACTER = Form("at most one character", lambda text: len(text) <= 1)
SOME_TEXT = Form("a non-empty text", bool)
NAMES = Form("names separated by commas", lambda text: any(name.strip() for name in text.split(",")))
TIME = _matching("a time such as 2024-01-31T00:00:00", r"\s*\d{4,6}(-\d{1,2}(-\d{1,2}([ T].*)?)?)?\s*")
PATTERN = Form(
    "a Spark datetime pattern, such as yyyy-MM-dd'T'HH:mm:ss, with all other letters in quotes", is_date_pattern
)
ZONE = Form("a time zone such as Europe/Paris, UTC or +01:00", may_be_zone)
CHARSET = _one_of("UTF-8", "US-ASCII", "ISO-8859-1", "UTF-16", "UTF-16BE", "UTF-16LE", "UTF-32")
"""What Spark 4 takes for CSV and JSON unless `spark.sql.legacy.javaCharsets` is set."""
MODE = _one_of("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
"""Spark takes anything else for PERMISSIVE."""

_CLEAN = _one_of("off", "archive", "delete")
_QUOTES = _one_of("STOP_AT_CLOSING_QUOTE", "BACK_TO_DELIMITER", "STOP_AT_DELIMITER", "SKIP_VALUE", "RAISE_ERROR")
_LINE_END = Form("one or two characters", lambda text: 1 <= len(text) <= 2)


def _all(form: Form, names: str) -> dict[str, Form]:
    return dict.fromkeys(names.split(), form)


_FILES = {
    **_all(BOOLEAN, "ignoreCorruptFiles ignoreInvalidPartitionPaths ignoreMissingFiles recursiveFileLookup"),
    **_all(TIME, "modifiedAfter modifiedBefore"),
    "timeZone": ZONE,
}

STREAMED_FILES = {
    **_all(BOOLEAN, "fileNameOnly latestFirst"),
    "cleanSource": _CLEAN,
    "discardCachedInputRatio": RATIO,
    "maxBytesPerTrigger": LONG_COUNT,
    "maxCachedFiles": NATURAL,
    "maxFileAge": DURATION,
    "maxFilesPerTrigger": COUNT,
}
"""Options of streams of files; Spark does not look at them in a batch."""

STREAMED_KAFKA = {
    "maxOffsetsPerTrigger": LONG_COUNT,
    "maxTriggerDelay": _matching(DURATION.words, r"\s*-?\d+(us|ms|s|m|min|h|d)?\s*"),
    "minOffsetsPerTrigger": ANY_LONG,
}
"""The same of Kafka. Spark takes 0 offsets per trigger, and then reads nothing for ever."""

_PARSED = {
    **_all(PATTERN, "dateFormat timestampFormat timestampNTZFormat"),
    "mode": MODE,
    "multiLine": BOOLEAN,
    "samplingRatio": NUMBER,
    "timeZone": ZONE,
}

_OWN: Mapping[str, Mapping[str, Form]] = {
    "csv": {
        **_PARSED,
        **_all(
            BOOLEAN,
            "columnPruning enableDateTimeParsingFallback enforceSchema escapeQuotes header ignoreLeadingWhiteSpace "
            "ignoreTrailingWhiteSpace inferSchema preferDate quoteAll",
        ),
        **_all(CHARACTER, "charToEscapeQuoteEscaping comment escape quote"),
        **_all(CHARSET, "encoding charset"),
        **_all(SOME_TEXT, "delimiter sep"),
        **_all(COUNT, "inputBufferSize maxColumns"),
        "lineSep": _LINE_END,
        "maxCharsPerColumn": Form(
            "a whole number of at least 1, or -1 for no limit", lambda text: text == "-1" or COUNT.takes(text)
        ),
        "unescapedQuoteHandling": _QUOTES,
    },
    "json": {
        **_PARSED,
        **_all(
            BOOLEAN,
            "allowBackslashEscapingAnyCharacter allowComments allowNonNumericNumbers allowNumericLeadingZeros "
            "allowSingleQuotes allowUnquotedControlChars allowUnquotedFieldNames dropFieldIfAllNull "
            "enableDateTimeParsingFallback ignoreNullFields inferTimestamp prefersDecimal pretty primitivesAsString "
            "sortKeys useUnsafeRow writeNonAsciiCharacterAsCodePoint",
        ),
        **_all(CHARSET, "encoding charset"),
        "lineSep": SOME_TEXT,
    },
    "orc": {"mergeSchema": BOOLEAN},
    "parquet": {"mergeSchema": BOOLEAN},
    "text": {"lineSep": SOME_TEXT, "wholetext": BOOLEAN},
    "xml": {
        **_PARSED,
        **_all(
            BOOLEAN,
            "excludeAttribute ignoreNamespace ignoreSurroundingSpaces inferSchema preferDate prefersDecimal "
            "useLegacyXMLParser validateName",
        ),
        **_all(SOME_TEXT, "valueTag"),
        "rowTag": Form("a name without < and >", lambda text: bool(text) and not set("<>") & set(text)),
    },
    "rate": {
        "numPartitions": COUNT,
        "rampUpTime": DURATION,
        "rowsPerSecond": LONG_COUNT,
        "useManualClock": BOOLEAN,
    },
    "rate-micro-batch": {
        **_all(LONG_NATURAL, "advanceMillisPerBatch startTimestamp"),
        "numPartitions": COUNT,
        "rowsPerBatch": LONG_COUNT,
    },
    "socket": {"includeTimestamp": BOOLEAN, "numPartitions": COUNT, "port": _whole(1, 65_535)},
    "console": {"numRows": COUNT, "truncate": BOOLEAN},
    "jdbc": {
        **_all(
            BOOLEAN,
            "cascadeTruncate preferTimestampNTZ pushDownAggregate pushDownLimit pushDownOffset pushDownPredicate "
            "pushDownTableSample refreshKrb5Config truncate",
        ),
        **_all(NATURAL, "fetchsize queryTimeout"),
        **_all(COUNT, "batchsize numPartitions"),
    },
    "kafka": {
        **_all(BOOLEAN, "failOnDataLoss includeHeaders"),
        **_all(Form("a whole number of milliseconds since 1970", ANY_LONG.takes), "startingTimestamp endingTimestamp"),
        "kafkaConsumer.pollTimeoutMs": ANY_LONG,
        "assign": Form('partitions by topic, such as {"orders": [0, 1]}', is_assignment),
        "endingOffsets": Form(
            'latest, or offsets by topic and partition: {"orders": {"0": 23, "1": -1}}', is_offsets, (LATEST,)
        ),
        "fetchOffset.numRetries": COUNT,
        "fetchOffset.retryIntervalMs": LONG_NATURAL,
        "maxRecordsPerPartition": LONG_COUNT,
        "minPartitions": COUNT,
        "startingOffsets": Form(
            'earliest, latest, or offsets by topic and partition: {"orders": {"0": 23, "1": -2}}',
            is_positions,
            (EARLIEST, LATEST),
        ),
        "startingOffsetsByTimestampStrategy": _one_of("error", "latest"),
        "subscribe": NAMES,
        "subscribePattern": SOME_TEXT,
        **_all(
            Form('milliseconds by topic and partition: {"orders": {"0": 1735689600000}}', is_numbers_by_partition),
            "startingOffsetsByTimestamp endingOffsetsByTimestamp",
        ),
    },
}


STREAMED_OPTIONS: Mapping[str, Mapping[str, Form]] = {
    **dict.fromkeys(FILE_OPTIONS, STREAMED_FILES),
    "kafka": STREAMED_KAFKA,
}
"""What Spark looks at in streams alone, by format."""


def form_of(format_name: str, option: str, *, streams: bool) -> Form | None:
    """Returns what the `option` of a reader or writer takes, None where that is anything. `streams` says that it is a
    source read as a stream. Letter case is no matter.
    """
    return _FORMS[format_name, streams].get(option.lower()) if (format_name, streams) in _FORMS else None


def codecs(format_name: str) -> Form:
    """Returns what `compression` takes where files are written; the name of a class has dots."""
    form = _one_of(*CODECS[format_name])
    return Form(form.words, lambda text: "." in text or form.takes(text), form.keywords)


def _forms(format_name: str, *, streams: bool) -> dict[str, Form]:
    parts: Iterable[Mapping[str, Form]] = (_OWN.get(format_name, {}),)
    if format_name in FILE_OPTIONS:
        parts = (_FILES, *parts)
    if streams:
        parts = (*parts, STREAMED_OPTIONS.get(format_name, {}))
    return {name.lower(): form for part in parts for name, form in part.items()}


_FORMS = {
    (name, streams): _forms(name, streams=streams) for name in {*_OWN, *FILE_OPTIONS} for streams in (True, False)
}
