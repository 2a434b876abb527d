"""A position in the tokens of a type or schema, and the errors of reading them."""

from __future__ import annotations

from sqlstream.project.types.tokens import TypeToken, type_tokens
from sqlstream.project.wording import quoted

_WHY = "Spark DDL lists columns as names with types, separated by commas"
OTHER_CHARACTERS = "put names with characters other than the letters a to z, digits and _ in `back-quotes`"
"""The fix for a name that needs quotes."""


class TypeSyntaxError(ValueError):
    """The text is not a type or schema of Spark. `offset` is the offset of the first wrong character."""

    def __init__(self, offset: int, message: str, why: str, fix: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message
        self.why = why
        self.fix = fix


class UnsureError(Exception):
    """Only Spark can decide about the text."""


class TokenCursor:
    """The tokens of a text, and the index of the next one."""

    def __init__(self, ddl: str) -> None:
        if "/*" in ddl:
            raise UnsureError
        self._tokens, self._nothing = type_tokens(ddl)
        if any(token.may_be_keyword for token in self._tokens):
            raise UnsureError
        self.index = 0

    @property
    def next(self) -> TypeToken:
        """The next token; at the end, one without text."""
        return self._tokens[self.index] if self.index < len(self._tokens) else self._nothing

    def take(self, *keys: str) -> bool:
        """Skips `keys` if all of them come next, and returns whether it did."""
        following = self._tokens[self.index : self.index + len(keys)]
        if tuple(token.key for token in following) != keys:
            return False
        self.index += len(keys)
        return True

    def step(self) -> TypeToken:
        """Skips the next token, and returns it."""
        token = self.next
        self.index += 1
        return token

    def expect(self, key: str, example: str) -> None:
        """Skips `key`. Raises: TypeSyntaxError if something else comes next."""
        if not self.take(key):
            raise self.unexpected(f"`{key}`", f"for example, use {example}")

    def unexpected(self, expected: str, fix: str) -> TypeSyntaxError:
        """Returns the error for the next token."""
        found = quoted(self.next.text) if self.next.text else "the end"
        return TypeSyntaxError(self.next.offset, f"found {found}, expected {expected}", _WHY, fix)

    def identifier(self, expected: str, fix: str) -> TypeToken:
        """Skips a name, and returns it. Raises: TypeSyntaxError, UnsureError."""
        if self.next.text.startswith('"'):
            raise UnsureError  # a setting of Spark makes it a name
        if not self.next.is_name:
            raise self.unexpected(expected, fix)
        if self.next.needs_quotes:
            raise self.unexpected(expected, OTHER_CHARACTERS)
        return self.step()
