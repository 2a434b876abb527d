"""`sqlstream source freshness` on local files and tables, without Java."""

from __future__ import annotations

import gzip
import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sqlstream.app.request import ProjectRequest, Selection
from sqlstream.app.source.freshness import FreshnessRequest, check_freshness
from sqlstream.app.source.freshness_result import NEVER
from sqlstream.cli.main import main
from sqlstream.errors import UsageError
from tests.support.without_java import run_without_java

NEWEST = datetime(2026, 1, 1, tzinfo=UTC)

SOURCES = """version: 2
sources:
  - name: shop
    freshness: {warn_after: {count: 1, period: hour}, error_after: {count: 1, period: day}}
    tables:
      - {name: orders, format: json, path: in/orders, schema: id int}
"""


def write(project: Path, sources: str = SOURCES) -> None:
    """Writes a project with one view."""
    (project / "models").mkdir(exist_ok=True)
    (project / "project.yml").write_text("name: shop\n")
    (project / "models/a.sql").write_text("select * from {{ source('shop', 'orders') }}")
    (project / "sources.yml").write_text(sources)


def put(project: Path, path: str, modified: float, content: bytes = b"{}") -> None:
    """Writes a file with a modification time."""
    file = project / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    os.utime(file, (modified, modified))


def newest(project: Path, path: str, keys: str = "") -> datetime | None:
    """Returns the time of the newest data of a source of files at a path."""
    write(project, SOURCES.replace("path: in/orders", f"path: '{path}'{keys}"))
    (result,) = check_freshness(FreshnessRequest(ProjectRequest(project))).results
    return None if result.measured is None else result.measured.max_loaded_at


def test_files_that_spark_reads_count(tmp_path: Path) -> None:
    """Files in partitions and compressed ones count; hidden ones and those beside the partitions do not."""
    at = NEWEST.timestamp()
    put(tmp_path, "in/p/day=1/hour=2/a.json.gz", at, gzip.compress(b"{}"))
    put(tmp_path, "in/p/day=1/hour=1/b.json", at - 5)
    for name in ("_SUCCESS", ".hidden.json", "_temporary/0/c.json", ".staging/c.json", "day=1/hour=2/_c.json"):
        put(tmp_path, f"in/p/{name}", at + 5)
    put(tmp_path, "in/flat/a.json", at)
    put(tmp_path, "in/flat/below/b.json", at + 5)
    put(tmp_path, "in/flat/c.csv", at + 2)

    assert newest(tmp_path, "in/p") == NEWEST
    assert newest(tmp_path, "in/p/*/*/*.gz") == NEWEST
    assert newest(tmp_path, f"file:{tmp_path}/in/p") == NEWEST
    assert newest(tmp_path, "in/flat", ", options: {pathGlobFilter: '*.json'}") == NEWEST
    recursive = ", options: {pathGlobFilter: '*.json', recursiveFileLookup: true}"
    assert newest(tmp_path, "in/flat", recursive) == datetime.fromtimestamp(at + 5, UTC)


def test_a_source_without_files_is_infinitely_old(tmp_path: Path) -> None:
    """An empty folder and a pattern without files have no data, as in dbt; a missing folder is an error."""
    (tmp_path / "in").mkdir()

    assert newest(tmp_path, "in") == NEVER
    assert newest(tmp_path, "in/*.json") == NEVER
    assert newest(tmp_path, "nowhere") is None


def test_the_output_of_a_file_sink_has_the_time_of_committed_files(tmp_path: Path) -> None:
    """A file that a batch wrote but never committed does not count."""
    put(tmp_path, "in/part-1.json", NEWEST.timestamp())
    put(tmp_path, "in/part-2.json", NEWEST.timestamp() + 5)
    entry = {"path": f"file://{tmp_path}/in/part-1.json", "size": 2, "modificationTime": 1, "action": "add"}
    put(tmp_path, "in/_spark_metadata/0", 0, f"v1\n{json.dumps(entry)}".encode())

    assert newest(tmp_path, "in") == NEWEST


def exit_code(*arguments: str) -> int:
    """Runs the command in this process and returns its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


@pytest.mark.parametrize(("hours", "code", "word"), [(0, 0, "PASS"), (2, 0, "WARN"), (30, 1, "ERROR STALE")])
def test_exit_codes_and_lines_are_those_of_dbt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], hours: int, code: int, word: str
) -> None:
    """Stale data beyond error_after exits with 1, a warning with 0."""
    write(tmp_path)
    put(tmp_path, "in/orders/1.json", time.time() - hours * 3600)

    assert exit_code("source", "freshness", "--project-dir", str(tmp_path)) == code

    lines = [line[10:] for line in capsys.readouterr().out.splitlines()]
    assert lines[0].startswith("1 of 1 START freshness of shop.orders ...")
    assert lines[1].startswith(f"1 of 1 {word} freshness of shop.orders ...")
    assert f"[{word} in " in lines[1]
    assert len(lines) == (3 if hours == 0 else 4)
    assert lines[-1] == "Done."


def test_results_are_written_in_the_form_of_dbt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """sources.json has the keys of dbt's schema, also for a source that cannot be checked; -o writes another file."""
    table = "{name: orders, format: json, path: in/orders, schema: id int}"
    jdbc = "{name: people, format: jdbc, mode: batch, options: {url: 'jdbc:postgresql://h/d', dbtable: p}}"
    write(tmp_path, SOURCES.replace(table, f"{table}\n      - {jdbc}"))
    put(tmp_path, "in/orders/1.json", NEWEST.timestamp())
    path = tmp_path / "out/freshness.json"

    assert exit_code("source", "freshness", "--project-dir", str(tmp_path), "-o", str(path), "--output", "json") == 1

    content = json.loads(path.read_text())
    assert json.loads(capsys.readouterr().out)["results"] == content["results"]
    orders, people = content["results"]
    assert content["metadata"]["dbt_schema_version"] == "https://schemas.getdbt.com/dbt/sources/v3.json"
    assert orders.keys() == {
        *("unique_id", "max_loaded_at", "snapshotted_at", "max_loaded_at_time_ago_in_s", "status", "criteria"),
        *("adapter_response", "timing", "thread_id", "execution_time"),
    }
    assert (orders["unique_id"], orders["status"]) == ("source.shop.shop.orders", "error")
    assert orders["max_loaded_at"] == "2026-01-01T00:00:00.000000Z"
    assert people.keys() == {"unique_id", "error", "status"}
    assert people["status"] == "runtime error"
    assert "[freshness-unknown]" in people["error"]
    assert not (tmp_path / "target/sources.json").exists()


def test_local_sources_need_no_java(tmp_path: Path) -> None:
    """Local files, Delta tables and sources without a known time are checked without Java and without pyspark."""
    delta = "{name: lake, format: delta, path: lake}"
    rate = "{name: ticks, format: rate, loaded_at_field: timestamp}"
    table = "{name: orders, format: json, path: in/orders, schema: id int}"
    write(tmp_path, SOURCES.replace(table, f"{table}\n      - {delta}\n      - {rate}"))
    put(tmp_path, "in/orders/1.json", time.time())
    put(tmp_path, "lake/_delta_log/00000000000000000000.json", time.time(), b'{"add": {"dataChange": true}}')

    process = run_without_java(tmp_path, "source", "freshness")

    assert process.returncode == 1, process.stderr
    for words in (
        "1 of 3 PASS freshness of shop.lake",
        "2 of 3 PASS freshness of shop.orders",
        "3 of 3 ERROR freshness",
    ):
        assert words in process.stdout


@pytest.mark.parametrize(
    ("off", "select"), [("freshness: null, ", ()), ("freshness: null, ", ("source:shop",)), ("", ("a",))]
)
def test_a_selection_without_a_check_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], off: str, select: tuple[str, ...]
) -> None:
    """A selection in which no source has a check exits with 1; dbt does nothing and exits with 0."""
    write(tmp_path, SOURCES.replace("{name: orders, ", f"{{name: orders, {off}"))

    flags = [word for selector in select for word in ("--select", selector)]
    assert exit_code("source", "freshness", *flags, "--project-dir", str(tmp_path)) == 1

    assert "[no-freshness]" in capsys.readouterr().err


def listed(project: Path, capsys: pytest.CaptureFixture[str], state: Path) -> list[str]:
    """Returns the nodes that have, or read, new data since the saved state."""
    flags = ("--select", "source_status:fresher+", "--state", str(state))
    assert exit_code("ls", *flags, "--project-dir", str(project)) == 0
    return capsys.readouterr().out.split()


def test_sources_with_new_data_can_be_selected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """source_status:fresher+ selects sources with newer data than in the saved file, and what reads them."""
    write(tmp_path)
    put(tmp_path, "in/orders/1.json", NEWEST.timestamp())
    request = FreshnessRequest(ProjectRequest(tmp_path), Selection(), tmp_path / "last/sources.json")
    check_freshness(request)
    with pytest.raises(UsageError):  # the project has no results yet
        check_freshness(
            FreshnessRequest(ProjectRequest(tmp_path), Selection(("source_status:fresher",), state=tmp_path / "last"))
        )
    check_freshness(FreshnessRequest(ProjectRequest(tmp_path)))
    assert listed(tmp_path, capsys, tmp_path / "last") == []

    put(tmp_path, "in/orders/2.json", NEWEST.timestamp() + 1)
    check_freshness(FreshnessRequest(ProjectRequest(tmp_path)))

    assert sorted(listed(tmp_path, capsys, tmp_path / "last")) == ["shop.a", "source:shop.shop.orders"]
    assert exit_code("ls", "--select", "source_status:fresher", "--project-dir", str(tmp_path)) == 2
    assert exit_code("ls", "--select", "source_status:stale", "--project-dir", str(tmp_path)) == 1
