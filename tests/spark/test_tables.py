"""Tables of a persistent catalog: one process writes them, another reads them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sqlstream.errors import FindingsError
from sqlstream.spark.writing.catalog_tables import table_options
from tests.spark.conftest import ProjectFolder, order_rows, shop_project


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> ProjectFolder:
    """A project with tables in a persistent catalog, written by three processes, each after one more input file."""
    project = shop_project(tmp_path_factory.mktemp("catalog"))
    where = project.root / "metastore"
    project.write(
        {
            "project.yml": "name: shop\ntargets:\n  local:\n    master: local[2]\n    storage: store\n    spark:\n"
            "      spark.sql.catalogImplementation: hive\n"
            f"      spark.hadoop.javax.jdo.option.ConnectionURL: 'jdbc:derby:;databaseName={where};create=true'\n"
            f"      spark.driver.extraJavaOptions: -Dderby.stream.error.file={project.root}/derby.log\n",
            "models/_gold.yml": "sinks:\n  - {name: gold, format: table, table: 'gold_{{ model.name }}'}\n"
            "sources:\n  - name: gold\n    tables:\n"
            "      - {name: orders, format: table, table: gold_all, schema: 'id int, kind string'}\n"
            "      - {name: wrong, format: table, table: gold_all, schema: 'id string'}\n"
            "      - {name: fixed, format: table, table: gold_all, mode: batch}\n"
            + "".join(
                f"      - {{name: {name}, format: table, table: gold_report{ending}, mode: batch}}\n"
                for name, ending in REPORTS.items()
            )
            + "  - name: fixed\n    tables:\n"
            "      - {name: orders, format: json, path: in/orders, schema: 'id int, kind string', mode: batch}\n",
            "models/all.sql": "{{ config(sink='gold') }} select id, kind from {{ source('shop', 'orders') }}",
            "models/report.sql": "{{ config(sink='gold') }} select kind, count(*) as n from "
            "{{ source('fixed', 'orders') }} group by kind",
        }
    )
    for number in range(3):
        project.rows(f"in/orders/{number}.json", order_rows(number), modified=number)
        code, output = run(project, "-s", "all", "report")
        assert (code, "gold_all" in output, "gold_report" in output) == (0, True, True), output
    return project


REPORTS = {"report": "", "first": "_archive_1", "second": "_archive_2"}
"""The suffix of the table of each of three reports; the latest report has no suffix."""


def run(project: ProjectFolder, *arguments: str) -> tuple[int, str]:
    """Runs the command in a separate process."""
    process = project.command("run", "--available-now", *arguments)
    output, _ = process.communicate(timeout=240)
    return process.returncode, output


@pytest.mark.slow
def test_another_process_reads_the_tables(written: ProjectFolder, read_parquet: Any) -> None:
    """Another process reads the tables as streams and as static tables; replaced ones are complete in the archive."""
    written.write(
        {
            "models/read.sql": "{{ config(sink='lake') }} select id from {{ source('gold', 'orders') }}",
            "models/joined.sql": "{{ config(sink='lake') }} select o.id from {{ source('shop', 'orders') }} o "
            "join {{ source('gold', 'fixed') }} f on f.id = o.id",
            **{
                f"models/of_{name}.sql": f"{{{{ config(sink='lake') }}}} select sum(n) as n from {{{{ source('gold', '{name}') }}}}"
                for name in REPORTS
            },
        }
    )

    code, output = run(written, "-s", "read", "joined", *(f"of_{name}" for name in REPORTS))

    assert code == 0, output
    store = written.root / "store"
    ids = sorted(row["id"] for number in range(3) for row in order_rows(number))
    assert sorted(row["id"] for row in read_parquet(store / "read")) == ids
    assert sorted(row["id"] for row in read_parquet(store / "joined")) == ids
    found = {name: pq.read_table(store / f"of_{name}").to_pylist() for name in REPORTS}
    assert found == {"report": [{"n": 15}], "first": [{"n": 5}], "second": [{"n": 10}]}
    assert not list(written.root.glob("spark-warehouse/*writing*"))


@pytest.mark.slow
def test_leftovers_in_a_table_are_moved_aside(written: ProjectFolder) -> None:
    """Leftovers are moved aside: the table of a stream has a file sink's log, which engines may ignore."""
    (folder,) = written.root.glob("**/gold_all")
    first, *_ = sorted(folder.glob("part-*.parquet"))
    left = Path(shutil.copy(first, folder / first.name.replace("part-00000", "part-00007")))

    listed, _ = written.command("state", "files", "all").communicate(timeout=240)
    done, _ = written.command("state", "repair", "all").communicate(timeout=240)

    assert f"{folder}/{first.name}\n" in listed
    assert f"{left}\n" not in listed
    assert f"No batch has committed 1 file in {folder};" in listed
    assert "Moved 1 file that no batch has committed" in done
    assert not left.exists()
    assert len(list((folder.parent / "_archive/gold_all").rglob(left.name))) == 1


@pytest.mark.slow
def test_a_declared_schema_must_match_the_table(written: ProjectFolder) -> None:
    """A declared schema must match the table's own columns and types."""
    written.write({"models/wrong.sql": "{{ config(sink='lake') }} select id from {{ source('gold', 'wrong') }}"})

    code, output = run(written, "-s", "wrong")

    assert (code, "as int, but the model needs string" in output) == (1, True), output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "problem", "fix"),
    [
        ("cast(id as string) as id, kind", "column `id` was int, and is now string", "cast(... as int) as id"),
        ("id", "column `kind` was removed", "cast(null as string) as kind"),
        ("id, kind, amount", "`amount` is not a column of the table", "ALTER TABLE gold_all ADD COLUMNS (amount int)"),
    ],
)
def test_columns_that_a_table_cannot_hold_are_refused(
    written: ProjectFolder, columns: str, problem: str, fix: str
) -> None:
    """Columns that a table cannot hold are refused; Spark would write files that nobody can read."""
    model = written.root / "models/all.sql"
    before = model.read_text()
    model.write_text(before.replace("id, kind", columns))
    try:
        code, output = run(written, "-s", "all")
    finally:
        model.write_text(before)

    assert (code, "[output-columns]" in output, problem in output, fix in output) == (1, True, True, True), output


@pytest.mark.slow
def test_a_moved_checkpoint_over_a_table_is_refused(written: ProjectFolder) -> None:
    """The folder of a catalog's table has the log of another checkpoint, whose batches Spark would skip."""
    model = written.root / "models/all.sql"
    before = model.read_text()
    model.write_text(before.replace("sink='gold'", "sink='gold', checkpoint='moved'"))
    try:
        code, output = run(written, "-s", "all")
    finally:
        model.write_text(before)

    assert (code, "[output-not-empty]" in output) == (1, True), output


def test_an_in_memory_catalog_is_refused(orders: ProjectFolder) -> None:
    """An in-memory catalog is refused: a second run would find the folder, but no table."""
    orders.write(
        {
            "models/_gold.yml": "sinks:\n  - {name: gold, format: table, table: all}\n",
            "models/all.sql": "{{ config(sink='gold') }} select id from {{ source('shop', 'orders') }}",
        }
    )

    with pytest.raises(FindingsError) as caught:
        orders.run()

    assert [finding.code for finding in caught.value.findings] == ["temporary-catalog"]


@pytest.mark.parametrize("provider", ["json", "csv"])
def test_a_table_of_text_files_keeps_all_digits_of_times(spark: SparkSession, tmp_path: Path, provider: str) -> None:
    """A stream writes times with microseconds to an existing table whose format is text, unless the table says how."""
    name, own = f"kept_{provider}", f"own_{provider}"
    spark.sql(f"CREATE TABLE {name} (t timestamp) USING {provider}")
    spark.sql(f"CREATE TABLE {own} (t timestamp) USING {provider} OPTIONS (timestampFormat 'yyyy-MM-dd')")
    try:
        (tmp_path / "in").mkdir()
        (tmp_path / "in/a.txt").write_text("2024-01-01 12:00:00.123456\n")
        times = spark.readStream.text(str(tmp_path / "in")).selectExpr("cast(value as timestamp) as t")
        writer = times.writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
        writer.format(provider).options(**table_options(spark, name, ())).toTable(name).awaitTermination()

        assert [str(row.t) for row in spark.table(name).collect()] == ["2024-01-01 12:00:00.123456"]
        assert "timestampFormat" not in table_options(spark, own, ())
        assert "timestampFormat" not in table_options(spark, name, ("timestampformat",))
    finally:
        spark.sql(f"DROP TABLE {name}")
        spark.sql(f"DROP TABLE {own}")


def test_other_tables_need_no_options(spark: SparkSession) -> None:
    """A table that does not exist gets no options."""
    assert table_options(spark, "nowhere", ()) == {}
