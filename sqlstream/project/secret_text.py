"""Text that names secrets without containing them."""

from __future__ import annotations

from dataclasses import dataclass

SECRET_PREFIX = "SQLSTREAM_SECRET_"  # noqa: S105 - the prefix of names, no secret
"""The prefix of environment variables that only option values can read. They stay references."""


@dataclass(frozen=True)
class SecretText:
    """An option value with secrets: literal text and names of environment variables, in order.

    Its `str()` shows the names, never the values. Only `spark/` resolves it, when it creates a reader or writer.
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
"""An option of a reader or writer: Spark's options are text."""
