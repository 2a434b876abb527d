"""Tables of Delta Lake and Iceberg get new fields within the structs of their columns, and wider types."""

from __future__ import annotations

import re

import pytest

from sqlstream.errors import FindingsError
from tests.spark.conftest import ProjectFolder
from tests.support.lake_tables import FORMATS, SINKS, lake_session

SOURCES = "sources: [{name: shop, tables: [{name: orders, format: json, path: in, schema: 'COLUMNS'}]}]\n"

BEFORE = (
    "id int, at int, item struct<sku: string, price: int>, items array<struct<sku: string, x: struct<a: int>>>, "
    "parts map<string, struct<sku: string>>"
)
AFTER = (
    "id int, at int, item struct<lot: bigint, price: int, sku: string, `a-b`: string>, "
    "items array<struct<color: string, sku: string, x: struct<b: int, a: int>>>, "
    "parts map<string, struct<lot: bigint, sku: string>>"
)
FIRST = {
    "at": 1,
    "item": {"sku": "a", "price": 1},
    "items": [{"sku": "c", "x": {"a": 1}}, None],
    "parts": {"p": {"sku": "d"}},
}
SECOND = {
    "at": 2,
    "item": {"sku": "b", "price": 2, "lot": 7, "a-b": "text"},
    "items": [{"color": "red", "sku": "e", "x": {"b": 3, "a": 4}}],
    "parts": {"p": {"lot": 8, "sku": "f"}},
}
KINDS = {
    "appended": "",
    "merged": ", unique_key='id', sequence_by='at', delete_when='at < 0'",
    "versions": ", unique_key='id', sequence_by='at', history=true",
}
SELECTED = (
    "at",
    "item.sku",
    "item.price",
    "item.lot",
    "item.`a-b`",
    "items[0].sku",
    "items[0].color",
    "items[0].x.a",
    "items[0].x.b",
    "size(items)",
    "parts['p'].sku",
    "parts['p'].lot",
)
OLD = (1, "a", 1, None, None, "c", None, 1, None, 2, "d", None)
NEW = (2, "b", 2, 7, "text", "e", "red", 4, 3, 1, "f", 8)
NOTHING = (1, *[None] * 11)


@pytest.mark.slow
def test_tables_get_new_fields_within_structs(folder: ProjectFolder) -> None:
    """The values are in their fields, wherever the declaration has a new one, and earlier rows have null there."""
    folder.write({"sinks.yml": SINKS, "sources.yml": SOURCES.replace("COLUMNS", BEFORE)})
    for each in FORMATS:
        for kind, config in KINDS.items():
            columns = "* except (parts)" if kind == "versions" else "*"  # Spark cannot compare maps
            select = f"select {columns} from {{{{ source('shop', 'orders') }}}}"
            folder.write({f"models/{kind}_{each}.sql": f"{{{{ config(sink='{each}'{config}) }}}} {select}"})
    folder.rows("in/1.json", [{"id": 1, **FIRST}, {"id": 2, "at": 1}], modified=1)
    assert [str(result.finding) for result in folder.run().results if result.finding] == []
    folder.write({"sources.yml": SOURCES.replace("COLUMNS", AFTER)})
    folder.rows("in/2.json", [{"id": 1, **SECOND}], modified=2)

    outcome = folder.run()

    assert [str(result.finding) for result in outcome.results if result.finding] == []
    assert outcome.warnings == ()
    with lake_session(folder) as session:
        for each in FORMATS:
            for kind in KINDS:
                selected = SELECTED[:-2] if kind == "versions" else SELECTED
                expected = [OLD, NEW, NOTHING] if kind in ("appended", "versions") else [NEW, NOTHING]
                stored = session.read.format(each).load(str(folder.root / f"store/{kind}_{each}"))
                found = sorted((tuple(row) for row in stored.selectExpr(*selected).collect()), key=str)
                assert found == sorted((row[: len(selected)] for row in expected), key=str), (each, kind)


@pytest.mark.slow
def test_a_column_gets_a_wider_type_by_the_statement_of_the_fix(folder: ProjectFolder) -> None:
    """The run is refused until the column of the table has the type; then it goes on from its checkpoint."""
    folder.write({"sinks.yml": SINKS, "sources.yml": SOURCES.replace("COLUMNS", "id int, at int, price decimal(6,2)")})
    for each in FORMATS:
        for kind, config in KINDS.items():
            select = "select * from {{ source('shop', 'orders') }}"
            folder.write({f"models/{kind}_{each}.sql": f"{{{{ config(sink='{each}'{config}) }}}} {select}"})
    folder.rows("in/1.json", [{"id": 1, "at": 1, "price": 1.25}], modified=1)
    assert folder.run().succeeded
    folder.write({"sources.yml": SOURCES.replace("COLUMNS", "id bigint, at bigint, price decimal(12,2)")})
    large = 5_000_000_000
    folder.rows("in/2.json", [{"id": large, "at": large, "price": 123456789.25}], modified=2)
    folder.rows("in/3.json", [{"id": large + 1, "at": -large}], modified=3)

    with pytest.raises(FindingsError) as refused:
        folder.run()

    assert {finding.code for finding in refused.value.findings} == {"output-columns"}
    with lake_session(folder) as session:
        for finding in refused.value.findings:
            for statement in re.findall(r"ALTER TABLE [^;]*", finding.fix or ""):
                session.sql(re.sub(r"sqlstream_\w+\.", "files.", statement))  # its catalog is that of the run
    assert folder.run().succeeded
    with lake_session(folder) as session:
        for each in FORMATS:
            for kind in KINDS:
                stored = session.read.format(each).load(str(folder.root / f"store/{kind}_{each}"))
                rows = sorted(map(tuple, stored.where("at > 0").selectExpr("id", "cast(price as double)").collect()))
                assert rows == [(1, 1.25), (large, 123456789.25)], (each, kind)
