"""Each micro-batch reads the files that exist then, with any names, each of them once."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from pyspark.sql import DataFrame, SparkSession

from sqlstream.errors import FindingsError
from sqlstream.spark.jvm.fresh_files import read_fresh_files
from sqlstream.state.runs.events import Status
from tests.spark.conftest import WITHOUT_INTERNALS, ProjectFolder, shop_project

NAMES = (
    "monday",
    "t [2]",
    "{a,b}",
    "w*",
    "q?",
    "b\\c",
    "50%25",
    "é ü",
    "new\nline",
    ",",
    "x^[!a]",
    "[0-9]",
    "a=b",
    "#1",
)
"""Names of files, most of which Hadoop can read as patterns."""

HIDDEN = ("_hidden", ".hidden")
"""Names of files that Spark ignores."""

SOURCES = """sources:
  - name: shop
    tables:
      - {name: flat, format: json, path: flat, schema: "id int"}
      - {name: pattern, format: json, path: "flat/*.json", schema: "id int"}
      - {name: literal, format: json, path: "lit [1]", schema: "id int", options: {maxFilesPerTrigger: 2}}
      - {name: days, format: json, path: days, schema: "id int, day date"}
      - {name: names, format: csv, path: names, mode: batch, schema: "id int, name string"}
"""


def model(table: str, columns: str = "id", sink: str = "lake", more: str = "") -> str:
    """A model that copies a table of the source."""
    return f"{{{{ config(sink='{sink}'{more}) }}}} select {columns} from {{{{ source('shop', '{table}') }}}}"


def files(folder: ProjectFolder, start: str, ids: range, names: tuple[str, ...] = NAMES) -> None:
    """Writes one row to each of the files."""
    for number, name in zip(ids, names, strict=False):
        folder.rows(f"{start}/{name}.json", [{"id": number}], modified=number)


@pytest.fixture(params=["plain", "depot [v2] {a,b} 5%25?*"])
def depot(request: pytest.FixtureRequest, tmp_path: Path) -> ProjectFolder:
    """A project in a folder with a plain name, and one in a folder whose name looks like a pattern."""
    folder = shop_project(tmp_path / request.param)
    folder.write({"sources.yml": SOURCES})
    return folder


@pytest.mark.slow
def test_names_that_look_like_patterns(depot: ProjectFolder) -> None:
    """Each row is read once: several files in a batch, after a restart, with a pattern, and from partitions."""
    names = {name: model(name) for name in ("flat", "pattern", "literal")} | {"days": model("days", "id, day")}
    depot.write({f"models/{name}.sql": text for name, text in names.items()})
    files(depot, "flat", range(5))
    files(depot, "flat", range(90, 92), HIDDEN)
    files(depot, "lit [1]", range(5))
    files(depot, "days/day=2024-01-01", range(3))
    first = depot.run()
    files(depot, "flat", range(5, 20), NAMES[5:])
    files(depot, "lit [1]", range(5, 20), NAMES[5:])
    files(depot, "days/day=2024-01-02", range(3, 20), NAMES[3:])
    second = depot.run()

    assert {result.status for result in (*first.results, *second.results)} == {Status.SUCCESS}
    wanted = list(range(len(NAMES)))
    for name in names:
        read = sum(result.rows_in or 0 for result in (*first.results, *second.results) if result.model == name)
        assert (name, read) == (name, len(wanted))
    for name in ("flat", "pattern", "literal"):
        assert sorted(row["id"] for row in written(depot, name)) == wanted
    days = [row["day"].isoformat()[-2:] for row in written(depot, "days")]
    assert Counter(days) == {"01": 3, "02": len(NAMES) - 3}
    for name in ("flat", "literal"):
        replayed = json.loads(depot.invoke("replay", name, "--batch", "0", "--output", "json").out)
        assert [node["row_count"] for node in replayed["results"]] == [{"flat": 5, "literal": 2}[name]] * 2


@pytest.mark.slow
def test_a_stored_output_in_a_folder_that_looks_like_a_pattern(tmp_path: Path) -> None:
    """The stream reads the committed files in a run in the project's folder, and is refused in a run elsewhere."""
    folder = shop_project(tmp_path / "depot [v2]")
    folder.write(
        {
            "sources.yml": SOURCES,
            "models/flat.sql": model("flat", more=", materialized='stored'"),
            "models/seen.sql": "{{ config(sink='lake') }} select id from {{ ref('flat') }}",
        }
    )
    files(folder, "flat", range(3))
    with pytest.raises(FindingsError) as refused:
        folder.run()
    assert [finding.code for finding in refused.value.findings] == ["path-characters"]

    folder.run("flat")
    leftover = folder.root / "store/flat/part-leftover.parquet"
    leftover.write_bytes(next(iter((folder.root / "store/flat").glob("*.parquet"))).read_bytes())
    process = folder.command("run", "--available-now")
    printed, _ = process.communicate()

    assert process.returncode == 0, printed
    assert sorted(row["id"] for row in written(folder, "seen")) == [0, 1, 2]


def test_without_internals_such_a_file_fails_the_query(tmp_path: Path) -> None:
    """The query does not write the rows of the other files twice."""
    folder = shop_project(tmp_path)
    folder.write(
        {"project.yml": WITHOUT_INTERNALS, "sources.yml": SOURCES, "models/flat.sql": model("flat", sink="table")}
    )
    files(folder, "flat", range(2), ("a", "b [2]"))

    result = folder.result()

    assert result.status is Status.ERROR
    assert result.finding is not None
    assert "b%20%5B2%5D.json" in result.finding.why


@pytest.mark.slow
def test_a_compressed_file_that_is_cut_off(tmp_path: Path) -> None:
    """The finding names the reason and the file, and the option in its fix lets the query continue."""
    folder = shop_project(tmp_path)
    folder.write({"sources.yml": SOURCES, "models/flat.sql": model("flat"), "flat/a.json": '{"id": 1}'})
    rows = "".join(f'{{"id": {number}}}\n' for number in range(2, 9_000))
    (tmp_path / "flat/b.json.gz").write_bytes(gzip.compress(rows.encode())[:-9_000])

    (finding,) = (folder.result().finding,)

    assert finding is not None
    assert finding.code == "query-failed"
    assert "Unexpected end of input stream" in finding.why
    assert "b.json.gz" in finding.fix
    assert "ignoreCorruptFiles" in finding.fix
    options = 'schema: "id int", options: {ignoreCorruptFiles: true}'
    folder.write({"sources.yml": SOURCES.replace('path: flat, schema: "id int"', f"path: flat, {options}")})
    assert folder.result().status is Status.SUCCESS
    assert 1 in [row["id"] for row in written(folder, "flat")]


@pytest.mark.slow
def test_partitions_below_a_pattern(tmp_path: Path) -> None:
    """A declared column has the value in the name of the folder, in a stream and in a static table."""
    folder = shop_project(tmp_path)
    table = "{name: %s, format: json, path: 'days/%s', schema: 'id int, day date'%s}"
    tables = (("star", "*", ""), ("keys", "day=*/*.json", ""), ("static", "*", ", mode: batch"))
    listed = "".join(f"      - {table % each}\n" for each in tables)
    folder.write({"sources.yml": f"sources:\n  - name: shop\n    tables:\n{listed}"})
    folder.write({f"models/{name}.sql": model(name, "id, day") for name, _, _ in tables})
    files(folder, "days/day=2024-01-01", range(2))
    folder.run()
    files(folder, "days/day=2024-01-02", range(2, 4), NAMES[2:])
    folder.run()

    for name, _, _ in tables:
        days = sorted((row["id"], row["day"].day) for row in written(folder, name))
        assert (name, set(days)) == (name, {(0, 1), (1, 1), (2, 2), (3, 2)})
    files(folder, "days", range(4, 5))
    with pytest.raises(FindingsError) as refused:
        folder.run("star")
    assert [finding.code for finding in refused.value.findings] == ["source-unreadable"]


@pytest.mark.slow
@pytest.mark.parametrize("locale", ["C", "xx_XX.UTF-8"])
def test_names_are_read_whatever_the_locale_is(tmp_path: Path, locale: str) -> None:
    """A cron job or a service with `LC_ALL=C` reads files whose names are not ASCII."""
    folder = shop_project(tmp_path / "köln")
    folder.write({"sources.yml": SOURCES, "models/flat.sql": model("flat")})
    files(folder, "flat", range(3), ("a", "köln", "日本"))

    process = folder.command("run", "--available-now", env={"LC_ALL": locale})
    printed, _ = process.communicate()

    assert process.returncode == 0, printed
    assert sorted(row["id"] for row in written(folder, "flat")) == [0, 1, 2]


@pytest.mark.slow
def test_refresh_once_in_a_run(tmp_path: Path) -> None:
    """With `refresh: run` all batches of a run read the files as they were in its first batch."""
    folder = shop_project(tmp_path)
    replacing = "{{ config(sink='lake') }} select o.id, n.name from {{ source('shop', 'literal') }} o "
    folder.write(
        {
            "sources.yml": SOURCES.replace("mode: batch", "mode: batch, refresh: run"),
            "models/joined.sql": replacing + "left join {{ source('shop', 'names') }} n on o.id = n.id",
            "names/a.csv": "0,old\n1,old\n2,old\n3,old\n",
        }
    )
    files(folder, "lit [1]", range(4))

    assert folder.result().batches == 2
    assert {row["name"] for row in written(folder, "joined")} == {"old"}


@pytest.mark.slow
def test_a_stream_lists_its_files_in_one_session(spark: SparkSession, tmp_path: Path) -> None:
    """Files with all names are read once in one batch, also with state and in partitions."""
    session = spark.newSession()
    read_fresh_files(session)
    read_fresh_files(session)
    for number, name in enumerate(NAMES):
        for place in (f"flat/{name}.json", f"parts/p={number % 2}/{name}.json"):
            (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / place).write_text(json.dumps({"id": number}))
    flat = session.readStream.schema("id int").json(str(tmp_path / "flat"))
    parts = session.readStream.schema("id int, p int").json(str(tmp_path / "parts"))

    assert [row[0] for row in _batches(flat)[0]] == list(range(len(NAMES)))
    assert sorted(_batches(parts.groupBy("p").count(), "complete")[0]) == [(0, 7), (1, 7)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "orc", "text", "xml"])
def test_a_static_file_that_is_replaced(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """The next batch reads the whole new file, and new files of a folder and of a pattern."""
    session = spark.newSession()
    read_fresh_files(session)
    for number in range(3):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / f"in/{number}.json").write_text(json.dumps({"batch": number}))
        os.utime(tmp_path / f"in/{number}.json", (number, number))
    write(session, tmp_path / "static/a.x", kind, 100)
    options = {"rowTag": "row"} if kind == "xml" else {}
    reader = session.read.format(kind).options(**options).schema("value string")
    folder, pattern = reader.load(str(tmp_path / "static")), reader.load(str(tmp_path / "stat*/*.x"))
    stream = session.readStream.schema("batch int").option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    counted = stream.crossJoin(folder).groupBy("batch").count()

    def replaced(number: int) -> None:
        write(session, tmp_path / "static/a.x", kind, 200) if number == 0 else None
        write(session, tmp_path / "static/b.x", kind, 50) if number == 1 else None

    assert _batches(counted, "update", replaced) == [[(0, 100)], [(1, 200)], [(2, 250)]]
    (tmp_path / "static/b.x").unlink()
    write(session, tmp_path / "static/a.x", kind, 100)
    unlimited = stream.crossJoin(pattern).groupBy("batch").count()
    assert _batches(unlimited, "update", replaced) == [[(0, 100)], [(1, 200)], [(2, 250)]]


def test_a_static_table_with_other_partitions_fails_the_batch(spark: SparkSession, tmp_path: Path) -> None:
    """New partitions are read; but a folder that becomes partitioned is read only after a new start."""
    session = spark.newSession()
    read_fresh_files(session)
    for number in range(2):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / f"in/{number}.json").write_text(json.dumps({"batch": number}))
    for place in ("parts/p=1/a.json", "flat/a.json"):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text('{"v": 1}')
    stream = session.readStream.schema("batch int").option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    parts, flat = (session.read.schema("v int, p int").json(str(tmp_path / name)) for name in ("parts", "flat"))

    def add(number: int) -> None:
        for name in ("parts", "flat"):
            (tmp_path / name / "p=2").mkdir(exist_ok=True)
            (tmp_path / name / "p=2/b.json").write_text('{"v": 2}')

    assert [len(rows) for rows in _batches(stream.crossJoin(parts.where("p > 0")), "append", add)] == [1, 2]
    (tmp_path / "flat/a.json").write_text('{"v": 1}')
    (tmp_path / "flat/p=2/b.json").unlink()
    (tmp_path / "flat/p=2").rmdir()
    with pytest.raises(Exception, match="other partitions"):
        _batches(stream.crossJoin(flat), "append", add)


def written(folder: ProjectFolder, name: str) -> list[dict[str, Any]]:
    """Returns the rows in all files of an output."""
    found = (folder.root / "store" / name).rglob("*.parquet")
    return [row for path in sorted(found) for row in parquet.ParquetFile(path).read().to_pylist()]


def write(session: SparkSession, path: Path, kind: str, rows: int) -> None:
    """Replaces the file at `path` by a new one with numbered rows, as `mv` does."""
    frame = session.range(rows).selectExpr("cast(id as string) as value").coalesce(1)
    target = path.parent.parent / "written"
    frame.write.format(kind).options(rowTag="row", mapreduce="").mode("overwrite").save(str(target))
    (part,) = (each for each in target.iterdir() if each.name.startswith("part-"))
    path.parent.mkdir(exist_ok=True)
    part.rename(path)


def _batches(
    frame: DataFrame, mode: str = "append", after: Callable[[int], None] = lambda number: None
) -> list[list[tuple[Any, ...]]]:
    """Returns the rows of each batch. Calls `after` with the number of each, before the next one starts."""
    found: list[list[tuple[Any, ...]]] = []

    def take(rows: DataFrame, number: int) -> None:
        found.append(sorted(map(tuple, rows.collect())))
        after(number)

    query = frame.writeStream.outputMode(mode).foreachBatch(take).trigger(availableNow=True).start()
    query.awaitTermination()
    return [rows for rows in found if rows]
