"""A source declares a wider type: queries go on from their checkpoints where the state and the sinks stay right."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream.errors import FindingsError
from tests.spark.conftest import ProjectFolder, bare_session

Rows = Callable[[Path], list[dict[str, Any]]]

SOURCES = """\
sources:
  - name: shop
    tables:
      - {name: orders, format: FORMAT, path: in, schema: 'COLUMNS'}
"""

MODELS = {
    "models/plain.sql": "{{ config(sink='texts') }} select id, amount, item.sku from {{ source('shop', 'orders') }}",
    "models/summed.sql": "{{ config(sink='db', output_mode='update', unique_key='half') }} select id % 2 as half, "
    "sum(amount) as total from {{ source('shop', 'orders') }} where id < 100 group by id % 2",
    "models/by_sku.sql": "{{ config(sink='db', output_mode='update', unique_key='sku') }} select item.sku, count(*) as n "
    "from {{ source('shop', 'orders') }} group by item.sku",
}

SINKS = """\
sinks:
  - {name: lake, format: parquet, path: '{{ model.name }}'}
  - {name: texts, format: json, path: '{{ model.name }}'}
  - {name: db, format: sqlite, path: '{{ model.name }}.sqlite'}
"""


def _declare(folder: ProjectFolder, columns: str, format_name: str = "json, schema_changes: ignore") -> None:
    folder.write({"sources.yml": SOURCES.replace("FORMAT", format_name).replace("COLUMNS", columns)})


def _rows(folder: ProjectFolder, model: str, columns: str) -> list[Any]:
    with sqlite3.connect(folder.root / f"store/{model}.sqlite") as connection:
        return sorted(connection.execute(f"select {columns} from {model}").fetchall())


@pytest.mark.slow
def test_a_number_that_the_type_cannot_hold_is_read_after_the_change(folder: ProjectFolder) -> None:
    """The queries stop at the number. With a wider type they go on, and nothing is lost or read twice. Files that
    readers could not read with both types are refused.
    """
    folder.write({"sinks.yml": SINKS, **MODELS})
    folder.write({"models/typed.sql": "{{ config(sink='lake') }} select amount from {{ source('shop', 'orders') }}"})
    _declare(folder, "id int, amount int, item struct<sku: string>")
    folder.rows("in/1.json", [{"id": n, "amount": n, "item": {"sku": "a"}} for n in (1, 2, 3)], modified=1)
    assert folder.run().succeeded
    folder.rows("in/2.json", [{"id": 4, "amount": 5_000_000_000, "item": {"lot": 1, "sku": "b"}}], modified=2)
    assert {result.finding.code for result in folder.run().results if result.finding} == {"corrupt-record"}

    _declare(folder, "id bigint, amount int, item struct<sku: string>")
    with pytest.raises(FindingsError) as refused:
        folder.run("summed")
    assert [finding.code for finding in refused.value.findings] == ["state-change"]
    assert "the keys of the aggregation" in str(refused.value.findings[0])

    _declare(folder, "id int, amount bigint, item struct<lot: int, sku: string>")
    with pytest.raises(FindingsError) as refused:
        folder.run()
    assert [finding.code for finding in refused.value.findings] == ["output-columns"]
    assert "`amount` was int, and is now bigint" in str(refused.value.findings[0])
    assert folder.run("plain", "summed", "by_sku").succeeded
    assert _rows(folder, "summed", "half, total") == [(0, 5_000_000_002), (1, 4)]
    assert _rows(folder, "by_sku", "sku, n") == [("a", 3), ("b", 1)]
    texts = "".join(path.read_text() for path in (folder.root / "store/plain").glob("*.json"))
    assert sorted(texts.split()) == [
        *(f'{{"id":{n},"amount":{n},"sku":"a"}}' for n in (1, 2, 3)),
        '{"id":4,"amount":5000000000,"sku":"b"}',
    ]


@pytest.mark.slow
def test_floats_in_files_are_doubles(folder: ProjectFolder) -> None:
    """A sum of floats from Parquet goes on with doubles, because the float in a file is the same number."""
    folder.write({"sinks.yml": SINKS, "models/summed.sql": MODELS["models/summed.sql"]})
    with bare_session("local[1]") as session:
        for number, type_ in enumerate(("float", "double"), start=1):
            rows = session.sql(f"select 2 as id, cast(0.1 as {type_}) as amount, named_struct('sku', 'a') as item")
            rows.coalesce(1).write.mode("append").parquet(str(folder.root / f"files{number}"))
    folder.root.joinpath("in").mkdir()
    for number in (1, 2):
        (file,) = (folder.root / f"files{number}").glob("*.parquet")
        folder.root.joinpath(f"in/{number}.parquet").write_bytes(file.read_bytes())
        columns = f"id int, amount {'float' if number == 1 else 'double'}, item struct<sku: string>"
        _declare(folder, columns, "parquet")
        assert folder.run().succeeded
    assert _rows(folder, "summed", "half, total") == [(0, 0.1 + 0.10000000149011612)]
