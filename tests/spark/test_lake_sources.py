"""Tables of Delta Lake and Iceberg as streams and as static tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sqlstream.app.request import ProjectRequest
from sqlstream.app.source.source_schema import source_schema
from sqlstream.errors import FindingsError
from sqlstream.state.runs.events import QueryResult
from tests.spark.conftest import ProjectFolder, shop_project
from tests.support.lake_tables import FORMATS, SINKS, lake_session, rows

pytestmark = pytest.mark.smoke

TABLES = """
  - name: lake
    tables:
      - name: delta
        format: delta
        path: store/raw_delta
        schema: id int, kind string
        options: {startingVersion: 0, maxFilesPerTrigger: 1, skipChangeCommits: true}
      - name: iceberg
        format: iceberg
        path: store/raw_iceberg
        options: {streaming-max-files-per-micro-batch: 1, streaming-skip-overwrite-snapshots: true}
      - {name: first, format: delta, path: store/raw_delta, mode: batch, options: {versionAsOf: 1}}
      - {name: wrong, format: iceberg, path: store/raw_iceberg, mode: batch, schema: id string}
"""


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> ProjectFolder:
    """A project that writes orders to tables, and copies these tables. The parameter is the name of its folder."""
    folder = shop_project(tmp_path / getattr(request, "param", "shop"))
    folder.write({"sinks.yml": SINKS, "sources.yml": (folder.root / "sources.yml").read_text() + TABLES.lstrip("\n")})
    for each in FORMATS:
        raw = f"{{{{ config(sink='{each}') }}}} select id, kind from {{{{ source('shop', 'orders') }}}}"
        copy = f"{{{{ config(sink='{each}') }}}} select id from {{{{ source('lake', '{each}') }}}}"
        folder.write({f"models/raw/raw_{each}.sql": raw, f"models/copy/copy_{each}.sql": copy})
    folder.write(
        {
            "models/static/early.sql": "{{ config(sink='delta') }} select * from {{ source('lake', 'first') }}",
            "models/static/wrong.sql": "{{ config(sink='delta') }} select * from {{ source('lake', 'wrong') }}",
        }
    )
    for number in range(2):
        folder.rows(f"in/orders/{number}.json", [{"id": number, "kind": "a"}], modified=number)
    return folder


@pytest.mark.parametrize("lake", ["shop", "depot [v2] a{b,c}"], indirect=True)
def test_tables_are_streams_that_resume_and_static_tables(lake: ProjectFolder) -> None:
    """A stream reads each row once over two runs; a static table has an earlier version or other types. The folder of
    the project can have a name that looks like a pattern.
    """
    assert lake.run("raw").succeeded
    assert lake.run("copy", "early").succeeded
    lake.rows("in/orders/2.json", [{"id": 2, "kind": "b"}], modified=2)
    assert lake.run("raw").succeeded
    assert lake.run("copy").succeeded
    with pytest.raises(FindingsError) as refused:
        lake.run("wrong")

    found = source_schema(ProjectRequest(lake.root), "lake.iceberg")

    (finding,) = refused.value.findings
    assert finding.code == "source-unreadable"
    assert "has `id` as int" in finding.why
    assert [(column.name, column.data_type) for column in found.columns] == [("id", "int"), ("kind", "string")]
    with lake_session(lake) as session:
        for each in FORMATS:
            assert rows(session, lake, each, f"copy_{each}") == [(0,), (1,), (2,)]
        assert rows(session, lake, "delta", "early") == [(0, "a")]


def test_a_replaced_table_is_refused(lake: ProjectFolder) -> None:
    """A table with more rows is still the same; a query does not continue on another table in the folder of the first."""
    assert lake.run("raw").succeeded
    assert lake.run("copy").succeeded
    lake.rows("in/orders/2.json", [{"id": 2, "kind": "b"}], modified=2)
    assert lake.run("raw").succeeded
    assert lake.run("copy").succeeded
    for each in FORMATS:
        shutil.rmtree(lake.root / f"store/raw_{each}")
    assert lake.run("raw", full_refresh=True).succeeded
    for each in FORMATS:
        plain = lake.root / f"store/raw_{each}"
        others = sorted(path for path in plain.parent.glob(f"raw_{each}*") if path != plain and path.is_dir())
        plain.unlink(missing_ok=True)  # a link, if there is one
        others[-1].rename(plain)

    with pytest.raises(FindingsError) as refused:
        lake.run("copy")

    assert [(finding.code, str(finding.location)) for finding in refused.value.findings] == [
        ("source-replaced", f"models/copy/copy_{each}.sql:1:1") for each in FORMATS
    ]


@pytest.mark.slow
def test_changed_rows_end_a_stream(lake: ProjectFolder) -> None:
    """A stream without an option for them does not leave out changed rows: it fails, and the finding has the ways out."""
    text = (lake.root / "sources.yml").read_text()
    tables = "".join(f"      - {{name: plain_{each}, format: {each}, path: store/raw_{each}}}\n" for each in FORMATS)
    models = {
        f"models/plain/plain_{each}.sql": f"{{{{ config(sink='{each}') }}}} select * from {{{{ source('lake', 'plain_{each}') }}}}"
        for each in FORMATS
    }
    lake.write({"sources.yml": text + tables, **models})
    assert lake.run("raw").succeeded
    assert lake.run("plain").succeeded
    with lake_session(lake) as session:
        for table in (f"delta.`{lake.root / 'store/raw_delta'}`", "files.raw_iceberg"):
            session.sql(f"update {table} set kind = 'b' where id = 1")

    assert not lake.run("plain").succeeded

    results = (event for event in lake.events if isinstance(event, QueryResult))
    fixes = {result.model: result.finding.fix for result in results if result.finding is not None}
    assert "`changes: true`" in fixes["plain_delta"]
    assert "skipChangeCommits to true" in fixes["plain_delta"]
    assert "streaming-skip-overwrite-snapshots to true" in fixes["plain_iceberg"]
