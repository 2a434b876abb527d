"""A source map from similar lines, for templates whose output would change if it had marks."""

from __future__ import annotations

from difflib import SequenceMatcher

from sqlstream.compiler.render.places.source import TemplateSource
from sqlstream.location import Location, Place, Segment, SourceMap

MOST_LINES = 5_000
"""Lines of SQL that are compared: difflib's time grows with their square in the worst case."""


def align_lines(sql: str, source: TemplateSource) -> SourceMap:
    """Returns a map in which each line that is also in the template maps to it, and any other line to the nearest such
    line before it.
    """
    lines = sql.split("\n")
    matched = _matched_lines(lines[:MOST_LINES], source.text.split("\n"))
    segments, start, nearest = [], 0, 0
    for index, line in enumerate(lines):
        nearest = matched.get(index, nearest)
        place = Place(Location(source.path, nearest + 1))
        segments.append(Segment(start, place, linear=index in matched))
        start += len(line) + 1
    return SourceMap(tuple(segments))


def _matched_lines(lines: list[str], template: list[str]) -> dict[int, int]:
    """The number of the template's line for each line of SQL (0-based) that is also in the template."""
    matcher = SequenceMatcher(None, lines, template, autojunk=False)
    return {block.a + index: block.b + index for block in matcher.get_matching_blocks() for index in range(block.size)}
