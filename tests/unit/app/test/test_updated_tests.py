"""`sqlstream test --update` changes only what differs in a file of unit tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.app.test.update import update_expectations
from sqlstream.location import Location
from sqlstream.project.types.data_types import Primitive
from sqlstream.state.runs.case_outcomes import ANY, CaseResult, ComparedRow, Outcome, Row, RowDifference, RowKind

PATH = "tests/models/t.yml"
TYPES = (Primitive("string"), Primitive("int"))


def same(*row: object) -> ComparedRow:
    """A row as expected."""
    return ComparedRow(RowKind.SAME, row, row)


def changed(expected: Row, actual: Row) -> ComparedRow:
    """A row that differs from the expected one."""
    pairs = enumerate(zip(expected, actual, strict=True))
    return ComparedRow(RowKind.CHANGED, expected, actual, frozenset(at for at, (one, other) in pairs if one != other))


def missing(*row: object) -> ComparedRow:
    """An expected row that does not come out."""
    return ComparedRow(RowKind.MISSING, row, None)


def extra(*row: object) -> ComparedRow:
    """A row that is not expected."""
    return ComparedRow(RowKind.EXTRA, None, row)


def updated(
    root: Path, rows: str, *found: ComparedRow, newline: str = "\n", bom: str = "", note: str = "# last"
) -> str:
    """Returns the text of `rows:` after an update for the rows `found`; the rest of the file must stay."""
    before = "# first\nunit_tests:\n  - name: a\n    model: m\n    expect:\n      rows:"
    after = f"\n    {note}\n" + "  - {name: b, model: m, expect: {rows: []}} # another"
    (root / "project.yml").write_text("name: p\n")
    file = root / PATH
    file.parent.mkdir(parents=True)
    file.write_bytes((bom + (before + rows + after).replace("\n", newline)).encode())
    difference = RowDifference(None, ("k", "n"), found, Location(PATH), TYPES)
    result = CaseResult("a", "m", Location(PATH), Outcome.FAILED, differences=(difference,))

    assert list(update_expectations(root, [result])) == [f"updated {PATH}"]

    text = file.read_bytes().decode()
    assert text.count("\n") == text.count(newline)
    text = text.replace(newline, "\n")
    assert text.startswith(bom + before)
    assert text.endswith(after)
    return text.removeprefix(bom + before).removesuffix(after)


@pytest.mark.parametrize(("newline", "bom"), [("\n", ""), ("\r\n", ""), ("\r\n", "\ufeff")])
def test_only_the_value_that_differs_is_replaced(tmp_path: Path, newline: str, bom: str) -> None:
    """Comments, order, formatting, line ends and the byte order mark stay."""
    rows = "\n        # groups\n        - {n: 1,  k: a} # one\n        - k: b # two\n          n: 2   # number\n"

    text = updated(
        tmp_path, rows, changed(("a", 1), ("a", 5)), changed(("b", 2), ("{{ b }}", 7)), newline=newline, bom=bom
    )

    assert text == rows.replace("n: 1", "n: 5").replace("n: 2", "n: 7").replace("k: b", "k: '{{ ''{{ b }}'' }}'")


def test_rows_are_removed_and_added_by_lines(tmp_path: Path) -> None:
    """A missing row goes with its line, and new rows follow the last one that stays."""
    rows = "\n        - {k: a, n: 1} # gone\n        - {k: b, n: 2} # stays\n        - {k: c, n: 3}\n"

    text = updated(tmp_path, rows, missing("a", 1), same("b", 2), missing("c", 3), extra("x\ny", None), extra("", 4))

    assert text == ("\n        - {k: b, n: 2} # stays\n        - {k: \"x\\ny\", n: null}\n        - {k: '', n: 4}\n")


@pytest.mark.parametrize(
    ("rows", "found", "expected"),
    [
        (
            " [{k: a, n: 1}, {k: b, n: }]",
            [same("a", 1), changed(("b", None), ("b", 3))],
            " [{k: a, n: 1}, {k: b, n: 3}]",
        ),
        (" [{k: a, n: 1}]", [same("a", 1), extra("b", 2)], " [{k: a, n: 1}, {k: b, n: 2}]"),
        (" []", [extra("b", 2)], "\n        - {k: b, n: 2}"),
        ("\n        - {k: a, n: 1}", [missing("a", 1)], "\n        []"),
        ("\n        - {k: a}", [changed(("a", ANY), ("b", 2))], "\n        - {k: b}"),
        ("\n        - {k: a}", [changed(("a", None), ("a", 2))], "\n        - {k: a, n: 2}"),
    ],
)
def test_every_layout_has_the_new_rows(tmp_path: Path, rows: str, found: list[ComparedRow], expected: str) -> None:
    """Lists in brackets, rows without a column and partial rows get the new values."""
    assert updated(tmp_path, rows, *found) == expected


def test_a_row_that_is_an_alias_gets_its_own_values(tmp_path: Path) -> None:
    """A changed row that repeats another one is written out, and the other one stays."""
    rows = "\n        - &x {k: a, n: 1}\n        - *x\n        - {k: z, n: 9}"

    text = updated(tmp_path, rows, same("a", 1), changed(("a", 1), ("a", 2)), same("z", 9), note="")

    assert text.rstrip() == "\n        - {k: a, n: 1}\n        - {k: a, n: 2}\n        - {k: z, n: 9}"
