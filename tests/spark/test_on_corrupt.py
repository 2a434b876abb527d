"""Unreadable records: `on_corrupt` loses, repeats and nulls none, whichever columns a model reads."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sqlstream.app.request import ProjectRequest, Selection
from sqlstream.app.show.show import ShowRequest, show_rows
from sqlstream.errors import FindingsError
from sqlstream.state.runs.events import QueryRestarting, QuerySilent, TableShown
from sqlstream.state.runs.progress import BatchProgress
from tests.spark.conftest import ProjectFolder, wait_for

Rows = Callable[[Path], list[dict[str, Any]]]

COLUMNS = "id int, name string, amount int"

JSON = r"""{"id": 1, "name": "a", "amount": 1}
{"id": 2, "name": "b", "amount": "many"}

{"id": 3, "name"
{"id": "no", "name": "c"}
null
[{"id": 4}, {"id": 5}]
[{"id": 6}, {"id": 7, "amount": "many"}]
{}
"""
JSON_CORRUPT = [
    '{"id": 2, "name": "b", "amount": "many"}',
    '{"id": 3, "name"',
    '{"id": "no", "name": "c"}',
    "null",
    *2 * ['[{"id": 6}, {"id": 7, "amount": "many"}]'],
]

CSV = """id,name,amount
1,a,1
2,b,many
3,c

4,d,4,5
5,"e,5
6,f,6
"""
CSV_CORRUPT = ["2,b,many", "3,c", "4,d,4,5", '5,"e,5']

LONG_CSV = 'id,name,amount\n1,"a\nb",1\n2,"b\nc",many\n3\n4,d,4\n'

XML = (
    "<rows><row><id>1</id><name>a</name><amount>1</amount></row><row><id>2</id><amount>many</amount></row>"
    "<row><id>3</id><name></row><row><id>4</id></row></rows>"
)
XML_CORRUPT = ["<row><id>2</id><amount>many</amount></row>", "<row><id>3</id><name></row>"]


class Case(NamedTuple):
    """Files of a format, the ids of their good records, and the text of their corrupt records."""

    format: str
    options: str
    texts: list[str]
    good: list[int | None]
    corrupt: list[str]


CASES = {
    "json": Case("json", "{}", [JSON], [1, 4, 5, None], JSON_CORRUPT),
    "whole json files": Case(
        "json",
        "{multiLine: true}",
        ['[{"id": 1},\n{"id": 2}]', '{"id": 3,\n"amount": "many"}', '{"id": 4,\n'],
        [1, 2],
        ['{"id": 3,\n"amount": "many"}', '{"id": 4,\n'],
    ),
    "csv": Case("csv", "{header: true}", [CSV], [1, 6], CSV_CORRUPT),
    "csv over several lines": Case(
        "csv",
        "{header: true, multiLine: true}",
        [LONG_CSV],
        [1, 4],
        ['2,"b\nc",many', "3"],
    ),
    "xml": Case("xml", "{rowTag: row}", [XML], [1, 4], XML_CORRUPT),
}

MODELS = {
    "models/whole.sql": "{{ config(sink='lake') }} select * from {{ source('made', 'rows') }}",
    "models/one.sql": "{{ config(sink='lake') }} select id from {{ source('made', 'rows') }}",
    "models/files.sql": "{{ config(sink='lake') }} select input_file_name() as file from {{ source('made', 'rows') }}",
    "models/counted.sql": "{{ config(sink='table', output_mode='complete') }} "
    "select count(*) as n from {{ source('made', 'rows') }}",
    "models/summed.sql": "{{ config(sink='table', output_mode='complete') }} "
    "select name, count(*) as n from {{ source('made', 'rows') }} group by name",
}


def declare(folder: ProjectFolder, on_corrupt: str, table: str = "format: json", columns: str = COLUMNS) -> None:
    """Adds a source `made.rows` over in/rows to the project."""
    declared = (
        f"sources:\n  - name: made\n    tables:\n      - {{name: rows, {table}, path: in/rows, schema: '{columns}'"
    )
    folder.write({"sources/made.yml": f"{declared}{on_corrupt and ', ' + on_corrupt}}}\n"})


def write(folder: ProjectFolder, *texts: str) -> None:
    """Writes the files of `made.rows`."""
    folder.write({f"in/rows/{number}.txt": text for number, text in enumerate(texts)})


def shown(folder: ProjectFolder) -> dict[str, list[tuple[str, ...]]]:
    """Returns the rows of the memory tables of the last run by model, each value as text."""
    tables = [event for event in folder.events if isinstance(event, TableShown)]
    return {
        table.model: [tuple("null" if value is None else str(value) for value in row) for row in table.rows]
        for table in tables
    }


QUARANTINE = "on_corrupt: quarantine, quarantine_sink: lake"


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_good_and_quarantined_records_are_complete(case: str, folder: ProjectFolder, read_parquet: Rows) -> None:
    """Models of all columns, one column, no column and groups see the good records; the quarantine has all others."""
    form, options, texts, good, corrupt = CASES[case]
    write(folder, *texts)
    declare(folder, QUARANTINE, f"format: {form}, options: {options}")
    folder.write(MODELS)

    results = {result.model: result for result in folder.run().results}

    store = folder.root / "store"
    assert sorted(str(row["id"]) for row in read_parquet(store / "whole")) == sorted(map(str, good))
    assert sorted(str(row["id"]) for row in read_parquet(store / "one")) == sorted(map(str, good))
    assert len(read_parquet(store / "files")) == len(good)
    assert shown(folder)["counted"] == [(str(len(good)),)]
    assert sum(int(row[-1]) for row in shown(folder)["summed"]) == len(good)
    kept = read_parquet(store / "made__rows__corrupt")
    assert sorted(row["record"] for row in kept) == sorted(corrupt)
    assert {Path(row["file"]).parent.name for row in kept} == {"rows"}
    assert results["made__rows__corrupt"].rows_out == len(corrupt)
    assert results["made__rows__corrupt"].rows_in == len(good) + len(corrupt)


def test_a_quarantine_without_corrupt_records_is_healthy(folder: ProjectFolder) -> None:
    """A quarantine that has read only good records is not reported as a query without output; one over no rows is fine."""
    write(folder, '{"id": 1}\n{"id": 2}\n')
    declare(folder, QUARANTINE)
    folder.write(
        {"models/none.sql": "{{ config(sink='lake') }} select id from {{ source('made', 'rows') }} where id > 9"}
    )

    results = {result.model: result for result in folder.run().results}

    assert (results["made__rows__corrupt"].rows_in, results["made__rows__corrupt"].rows_out) == (2, 0)
    assert [event.model for event in folder.events if isinstance(event, QuerySilent)] == ["none"]


@pytest.mark.slow
def test_a_killed_run_neither_loses_nor_repeats_records(folder: ProjectFolder, read_parquet: Rows) -> None:
    """After a kill no record is lost or repeated: the quarantine resumes from its own checkpoint."""
    write(folder, *(f'{{"id": {n}}}\n{{"id": "bad {n}"}}\n' for n in range(12)))
    declare(folder, QUARANTINE, "format: json, options: {maxFilesPerTrigger: 1}")
    folder.write({"models/one.sql": MODELS["models/one.sql"]})
    process = folder.command("run", "--log-format", "json")
    wait_for(process, '"event": "batch", "model": "made__rows__corrupt"')
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()

    folder.run()

    store = folder.root / "store"
    assert sorted(row["id"] for row in read_parquet(store / "one")) == list(range(12))
    kept = sorted(row["record"] for row in read_parquet(store / "made__rows__corrupt"))
    assert kept == sorted(f'{{"id": "bad {n}"}}' for n in range(12))


def test_dropped_records_are_counted(folder: ProjectFolder, read_parquet: Rows) -> None:
    """Results count dropped records; two references to one source have two readers, and each counts what it drops."""
    write(folder, JSON)
    declare(folder, "on_corrupt: drop")
    folder.write(
        {
            "models/one.sql": MODELS["models/one.sql"],
            "models/named.sql": "select id from {{ source('made', 'rows') }} where name is not null",
            "models/unnamed.sql": "select id from {{ source('made', 'rows') }} where name is null",
            "models/both.sql": "{{ config(sink='lake') }} select * from {{ ref('named') }} "
            "union all select * from {{ ref('unnamed') }}",
        }
    )

    results = {result.model: result for result in folder.run().results}

    assert {name: (result.rows_out, result.dropped_records) for name, result in results.items()} == {
        "one": (4, 6),
        "both": (4, 12),
    }
    assert len(read_parquet(folder.root / "store/both")) == 4


@pytest.mark.slow
def test_dropped_records_of_a_static_table_are_counted(folder: ProjectFolder) -> None:
    """Dropped records of a static table are counted in batch models, also if a view is read twice or no row is needed.

    A stream reads the table again in each batch; its total counts each record once.
    """
    write(folder, JSON)
    declare(folder, "on_corrupt: drop, mode: batch")
    for number in range(2):
        folder.rows(f"in/orders/{number}.json", [{"id": number}], modified=number)
    folder.write(
        {
            "models/whole.sql": "{{ config(sink='lake') }} select * from {{ source('made', 'rows') }}",
            "models/twice.sql": "{{ config(sink='lake') }} select a.id from {{ source('made', 'rows') }} a "
            "join {{ source('made', 'rows') }} b on a.id = b.id",
            "models/none.sql": "{{ config(sink='lake') }} select * from {{ source('made', 'rows') }} where false",
            "models/stream.sql": "{{ config(sink='nowhere') }} select o.id from {{ source('shop', 'orders') }} o "
            "left join {{ source('made', 'rows') }} r on o.id = r.id",
        }
    )

    results = {result.model: result for result in folder.run().results}

    assert {name: result.dropped_records for name, result in results.items()} == {
        "whole": 6,
        "twice": 6,
        "none": 0,
        "stream": 6,
    }
    batches = [event for event in folder.events if isinstance(event, BatchProgress) and event.model == "stream"]
    assert [batch.dropped_records for batch in batches] == [6, 6]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "csv", "xml"])
def test_a_corrupt_record_fails_the_query_at_once(form: str, folder: ProjectFolder, read_parquet: Rows) -> None:
    """A corrupt record fails the query at once, also without `on_corrupt`: the finding names the file, and there is no
    retry. A query that does not read the corrupt column continues.
    """
    _, options, texts, *_ = CASES[form]
    broken = {
        "json": '{"id": 2, "amount": "many"}\n',
        "csv": texts[0].split("3,c")[0],
        "xml": texts[0].split("<row><id>3")[0],
    }
    write(folder, broken[form])
    declare(folder, "", f"format: {form}, options: {options}")
    folder.write(
        {
            "models/whole.sql": MODELS["models/whole.sql"].replace("sink='lake'", "sink='lake', retries=3"),
            "models/one.sql": MODELS["models/one.sql"],
        }
    )

    failed, other = sorted(folder.run().results, key=lambda result: result.finding is None)

    assert not [event for event in folder.events if isinstance(event, QueryRestarting)]
    assert failed.finding is not None
    assert (failed.model, failed.finding.code, str(failed.finding.location)) == (
        "whole",
        "corrupt-record",
        "models/whole.sql:1:1",
    )
    assert str(folder.root / "in/rows/0.txt") in failed.finding.message
    assert "many" in failed.finding.why
    assert "if the file is correct, fix " in failed.finding.fix
    assert " in sources/made.yml:" in failed.finding.fix
    assert (other.model, other.finding) == ("one", None)


@pytest.mark.slow
def test_errors_in_batches_that_sqlstream_writes_are_sparks_own(folder: ProjectFolder) -> None:
    """Whoever writes the batch, its failure has the file or the condition, and a corrupt record is not read again."""
    declare(folder, "on_corrupt: fail")
    write(folder, '{"id": 1, "amount": 1}\n{"id": 2, "amount": "many"}\n')
    folder.rows("in/good/0.json", [{"id": 1, "amount": 0}])
    with (folder.root / "sources/made.yml").open("a") as sources:
        sources.write(f"      - {{name: good, format: json, path: in/good, schema: '{COLUMNS}'}}\n")
    folder.write(
        {
            "sinks.yml": "sinks:\n  - {name: lake, format: parquet, path: '{{ model.name }}'}\n"
            "  - {name: db, format: sqlite, path: '{{ model.name }}.db'}\n",
            **{
                f"models/{name}.sql": f"{{{{ config(sink={sink}, output_mode='complete') }}}}\n"
                f"select id, sum(amount) as n from {{{{ source('made', 'rows') }}}} group by id\n"
                for name, sink in (("files", "'lake'"), ("rows", "'db'"))
            },
            "models/zero.sql": "{{ config(sink='lake', output_mode='complete') }}\n"
            "select id, sum(1 / amount) as n from {{ source('made', 'good') }} group by id\n",
        }
    )

    results = {result.model: result.finding for result in folder.run().results}

    assert {name: finding.code for name, finding in results.items() if finding} == {
        **dict.fromkeys(("files", "rows"), "corrupt-record"),
        "zero": "query-failed",
    }
    assert not [event for event in folder.events if isinstance(event, QueryRestarting)]
    assert "DIVIDE_BY_ZERO" in str(results["zero"])


def test_sparks_own_capture_of_corrupt_records_works(folder: ProjectFolder, read_parquet: Rows) -> None:
    """A declared column for corrupt records and Spark's own option work as they do in Spark."""
    write(folder, '{"id": 1}\n{"id": 2\n')
    declare(folder, "", columns="id int, _corrupt_record string")
    folder.write({"models/whole.sql": MODELS["models/whole.sql"]})
    folder.run()
    assert {row["_corrupt_record"] for row in read_parquet(folder.root / "store/whole")} == {None, '{"id": 2'}

    declare(folder, "", "format: json, options: {mode: DROPMALFORMED}")
    folder.run(full_refresh=True)
    assert [row["id"] for row in read_parquet(folder.root / "store/whole.v2")] == [1]


def test_on_corrupt_can_change_between_runs(folder: ProjectFolder, read_parquet: Rows) -> None:
    """`on_corrupt` may change between runs, as state has only good records; a new quarantine gets all corrupt ones."""
    write(folder, '{"id": 1, "name": "a"}\n{"id": 2\n')
    declare(folder, "on_corrupt: drop")
    folder.write(
        {
            "models/hourly.sql": "{{ config(sink='nowhere', output_mode='update') }} "
            "select name, count(*) as n from {{ source('made', 'rows') }} group by name"
        }
    )
    folder.run()

    folder.write({"in/rows/1.txt": '{"id": 3, "name": "a"}\n{"id": 4\n'})
    declare(folder, QUARANTINE)
    results = {result.model: result for result in folder.run().results}

    assert (results["hourly"].finding, results["hourly"].rows_in) == (None, 2)
    kept = read_parquet(folder.root / "store/made__rows__corrupt")
    assert sorted(row["record"] for row in kept) == ['{"id": 2', '{"id": 4']


def test_a_full_refresh_of_a_model_keeps_the_quarantine(folder: ProjectFolder, read_parquet: Rows) -> None:
    """A full refresh of a model and a parallel version leave the quarantine of its source as it is; one of everything
    starts it over.
    """
    write(folder, '{"id": 1, "name": "a"}\n{"id": 2\n')
    declare(folder, QUARANTINE)
    folder.write({"models/one.sql": MODELS["models/one.sql"]})
    folder.run()
    queries = folder.root / "store/queries"

    def versions(model: str) -> list[str]:
        return sorted(path.name for path in (queries / model).glob("v*/"))

    refreshed = folder.run("one", full_refresh=True)
    assert {result.model for result in refreshed.results} == {"one", "made__rows__corrupt"}
    assert (versions("one"), versions("made__rows__corrupt")) == (["v1", "v2"], ["v1"])
    beside = folder.run("one", full_refresh=True, parallel=("one",))
    assert [result.model for result in beside.results] == ["one"]
    assert len(read_parquet(folder.root / "store/made__rows__corrupt")) == 1
    folder.run(full_refresh=True)
    assert versions("made__rows__corrupt") == ["v1", "v2"]


def test_python_models_have_the_metadata_column(folder: ProjectFolder, read_parquet: Rows) -> None:
    """A Python model gets the reader itself, with Spark's column `_metadata`."""
    write(folder, '{"id": 1}\n{"id": 2\n')
    declare(folder, "on_corrupt: drop")
    folder.write(
        {
            "models/sized.py": "def model(sqlstream, spark):\n    sqlstream.config(sink='lake')\n"
            "    rows = sqlstream.source('made', 'rows')\n    return rows.select('id', '_metadata.file_name')\n"
        }
    )

    folder.run()

    assert read_parquet(folder.root / "store/sized") == [{"id": 1, "file_name": "0.txt"}]


def show(folder: ProjectFolder, *select: str) -> list[list[tuple[object, ...]]]:
    """Returns the rows that `show` prints for each node."""
    return [list(node.rows) for node in show_rows(ShowRequest(ProjectRequest(folder.root), Selection(select))).nodes]


def test_show_has_the_same_records_as_a_run(folder: ProjectFolder) -> None:
    """`show` has the good records of sources and models and the corrupt ones of the quarantine, or fails, as a run."""
    write(folder, '{"id": 1}\n{"id": 2\n')
    declare(folder, QUARANTINE)
    folder.write({"models/counted.sql": MODELS["models/counted.sql"]})

    assert [rows[0][0] for rows in show(folder, "source:made.rows", "counted", "made__rows__corrupt")] == [
        1,
        1,
        '{"id": 2',
    ]

    declare(folder, "")
    with pytest.raises(FindingsError) as raised:
        show(folder, "source:made.rows")
    assert [finding.code for finding in raised.value.findings] == ["corrupt-record"]


def test_on_corrupt_applies_to_static_tables(folder: ProjectFolder) -> None:
    """Static tables are read completely on each run: corrupt records are left out, or fail the run."""
    import pyarrow.parquet as pq

    write(folder, '{"id": 1}\n{"id": 2\n{"id": "no"}\n')
    declare(folder, "on_corrupt: drop", "format: json, mode: batch")
    folder.write({"models/one.sql": "{{ config(sink='lake') }} select name from {{ source('made', 'rows') }}"})
    assert folder.result().rows_out == 1
    assert pq.read_table(folder.root / "store/one").to_pylist() == [{"name": None}]

    declare(folder, "on_corrupt: fail", "format: json, mode: batch")
    finding = folder.result().finding
    assert finding is not None
    assert (finding.code, str(folder.root / "in/rows/0.txt") in finding.message) == ("corrupt-record", True)
