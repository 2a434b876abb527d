"""`sqlstream test --update`: what came out, written in the place of what was expected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

from sqlstream.project.files import find_project_root
from sqlstream.project.yaml import YamlMapping, YamlScalar, YamlSequence, follow, parse_yaml
from sqlstream.project.yaml.spans import flow_text, span_of
from sqlstream.state.test_results import ANY, CaseResult, Outcome, RowDifference, ValueDifference

FIGURES = {"late rows dropped": "late_rows_dropped", "watermark": "watermark", "state rows": "state_rows"}
"""The keys of `expect` that hold one figure, by what a difference calls it."""

YamlPath = tuple[str | int, ...]


def update_expectations(folder: Path, results: Sequence[CaseResult]) -> Iterator[str]:
    """Writes the rows and figures that came out into the files of the tests that failed for these alone.

    Gives a line for each file that was written, and for each test that is not updated, with the reason.
    """
    root = find_project_root(folder)
    by_file: dict[str, list[CaseResult]] = {}
    for result in results:
        if result.outcome is Outcome.FAILED:
            by_file.setdefault(result.location.path, []).append(result)
    for path, failed in by_file.items():
        yield from _update_file(root / path, path, failed)


def _update_file(file: Path, path: str, failed: Sequence[CaseResult]) -> Iterator[str]:
    text = file.read_text(encoding="utf-8")
    edits: list[tuple[int, int, str]] = []
    for result in failed:
        place = _path_of(text, path, result)
        found = None if place is None else _edits(text, place, result)
        if found:
            edits += found
        else:
            yield f"{result.location}: {result.full_name} is not updated: only rows and figures in YAML are"
    for begin, end, new in sorted(edits, reverse=True):
        text = text[:begin] + new + text[end:]
    if edits:
        file.write_text(text, encoding="utf-8")
        yield f"updated {path}"


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


def _edits(text: str, place: YamlPath, result: CaseResult) -> list[tuple[int, int, str]] | None:
    """What is to be replaced; None where one of the differences cannot be written."""
    edits = []
    for difference in result.differences:
        key: YamlPath
        if isinstance(difference, ValueDifference):
            if difference.what not in FIGURES:
                return None
            key, new = (FIGURES[difference.what],), difference.actual
        elif difference.way is not None:
            return None
        else:
            key = ("rows",) if difference.batch is None else ("batches", difference.batch - 1, "rows")
            new = None
        span = span_of(text, (*place, *key))
        if span is None:
            return None
        begin, end = span
        if new is None and isinstance(difference, RowDifference):
            new = _rows_text(text, begin, difference)
        end = begin + len(text[begin:end].rstrip())
        edits.append((begin, end, new or ""))
    return edits


def _rows_text(text: str, begin: int, difference: RowDifference) -> str:
    """The rows that came out, a line each, as the list that begins at `begin` is written."""
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
    """Returns a number as YAML writes it: as a float where that has all of its digits, and else as text."""
    return float(value) if value == Decimal(repr(float(value))) else str(value)


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return plain_number(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
