"""Fields of JSON that a source does not declare: `schema_changes` counts, refuses or keeps them, and loses no record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from sqlstream.errors import FindingsError
from sqlstream.state.runs.progress import BatchProgress
from tests.services.avro_bytes import avro_long, avro_string, framed
from tests.services.kafka_topics import Message, Topic
from tests.spark.conftest import PROJECT, ProjectFolder

Rows = Callable[[Path], list[dict[str, Any]]]

COLUMNS = "id int, name string, at timestamp, item struct<sku: string, parts: array<struct<no: int>>>, day date"

DRIFT: dict[str, tuple[str, list[str], dict[str, Any]]] = {
    "as declared": ('{"id": 1, "name": "a", "at": "2026-01-01T00:00:00Z", "item": {"sku": "x"}}', [], {}),
    "added": ('{"id": 2, "color": "red", "size": 1.5}', ["color", "size"], {"color": "red", "size": 1.5}),
    "added as null": ('{"id": 3, "color": null}', ["color"], {"color": None}),
    "added as an object": ('{"id": 4, "box": {"w": [1, "2"]}}', ["box"], {"box": {"w": [1, "2"]}}),
    "added within": ('{"id": 5, "item": {"sku": "x", "lot": 7}}', ["item.lot"], {"item": {"lot": 7}}),
    "added in a list": (
        '{"id": 6, "item": {"parts": [{"no": 1}, {"no": 2, "bin": "b"}]}}',
        ["item.parts[].bin"],
        {"item": {"parts": [None, {"bin": "b"}]}},
    ),
    "removed": ('{"id": 7}', [], {}),
    "renamed": ('{"id": 8, "title": "a"}', ["title"], {"title": "a"}),
    "renamed in letter case": ('{"id": 9, "Name": "a"}', ["Name"], {"Name": "a"}),
    "reordered": ('{"name": "a", "id": 10}', [], {}),
    "made null": ('{"id": 11, "name": null, "item": null}', [], {}),
    "twice": ('{"id": 12, "color": "red", "color": "blue"}', ["color"], {"color": "blue"}),
    "odd names": (
        '{"id": 13, "a.b": 1, "": 2, "q\\"\\n": 3, "_file_path": 4}',
        ["a.b", "", 'q"\n', "_file_path"],
        {"a.b": 1, "": 2, 'q"\n': 3, "_file_path": 4},
    ),
    "with backslashes and quotes": (r'{"id": 14, "name": "C:\\x\\\"y\\\"", "new": "\\"}', ["new"], {"new": "\\"}),
    "in single quotes": ("{'id': 15, 'new': 'x'}", ["new"], {"new": "x"}),
    "indented, with a tab": ('\t {"id": 16,\t"new": "a,b#"} ', ["new"], {"new": "a,b#"}),
}
"""Records, their fields that are not declared, and the values of these."""

SOME = "{{ config(sink='table') }} select id from {{ source('made', 'rows') }} where id = 1"

NOT_READ = {
    "retyped": '{"id": "one", "color": "red"}',
    "retyped within": '{"id": 20, "item": {"sku": "x", "parts": [{"no": "n"}]}}',
    "cut off": '{"id": 21',
    "no time": '{"id": 22, "at": "soon"}',
}


@pytest.fixture
def folder(tmp_path: Path) -> ProjectFolder:
    """Returns a project with one model over the source `made.rows`, whose files are in `in/`."""
    made = ProjectFolder(tmp_path)
    made.write(
        {
            "project.yml": PROJECT,
            "sinks.yml": 'sinks: [{name: lake, format: parquet, path: "{{ model.name }}"}, {name: table, format: noop}]\n',
            "models/all_rows.sql": "{{ config(sink='lake') }} select * from {{ source('made', 'rows') }}",
        }
    )
    return made


def _declare(folder: ProjectFolder, keys: str, columns: str = COLUMNS) -> None:
    table = f"{{name: rows, format: json, path: in, schema: '{columns}', {keys}}}"
    folder.write({"sources.yml": f"sources: [{{name: made, tables: [{table}]}}]\n"})


def _new_fields(folder: ProjectFolder) -> dict[str, int]:
    (batch,) = [event for event in folder.events if isinstance(event, BatchProgress) and event.model == "all_rows"]
    return dict(batch.new_fields.get("made.rows", {}))


@pytest.mark.smoke
def test_new_fields_are_counted_and_kept(folder: ProjectFolder, read_parquet: Rows) -> None:
    """Each record is a row with its declared fields, as without the key, and with its other fields and its file; those
    that cannot be read are in the quarantine. Columns can be the names of folders.
    """
    lines = "\n".join([text for text, _, _ in DRIFT.values()] + ["", *NOT_READ.values()])
    folder.write({"in/day=2026-01-01/a 1.json": lines, "in/day=2026-01-02/b.json": '{"id": 30}'})
    quarantine = "on_corrupt: quarantine, quarantine_sink: lake"
    _declare(folder, quarantine)
    assert [result.finding for result in folder.run().results] == [None, None]
    plain = {row["id"]: row for row in read_parquet(folder.root / "store/all_rows")}
    corrupt = read_parquet(folder.root / "store/made__rows__corrupt")
    folder.events.clear()

    _declare(folder, f"schema_changes: rescue, {quarantine}")
    assert [result.finding for result in folder.run(full_refresh=True).results] == [None, None]

    rows = {row["id"]: row for row in read_parquet(folder.root / "store/all_rows")}
    assert {number: {**row, "_rescued_data": None} for number, row in plain.items()} == {
        number: {**row, "_rescued_data": None} for number, row in rows.items()
    }
    assert (str(rows[1]["day"]), str(rows[30]["day"])) == ("2026-01-01", "2026-01-02")
    kept = {number: json.loads(row["_rescued_data"] or "{}") for number, row in rows.items()}
    files = {number: values.pop("_file_path") for number, values in kept.items() if number != 13 and values}
    assert kept == {**{number: values for number, (_, _, values) in enumerate(DRIFT.values(), start=1)}, 30: {}}
    assert {str(file).endswith("in/day=2026-01-01/a%201.json") for file in files.values()} == {True}
    assert len(corrupt) == len(NOT_READ)
    assert {each["record"] for each in read_parquet(folder.root / "store/made__rows__corrupt")} == {*NOT_READ.values()}
    counts: dict[str, int] = {}
    for _, names, _ in DRIFT.values():
        counts |= {name: counts.get(name, 0) + 1 for name in names}
    assert _new_fields(folder) == counts
    (batch,) = [event for event in folder.events if isinstance(event, BatchProgress) and event.model == "all_rows"]
    assert batch.new_field_rows == sum(bool(names) for _, names, _ in DRIFT.values())


@pytest.mark.slow
def test_a_new_field_ends_the_query(folder: ProjectFolder, read_parquet: Rows) -> None:
    """With `fail` nothing of the batch is written, whichever columns and rows the model reads. The error names the file and
    the fields; without a new field all is written. `ignore` counts, and reads on from the same checkpoint.
    """
    folder.rows("in/1.json", [{"id": 1}], modified=1)
    _declare(folder, "schema_changes: fail")
    folder.write(
        {
            "models/counted.sql": "{{ config(sink='table', output_mode='complete') }} "
            "select count(*) as n from {{ source('made', 'rows') }}",
            "models/some.sql": SOME,
        }
    )
    assert [result.finding for result in folder.run().results] == [None, None, None]
    folder.rows("in/2.json", [{"id": 2}, {"id": 3, "color": "red", "item": {"lot": 7}}], modified=2)

    findings = [result.finding for result in folder.run().results]

    for finding in findings:
        assert finding is not None
        assert (finding.code, finding.message.split(": ")[-1]) == (
            "schema-changed",
            "a record of source `made.rows` has fields that are not declared",
        )
        assert finding.why.endswith("in/2.json, they are color, item.lot")
    assert len(read_parquet(folder.root / "store/all_rows")) == 1

    folder.events.clear()
    _declare(folder, "schema_changes: ignore")
    assert [result.finding for result in folder.run().results] == [None, None, None]
    assert len(read_parquet(folder.root / "store/all_rows")) == 3
    assert _new_fields(folder) == {"color": 1, "item.lot": 1}


@pytest.mark.slow
def test_corrupt_lines_are_dropped_or_end_the_query(folder: ProjectFolder) -> None:
    """The policy for corrupt records is that of the source, and an error has the file and the reason, also if the model
    leaves out such records.
    """
    folder.write({"models/some.sql": SOME})
    folder.write({"in/a.json": "\n".join(['{"id": 1}', *NOT_READ.values(), '[{"id": 1}, {"id": 2}]'])})
    _declare(folder, "schema_changes: ignore, on_corrupt: drop")
    dropped = folder.result("all_rows")
    assert (dropped.rows_out, dropped.dropped_records) == (1, 5)

    _declare(folder, "schema_changes: ignore")
    for model in ("all_rows", "some"):
        finding = folder.result(model, full_refresh=True).finding

        assert finding is not None
        assert finding.code == "corrupt-record"
        assert "in/a.json, which source `made.rows` reads, is corrupt" in finding.message
        assert finding.why == "the line has a field that cannot be read: `id` as int"


@pytest.mark.slow
def test_state_does_not_depend_on_schema_changes(folder: ProjectFolder) -> None:
    """A query with state goes on from its checkpoint when the key is set, changed or removed, and a changed aggregation
    is refused as without it: also if it reads times, columns of folders and fields of structs.
    """
    folder.write(
        {"in/day=2026-01-01/a.json": '{"id": 1, "at": "2026-01-01T00:00:00Z", "item": {"sku": "x"}, "new": 1}'}
    )
    model = (
        "{{ config(sink='table', output_mode='update') }} select day, date_trunc('hour', at) as hour, item.sku, "
        "MAX(at) as last, collect_list(item.parts) as parts, count(distinct id) as n, first(item) as item "
        "from {{ source('made', 'rows') }} where at is not null group by all"
    ).replace("count(distinct id)", "sum(id)")
    columns = "id int, at timestamp, item struct<sku: string, parts: array<struct<no: int>>>, day date"

    def change(keys: str, function: str = "max") -> str | None:
        _declare(folder, keys, columns)
        folder.write({"models/all_rows.sql": model.replace("MAX", function)})
        try:
            result = folder.result("all_rows")
        except FindingsError as error:
            return error.findings[0].code
        return None if result.finding is None else result.finding.code

    kinds = ["on_corrupt: fail", "schema_changes: ignore", "schema_changes: rescue", "schema_changes: ignore"]
    assert [change(keys) for keys in (*kinds, "on_corrupt: drop")] == [None] * 5
    assert [change(keys, "min") for keys in kinds[:3]] == ["state-change"] * 3


@pytest.mark.slow
def test_a_static_table_and_a_batch_model_see_new_fields(folder: ProjectFolder) -> None:
    """A table with mode batch has the same columns and errors."""
    folder.write({"in/a.json": '{"id": 1, "color": "red"}'})
    _declare(folder, "mode: batch, schema_changes: rescue")
    assert folder.result("all_rows").finding is None
    (row,) = pq.read_table(folder.root / "store/all_rows").to_pylist()
    assert json.loads(row["_rescued_data"])["color"] == "red"
    assert _new_fields(folder) == {"color": 1}

    folder.write({"in/a.json": '{"id": 1, "_rescued_data": "of another program"}'})
    _declare(folder, "mode: batch, schema_changes: ignore", "id int, _rescued_data string")
    assert folder.result("all_rows").finding is None
    assert pq.read_table(folder.root / "store/all_rows").to_pylist() == [
        {"id": 1, "_rescued_data": "of another program"}
    ]

    folder.write({"in/a.json": '{"id": 1, "color": "red"}'})
    _declare(folder, "mode: batch, schema_changes: fail")
    finding = folder.result("all_rows").finding
    assert finding is not None
    assert finding.code == "schema-changed"


@pytest.mark.slow
def test_new_fields_of_messages(folder: ProjectFolder, topic: Topic, read_parquet: Rows) -> None:
    """Values of Kafka have the same: an error has the position of the message, and a rescued row has it as columns."""
    topic.send_bytes([Message(b'{"id": 1}'), Message(b'{"id": 2, "color": "red", "item": {"lot": 7}}')])
    keys = f"value_format: json, schema: '{COLUMNS}'"

    _declare_messages(folder, topic, f"{keys}, schema_changes: fail")
    finding = folder.result("all_rows").finding
    assert finding is not None
    assert (finding.code, finding.why) == (
        "schema-changed",
        f"in topic {topic.name}, partition 0, offset 1, they are color, item.lot",
    )
    folder.events.clear()
    _declare_messages(folder, topic, f"{keys}, schema_changes: rescue")
    assert folder.result("all_rows").finding is None
    rows = sorted(read_parquet(folder.root / "store/all_rows"), key=lambda row: row["_kafka_offset"])
    assert [json.loads(row["_rescued_data"] or "{}") for row in rows] == [{}, {"color": "red", "item": {"lot": 7}}]
    assert _new_fields(folder) == {"color": 1, "item.lot": 1}


@pytest.mark.slow
def test_new_fields_of_avro_messages(folder: ProjectFolder, topic: Topic, read_parquet: Rows) -> None:
    """The fields of a writer's schema that the source does not declare are new in its messages, with their values; those
    of a writer without any are not looked at. A message that cannot be read is corrupt.
    """
    sku, lot = {"name": "sku", "type": "string"}, {"name": "lot", "type": ["null", "int"]}
    item = {"type": "record", "name": "Item", "fields": [sku]}
    fields = [{"name": "id", "type": "long"}, {"name": "item", "type": item}]
    more = [
        {"name": "color", "type": ["null", "string"], "default": None},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "opens", "type": {"type": "long", "logicalType": "time-micros"}},
    ]
    wide = [fields[0], {"name": "item", "type": {**item, "fields": [sku, lot]}}, *more]
    schemas = {number: {"type": "record", "name": "Order", "fields": each} for number, each in ((1, fields), (2, wide))}
    versions = [{"version": number, "id": number, "schema": schema} for number, schema in schemas.items()]
    item_2 = avro_string("y") + avro_long(1) + avro_long(7)
    second = avro_long(2) + item_2 + avro_long(1) + avro_string("red") + avro_long(2) + b"\x01\x00" + avro_long(19_723)
    messages = [
        framed(1, avro_long(1) + avro_string("x")),
        framed(2, second + avro_long(0) + avro_long(9)),
        framed(2, b"\x02"),
    ]
    topic.send_bytes([Message(message) for message in messages])
    folder.write(
        {
            "order.avsc": json.dumps(schemas[1]),
            "registry/orders.json": json.dumps({"subject": "orders", "versions": versions}),
        }
    )
    registry = "schema_registry: {url: 'http://127.0.0.1:1', subject: orders}"
    keys = f"value_format: avro, schema_file: order.avsc, {registry}, on_corrupt: quarantine, quarantine_sink: lake"
    _declare_messages(folder, topic, f"{keys}, schema_changes: rescue")

    assert [result.finding for result in folder.run().results] == [None, None]

    (corrupt,) = read_parquet(folder.root / "store/made__rows__corrupt")
    assert (corrupt["offset"], corrupt["reason"]) == (2, "the value cannot be read with its Avro schema")
    rows = sorted(read_parquet(folder.root / "store/all_rows"), key=lambda row: row["id"])
    assert [(row["id"], row["item"]) for row in rows] == [(1, {"sku": "x"}), (2, {"sku": "y"})]
    assert rows[0]["_rescued_data"] is None
    assert json.loads(rows[1]["_rescued_data"]) == {
        "at": "1970-01-01T00:00:00.000Z",
        "color": "red",
        "day": "2024-01-01",
        "item": {"lot": 7},
        "opens": 9,
        "price": 2.56,
    }
    assert _new_fields(folder) == {"color": 1, "price": 1, "day": 1, "at": 1, "opens": 1, "item.lot": 1}

    _declare_messages(folder, topic, f"{keys}, schema_changes: fail")
    results = {result.model: result for result in folder.run(full_refresh=True).results}
    finding = results["all_rows"].finding
    assert finding is not None
    assert (
        finding.why == f"in topic {topic.name}, partition 0, offset 1, they are color, price, day, at, opens, item.lot"
    )


@pytest.mark.slow
def test_new_fields_of_change_events(folder: ProjectFolder, topic: Topic, read_parquet: Rows) -> None:
    """A new column of the database's table is a new field of its events, in each of their forms; the fields around a row
    are not. A patch declares it.
    """
    plain = {"id": 1, "item": {"sku": "x"}}
    new = {**plain, "item": {"sku": "x", "lot": 7}, "color": "red"}
    unwrapped = {**new, "id": 6, "__deleted": "false", "__op": "u", "__table": "rows"}
    document = {"after": json.dumps({**new, "id": 8}), "op": "c", "source": {"connector": "mongodb"}}
    events = [
        {"op": "c", "before": None, "after": plain, "ts_ms": 1},
        {"op": "c", "before": None, "after": {**new, "id": 2}, "transaction": None},
        {"op": "u", "before": {**new, "id": 3}, "after": {**plain, "id": 3}},
        {"op": "d", "before": {**new, "id": 4}, "after": None},
        {"schema": {"type": "struct"}, "payload": {"op": "r", "before": None, "after": {**new, "id": 5}}},
        unwrapped,
        {"schema": {"type": "struct"}, "payload": {**unwrapped, "id": 7, "__deleted": "true"}},
        document,
    ]
    topic.send_bytes([Message(json.dumps(event).encode()) for event in events])
    columns = "{name: id, data_type: int}, {name: item, data_type: 'struct<sku: string>'}"
    _declare_messages(folder, topic, f"value_format: debezium, columns: [{columns}], schema_changes: evolve")
    folder.write(
        {
            "models/all_rows.sql": "{{ config(sink='lake') }} "
            "select row.*, op, _rescued_data from {{ source('made', 'rows') }}"
        }
    )

    assert folder.result("all_rows").finding is None

    rows = {row["id"]: row for row in read_parquet(folder.root / "store/all_rows")}
    rescued = {"color": "red", "item": {"lot": 7}}
    assert {number: json.loads(row["_rescued_data"] or "{}") for number, row in rows.items()} == {
        **dict.fromkeys((2, 4, 5, 6, 7, 8), rescued),
        1: {},
        3: {},
    }
    assert _new_fields(folder) == {"color": 6, "item.lot": 6}
    patch = (folder.root / "target/schema_changes/made.rows.patch").read_text()
    assert "{name: color, data_type: string}" in patch
    assert "struct<sku: string, lot: bigint>" in patch


def _declare_messages(folder: ProjectFolder, topic: Topic, keys: str) -> None:
    servers = f"kafka.bootstrap.servers: '{topic.servers}', subscribe: {topic.name}, startingOffsets: earliest"
    table = f"{{name: rows, format: kafka, options: {{{servers}}}, {keys}}}"
    folder.write({"sources.yml": f"sources: [{{name: made, tables: [{table}]}}]\n"})


@pytest.mark.slow
def test_a_required_column_is_in_each_record(folder: ProjectFolder, read_parquet: Rows) -> None:
    """A record without a value is in the quarantine with the reason, also one of CSV, and one with a new field; with
    `fail`, it ends the query.
    """
    lines = ['{"id": 1, "name": "a"}', '{"id": 2}', '{"id": 3, "name": null, "new": 1}', '{"id": "x", "name": "b"}']
    folder.write({"in/a.json": "\n".join(lines), "texts/a.csv": "1,a\n2,\nx,b\n"})
    quarantine = "on_corrupt: quarantine, quarantine_sink: lake"
    columns = "columns: [{name: id, data_type: int}, {name: name, data_type: string, required: true}]"
    tables = [
        f"{{name: plain, format: json, path: in, {columns}, {quarantine}}}",
        f"{{name: looked, format: json, path: in, {columns}, {quarantine}, schema_changes: ignore}}",
        f"{{name: texts, format: csv, path: texts, {columns}, {quarantine}}}",
    ]
    folder.write(
        {
            "sources.yml": f"sources: [{{name: made, tables: [{', '.join(tables)}]}}]\n",
            "models/all_rows.sql": "{{ config(sink='lake') }} "
            + " union all ".join(
                f"select id from {{{{ source('made', '{name}') }}}}" for name in ("plain", "looked", "texts")
            ),
        }
    )

    assert {result.finding for result in folder.run().results} == {None}

    assert [row["id"] for row in read_parquet(folder.root / "store/all_rows")] == [1, 1, 1]
    missing = "`name` has no value, and is required"
    found = {
        name: {(row["record"], row["reason"]) for row in read_parquet(folder.root / f"store/made__{name}__corrupt")}
        for name in ("plain", "looked", "texts")
    }
    assert found == {
        "plain": {
            ('{"id":2}', missing),
            ('{"id":3}', missing),
            ('{"id": "x", "name": "b"}', "the record cannot be read as json with the declared columns"),
        },
        "looked": {
            ('{"id": 2}', missing),
            ('{"id": 3, "name": null, "new": 1}', missing),
            ('{"id": "x", "name": "b"}', "the line has a field that cannot be read: `id` as int"),
        },
        "texts": {('{"id":2}', missing), ("x,b", "the record cannot be read as csv with the declared columns")},
    }

    folder.write(
        {"sources.yml": f"sources: [{{name: made, tables: [{tables[0].replace(quarantine, 'on_corrupt: fail')}]}}]\n"}
    )
    folder.write({"models/all_rows.sql": "{{ config(sink='lake') }} select name from {{ source('made', 'plain') }}"})
    finding = folder.result("all_rows", full_refresh=True).finding
    assert finding is not None
    assert (finding.code, finding.why) == ("corrupt-record", missing)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_formats_with_types_follow_the_table(folder: ProjectFolder, read_parquet: Rows, form: str) -> None:
    """What happens to changed files is what docs/schema-changes.md says."""
    columns = {"id": pa.array([1], pa.int64()), "name": pa.array(["a"]), "amount": pa.array([5], pa.int32())}
    files = {
        "added": {**columns, "color": pa.array(["red"])},
        "removed": {"id": columns["id"]},
        "reordered": {name: columns[name] for name in reversed(columns)},
        "wider": {**columns, "id": pa.array([1], pa.int32())},
    }
    for name, values in files.items():
        _write(folder.root / f"in/{name}", form, pa.table(values))
    folder.write(
        {
            "sources.yml": f"sources: [{{name: made, tables: [{{name: rows, format: {form}, path: in, "
            "schema: 'id bigint, name string, amount int'}]}]\n"
        }
    )
    assert folder.result("all_rows").finding is None
    rows = [tuple(row.values()) for row in read_parquet(folder.root / "store/all_rows")]
    assert sorted(rows, key=str) == [(1, "a", 5)] * 3 + [(1, None, None)]

    _write(folder.root / "in/narrower", form, pa.table({**columns, "amount": pa.array([5_000_000_000], pa.int64())}))
    if form == "parquet":
        assert folder.result("all_rows").finding is not None
    else:
        with pytest.raises(FindingsError, match=r"\[file-types\]"):
            folder.run()


def _write(path: Path, form: str, table: pa.Table) -> None:
    path.parent.mkdir(exist_ok=True)
    write = orc.write_table if form == "orc" else pq.write_table
    write(table, path)
