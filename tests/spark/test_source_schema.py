"""`sqlstream source schema`: the columns that Spark finds in real files, next to the declared ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, UsageError
from sqlstream.app.loading.load import load
from sqlstream.app.source.source_schema import columns_yaml, source_schema
from sqlstream.spark.reading.infer import SourceColumns
from tests.spark.conftest import ProjectFolder

ORDERS = """sources:
  - name: shop
    tables:
      - name: orders
        format: json
        path: in/orders
"""
DECLARED = """        columns:
          - {name: ID, data_type: int, description: "Its number: never 0"}
          - {name: at, data_type: timestamp}
          - {name: amount, data_type: bigint}
          - {name: gone, data_type: string}
"""


def found(project: ProjectFolder, name: str = "shop.orders", files: int = 20) -> SourceColumns:
    """Returns the result of the command."""
    return source_schema(ProjectRequest(project.root), name, files)


def columns(found: SourceColumns) -> list[tuple[str, str]]:
    """Returns the names and types."""
    return [(column.name, column.data_type) for column in found.columns]


def refused(project: ProjectFolder, name: str) -> list[str]:
    """Returns the locations and codes of the findings."""
    with pytest.raises(FindingsError) as error:
        found(project, name)
    return [f"{finding.location}: {finding.code}" for finding in error.value.findings]


@pytest.fixture
def shop(folder: ProjectFolder) -> ProjectFolder:
    """A project with two order files that disagree about one column."""
    folder.write({"sources.yml": ORDERS + DECLARED})
    at = "2024-01-01T00:00:00Z"
    folder.rows("in/orders/1.json", [{"ID": 1, "at": at, "amount": "x", "items": [{"sku no": 1, "q": 2.5}]}])
    folder.rows("in/orders/2.json", [{"ID": 2, "at": at, "amount": 3, "zip": "02134", "day": "2024-01-02"}])
    return folder


def test_declared_columns_stay_and_new_ones_follow_with_notes(shop: ProjectFolder) -> None:
    """Declared columns stay and new ones follow with notes; text can become a timestamp, a zip code stays text."""
    before = (shop.root / "sources.yml").read_text()

    schema = found(shop)

    assert columns(schema) == [
        ("ID", "int"), ("at", "timestamp"), ("amount", "bigint"), ("gone", "string"), ("day", "date"),
        ("items", "array<struct<q:double,`sku no`:bigint>>"), ("zip", "string"),
    ]  # fmt: skip
    assert {column.name: column.notes for column in schema.columns if column.notes} == {
        "amount": (
            "declared type, but the files have string",
            "files differ: string in 1, bigint in 1, such as 1.json",
        ),
        "gone": ("none of the files read contains it",),
    }
    assert (shop.root / "sources.yml").read_text() == before

    shop.write({"sources.yml": f"{ORDERS}{columns_yaml(schema)}\n"})
    (table,) = load(ProjectRequest(shop.root)).compiled.project.sources
    assert [(column.name, column.data_type) for column in table.columns] == columns(schema)
    assert table.columns[0].description == "Its number: never 0"


@pytest.mark.slow
def test_differences_are_also_those_within_columns(shop: ProjectFolder) -> None:
    """Distinguishes new, missing and retyped columns, also in structs and lists. Without a declaration it is refused."""
    shop.write(
        {
            "sources.yml": ORDERS
            + "        schema_changes: fail\n        schema: 'ID int, at timestamp, amount bigint, gone string, zip string, day date, "
            "items array<struct<q: int, `sku no`: bigint, lot: int>>'\n"
        }
    )
    shop.rows("in/orders/3.json", [{"ID": 3, "at": None, "items": [{"sku no": 1, "color": "red"}], "Gone": 1}])

    differences = [(each.kind, each.path, each.declared, each.found) for each in found(shop).differences]

    assert differences == [
        ("retyped", "amount", "bigint", "string"),
        ("missing", "gone", "string", None),
        ("retyped", "items[].q", "int", "double"),
        ("missing", "items[].lot", "int", None),
        ("new", "items[].color", None, "string"),
        ("new", "Gone", None, "bigint"),
    ]
    shown = shop.invoke("source", "schema", "shop.orders", "--diff")
    assert shown.code == 1
    assert "- items[].lot: int  # declared, but not in the data that was read" in shown.out
    shop.write({"sources.yml": ORDERS})
    assert (found(shop).differences, shop.invoke("source", "schema", "shop.orders", "--diff").code) == ((), 2)


def test_only_a_sample_of_the_files_is_read(shop: ProjectFolder) -> None:
    """Only a sample of the files is read, spread from the first to the last."""
    shop.write({"sources.yml": ORDERS + "        schema: id int\n"})
    for number in range(5):
        shop.rows(f"in/orders/more{number}.json", [{"id": number}])

    schema = found(shop, files=2)

    assert (schema.looked_at, schema.files, schema.replaces) == (2, 7, "schema")
    assert columns_yaml(schema).splitlines()[:2] == [
        "        # shop.orders: read 2 of 7 files",
        "        # replaces `schema:`, which declares the schema now",
    ]


def test_parquet_files_and_partition_folders(folder: ProjectFolder) -> None:
    """Parquet types that differ between files or from the declaration are noted; folders by day give a column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for day, amount in (("2024-01-01", pa.int32()), ("2024-01-02", pa.string())):
        path = folder.root / "in" / "orders" / f"day={day}" / "a.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(
            pa.table({"id": pa.array([1], pa.int64()), "amount": pa.array(["1"], pa.string()).cast(amount)}), path
        )
    folder.write({"sources.yml": ORDERS.replace("json", "parquet") + "        schema: id int, day date\n"})

    schema = found(folder)

    assert columns(schema) == [("id", "int"), ("day", "date"), ("amount", "int")]
    notes = {column.name: column.notes for column in schema.columns}
    assert notes["id"] == ("declared type, but the files have bigint",)
    assert notes["amount"] == ("files differ: int in 1, string in 1, such as a.parquet",)


@pytest.mark.slow
def test_formats_without_files_and_missing_files(shop: ProjectFolder, tmp_path: Path) -> None:
    """Formats without files show their fixed columns; empty folders and wrong paths, files or names give findings."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "blank").mkdir()
    (tmp_path / "blank" / "a.json").write_text("")
    tables = """
      - {name: beats, format: rate}
      - {name: lines, format: socket, options: {host: 127.0.0.1, port: 1}}
      - {name: empty, format: csv, path: empty, schema: a int}
      - {name: lost, format: csv, path: nowhere, schema: a int}
      - {name: blank, format: json, path: blank, schema: a int}
"""
    shop.write({"sources.yml": ORDERS + DECLARED + tables.lstrip("\n")})

    beats = found(shop, "shop.beats")
    assert columns_yaml(beats).split()[:3] == ["#", "shop.beats:", "rate"]
    assert columns(beats) == [("timestamp", "timestamp"), ("value", "bigint")]
    assert columns(found(shop, "shop.lines")) == [("value", "string")]
    assert refused(shop, "shop.empty") == ["sources.yml:14:42: source-unreadable"]
    assert refused(shop, "shop.lost") == ["sources.yml:15:41: source-unreadable"]
    assert refused(shop, "shop.blank") == ["sources.yml:16:43: source-unreadable"]
    with pytest.raises(UsageError, match=r"did you mean `shop\.beats`"):
        found(shop, "shop.beat")


def test_csv_options_apply(shop: ProjectFolder) -> None:
    """CSV options apply: a header gives names, and types are inferred."""
    (shop.root / "in" / "csv").mkdir()
    (shop.root / "in" / "csv" / "a.csv").write_text("id;ts\n1;2024-01-01 00:00:00\n")
    table = "      - {name: rows, format: csv, path: in/csv, schema: id int, options: {header: true, sep: ';'}}\n"
    shop.write({"sources.yml": ORDERS + DECLARED + table})

    assert columns(found(shop, "shop.rows")) == [("id", "int"), ("ts", "timestamp")]


DECLARED_A = [("a", "int")]


@pytest.mark.slow
def test_times_of_day_are_text(shop: ProjectFolder) -> None:
    """A column or field with a time without a day is text: Spark would add the day on which it reads the data."""
    files = {
        "in/clock.csv": "at,day,both\n08:30,2024-01-01 08:30,2024-01-01 08:30\nT9,2024-01-02 08:30,10:00\n",
        "in/clock.json": '{"at": "08:30", "s": {"t": [{"u": "8:30"}], "v": "2024-01-01T08:30:00Z"}}\n',
        "in/clock.xml": "<r><at>08:30:15</at><day>2024-01-01T08:30:00</day></r>\n",
    }
    shop.write(files)
    options = {"csv": "header: true", "json": "inferTimestamp: true", "xml": "rowTag: r"}
    tables = "".join(
        f"      - {{name: {kind}_rows, format: {kind}, path: in/clock.{kind}, schema: a int, options: {{{option}}}}}\n"
        for kind, option in options.items()
    )
    shop.write({"sources.yml": ORDERS + DECLARED + tables})

    assert columns(found(shop, "shop.csv_rows")) == [
        *DECLARED_A,
        ("at", "string"),
        ("day", "timestamp"),
        ("both", "string"),
    ]
    assert columns(found(shop, "shop.json_rows")) == [
        *DECLARED_A,
        ("at", "string"),
        ("s", "struct<t:array<struct<u:string>>,v:string>"),
    ]
    assert columns(found(shop, "shop.xml_rows")) == [*DECLARED_A, ("at", "string"), ("day", "timestamp")]
