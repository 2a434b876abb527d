"""Odd texts and sizes for mutations."""

from __future__ import annotations

from random import Random

ODD_TEXTS = (
    *("", " ", "\t", "\x00", "\x07", "\x1b[31m", "\x7f", "\x85", "\u2028", "\u202e", "\ufeff", "\ufffe", "\U0010f800"),
    *("ü", "ﬀ", "İ", "ß", "e\u0301", "😀", "中文", "\u200b", "＿＿class＿＿"),
    *("'", '"', "`", "``", "\\", "\\u0041", "%s"),
    *("{0}", "$1", "${x}", "..", "../..", "/etc/passwd", "file:///etc/passwd", "a/b", "C:\\", "~", "-", "--", "/*"),
    *("*/", "\r", "None", "null", "true", "nan", "select", "from", "window", "a.b", "a b", "0", "-1", "1e999", "[]"),
    *("{}", "@", "#"),
)
"""Texts that are rare in files that people write."""


def size(rng: Random, largest: int) -> int:
    """Returns a size from 1 to `largest`, evenly distributed over the orders of magnitude."""
    return max(1, int(largest ** rng.random()))


def odd_text(rng: Random) -> str:
    """Returns a short odd text, or sometimes a long one."""
    if rng.random() < 0.05:
        return rng.choice(("x", "é", "😀", "a ", "a,", "(", "`")) * size(rng, 200_000)
    return rng.choice(ODD_TEXTS)


def place(rng: Random, text: str) -> int:
    """Returns an offset in `text`, including its end."""
    return rng.randint(0, len(text))


def insert(rng: Random, text: str, piece: str) -> str:
    """Returns `text` with `piece` inserted at a random place."""
    at = place(rng, text)
    return text[:at] + piece + text[at:]
