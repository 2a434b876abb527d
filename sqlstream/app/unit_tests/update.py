"""`sqlstream test --update`: replaces the expected rows and numbers of failed tests by the actual ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

from sqlstream.errors import FindingsError
from sqlstream.project.files.files import find_project_root
from sqlstream.project.yaml import YamlMapping, YamlScalar, YamlSequence, follow, parse_yaml
from sqlstream.project.yaml.spans import flow_text, span_of
from sqlstream.state.results.unit_tests import ANY, CaseResult, Outcome, RowDifference, ValueDifference

FIGURES = {"late rows dropped": "late_rows_dropped", "watermark": "watermark", "state rows": "state_rows"}
"""The keys of `expect` with a single value, by their name in a difference."""

YamlPath = tuple[str | int, ...]

Edit = tuple[int, int, str]
"""The start and end of a part of a text, and its replacement."""


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


def _update_file(file: Path, path: str, failed: Sequence[CaseResult]) -> Iterator[str]:
    text = file.read_text(encoding="utf-8")
    edits: list[Edit] = []
    for result in failed:
        place = _path_of(text, path, result)
        found = None if place is None else _edits(text, place, result)
        if found:
            edits += found
        else:
            yield (
                f"{result.location}: {result.full_name} is not updated: only numbers and rows written as YAML "
                "can be updated"
            )
    for begin, end, new in sorted(edits, reverse=True):
        text = text[:begin] + new + text[end:]
    if edits and _is_yaml(text, path):
        file.write_text(text, encoding="utf-8")
        yield updated_line(path)
    elif edits:
        yield f"{path} is not updated: the result cannot be written in the format of the file"


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


def _edits(text: str, place: YamlPath, result: CaseResult) -> list[Edit] | None:
    """Returns the edits for all differences, or None if one of them cannot be written."""
    edits = [_edit(text, place, difference) for difference in result.differences]
    return None if None in edits else [edit for edit in edits if edit is not None]


def _edit(text: str, place: YamlPath, difference: RowDifference | ValueDifference) -> Edit | None:
    if isinstance(difference, ValueDifference):
        key = FIGURES.get(difference.what)
        span = None if key is None else span_of(text, (*place, key))
        return None if span is None else (*_trimmed(text, span), difference.actual)
    keys: YamlPath = ("rows",) if difference.batch is None else ("batches", difference.batch - 1, "rows")
    span = span_of(text, (*place, *keys))
    if difference.way is not None or span is None or not _is_list(text, (*place, *keys)):
        return None
    begin, end = _trimmed(text, span)
    new = _rows_text(text, begin, difference)
    return (len(text[:begin].rstrip(" ")) if new.startswith("\n") else begin, end, new)


def _trimmed(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """Returns the span without trailing white space."""
    begin, end = span
    return begin, begin + len(text[begin:end].rstrip())


def _is_list(text: str, place: YamlPath) -> bool:
    """Whether the rows are YAML, not text in another format."""
    node = follow(parse_yaml(text, ""), place)
    return isinstance(node, YamlSequence) or (isinstance(node, YamlScalar) and node.value is None)


def _rows_text(text: str, begin: int, difference: RowDifference) -> str:
    """Returns the actual rows, one per line, in the style of the list at `begin`."""
    rows = [_row_text(difference, number) for number, row in enumerate(difference.rows) if row.actual is not None]
    if not rows:
        return "[]"
    line = text[text.rfind("\n", 0, begin) + 1 : begin]
    is_empty_block = text.startswith("[]", begin) and line.lstrip(" -") == "rows: "
    if is_empty_block:
        indent = " " * (len(line) - len("rows: ") + 2)
        return "".join(f"\n{indent}- {row}" for row in rows)
    if text[begin] == "[":
        return f"[{', '.join(rows)}]"
    indent = " " * len(line)
    return f"\n{indent}".join(f"- {row}" for row in rows)


def _row_text(difference: RowDifference, number: int) -> str:
    row = difference.rows[number]
    like = row.expected or next((each.expected for each in difference.rows if each.expected is not None), None)
    given = {
        name: _plain(value)
        for at, (name, value) in enumerate(zip(difference.columns, row.actual or (), strict=True))
        if like is None or like[at] is not ANY
    }
    return flow_text(given)


def plain_number(value: Decimal) -> float | str:
    """Returns a number for YAML: a float if that keeps all digits, otherwise text."""
    return float(value) if value == Decimal(repr(float(value))) else str(value)


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return plain_number(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
