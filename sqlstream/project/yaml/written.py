"""Where a character of a scalar's text stands in the file, which YAML's styles do not tell by themselves."""

from __future__ import annotations

from sqlstream.location import Location


def locate_in_scalar(file_text: str, scalar: Location, text: str, offset: int) -> Location:
    """Returns the place of the character at `offset` of `text`, the text of the scalar at `scalar` in the file.

    That is exact for text on one line, with quotes or without, and for a literal block (`|`); for text that YAML or
    Jinja has changed it is the place of the scalar.
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
    """The place in a literal block, whose lines follow that of the scalar and are indented alike."""
    before = text[:offset]
    number, column = before.count("\n"), offset - (before.rfind("\n") + 1)
    wanted = text.split("\n")[number]
    index = scalar.line + number
    if index >= len(lines) or not lines[index].endswith(wanted):
        return scalar
    return Location(scalar.path, index + 1, len(lines[index]) - len(wanted) + column + 1)
