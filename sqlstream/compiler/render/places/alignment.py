"""A source map by the likeness of lines, for templates whose text marks would change."""

from __future__ import annotations

from difflib import SequenceMatcher

from sqlstream.compiler.render.places.source import TemplateSource
from sqlstream.location import Location, Place, Segment, SourceMap

MOST_LINES = 5_000
"""Lines of SQL that are compared: difflib's time grows with their square in the worst case."""


def align_lines(sql: str, source: TemplateSource) -> SourceMap:
    """Returns a map in which each line that stands in the template too maps to it, and any other to the nearest such
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
    """For each line of SQL (0-based) that stands in the template too, which line of it that is."""
    matcher = SequenceMatcher(None, lines, template, autojunk=False)
    return {block.a + index: block.b + index for block in matcher.get_matching_blocks() for index in range(block.size)}
