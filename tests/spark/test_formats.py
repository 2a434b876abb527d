"""Every supported source and sink format, with real files and a real socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlstream.errors import FindingsError
from sqlstream.project.formats.formats import FORMATS
from sqlstream.state.runs.events import RunEvent
from sqlstream.state.runs.progress import BatchProgress
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder, wait_for

Rows = Callable[[Path], list[dict[str, Any]]]

SOURCES = """sources:
  - name: made
    tables:
      - {name: rows, format: FORMAT, path: in/rows, schema: SCHEMA, options: {header: true}}
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """The same three rows in each file format, written by Spark."""
    root = tmp_path_factory.mktemp("written")
    frame = spark.createDataFrame([(1, "a"), (2, "b"), (3, "c")], "id int, name string").coalesce(1)
    for name in ("json", "csv", "parquet", "orc"):
        frame.write.format(name).option("header", "true").save(str(root / name))
    frame.select("name").write.text(str(root / "text"))
    spark.stop()
    return root


@pytest.mark.slow
@pytest.mark.parametrize("name", ["json", "csv", "parquet", "orc", "text"])
def test_file_sources_are_read(folder: ProjectFolder, written: Path, name: str, read_parquet: Rows) -> None:
    """Every file format reads three rows as three rows."""
    schema, column = ("value string", "value") if name == "text" else ("id int, name string", "name")
    folder.write(
        {
            "models/_rows.yml": SOURCES.replace("FORMAT", name).replace("SCHEMA", f"'{schema}'"),
            "models/out.sql": f"{{{{ config(sink='lake') }}}} select {column} as name from {{{{ source('made', 'rows') }}}}",
        }
    )
    (folder.root / "in").mkdir(exist_ok=True)
    (folder.root / "in/rows").symlink_to(written / name)

    assert folder.result("out").rows_in == 3

    assert sorted(row["name"] for row in read_parquet(folder.root / "store/out")) == ["a", "b", "c"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [each.name for each in FORMATS.values() if each.counts_rows and not each.connector])
def test_the_sinks_that_count_rows_count_all_of_them(orders: ProjectFolder, name: str) -> None:
    """The number does not depend on the rows read, and a batch without rows has written none."""
    sink = f"sinks: [{{name: out, format: {name}}}]\n"
    orders.write(
        {
            "models/_sinks.yml": sink,
            "models/some.sql": "{{ config(sink='out') }} select id from {{ source('shop', 'orders') }} where amount > 2",
            "models/pairs.sql": "{{ config(sink='out') }} select id, explode(array(1, 2)) from {{ source('shop', 'orders') }}",
            "models/none.sql": "{{ config(sink='out') }} select id from {{ source('shop', 'orders') }} where id < 0",
        }
    )

    found = {result.model: result.rows_out for result in orders.run().results}

    assert found == {"some": 4, "pairs": 20, "none": 0}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["json", "csv", "parquet", "orc", "text"])
def test_file_sinks_are_written(orders: ProjectFolder, name: str) -> None:
    """Each file sink writes the model's rows into one file per batch, split by `partition_by`."""
    columns = "kind, cast(id as string) as id" if name == "text" else "kind, id, amount"
    orders.write(
        {
            "models/_sinks.yml": f"sinks:\n  - {{name: out, format: {name}, path: out, partition_by: kind}}\n",
            "models/out.sql": f"{{{{ config(sink='out') }}}} select {columns} from {{{{ source('shop', 'orders') }}}}",
        }
    )

    assert orders.result().rows_out == 10

    folders = {path.parent.name for path in (orders.root / "store/out").rglob("part-*")}
    assert folders == {"kind=a", "kind=b"}


def test_writer_options_of_a_model_override_those_of_the_sink(orders: ProjectFolder) -> None:
    """Writer options of a model override those of its sink."""
    orders.write(
        {
            "models/_sinks.yml": "sinks:\n  - {name: out, format: csv, path: out, options: {sep: ';', header: true}}\n",
            "models/out.sql": "{{ config(sink='out', options={'sep': '|'}) }} select id, kind from {{ source('shop', 'orders') }}",
        }
    )

    orders.result()

    texts = [path.read_text() for path in (orders.root / "store/out").glob("part-*")]
    assert any(text.startswith("id|kind\n0|a") for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "sink", "code"),
    [
        ("id, struct(kind) as s", "csv", "sink-schema"),
        ("id", "text", "sink-schema"),
        ("id, kind", "text", "sink-schema"),
        ("id, cast(null as void) as v", "orc", "sink-schema"),
    ],
)
def test_columns_that_a_sink_cannot_write_are_refused(
    orders: ProjectFolder, columns: str, sink: str, code: str
) -> None:
    """Columns that a sink cannot write are refused before the start; Spark would find them only in the first batch."""
    orders.write(
        {
            "models/_sinks.yml": f"sinks:\n  - {{name: out, format: {sink}, path: out}}\n",
            "models/out.sql": f"{{{{ config(sink='out') }}}} select {columns} from {{{{ source('shop', 'orders') }}}}",
        }
    )

    with pytest.raises(FindingsError) as caught:
        orders.run()

    assert {finding.code for finding in caught.value.findings} == {code}


def test_a_missing_partition_column_is_refused(orders: ProjectFolder) -> None:
    """A partition column that the model lacks is refused, with the finding at `partition_by`."""
    orders.write(
        {
            "models/out.sql": "{{ config(sink='lake',\n  partition_by=['day']) }} select id from {{ source('shop', 'orders') }}"
        }
    )

    with pytest.raises(FindingsError) as caught:
        orders.run()

    (finding,) = caught.value.findings
    assert (finding.code, str(finding.location)) == ("partition-column", "models/out.sql:2:3")


def test_a_rate_source_runs_in_every_output_mode(folder: ProjectFolder) -> None:
    """A rate source starts, runs and stops in append, update and complete mode."""
    folder.write(
        {
            "models/_rate.yml": "sources:\n  - name: made\n    tables:\n      - {name: ticks, format: rate, options: {rowsPerSecond: 100}}\n",
            "models/every.sql": "{{ config(sink='lake') }} select * from {{ source('made', 'ticks') }}",
            "models/changed.sql": "{{ config(sink='nowhere', output_mode='update') }}\n"
            "select value % 3 as k, count(*) as n from {{ source('made', 'ticks') }} group by 1",
            "models/whole.sql": "{{ config(sink='table', output_mode='complete') }}\n"
            "select count(*) as n from {{ source('made', 'ticks') }}",
        }
    )

    def all_have_rows(events: list[RunEvent]) -> bool:
        return {event.model for event in events if isinstance(event, BatchProgress) and event.rows_in} == names

    names = {"every", "changed", "whole"}
    outcome = folder.run_until(all_have_rows)

    assert outcome.succeeded
    assert {result.model for result in outcome.results if result.batches > 0} == names


@pytest.fixture
def line_server() -> Iterator[int]:
    """A server on loopback that sends three lines to each client and keeps the connection open; returns its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    kept: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            kept.append(client)
            client.sendall(b"one two\ntwo\nthree two\n")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield int(listener.getsockname()[1])
    listener.close()
    for client in kept:
        client.close()


@pytest.mark.slow
@pytest.mark.parametrize("runs", [2])
def test_a_socket_is_counted_on_the_console(folder: ProjectFolder, line_server: int, runs: int) -> None:
    """Lines from a socket are counted on the console; each run starts with a fresh checkpoint and says so once."""
    folder.write(
        {
            "models/_lines.yml": "sources:\n  - name: text\n    tables:\n      - {name: lines, format: socket, "
            f"options: {{host: 127.0.0.1, port: {line_server}}}}}\nsinks:\n  - {{name: screen, format: console}}\n",
            "models/counts.sql": "{{ config(sink='screen', output_mode='complete', trigger='1 second') }}\n"
            "select word, count(*) as times from (select explode(split(value, ' ')) as word from {{ source('text', 'lines') }})\n"
            "group by word order by times desc, word",
        }
    )
    for _ in range(runs):
        process = folder.command("run")
        seen = wait_for(process, "|  two|    3|")
        process.terminate()
        rest, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)
        assert process.returncode == 0, rest
        assert sum("new checkpoint" in line for line in [*seen, *rest.splitlines()]) == 1


def test_available_now_refuses_a_socket(folder: ProjectFolder) -> None:
    """`available_now` over a socket is an error, also on the command line, because the run would read 0 rows."""
    folder.write(
        {
            "models/_lines.yml": "sources:\n  - name: text\n    tables:\n"
            "      - {name: lines, format: socket, options: {host: 127.0.0.1, port: 9}}\n",
            "models/lines.sql": "{{ config(sink='nowhere') }} select * from {{ source('text', 'lines') }}",
        }
    )

    with pytest.raises(FindingsError) as caught:
        folder.run()

    assert [finding.code for finding in caught.value.findings] == ["socket-available-now"]


def test_an_unknown_format_is_refused(orders: ProjectFolder) -> None:
    """An unknown format of a sink or a source is refused before the start."""
    orders.write(
        {
            "models/_more.yml": "sinks:\n  - {name: odd, format: parkay, path: odd}\n"
            "sources:\n  - name: odd\n    tables:\n      - {name: rows, format: parkay, path: in/odd}\n",
            "models/a.sql": "{{ config(sink='odd') }} select id from {{ source('shop', 'orders') }}",
            "models/b.sql": "{{ config(sink='nowhere') }} select * from {{ source('odd', 'rows') }}",
        }
    )

    with pytest.raises(FindingsError) as caught:
        orders.run()

    found = {(finding.code, str(finding.location)) for finding in caught.value.findings}
    assert {code for code, _ in found} == {"unknown-format", "source-unreadable"}
    assert ("unknown-format", "models/_more.yml:2:12") in found
    assert all("parkay" in finding.why for finding in caught.value.findings)


def test_partition_by_must_leave_a_column_for_the_files(orders: ProjectFolder) -> None:
    """`partition_by` must leave at least one column for the files, because its columns go into folder names."""
    orders.write(
        {"models/c.sql": "{{ config(sink='lake', partition_by='id') }} select id from {{ source('shop', 'orders') }}"}
    )

    with pytest.raises(FindingsError) as caught:
        orders.run()

    assert [finding.code for finding in caught.value.findings] == ["partition-column"]


def test_duplicate_column_names_are_refused(orders: ProjectFolder) -> None:
    """Two columns with the same name, ignoring case, are refused, because a stream would write unreadable files."""
    orders.write(
        {
            "models/twice.sql": "{{ config(sink='lake') }}\nselect id, ts, amount as ID from {{ source('shop', 'orders') }}"
        }
    )

    with pytest.raises(FindingsError) as refused:
        orders.run()

    assert [(finding.code, "`id`, `ID`" in finding.message) for finding in refused.value.findings] == [
        ("sink-schema", True)
    ]
