"""Time zones that Spark accepts (`java.time.ZoneId`)."""

from __future__ import annotations

import re

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
