"""The types of ORC and Avro files are compared with the declared ones: Spark converts some types without an error."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest, ProjectRequest
from sqlstream.app.stored.file_types import stored_type
from sqlstream.errors import FindingsError
from sqlstream.project.formats.stored_types import READS_RIGHTLY
from sqlstream.project.types.data_types import Struct
from sqlstream.project.types.ddl import parse_type
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from tests.services.avro_bytes import avro_file, avro_long, avro_schema, avro_value
from tests.spark.conftest import ProjectFolder, avro_session, bare_session

VALUES = {
    "boolean": ("true", "false"),
    "tinyint": ("-128Y", "127Y"),
    "smallint": ("-32768S", "32767S"),
    "int": ("-2147483648", "16777217", "2147483647"),
    "bigint": ("-9223372036854775808L", "9007199254740993L", "9223372036854775807L"),
    "float": ("cast(0.1 as float)", "cast(3e38 as float)", "cast('nan' as float)"),
    "double": ("1.5D", "1e300D", "cast('nan' as double)"),
    "decimal(10,2)": ("cast(99999999.99 as decimal(10,2))", "cast(1.50 as decimal(10,2))"),
    "decimal(12,4)": ("cast(99999999.9999 as decimal(12,4))", "cast(1.5 as decimal(12,4))"),
    "decimal(16,2)": ("cast(99999999999999.99 as decimal(16,2))", "cast(1.50 as decimal(16,2))"),
    "string": ("'abc'", "'12'", "'2024-01-01'", "'2024-01-01 10:00:00'"),
    "binary": ("x'616263'", "x'ff'"),
    "date": ("date'2024-01-01'", "date'1500-01-01'"),
    "timestamp": ("timestamp'2024-01-01 10:00:00.123456'", "timestamp'1890-01-01 00:00:00'"),
    "timestamp_ntz": ("timestamp_ntz'2024-01-01 10:00:00.123456'",),
}
"""The values of each type in a file, among them the largest ones."""

DECLARED = (*VALUES, "decimal(3,0)", "decimal(20,0)", "decimal(20,4)")


@pytest.fixture(name="session")
def session_of_new_york() -> Iterator[SparkSession]:
    """A session whose time zone is not UTC."""
    with bare_session("local[1]", spark__sql__session__timeZone="America/New_York") as session:
        yield session


@pytest.mark.slow
def test_spark_reads_rightly_what_the_rule_says(session: SparkSession, tmp_path: Path) -> None:
    """A declared type is right if Spark reads what a cast makes of the values, and can cast it back."""
    wrong = []
    for stored, values in VALUES.items():
        path = str(tmp_path / stored)
        columns = ", ".join(f"v as v{number}" for number in range(len(DECLARED)))
        rows = ", ".join(f"({value})" for value in values)
        session.sql(f"select {columns} from values {rows} as t(v)").coalesce(1).write.orc(path)
        assert session.read.orc(path).schema["v0"].dataType.simpleString() == stored
        plain = [number for number, declared in enumerate(DECLARED) if declared not in SOMETIMES_REFUSED]
        others = [[number] for number, declared in enumerate(DECLARED) if declared in SOMETIMES_REFUSED]
        for numbers in (plain, *others):
            right = _right(session, path, stored, numbers)
            expected = {n for n in numbers if READS_RIGHTLY["orc"](parse_type(stored), parse_type(DECLARED[n]))}
            wrong += [(stored, DECLARED[number], number in right) for number in right ^ expected]
    # a cast makes seconds of a number and of a time, but the unit of a number in a file is not known
    assert [each for each in wrong if "timestamp" not in each] == []
    assert {each[2] for each in wrong} == {True}


SOMETIMES_REFUSED = ("binary", "date", "timestamp", "timestamp_ntz")
"""Types as which the reader of ORC refuses some others, and with them the whole file."""


def _right(session: SparkSession, path: str, stored: str, numbers: list[int]) -> set[int]:
    """Returns the columns that are read rightly as their declared types."""
    can_cast = [number for number in numbers if _can_cast(session, stored, DECLARED[number])]
    if not can_cast:
        return set()
    schema = ", ".join(f"v{number} {DECLARED[number]}" for number in can_cast)
    casts = [f"try_cast(v{number} as {DECLARED[number]})" for number in can_cast]
    texts = [_text(f"v{number}", DECLARED[number]) for number in can_cast]
    backs = [f"v{number} <=> try_cast({cast} as {stored})" for number, cast in zip(can_cast, casts, strict=True)]
    try:
        found = session.read.schema(schema).orc(path).selectExpr(*texts).collect()
    except SPARK_ERRORS:
        return set()
    wanted = [_text(cast, DECLARED[number]) for number, cast in zip(can_cast, casts, strict=True)]
    expected = session.read.orc(path).selectExpr(*wanted, *backs).collect()
    count = len(can_cast)
    return {
        number
        for index, number in enumerate(can_cast)
        if [row[index] for row in found] == [row[index] for row in expected]
        and all(row[count + index] for row in expected)
    }


def _text(value: str, type_: str) -> str:
    return f"hex({value})" if type_ == "binary" else f"cast({value} as string)"


def _can_cast(session: SparkSession, stored: str, declared: str) -> bool:
    try:
        session.sql(f"select try_cast(cast(null as {stored}) as {declared})")
    except SPARK_ERRORS:
        return False
    return True


@pytest.mark.slow
def test_spark_makes_a_date_of_milliseconds_in_avro(tmp_path: Path) -> None:
    """Of times and longs, Spark makes the day that their milliseconds say; the rule refuses those that are no
    milliseconds.
    """
    day, millis = date(2026, 1, 2), 1_767_348_000_123
    units = {
        "timestamp-millis": 1,
        "local-timestamp-millis": 1,
        None: 1,
        "timestamp-micros": 1_000,
        "local-timestamp-micros": 1_000,
    }
    right, accepted = {}, {}
    with avro_session(tmp_path / "shop") as session:
        for logical, factor in units.items():
            kind = {"type": "long", **({"logicalType": logical} if logical else {})}
            schema = {"type": "record", "name": "Row", "fields": [{"name": "v", "type": kind}]}
            path = tmp_path / f"{logical}.avro"
            path.write_bytes(avro_file(schema, avro_long(millis * factor)))
            (row,) = (
                session.read.schema("v date").format("avro").load(str(path)).selectExpr("cast(v as string)").collect()
            )
            right[logical] = row[0] == str(day)
            stored = stored_type("avro", str(path), session)
            assert isinstance(stored, Struct)
            accepted[logical] = READS_RIGHTLY["avro"](stored.fields[0].type, parse_type("date"))
    assert accepted == right == {logical: factor == 1 for logical, factor in units.items()}


@pytest.mark.slow
def test_times_in_avro_files_that_are_declared_as_dates_are_refused(folder: ProjectFolder) -> None:
    """A run names the column, and reads the files with the type that they have."""
    kind = pa.struct([("id", pa.int32()), ("at", pa.timestamp("us", "UTC"))])
    value = avro_value({"id": 1, "at": datetime(2026, 1, 2, tzinfo=UTC)}, kind)
    (folder.root / "in").mkdir()
    (folder.root / "in/a.avro").write_bytes(avro_file(avro_schema(kind, "Row"), value))
    table = "{name: rows, format: avro, path: in, schema: 'id int, at date'}"
    folder.write(
        {
            "sources.yml": f"sources: [{{name: made, tables: [{table}]}}]\n",
            "models/all_rows.sql": "{{ config(sink='lake') }} select * from {{ source('made', 'rows') }}",
        }
    )

    with pytest.raises(
        FindingsError, match=r"`at` of source `made.rows` is declared as date, and is timestamp in"
    ) as refused:
        folder.run()
    assert [each.code for each in refused.value.findings] == ["file-types"]

    folder.write({"sources.yml": (folder.root / "sources.yml").read_text().replace("at date", "at timestamp")})
    assert folder.run().succeeded


@pytest.mark.slow
def test_types_that_spark_would_convert_are_refused(folder: ProjectFolder) -> None:
    """A run and `plan --check` name the column, at its line. Columns by position are found, also within structs."""
    with bare_session("local[1]") as session:
        rows = session.sql("select 1 as id, 1.5D as amount, array(named_struct('sku', 'a', 'n', 5000000000L)) as items")
        rows.coalesce(1).write.orc(str(folder.root / "in/day=2026-01-01"))
        rows.toDF("_col0", "_col1", "_col2").coalesce(1).write.orc(str(folder.root / "unnamed"))
    table = (
        "{name: TABLE, format: orc, path: PATH, columns: [\n        {name: id, data_type: bigint},\n        AMOUNT,\n"
    )
    table += "        {name: items, data_type: 'array<struct<sku: string, n: int>>'},\n"
    table += "        {name: day, data_type: date}]}\n"
    amount = "{name: amount, data_type: int}"
    named = table.replace("TABLE", "orders").replace("PATH", "in").replace("AMOUNT", amount)
    unnamed = table.replace("TABLE", "unnamed").replace("PATH", "unnamed").replace("AMOUNT", amount)
    folder.write(
        {
            "sources.yml": f"sources:\n  - name: shop\n    tables:\n      - {named}      - {unnamed}",
            "models/named.sql": "{{ config(sink='lake') }} select * from {{ source('shop', 'orders') }}",
            "models/unnamed.sql": "{{ config(sink='lake') }} select * from {{ source('shop', 'unnamed') }}",
        }
    )

    with pytest.raises(FindingsError) as refused:
        folder.run()

    found = [(each.code, each.location.line) for each in refused.value.findings if each.location]
    assert found == [("file-types", line) for line in (6, 7, 11, 12)]
    assert "`items.element.n` of source `shop.orders` is declared as int, and is bigint in" in str(
        refused.value.findings[1]
    )
    plan = plan_project(PlanRequest(ProjectRequest(folder.root), check=True))
    assert {finding.code for query in plan.queries for finding in query.findings} == {"file-types"}

    sources = (folder.root / "sources.yml").read_text().replace(amount, "{name: amount, data_type: double}")
    folder.write({"sources.yml": sources.replace("n: int", "n: bigint")})
    assert folder.run().succeeded
