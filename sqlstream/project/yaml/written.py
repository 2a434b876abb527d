"""The location in the file of a character in a scalar's text."""

from __future__ import annotations

from sqlstream.location import Location


def locate_in_scalar(file_text: str, scalar: Location, text: str, offset: int) -> Location:
    """Returns the location of the character at `offset` of `text`, the text of the scalar at `scalar` in the file.

    It is exact for text on one line, with or without quotes, and for a literal block (`|`). For text that YAML or Jinja
    has changed, it is the location of the scalar.
    """
    lines = file_text.split("\n")
    written = lines[scalar.line - 1][scalar.column - 1 :] if scalar.line <= len(lines) else ""
    if written.startswith("|"):
        return _in_block(lines, scalar, text, offset)
    quote = 1 if written[:1] in ("'", '"') else 0
    if text and written[quote:].startswith(text):
        return Location(scalar.path, scalar.line, scalar.column + quote + offset)
    return scalar


def _in_block(lines: list[str], scalar: Location, text: str, offset: int) -> Location:
    """The location in a literal block, whose lines follow the line of the scalar with equal indentation."""
    before = text[:offset]
    number, column = before.count("\n"), offset - (before.rfind("\n") + 1)
    wanted = text.split("\n")[number]
    index = scalar.line + number
    if index >= len(lines) or not lines[index].endswith(wanted):
        return scalar
    return Location(scalar.path, index + 1, len(lines[index]) - len(wanted) + column + 1)
