"""The types of option values: what the options of Spark's readers and writers take, and the syntax that some of them
have.

`tests/spark/test_option_values.py` compares them with the installed Spark. An option does not take a value with which
Spark fails or reads only nulls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlstream.project.wording import alternatives

_OFFSET = re.compile(r"(UTC|UT|GMT)?[+-]\d{1,2}(:?\d{1,2}(:?\d{2})?)?", re.ASCII)
_AREA = re.compile(r"[\w+-]+(/[\w+-]+)+", re.ASCII)

ONE_WORD = frozenset(
    """
    ACT AET AGT ART AST BET BST CAT CET CNT CST CST6CDT CTT Cuba EAT ECT EET EST EST5EDT Egypt Eire GB GB-Eire GMT GMT0
    Greenwich HST Hongkong IET IST Iceland Iran Israel JST Jamaica Japan Kwajalein Libya MET MIT MST MST7MDT NET NST NZ
    NZ-CHAT Navajo PLT PNT PRC PRT PST PST8PDT Poland Portugal ROK SST Singapore Turkey UCT UT UTC Universal VST W-SU
    WET Z Zulu
    """.split()  # noqa: SIM905 - as a list of quoted words this would be five times as long
)
"""The zones without a slash in their names, and Java's short names (`ZoneId.SHORT_IDS`)."""


def may_be_zone(text: str) -> bool:
    """Returns whether `text` may name a time zone. Only Java has the list of those in the form area/city."""
    return text in ONE_WORD or any(form.fullmatch(text) for form in (_OFFSET, _AREA))


def is_fixed_zone(text: str) -> bool:
    """Returns whether the zone has the same offset at all times, so that no local time occurs twice."""
    always_utc = text.removeprefix("Etc/") in _ALWAYS_UTC
    return always_utc or text.startswith("Etc/GMT") or _OFFSET.fullmatch(text) is not None


_ALWAYS_UTC = frozenset({"UTC", "UCT", "UT", "GMT", "GMT0", "Greenwich", "Universal", "Z", "Zulu"})


# Checks of option values with a syntax: Spark's datetime patterns, and the JSON of Kafka sources.
#
# https://spark.apache.org/docs/latest/sql-ref-datetime-pattern.html; `JsonUtils` of Spark's Kafka connector. With an
# invalid pattern, the query fails or every value is NULL.

LONGEST = {"G": 5, "y": 6, "D": 3, "M": 5, "L": 5, "S": 9, "z": 4, "O": 4, "X": 5, "x": 5, "Z": 5, "a": 1}
"""The most repetitions of a letter; two for letters that are not listed."""

LETTERS = frozenset("GyDMLdahHKkmsSVzOXxZ")
"""The letters that Spark can read: not those of weekdays, weeks and quarters."""

RESERVED = frozenset("{}#")

_QUOTED = re.compile(r"'(?:[^']|'')*'")
_RUN = re.compile(r"([A-Za-z])\1*")

EARLIEST, LATEST = "earliest", "latest"


def is_date_pattern(text: str) -> bool:
    """Returns whether Spark can read dates or times with the pattern `text`."""
    bare = _QUOTED.sub("", text)
    if not text or "'" in bare or RESERVED & set(bare):
        return False
    return all(_is_known(run.group()) for run in _RUN.finditer(bare))


def _is_known(run: str) -> bool:
    letter = run[0]
    if letter == "V":
        return len(run) == 2
    return letter in LETTERS and len(run) <= LONGEST.get(letter, 2)


def is_positions(text: str) -> bool:
    """Returns whether `text` is a valid start: earliest, latest, or an offset for each partition."""
    return text.strip().lower() in (EARLIEST, LATEST) or is_numbers_by_partition(text)


def is_offsets(text: str) -> bool:
    """Returns whether `text` is a valid end: latest, or an offset for each partition."""
    return text.strip().lower() == LATEST or is_numbers_by_partition(text)


def is_numbers_by_partition(text: str) -> bool:
    """Returns whether `text` has the form {"topic": {"0": 23}}."""

    def is_valid(value: object) -> bool:
        return isinstance(value, dict) and all(map(_is_number_by_partition, value.items()))

    return _is_by_topic(text, is_valid)


def is_assignment(text: str) -> bool:
    """Returns whether `text` has the form {"topic": [0, 1]}."""
    return _is_by_topic(text, lambda value: isinstance(value, list) and all(map(_is_whole, value)))


def _is_by_topic(text: str, is_valid: Callable[[object], bool]) -> bool:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(read, dict) and all(map(is_valid, read.values()))


def _is_number_by_partition(item: tuple[str, object]) -> bool:
    partition, number = item
    return partition.isascii() and partition.isdigit() and _is_whole(number)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1


@dataclass(frozen=True)
class OptionType:
    """The values that an option takes: in words, as a test of its text, and the `keywords` among them."""

    words: str
    accepts: Callable[[str], bool]
    keywords: tuple[str, ...] = ()


def whole(least: int, most: int) -> OptionType:
    """Returns the type of whole numbers as Java reads them: with a sign and leading zeros, without blanks."""

    def accepts(text: str) -> bool:
        return re.fullmatch(r"[+-]?\d{1,30}", text, re.ASCII) is not None and least <= int(text) <= most

    return OptionType("a whole number" if least < 0 else f"a whole number of at least {least}", accepts)


def one_of(*words: str) -> OptionType:
    """Returns the type of some words in any letter case."""
    return OptionType(alternatives(words), lambda text: text.lower() in map(str.lower, words), words)


def codec(*names: str) -> OptionType:
    """Returns the type of `compression` where Spark writes files: one of `names`, or a class, whose name has dots."""
    named = one_of(*names)
    return OptionType(named.words, lambda text: "." in text or named.accepts(text), named.keywords)


def matching(words: str, pattern: str) -> OptionType:
    """Returns the type of texts that match `pattern` in any letter case."""
    compiled = re.compile(pattern, re.IGNORECASE | re.ASCII | re.DOTALL)
    return OptionType(words, lambda text: compiled.fullmatch(text) is not None)


def _number(words: str, least: float, most: float) -> OptionType:
    def accepts(text: str) -> bool:
        try:
            return least <= float(text) <= most
        except ValueError:
            return False

    return OptionType(words, accepts)


def _version_or(keyword: str) -> OptionType:
    def accepts(text: str) -> bool:
        return text.lower() == keyword or LONG_NATURAL.accepts(text)

    return OptionType(f"{keyword} or the number of a version", accepts, (keyword,))


BOOLEAN = OptionType("true or false", lambda text: text.lower() in ("true", "false"), ("true", "false"))
COUNT, LONG_COUNT = whole(1, _INT_MAX), whole(1, _LONG_MAX)
NATURAL, LONG_NATURAL = whole(0, _INT_MAX), whole(0, _LONG_MAX)
ANY_LONG = whole(-_LONG_MAX - 1, _LONG_MAX)
RATIO = _number("a number from 0 to 1", 0, 1)
NUMBER = _number("a number", float("-inf"), float("inf"))
DURATION = matching("a whole number with a unit, such as 7d, 12h or 30m", r"\s*\d+(us|ms|s|m|min|h|d)?\s*")
"""What Spark's JavaUtils.timeStringAs reads. The default unit depends on the option."""
DELAY = matching(DURATION.words, r"\s*-?\d+(us|ms|s|m|min|h|d)?\s*")
"""A duration that Spark does not check for a sign."""
CHARACTER = OptionType("at most one character", lambda text: len(text) <= 1)
LINE_END = OptionType("one or two characters", lambda text: 1 <= len(text) <= 2)
NON_EMPTY_TEXT = OptionType("a non-empty text", bool)
ROW_TAG = OptionType("a name without < and >", lambda text: bool(text) and not set("<>") & set(text))
NAMES = OptionType("names separated by commas", lambda text: any(name.strip() for name in text.split(",")))
TIME = matching("a time such as 2024-01-31T00:00:00", r"\s*\d{4,6}(-\d{1,2}(-\d{1,2}([ T].*)?)?)?\s*")
PATTERN = OptionType(
    "a Spark datetime pattern, such as yyyy-MM-dd'T'HH:mm:ss, with all other letters in quotes", is_date_pattern
)
ZONE = OptionType("a time zone such as Europe/Paris, UTC or +01:00", may_be_zone)
CHARSET = one_of("UTF-8", "US-ASCII", "ISO-8859-1", "UTF-16", "UTF-16BE", "UTF-16LE", "UTF-32")
"""What Spark 4 takes for CSV and JSON unless `spark.sql.legacy.javaCharsets` is set."""
MODE = one_of("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
"""Spark reads every other value as PERMISSIVE."""
COUNT_OR_NO_LIMIT = OptionType(
    "a whole number of at least 1, or -1 for no limit", lambda text: text == "-1" or COUNT.accepts(text)
)
SIZE = matching("a number of bytes with an optional unit, such as 10g or 512m", r"\s*0*[1-9]\d*([kmgtp]b?|b)?\s*")
"""What Spark's JavaUtils.byteStringAs reads, without 0."""
STARTING_VERSION = _version_or("latest")
ALWAYS_OR_VERSION = _version_or("always")
"""What Delta takes for versions of a table."""
PORT = whole(1, 65_535)
MILLISECONDS = OptionType("a whole number of milliseconds since 1970", ANY_LONG.accepts)
ASSIGNMENT = OptionType('partitions by topic, such as {"orders": [0, 1]}', is_assignment)
STARTING_OFFSETS = OptionType(
    'earliest, latest, or offsets by topic and partition: {"orders": {"0": 23, "1": -2}}',
    is_positions,
    (EARLIEST, LATEST),
)
ENDING_OFFSETS = OptionType(
    'latest, or offsets by topic and partition: {"orders": {"0": 23, "1": -1}}', is_offsets, (LATEST,)
)
TIMES_BY_PARTITION = OptionType(
    'milliseconds by topic and partition: {"orders": {"0": 1735689600000}}', is_numbers_by_partition
)
