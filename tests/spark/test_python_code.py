"""The project's own Python: sinks, sources and functions of python/, and changes to them between runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.compile.check import check_models
from sqlstream.app.request import Selection
from sqlstream.errors import FindingsError
from sqlstream.spark.reading import inputs
from tests.spark.conftest import ProjectFolder

CONFIG = "{{ config(sink='nowhere', output_mode='update') }}"

Rows = Callable[[Path], list[dict[str, Any]]]

SINKS = """
import json
from pathlib import Path
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage

from shared import OUT, note
from sqlstream import MicroBatch


def send(rows, batch):
    note("batches", {"batch": batch.id, "ids": sorted(row.id for row in rows.collect())})


def record(rows, batch: MicroBatch):
    if batch.model != "uncounted":
        note("batches", {"model": batch.model, "query": batch.query_id, "options": dict(batch.options), "n": rows.count()})


class Each:
    def open(self, partition, epoch):
        return True

    def process(self, row):
        note("rows", {"id": row.id})

    def close(self, error):
        pass


class Written(DataSource):
    @classmethod
    def name(cls):
        return "written"

    def streamWriter(self, schema, overwrite):
        return Writer(self.options["folder"])


class Writer(DataSourceStreamWriter):
    def __init__(self, folder):
        self.folder = folder

    def write(self, rows):
        for row in rows:
            note(self.folder, {"id": row.id})
        return WriterCommitMessage()
"""

SHARED = """
import json
import os

OUT = {out!r}


def note(name, value):
    with open(os.path.join(OUT, name), "a") as file:
        file.write(json.dumps(value) + chr(10))
"""

COUNTER = """
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader


class Counter(DataSource):
    @classmethod
    def name(cls):
        return "counter"

    def schema(self):
        return "n int"

    def simpleStreamReader(self, schema):
        return Reader(int(self.options["most"]))


class Reader(SimpleDataSourceStreamReader):
    def __init__(self, most):
        self.most = most

    def initialOffset(self):
        return {"n": 0}

    def read(self, start):
        if start["n"] >= self.most:
            return iter([]), start
        return iter([(start["n"],)]), {"n": start["n"] + 1}

    def readBetweenOffsets(self, start, end):
        return iter([(n,) for n in range(start["n"], end["n"])])
"""

FUNCTIONS = """
import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.functions import pandas_udf, udf, udtf


@udf("int")
def twice(value):
    return value * FACTOR


@F.pandas_udf("long")
def plus_one(values: pd.Series) -> pd.Series:
    return values + 1


@pandas_udf("double")
def middle(values: pd.Series) -> float:
    return float(values.median())


@udf("double")
def middle_of(values):
    return float(sorted(values)[len(values) // 2])


@udtf(returnType="low int, high int")
class Around:
    def eval(self, value: int):
        yield value - 1, value + 1


FACTOR = 2
"""


@pytest.fixture
def coded(orders: ProjectFolder) -> ProjectFolder:
    """The project of orders with its own Python code."""
    out = orders.root / "noted"
    out.mkdir()
    orders.write(
        {
            "project.yml": "name: shop\ntargets: {local: {master: 'local[2]', storage: store}}\n"
            "functions: [functions:twice, functions:plus_one, functions:middle, functions:middle_of,\n"
            "  functions:Around]\n",
            "python/sinks.py": SINKS,
            "python/shared.py": SHARED.format(out=str(out)),
            "python/counter.py": COUNTER,
            "python/functions.py": FUNCTIONS,
            "models/_made.yml": "sinks:\n  - {name: sent, format: python, function: sinks:send}\n"
            "  - {name: each, format: python, function: sinks:Each}\n"
            "  - {name: written, format: python, function: sinks:Written, options: {folder: written}}\n"
            "sources:\n  - name: made\n    tables:\n"
            "      - {name: numbers, format: python, class: counter:Counter, options: {most: 3}}\n",
        }
    )
    return orders


def noted(project: ProjectFolder, name: str) -> list[dict[str, Any]]:
    """Returns the entries that the project's code has written under a name."""
    path = project.root / "noted" / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.slow
def test_rows_go_to_functions_and_classes_of_the_project(coded: ProjectFolder) -> None:
    """A function gets each batch with its number, a class each row, and a data source's writer each partition."""
    for sink in ("sent", "each", "written"):
        text = f"{{{{ config(sink='{sink}') }}}} select id from {{{{ source('shop', 'orders') }}}}"
        coded.write({f"models/to_{sink}.sql": text})

    assert coded.run().succeeded

    ids = [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]
    assert noted(coded, "batches") == [{"batch": 0, "ids": ids[:5]}, {"batch": 1, "ids": ids[5:]}]
    assert sorted(row["id"] for row in noted(coded, "rows")) == ids
    assert sorted(row["id"] for row in noted(coded, "written")) == ids

    coded.rows("in/orders/7.json", [{"id": 99}], modified=7)
    sinks = coded.root / "python/sinks.py"
    sinks.write_text(sinks.read_text().replace('"batches"', '"later"'))
    coded.run("to_sent")

    assert noted(coded, "later") == [{"batch": 2, "ids": [99]}]


def test_one_function_writes_several_batch_models(coded: ProjectFolder) -> None:
    """Each run has its own query id, secrets are resolved, and a function may ignore its rows."""
    config = "{{ config(sink='all', options={'to': 'a'}) }}"
    coded.write(
        {
            "sinks.yml": "sinks:\n  - name: all\n    format: python\n    function: sinks:record\n"
            "    options: {key: \"{{ env_var('SQLSTREAM_SECRET_KEY') }}\"}\n",
            "models/one.sql": f"{config} select 1 as id",
            "models/uncounted.sql": f"{config} select 2 as id",
        }
    )
    env = {"SQLSTREAM_SECRET_KEY": "opensesame"}

    first, second = (coded.run("one", "uncounted", env=env) for _ in range(2))

    assert [[result.rows_out for result in run.results] for run in (first, second)] == [[1, None], [1, None]]
    batches = noted(coded, "batches")
    assert len({batch.pop("query") for batch in batches}) == 2
    assert batches == 2 * [{"model": "one", "options": {"key": "opensesame", "to": "a"}, "n": 1}]


@pytest.mark.slow
def test_functions_of_the_project_work_in_sql(coded: ProjectFolder, read_parquet: Rows) -> None:
    """Functions of the project work in expressions and in FROM; the compiler knows their names and declared types."""
    coded.write(
        {
            "models/called.sql": "{{ config(sink='lake') }} select id, twice(id) as doubled, plus_one(id) as next, a.high "
            "from {{ source('shop', 'orders') }}, lateral around(id) a"
        }
    )

    coded.result("called")

    rows = {row["id"]: row for row in read_parquet(coded.root / "store/called")}
    assert rows[3] == {"id": 3, "doubled": 6, "next": 4, "high": 4}


@pytest.mark.slow
def test_a_data_source_of_the_project_streams(coded: ProjectFolder, read_parquet: Rows) -> None:
    """A data source of the project resumes in the second run: no number comes twice."""
    coded.write({"models/counted.sql": "{{ config(sink='lake') }} select n from {{ source('made', 'numbers') }}"})

    read = 0
    for _ in range(2):
        assert coded.run("counted").succeeded
        numbers = sorted(row["n"] for row in read_parquet(coded.root / "store/counted"))
        assert numbers == list(range(len(numbers)))
        assert len(numbers) > read or read == 3
        read = len(numbers)


def test_failed_imports_are_found_at_start(coded: ProjectFolder) -> None:
    """Failed imports and unsuitable objects are all found at start, at the keys that name them."""
    coded.write(
        {
            "python/broken.py": "import surely_not_installed\n\n\ndef send(rows, batch):\n    pass\n",
            "python/unfit.py": "def send(rows):\n    pass\n\n\nclass Plain:\n    pass\n",
            "models/_bad.yml": "sinks:\n  - {name: broken, format: python, function: broken:send}\n"
            "  - {name: unfit, format: python, function: unfit:send}\n"
            "sources:\n  - name: bad\n    tables: [{name: plain, format: python, class: unfit:Plain}]\n",
            "models/to_broken.sql": "{{ config(sink='broken') }} select id from {{ source('shop', 'orders') }}",
            "models/to_unfit.sql": "{{ config(sink='unfit') }} select * from {{ source('bad', 'plain') }}",
        }
    )

    with pytest.raises(FindingsError) as caught:
        coded.run()

    assert {(finding.code, str(finding.location)) for finding in caught.value.findings} == {
        ("python-import", "models/_bad.yml:2:46"),
        ("python-name", "models/_bad.yml:3:45"),
        ("python-name", "models/_bad.yml:6:51"),
    }


@pytest.mark.slow
def test_a_changed_function_changes_the_query(coded: ProjectFolder) -> None:
    """A changed function changes the query, because the old code made the state; changed comments do not."""
    coded.write(
        {
            "models/summed.sql": "{{ config(sink='nowhere', output_mode='update') }} select kind, sum(twice(id)) as total "
            "from {{ source('shop', 'orders') }} group by kind"
        }
    )
    assert coded.run("summed").succeeded
    functions = coded.root / "python/functions.py"
    functions.write_text("# doubled\n" + functions.read_text())
    assert coded.run("summed").succeeded
    functions.write_text(functions.read_text().replace("FACTOR = 2", "FACTOR = 3"))

    with pytest.raises(FindingsError) as caught:
        coded.run("summed")

    (finding,) = caught.value.findings
    assert finding.code == "state-change"
    assert "the code of `twice` changed" in finding.message


@pytest.mark.slow
def test_code_counts_with_all_that_it_imports(coded: ProjectFolder) -> None:
    """A module that a function imports counts like its own text, and so does the code of a source; what nothing in the
    query reaches does not. A ledger without the digests of imports resumes, and gets them.
    """
    functions = coded.root / "python/functions.py"
    functions.write_text(functions.read_text().replace("FACTOR = 2", "from factors import FACTOR"))
    coded.write(
        {
            "python/factors.py": "FACTOR = 2\n",
            "models/summed.sql": "{{ config(sink='nowhere', output_mode='update') }} select kind, sum(twice(id)) as total "
            "from {{ source('shop', 'orders') }} group by kind",
            "models/ticked.sql": "{{ config(sink='nowhere', output_mode='update') }} select n % 2 as k, count(*) as c "
            "from {{ source('made', 'numbers') }} group by n % 2",
        }
    )
    assert coded.run("summed", "ticked").succeeded
    path = coded.root / "store/queries/summed/v1/ledger.json"
    ledger = json.loads(path.read_text())
    assert ledger["identity"].pop("code")
    path.write_text(json.dumps(ledger))
    coded.write({"python/unread.py": "NOTHING = 1\n"})
    coded.rows("in/orders/9.json", [{"id": 1, "kind": "a"}])
    assert coded.run("summed", "ticked").succeeded
    assert json.loads(path.read_text())["identity"]["code"]

    coded.write({"python/factors.py": "FACTOR = 3\n"})
    sources = coded.root / "python/counter.py"
    sources.write_text(sources.read_text() + "\nMORE = 1\n")
    with pytest.raises(FindingsError) as caught:
        coded.run("summed", "ticked")

    found = [(finding.code, finding.message) for finding in caught.value.findings]
    assert [code for code, _ in found] == ["state-change", "state-change"]
    assert any("the code of `twice` changed" in message for _, message in found)
    assert any("the Python code of source `made.numbers` changed" in message for _, message in found)


def test_a_pandas_aggregate_over_a_stream_is_found_before_anything_starts(coded: ProjectFolder) -> None:
    """`compile --check` and `run` find each call of a pandas aggregate over a stream, in views and in queries."""
    grouped = "from {{ source('shop', 'orders') }} group by kind"
    coded.write(
        {
            "models/middles.sql": f"select kind,\n  1 + middle(id) as middle\n{grouped}",
            "models/reading.sql": f"{CONFIG}\nselect * from {{{{ ref('middles') }}}}",
            "models/having.sql": f"{CONFIG}\nselect kind, count(*) as n\n{grouped}\nhaving middle(id) > 1",
        }
    )
    for find in (coded.run, lambda: check_models(ProjectRequest(coded.root), Selection())):
        with pytest.raises(FindingsError) as caught:
            find()

        errors = {(finding.code, str(finding.location)) for finding in caught.value.findings if finding.is_error}
        assert errors == {
            ("misplaced-function", "models/middles.sql:2:7"),
            ("misplaced-function", "models/having.sql:4:8"),
        }
    assert not (coded.root / "store/queries").exists()


def test_spark_itself_refuses_a_pandas_aggregate_over_a_stream(
    coded: ProjectFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the check, Spark refuses a pandas aggregate over a stream when it plans a batch."""
    monkeypatch.setattr(inputs, "streaming_python_aggregates", lambda _: ())
    text = "select kind, middle(id) as middle from {{ source('shop', 'orders') }} group by kind"
    coded.write({"models/middles.sql": f"{CONFIG}\n{text}"})

    with pytest.raises(FindingsError) as caught:
        coded.run()

    assert [finding.code for finding in caught.value.findings] == ["output-mode"]


@pytest.mark.slow
def test_a_pandas_aggregate_of_a_static_table_or_of_a_collected_list_runs(
    coded: ProjectFolder, read_parquet: Rows
) -> None:
    """A pandas aggregate of a static table runs, also beside a stream; a plain function takes a collected list."""
    coded.write(
        {
            "seeds/sizes.csv": "size\n1\n2\n6\n",
            "models/beside.sql": "{{ config(sink='lake') }}\nselect o.id, s.usual from {{ source('shop', 'orders') }} o\n"
            "cross join (select middle(size) as usual from {{ ref('sizes') }}) s",
            "models/listed.sql": f"{CONFIG}\nselect kind, middle_of(collect_list(id)) as middle\n"
            "from {{ source('shop', 'orders') }} group by kind",
        }
    )

    assert coded.run().succeeded

    assert {row["usual"] for row in read_parquet(coded.root / "store/beside")} == {2.0}
