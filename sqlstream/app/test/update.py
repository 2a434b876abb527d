"""`sqlstream test --update`: replaces the expected values of failed tests by the actual ones.

Only the parts of a file that differ are replaced, so that comments, formatting and line ends stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlstream.errors import FindingsError
from sqlstream.project.files.files import find_project_root
from sqlstream.project.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence, follow, parse_yaml
from sqlstream.project.yaml.nodes import Spans
from sqlstream.project.yaml.writing import Edit, flow_text, read_yaml_file
from sqlstream.state.runs.case_outcomes import (
    ANY,
    CaseResult,
    ComparedRow,
    Outcome,
    Row,
    RowDifference,
    RowKind,
    ValueDifference,
)
from sqlstream.testing.fixture_values import UnwritableError, written_value

FIGURES = {"late rows dropped": "late_rows_dropped", "watermark": "watermark", "state rows": "state_rows"}
"""The keys of `expect` with a single value, by their name in a difference."""

YamlPath = tuple[str | int, ...]


def update_expectations(folder: Path, results: Sequence[CaseResult]) -> Iterator[str]:
    """Writes the actual rows and numbers into the files of tests that failed only because of them.

    Yields a line for each updated file, and a line with the reason for each test that is not updated.
    """
    root = find_project_root(folder)
    by_file: dict[str, list[CaseResult]] = {}
    for result in results:
        if result.outcome is Outcome.FAILED:
            by_file.setdefault(result.location.path, []).append(result)
    for path, failed in by_file.items():
        yield from _update_file(root / path, path, failed)


def updated_line(path: str) -> str:
    """Returns the line for an updated file."""
    return f"updated {path}"


def _update_file(path: Path, name: str, failed: Sequence[CaseResult]) -> Iterator[str]:
    file = read_yaml_file(path)
    edits: list[Edit] = []
    for result in failed:
        key_path = _path_of(file.text, name, result)
        found = None if key_path is None else _edits(file.text, key_path, result)
        if found:
            edits += found
        else:
            yield (
                f"{result.location}: {result.full_name} is not updated: only numbers and rows written as YAML "
                "can be updated"
            )
    changed = file.with_edits(edits)
    if edits and _is_yaml(changed.text, name):
        changed.write(path)
        yield updated_line(name)
    elif edits:
        yield f"{name} is not updated: the result cannot be written in the format of the file"


def _is_yaml(text: str, path: str) -> bool:
    try:
        parse_yaml(text, path)
    except FindingsError:
        return False
    return True


def _path_of(text: str, path: str, result: CaseResult) -> YamlPath | None:
    tests = follow(parse_yaml(text, path), ("unit_tests",))
    items = tests.items if isinstance(tests, YamlSequence) else ()
    for index, item in enumerate(items):
        name = item.get("name") if isinstance(item, YamlMapping) else None
        model = item.get("model") if isinstance(item, YamlMapping) else None
        found = tuple(node.value if isinstance(node, YamlScalar) else None for node in (name, model))
        if found == (result.name, result.model):
            return ("unit_tests", index, "expect")
    return None


def _edits(text: str, key_path: YamlPath, result: CaseResult) -> list[Edit] | None:
    """Returns the edits for all differences, or None if one of them cannot be written."""
    writer = _Editor(text, Spans(text))
    edits: list[Edit] = []
    for difference in result.differences:
        try:
            found = writer.edits(key_path, difference)
        except UnwritableError:
            return None
        if found is None:
            return None
        edits += found
    return edits


@dataclass(frozen=True)
class _Editor:
    """Makes the edits of one file."""

    text: str
    spans: Spans

    def edits(self, key_path: YamlPath, difference: RowDifference | ValueDifference) -> list[Edit] | None:
        """Returns the edits of the expectation at `key_path` for a difference. Raises: UnwritableError."""
        if isinstance(difference, ValueDifference):
            key = FIGURES.get(difference.what)
            span = None if key is None else self.spans.of((*key_path, key))
            return None if span is None else [(*span, difference.actual)]
        keys: YamlPath = ("rows",) if difference.batch is None else ("batches", difference.batch - 1, "rows")
        if difference.of_table:
            is_mapping = isinstance(follow(parse_yaml(self.text, ""), (*key_path, "table")), YamlMapping)
            keys = ("table", "rows") if is_mapping else ("table",)
        key_path = (*key_path, *keys)
        span = self.spans.of(key_path)
        # two ways to run the rows differ from each other, not from what the test expects
        if difference.way is not None or span is None:
            return None
        rows = follow(parse_yaml(self.text, ""), key_path)
        if isinstance(rows, YamlSequence):
            return self._changed_rows(key_path, rows, difference) or [self._whole_list(*span, difference)]
        is_empty = isinstance(rows, YamlScalar) and rows.value is None
        return [self._whole_list(*span, difference)] if is_empty else None

    def _changed_rows(self, key_path: YamlPath, rows: YamlSequence, difference: RowDifference) -> list[Edit] | None:
        """Returns the edits of the values that differ, and of the lines of rows to remove and to add.

        None if the whole list must be written: no row stays, a row is an alias, or a list in brackets gets other rows.
        """
        expected = [row for row in difference.rows if row.expected is not None]
        spans = [self.spans.of((*key_path, at)) for at in range(len(expected))]
        if len(expected) != len(rows.items) or not _are_in_order(spans):
            return None
        found = list(zip(expected, rows.items, (span for span in spans if span is not None), strict=True))
        last = max((span[1] for row, _, span in found if row.kind is not RowKind.MISSING), default=None)
        like = next((row.expected for row in expected), None)
        added = [_row_text(difference, row.actual or (), like) for row in difference.rows if row.kind is RowKind.EXTRA]
        others = bool(added) or any(row.kind is RowKind.MISSING for row in expected)
        starts = [_DASH.match(self.text, self.text.rfind("\n", 0, span[0]) + 1, span[0]) for *_, span in found]
        if last is None or (others and None in starts):
            return None
        edits: list[Edit] = []
        for at, ((row, node, span), start) in enumerate(zip(found, starts, strict=True)):
            if row.kind is RowKind.MISSING and start is not None:
                edits.append((start.start(), self._next_line(span[1]), ""))
            elif row.kind is RowKind.CHANGED:
                edits += self._changed_values((*key_path, at), node, span, difference, row)
        if added and starts[0] is not None:
            end = self._next_line(last)
            lines = "".join(f"{starts[0][1]}- {row}\n" for row in added)
            edits.append((end, end, lines if self.text[:end].endswith(("\n", "\r")) else "\n" + lines.rstrip("\n")))
        return edits

    def _changed_values(
        self, key_path: YamlPath, node: YamlNode, span: tuple[int, int], difference: RowDifference, row: ComparedRow
    ) -> list[Edit]:
        """Returns the edits of the values of a row that differ, or of the whole row if it does not contain one."""
        keys = {entry.key.casefold(): entry.key for entry in node.entries} if isinstance(node, YamlMapping) else {}
        edits: list[Edit] = []
        for at in sorted(row.changed):
            key = keys.get(difference.columns[at].casefold())
            value = None if key is None else self.spans.of((*key_path, key))
            if value is None or row.actual is None or not span[0] < value[0] <= value[1] <= span[1]:
                return [(*span, _row_text(difference, row.actual or (), row.expected))]
            text = flow_text(written_value(row.actual[at], difference.types[at]))
            # YAML needs a space after a colon, and an empty value begins at its colon
            edits.append((*value, text if self.text[value[0] - 1] == " " else f" {text}"))
        return edits

    def _next_line(self, offset: int) -> int:
        """Returns the offset of the line after the one with `offset`."""
        found = _LINE_END.search(self.text, offset)
        return len(self.text) if found is None else found.end()

    def _whole_list(self, begin: int, end: int, difference: RowDifference) -> Edit:
        """Returns the edit that writes all rows, one per line, in the style of the list at `begin`."""
        like = next((row.expected for row in difference.rows if row.expected is not None), None)
        rows = [_row_text(difference, row.actual, row.expected or like) for row in difference.rows if row.actual]
        line = self.text[self.text.rfind("\n", 0, begin) + 1 : begin]
        if not rows:
            return begin, end, "[]"
        if self.text.startswith("[]", begin) and (key := line.lstrip(" -")) in ("rows: ", "table: "):
            indent = " " * (len(line) - len(key) + 2)
            # without the space after the key
            return begin - 1, end, "".join(f"\n{indent}- {row}" for row in rows)
        if self.text[begin : begin + 1] == "[":
            return begin, end, f"[{', '.join(rows)}]"
        return begin, end, f"\n{' ' * len(line)}".join(f"- {row}" for row in rows)


_DASH = re.compile(r"( *)- *\Z")
"""The beginning of the line of an item, up to its value."""

_LINE_END = re.compile(r"\r\n|\n|\r")


def _are_in_order(spans: Sequence[tuple[int, int] | None]) -> bool:
    """Whether the items of a list follow each other in the file: an alias is the referenced value, elsewhere."""
    found = [offset for span in spans if span is not None for offset in span]
    return len(found) == 2 * len(spans) and found == sorted(found)


def _row_text(difference: RowDifference, actual: Row, like: Row | None = None) -> str:
    """Returns a row without the columns that the row `like` omits."""
    values = zip(difference.columns, actual, difference.types, strict=True)
    return flow_text(
        {
            name: written_value(value, type_)
            for at, (name, value, type_) in enumerate(values)
            if like is None or like[at] is not ANY
        }
    )
