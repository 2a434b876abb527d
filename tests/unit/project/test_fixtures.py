"""Every format of unit test rows gives the same rows, each value with its text and location."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.errors import Finding
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.unit_tests.fixtures import FixtureReader, Rows
from sqlstream.project.yaml import YamlMapping, parse_yaml, plain


def read(root: Path, yaml: str) -> tuple[Rows | None, list[Finding]]:
    """Returns the rows that a mapping in t.yml gives, and their findings."""
    (root / "t.yml").write_text(yaml)
    findings: list[Finding] = []
    holder = parse_yaml(yaml, "t.yml")
    assert isinstance(holder, YamlMapping)
    return FixtureReader(ProjectFiles(root), findings).read(holder), findings


def write(root: Path, name: str, text: str) -> None:
    """Writes a fixture file."""
    (root / "tests/fixtures").mkdir(parents=True, exist_ok=True)
    (root / "tests/fixtures" / name).write_text(text)


def texts(rows: Rows | None) -> list[dict[str, object]]:
    """Returns the rows as plain values."""
    assert rows is not None
    return [plain(row) for row in rows.rows]  # type: ignore[misc]


FORMS = {
    "yaml": "rows:\n  - {id: 01, name: a}\n  - {id: 02, name: null}\n",
    "csv": "format: csv\nrows: |\n  id,name\n  01,a\n  02,\n",
    "json": 'format: json\nrows: \'[{"id": "01", "name": "a"}, {"id": "02", "name": null}]\'\n',
    "jsonl": 'format: jsonl\nrows: |\n  {"id": "01", "name": "a"}\n\n  {"id": "02", "name": null}\n',
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_the_same_in_all_formats(tmp_path: Path, form: str) -> None:
    """Rows are the same in all formats, with columns matched by name and missing values as null."""
    rows, findings = read(tmp_path, FORMS[form])

    assert findings == []
    assert rows is not None
    shown = [{entry.key: entry.value.text for entry in row.entries} for row in rows.rows]  # type: ignore[union-attr]
    assert [row["id"] for row in shown] == ["01", "02"]
    assert [row["name"] for row in texts(rows)] == ["a", None]


def test_text_without_a_format_has_a_fix(tmp_path: Path) -> None:
    """For text without a format, the fix suggests a list or a `format`."""
    _, (finding,) = read(tmp_path, "rows: |\n  id,name\n  01,a\n")

    assert finding.fix == "start each row with `- `, or set the format of the text: `format: csv` (or json, jsonl, sql)"


def test_quotes_mark_empty_text(tmp_path: Path) -> None:
    """In CSV an empty field is null and `""` is empty text; quoted values may have commas, quotes and line ends."""
    write(tmp_path, "names.csv", 'id,name\n1,""\n2,\n3,"a, ""b""\nc"\n')

    rows, findings = read(tmp_path, "fixture: names\n")

    assert findings == []
    assert [row["name"] for row in texts(rows)] == ["", None, 'a, "b"\nc']


def test_a_value_of_a_file_is_located_in_the_file(tmp_path: Path) -> None:
    """A value of a fixture file has its location in that file, so that a type error is reported there."""
    write(tmp_path, "names.csv", "id,name\n1,a\n2,b\n")
    write(tmp_path, "more.json", '[\n  {"id": 1},\n  {"id": 2}\n]\n')

    rows, _ = read(tmp_path, "fixture: names.csv\n")
    more, _ = read(tmp_path, "fixture: more\n")

    assert rows is not None
    assert more is not None
    assert str(rows.rows[1].entries[1].value.location) == "tests/fixtures/names.csv:3:3"
    assert str(more.rows[1].location) == "tests/fixtures/more.json:3:3"


def test_rows_can_be_a_query(tmp_path: Path) -> None:
    """Rows can be a query, which Spark runs."""
    write(tmp_path, "ids.sql", "select id from range(3)\n")

    rows, findings = read(tmp_path, "fixture: ids\n")

    assert findings == []
    assert rows == Rows(rows.location, sql="select id from range(3)\n")  # type: ignore[union-attr]


def test_a_long_array_is_read_in_linear_time(tmp_path: Path) -> None:
    """Each row of a long array has its location, and reading takes linear time."""
    count = 50_000
    write(tmp_path, "long.json", "[\n" + ",\n".join(f'{{"id": {number}}}' for number in range(count)) + "\n]\n")

    rows, findings = read(tmp_path, "fixture: long\n")

    assert findings == []
    assert rows is not None
    assert rows.rows[-1].location.line == count + 1


BAD = [
    ("rows: []\nfixture: a\n", "t.yml:2:1", "defined twice"),
    ("fixture: nobody\n", "t.yml:1:10", "there is no fixture `nobody`"),
    ("fixture: two\n", "t.yml:1:10", "`two` matches 2 fixtures"),
    ("format: csv\nrows: [{a: 1}]\n", "t.yml:2:1", "must be text in the format csv"),
    ("rows: [1]\n", "t.yml:1:8", "a row must be a mapping"),
    ("format: csv\nrows: |\n  a,b\n  1\n", "t.yml:4:3", "this row has 1 value"),
    ("format: csv\nrows: |\n  a,A\n  1,2\n", "t.yml:3:5", "the header contains `A` twice"),
    ('format: csv\nrows: |\n  a,b\n  1,"x\n', "t.yml:4:5", "quotes"),
    ("format: json\nrows: '{\"a\": 1}'\n", "t.yml:2:8", "a row must be a JSON object"),
    ("format: json\nrows: '[{a: 1}]'\n", "t.yml:2:10", "this is not valid JSON"),
    ('format: jsonl\nrows: |\n  {"a": 1}\n  {"a": }\n', "t.yml:4:9", "this is not valid JSON"),
]


@pytest.mark.parametrize(("yaml", "place", "message"), BAD)
def test_mistakes_in_rows_are_located(tmp_path: Path, yaml: str, place: str, message: str) -> None:
    """Mistakes in rows are located in the file that contains them."""
    write(tmp_path, "two.csv", "a\n")
    write(tmp_path, "two.json", "[]\n")

    rows, findings = read(tmp_path, yaml)

    assert rows is None
    assert [str(finding.location) for finding in findings] == [place]
    assert message in findings[0].message
