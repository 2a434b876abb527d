"""Inserts secrets when a reader or writer is built, and masks them in every text that leaves the process."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.secret_text import SECRET_PREFIX, OptionValue, SecretName, SecretText

MASK = "*****"
MIN_MASKED_LENGTH = 4
"""Minimum number of characters to mask. A mask for a shorter value, such as `1`, would garble every text."""


class Secrets:
    """The secrets of the environment: all variables that begin with `SECRET_PREFIX`."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._values = {name: value for name, value in env.items() if name.startswith(SECRET_PREFIX)}
        self._masked = frozenset(piece for value in self._values.values() for piece in _pieces(value))

    def only(self, names: Iterable[str]) -> Secrets:
        """Returns those with one of the `names`."""
        wanted = set(names)
        return Secrets({name: value for name, value in self._values.items() if name in wanted})

    def resolve(self, value: OptionValue) -> str:
        """Returns the option's text with its secrets. Raises: KeyError for a secret that is not set; see `missing`."""
        if isinstance(value, str):
            return value
        return "".join(self._values[part.name] if isinstance(part, SecretName) else part for part in value.parts)

    def resolve_all(self, options: Mapping[str, OptionValue]) -> dict[str, str]:
        """Returns all `options` as plain text; see `resolve`."""
        return {name: self.resolve(value) for name, value in options.items()}

    def missing(self, options: Mapping[str, OptionValue], location: Location) -> list[Finding]:
        """Returns a finding for each secret in `options` that is not set."""
        return [self._missing(name, location) for name in secret_names(options.values()) if name not in self._values]

    def redact(self, text: str) -> str:
        """Returns `text` with all values of secrets masked, even if two of them overlap."""
        shown: list[str] = []
        end = 0
        for start, stop in self._spans(text):
            if start > end or not shown:
                shown += [text[end:start], MASK]
            end = max(end, stop)
        return "".join([*shown, text[end:]])

    def redact_value(self, value: object) -> object:
        """Returns a JSON value with all values of secrets masked, in names of fields, too."""
        if isinstance(value, dict):
            return {self.redact(key): self.redact_value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.redact_value(item) for item in value]
        return self.redact(value) if isinstance(value, str) else value

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Returns the start and end offsets of secrets in `text`, in order."""
        spans = (
            (match.start(), match.start() + len(piece))
            for piece in self._masked
            if piece in text
            for match in re.finditer(f"(?={re.escape(piece)})", text)
        )
        return sorted(spans)

    @staticmethod
    def _missing(name: str, location: Location) -> Finding:
        return Finding(
            "missing-env-var",
            f"the secret `{name}` is not set",
            "sqlstream reads it from the environment when the query starts",
            f"set it for this command: export {name}=...",
            location,
        )


def secret_names(values: Iterable[OptionValue]) -> list[str]:
    """Returns the unique names of the secrets in `values`, in order."""
    texts = [value for value in values if isinstance(value, SecretText)]
    return list(dict.fromkeys(part.name for text in texts for part in text.parts if isinstance(part, SecretName)))


def _pieces(value: str) -> Iterator[str]:
    """Yields the texts to mask: the value of a secret and each of its lines, plain, in JSON and in a URL.

    Lines are masked separately because logs arrive line by line, and a key file has many.
    """
    for plain in (part.strip() for part in (value, *value.splitlines())):
        escaped = quote(plain, safe="", errors="surrogateescape")
        yield from (piece for piece in (plain, json.dumps(plain)[1:-1], escaped) if len(piece) >= MIN_MASKED_LENGTH)
