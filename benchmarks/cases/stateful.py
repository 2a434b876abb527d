"""Forty stateful cases: four shapes of ten, each with four batches, as a project and in pytest and PySpark."""

from __future__ import annotations

from pathlib import Path

CASES_OF_A_SHAPE = 10

PROJECT = """name: bench
targets: {local: {master: "local[*]"}}
"""

SOURCES = """version: 2
sources:
  - name: s
    tables:
      - {name: signals, format: json, path: data, schema: "at timestamp, device string, value double"}
"""

SINKS = """version: 2
sinks: [{name: out, format: console}]
"""

COUNTS = "avg(value) as average, count(*) as signals"
HINT = "/*+ WATERMARK(at, '10 minutes') */"
CLAUSE = "signals watermark at delay of interval 10 minutes"

SHAPES = {
    "tumbling": ("append", "window.start as since, device", "window(at, '10 minutes'), device"),
    "sliding": ("append", "window.start as since, device", "window(at, '10 minutes', '5 minutes'), device"),
    "sessions": ("append", "session_window.start as since, device", "session_window(at, '10 minutes'), device"),
    "totals": ("complete", "device", "device"),
}
"""The output mode, the columns besides the counts, and the GROUP BY of each shape, by name."""


def batches(number: int) -> list[list[tuple[str, str, float]]]:
    """Returns the batches of a case: on time, in another window, late, and far ahead."""
    value = float(number)
    return [
        [("2024-01-01 12:02:00", "a", value), ("2024-01-01 12:03:00", "b", value + 1)],
        [("2024-01-01 12:14:00", "a", value)],
        [("2024-01-01 12:04:30", "a", value + 2)],
        [("2024-01-01 13:00:00", "c", value)],
    ]


def expected(shape: str, number: int) -> list[tuple[str, str, float, int]]:
    """Returns the final rows of a case, as (since, device, average, signals)."""
    value = float(number)
    first = [("12:00:00", "a", value + 1, 2), ("12:00:00", "b", value + 1, 1), ("12:10:00", "a", value, 1)]
    if shape == "sliding":
        before = [("11:55:00", "a", value + 1, 2), ("11:55:00", "b", value + 1, 1)]
        return [*before, *first, ("12:05:00", "a", value, 1)]
    if shape == "sessions":
        return [("12:02:00", "a", (3 * value + 2) / 3, 3), ("12:03:00", "b", value + 1, 1)]
    if shape == "totals":
        return [("", "a", (3 * value + 2) / 3, 3), ("", "b", value + 1, 1), ("", "c", value, 1)]
    return first


def write_project(folder: Path) -> None:
    """Writes the sqlstream project with its unit tests."""
    for name, text in (("project.yml", PROJECT), ("sources.yml", SOURCES), ("sinks.yml", SINKS)):
        (folder / name).write_text(text)
    (folder / "models").mkdir()
    for shape, (mode, columns, keys) in SHAPES.items():
        config = f"{{{{ config(sink='out', output_mode='{mode}') }}}}"
        hint = HINT if mode == "append" else ""
        sql = f"{config}\nselect {hint} {columns}, {COUNTS}\nfrom {{{{ source('s', 'signals') }}}}\ngroup by {keys}\n"
        (folder / "models" / f"{shape}.sql").write_text(sql)
        cases = "".join(_case(shape, number) for number in range(CASES_OF_A_SHAPE))
        (folder / "models" / f"{shape}.yml").write_text(f"version: 2\nunit_tests:\n{cases}")


def _case(shape: str, number: int) -> str:
    given = "".join(f"          - rows: [{', '.join(map(_signal, rows))}]\n" for rows in batches(number))
    rows = "".join(f"        - {_result(*row)}\n" for row in expected(shape, number))
    return (
        f"  - name: case_{number}\n    model: {shape}\n    given:\n      - input: source('s', 'signals')\n"
        f"        batches:\n{given}    expect:\n      rows:\n{rows}"
    )


def _signal(row: tuple[str, str, float]) -> str:
    return f"{{at: {row[0]}, device: {row[1]}, value: {row[2]}}}"


def _result(since: str, device: str, average: float, signals: int) -> str:
    begin = f"since: 2024-01-01 {since}, " if since else ""
    return f"{{{begin}device: {device}, average: {average}, signals: {signals}}}"


PLAIN = '''"""The same cases in pytest and PySpark."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

SETTINGS = {settings!r}
SCHEMA = "at timestamp, device string, value double"
SHAPES = {shapes!r}
COUNTS = {counts!r}
CASES = {cases!r}


@pytest.fixture(scope="session")
def spark():
    builder = SparkSession.builder.master("local[*]").appName("cases").config("spark.sql.session.timeZone", "UTC")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_case(spark, tmp_path, case):
    name, shape, batches, expected = case
    mode, columns, keys = SHAPES[shape]
    data = tmp_path / "data"
    data.mkdir()
    view = spark.readStream.schema(SCHEMA).json(str(data))
    if mode == "append":
        view = view.withWatermark("at", "10 minutes")
    view.createOrReplaceTempView("signals")
    frame = spark.sql(f"select {{columns}}, {{COUNTS}} from signals group by {{keys}}")
    query = (
        frame.writeStream.format("memory").queryName(name).outputMode(mode)
        .option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    )
    try:
        for number, rows in enumerate(batches):
            lines = [json.dumps({{"at": at, "device": device, "value": value}}) for at, device, value in rows]
            hidden = tmp_path / f"{{number}}.json"
            hidden.write_text("\\n".join(lines))
            hidden.rename(data / hidden.name)
            query.processAllAvailable()
        found = spark.sql(f"select * from {{name}}").collect()
    finally:
        query.stop()
    assert len(found) == len(expected)
    rows = {{(str(row["since"])[11:] if "since" in row else "", row["device"]): row for row in found}}
    for since, device, average, signals in expected:
        row = rows[(since, device)]
        assert row["average"] == pytest.approx(average) and row["signals"] == signals
'''


def write_plain(folder: Path, settings: dict[str, str]) -> None:
    """Writes the pytest file, whose Spark session has `settings`."""
    cases = [
        (f"{shape}_{number}", shape, batches(number), expected(shape, number))
        for shape in SHAPES
        for number in range(CASES_OF_A_SHAPE)
    ]
    text = PLAIN.format(settings=settings, shapes=SHAPES, counts=COUNTS, cases=cases)
    (folder / "test_plain.py").write_text(text)
