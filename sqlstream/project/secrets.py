"""Text that names secrets without holding them."""

from __future__ import annotations

from dataclasses import dataclass

SECRET_PREFIX = "SQLSTREAM_SECRET_"  # noqa: S105 - the prefix of names, no secret
"""Environment variables with this prefix may be read only in option values; they stay references."""


@dataclass(frozen=True)
class SecretText:
    """An option value that holds secrets: literal text and names of environment variables, in order.

    Its `str()` shows the names, never the values; `spark/` alone resolves it, when a reader or writer is built.
    """

    parts: tuple[str | SecretName, ...]

    def __str__(self) -> str:
        return "".join(str(part) for part in self.parts)


@dataclass(frozen=True)
class SecretName:
    """The name of an environment variable that holds a secret."""

    name: str

    def __str__(self) -> str:
        return "{{ env_var('" + self.name + "') }}"


OptionValue = str | SecretText
"""A reader's or writer's option: Spark's options are text."""
