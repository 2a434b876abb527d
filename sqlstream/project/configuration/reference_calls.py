"""Calls of ref() and source() in YAML, as `depends_on` of exposures and `to` of `relationships` have them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_TEXT = r"""(?:'([^'\\]*)'|"([^"\\]*)")"""
_CALL = re.compile(
    rf"\s*(ref|source)\s*\(\s*{_TEXT}(?:\s*,\s*{_TEXT})?(?:\s*,\s*v(?:ersion)?\s*=\s*(?:{_TEXT}|([\d.]+)))?\s*,?\s*\)\s*"
)
_TEMPLATE = re.compile(r"\s*\{\{-?(?P<call>.*?)-?\}\}\s*", re.DOTALL)


@dataclass(frozen=True)
class ReferenceCall:
    """A call of ref() or source(): the names in it, and perhaps a version."""

    kind: Literal["ref", "source"]
    parts: tuple[str, ...]
    version: str | None = None


def read_call(text: str) -> ReferenceCall | None:
    """Returns the call that `text` is, also if it is between {{ }}; None for other text."""
    template = _TEMPLATE.fullmatch(text)
    match = _CALL.fullmatch(template["call"] if template else text)
    if match is None:
        return None
    kind, *texts, one, two, number = match.groups()
    version = one or two or number
    parts = tuple(
        one or two or "" for one, two in zip(texts[::2], texts[1::2], strict=True) if (one, two) != (None, None)
    )
    if kind == "source" and (len(parts) != 2 or version is not None):
        return None
    return ReferenceCall("ref" if kind == "ref" else "source", parts, version)
