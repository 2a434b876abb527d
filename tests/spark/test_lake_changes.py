"""Sources with `changes: true`: the changes of the rows of a table of Delta Lake."""

from __future__ import annotations

import os
import sqlite3
from typing import Any

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.plan.plan import plan_project
from sqlstream.app.replay.replay_batch import ReplayRequest, replay_batch
from sqlstream.app.request import PlanRequest, Selection
from sqlstream.app.show.show import ShowRequest, show_rows
from sqlstream.app.source.source_schema import source_schema
from sqlstream.app.status.status import read_status
from sqlstream.errors import FindingsError
from sqlstream.state.runs.events import QueryResult
from sqlstream.state.sources.lag import Lag, VersionLag
from tests.spark.conftest import ProjectFolder
from tests.support.lake_tables import SINKS, lake_session, rows

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("SQLSTREAM_KILLS", "2"))
"""The number of kills (`make kills`: twenty)."""

COMMITS_FOR_A_KILL = 6

SOURCE = """sources:
  - name: shop
    tables:
      - {name: orders, format: json, path: in/orders, schema: id int}
  - name: lake
    tables:
      - {name: customers, format: delta, path: customers, changes: true, schema: id int, OPTIONS}
"""
CHANGES = "_change_type, _commit_version"
FEED = f"{{{{ config(sink='delta') }}}} select id, {CHANGES} as version from {{{{ source('lake', 'customers') }}}}"
FEED = FEED.replace("_change_type,", "_change_type as change,")
FIRST = "{{ config(sink='delta') }} select id from {{ source('shop', 'orders') }}"
REPLICA = """\
{{ config(sink='delta', unique_key='id', sequence_by=['version', 'change'], delete_when="change = 'delete'") }}
select id, name, _commit_version as version, _change_type as change
from {{ source('lake', 'customers') }}
where _change_type != 'update_preimage'
"""


@pytest.fixture
def lake(folder: ProjectFolder) -> ProjectFolder:
    """A project with a source `lake.customers`, whose table does not exist yet."""
    folder.write(
        {"sinks.yml": SINKS, "models/first.sql": FIRST, "models/feed.sql": FEED, "models/replica.sql": REPLICA}
    )
    folder.rows("in/orders/0.json", [{"id": 0}], modified=0)
    declare(folder, "id int, name string")
    assert folder.run("first").succeeded  # a session needs the class path of a run
    return folder


def declare(folder: ProjectFolder, schema: str, options: str = "", *, changes: bool = True) -> None:
    """Declares the source with these columns and options."""
    text = SOURCE.replace("schema: id int, OPTIONS", f"schema: '{schema}', options: {{{options}}}")
    folder.write({"sources.yml": text if changes else text.replace(" changes: true,", "")})


def created(folder: ProjectFolder, properties: str = "delta.enableChangeDataFeed = true") -> None:
    """Creates the table with two rows, in two commits."""
    options = f"tblproperties ({properties})" if properties else ""
    change(
        folder,
        f"create table CUSTOMERS (id int, name string) using delta {options}",
        "insert into CUSTOMERS values (1, 'ann'), (2, 'ben')",
    )


def change(folder: ProjectFolder, *statements: str) -> None:
    """Runs statements on the table of the source, each of them a commit."""
    with lake_session(folder) as session:
        for statement in statements:
            session.sql(statement.replace("CUSTOMERS", f"delta.`{folder.root / 'customers'}`"))


def written(folder: ProjectFolder, name: str, *columns: str) -> list[Any]:
    """Returns the rows of a table in the storage."""
    with lake_session(folder) as session:
        return rows(session, folder, "delta", name, *columns)


def lag(folder: ProjectFolder, model: str) -> Lag | None:
    """Returns the lag of a query behind the table."""
    (query,) = read_status(ProjectRequest(folder.root, env=os.environ), Selection((model,))).progress
    return query.versions[0].sources[0].lag


def replayed(folder: ProjectFolder, model: str, batch: int) -> list[tuple[object, ...]]:
    """Returns the rows that a model emits in a replayed batch."""
    nodes = replay_batch(ReplayRequest(ProjectRequest(folder.root, env=os.environ), model, batch)).nodes
    return sorted((tuple(row) for row in nodes[-1].rows.rows), key=str) if nodes[-1].rows else []


@pytest.mark.smoke
def test_changes_keep_a_replica_up_to_date(lake: ProjectFolder) -> None:
    """A replica has the rows of the table after inserts, updates, deletes, merges and an overwrite, several of one key
    in a batch and over restarts. The lag is 0 after each run, and a replay has the rows of its batch.
    """
    created(lake)
    assert lake.run("feed", "replica").succeeded
    first = written(lake, "feed")
    assert lag(lake, "feed") == VersionLag(0)
    change(
        lake,
        "update CUSTOMERS set name = 'bo' where id = 2",
        "delete from CUSTOMERS where id = 1",
        "merge into CUSTOMERS t using (select 2 id, 'bob' name union all select 3, 'cy') s on t.id = s.id "
        "when matched then update set * when not matched then insert *",
    )
    assert lag(lake, "feed") == VersionLag(3)
    assert lake.run("feed", "replica").succeeded
    second = written(lake, "feed")
    assert lag(lake, "feed") == VersionLag(0)
    kept = written(lake, "replica", "id", "name")
    change(lake, "insert overwrite CUSTOMERS values (3, 'cyd'), (4, 'dee')", "optimize CUSTOMERS")
    assert lake.run("feed", "replica").succeeded

    assert first == [(1, "insert", 1), (2, "insert", 1)]
    assert sorted(set(second) - set(first), key=lambda row: (row[2], row)) == [
        *((2, "update_postimage", 2), (2, "update_preimage", 2), (1, "delete", 3)),
        *((2, "update_postimage", 4), (2, "update_preimage", 4), (3, "insert", 4)),
    ]
    assert kept == [(2, "bob"), (3, "cy")]
    assert written(lake, "replica", "id", "name") == [(3, "cyd"), (4, "dee")]
    overwritten = [(2, "delete", 5), (3, "delete", 5), (3, "insert", 5), (4, "insert", 5)]
    assert sorted(set(written(lake, "feed")) - set(second)) == overwritten
    assert replayed(lake, "feed", 2) == overwritten


def test_killed_runs_read_each_change_once(lake: ProjectFolder) -> None:
    """After several runs that were killed and one that finishes, files and a table of SQLite have each change once, and
    a copy in SQLite has the rows of the table.
    """
    created(lake)
    expected, statements = [(1, "insert", 1), (2, "insert", 1)], []
    for number in range(2, 2 + COMMITS_FOR_A_KILL * KILLS):  # a commit makes the version with its number
        if number % 3 == 0:
            statements.append(f"insert into CUSTOMERS values ({number}, 'n'), ({number + 1}, 'n')")
            expected += [(number, "insert", number), (number + 1, "insert", number)]
        elif number % 3 == 1:
            statements.append(f"update CUSTOMERS set name = 'm' where id = {number - 1}")
            expected += [(number - 1, f"update_{side}image", number) for side in ("pre", "post")]
        else:
            statements.append(f"delete from CUSTOMERS where id = {number - 1}")
            expected.append((number - 1, "delete", number))
    change(lake, *statements)
    declare(lake, "id int, name string", "startingVersion: 0, maxFilesPerTrigger: 1")
    sinks = "  - {name: files, format: parquet, path: files}\n"
    sinks += "  - {name: sqlite, format: sqlite, path: '{{ model.name }}.sqlite'}\n"
    models = {"files": "files", "added": "sqlite"}
    lake.write({"sinks.yml": SINKS + sinks, "models/copy.sql": REPLICA.replace("'delta'", "'sqlite'")})
    lake.write({f"models/{name}.sql": FEED.replace("'delta'", f"'{sink}'") for name, sink in models.items()})
    names = (*models, "copy")
    lake.run_through_kills(KILLS, 7, 2 * len(names), *names)
    assert lake.run(*names).succeeded

    def ask(table: str, columns: str) -> list[Any]:
        with sqlite3.connect(lake.root / f"store/{table}.sqlite") as connection:
            return sorted(connection.execute(f"select {columns} from {table}"))

    assert ask("added", "id, change, version") == sorted(expected)
    with lake_session(lake) as session:
        found = session.read.parquet(str(lake.root / "store/files")).select("id", "change", "version").collect()
        table = session.read.format("delta").load(str(lake.root / "customers")).collect()
    assert sorted(map(tuple, found)) == sorted(expected)
    assert ask("copy", "id, name") == sorted(map(tuple, table))


@pytest.mark.smoke
def test_a_stream_can_begin_at_a_version(lake: ProjectFolder) -> None:
    """With `startingVersion` a stream has the changes since then, which `show` shows; otherwise a stream begins
    with the rows of the table. `source schema` has the columns of changes.
    """
    created(lake)
    change(lake, "update CUSTOMERS set name = 'bo' where id = 2", "alter table CUSTOMERS add columns (age int)")
    declare(lake, "id int, name string", "startingVersion: 2")
    assert lake.run("feed").succeeded
    change(lake, "insert into CUSTOMERS values (5, 'eve', 40)")
    assert lake.run("feed").succeeded

    (shown,) = show_rows(ShowRequest(ProjectRequest(lake.root, env=os.environ), Selection(("feed",)))).nodes
    declare(lake, "id int, name string")
    (present,) = show_rows(ShowRequest(ProjectRequest(lake.root, env=os.environ), Selection(("feed",)))).nodes
    columns = source_schema(ProjectRequest(lake.root), "lake.customers").columns

    assert written(lake, "feed") == [(2, "update_postimage", 2), (2, "update_preimage", 2), (5, "insert", 4)]
    assert sorted(map(tuple, shown.rows), key=str) == written(lake, "feed")
    assert sorted(map(tuple, present.rows), key=str) == [(1, "insert", 4), (2, "insert", 4), (5, "insert", 4)]
    assert [(each.name, each.data_type) for each in columns] == [
        *(("id", "int"), ("name", "string"), ("_change_type", "string")),
        *(("_commit_version", "bigint"), ("_commit_timestamp", "timestamp"), ("age", "int")),
    ]


@pytest.mark.smoke
def test_a_table_without_changes_is_refused(lake: ProjectFolder) -> None:
    """A query does not start if the table does not record its changes; the finding has the statement that helps. What
    was before is the content of the stream's first rows.
    """
    created(lake, "")

    with pytest.raises(FindingsError) as refused:
        lake.run("feed")
    (finding,) = refused.value.findings
    statement = finding.fix.split("`", 1)[1].rsplit("`; ")[0]
    change(lake, statement, "delete from CUSTOMERS where id = 1")
    assert lake.run("feed").succeeded
    declare(lake, "id int, name string", "startingVersion: 0")
    assert not lake.run("feed", full_refresh=True).succeeded

    assert (finding.code, str(finding.location)) == ("source-unreadable", "sources.yml:7:68")
    assert statement.endswith("SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    assert written(lake, "feed") == [(2, "insert", 3)]
    (failed,) = (event for event in lake.events if isinstance(event, QueryResult))
    assert failed.finding is not None
    assert "change data was not recorded for version [0]" in failed.finding.why
    assert "startingVersion" in failed.finding.fix


@pytest.mark.smoke
def test_other_rows_are_refused(lake: ProjectFolder) -> None:
    """A query that meets changed rows fails with `changes` as a way out. To add or remove it is refused, and accepted
    with --accept-state-change: the query continues after the last version.
    """
    plain = "{{ config(sink='delta') }} select id from {{ source('lake', 'customers') }}"
    lake.write({"models/feed.sql": plain})
    declare(lake, "id int, name string", changes=False)
    created(lake)
    assert lake.run("feed").succeeded
    change(lake, "update CUSTOMERS set name = 'bo' where id = 2")
    assert not lake.run("feed").succeeded
    (failed,) = (event for event in lake.events if isinstance(event, QueryResult))
    declare(lake, "id int, name string")

    planned = plan_project(PlanRequest(ProjectRequest(lake.root, env=os.environ), Selection(("feed",))))
    with pytest.raises(FindingsError) as refused:
        lake.run("feed")
    assert lake.run("feed", accept_state_change=("feed",)).succeeded
    again = plan_project(PlanRequest(ProjectRequest(lake.root, env=os.environ), Selection(("feed",))))

    assert failed.finding is not None
    assert "`changes: true`" in failed.finding.fix
    assert "skipChangeCommits to true" in failed.finding.fix
    assert [finding.code for finding in refused.value.findings] == ["source-change"]
    assert "source-change" in str(planned)
    assert "source-change" not in str(again)
    assert written(lake, "feed") == [(1,), (2,), (2,), (2,)]


UNIT_TEST = """\
version: 2
unit_tests:
  - name: the_last_change_of_a_commit_counts
    model: replica
    given:
      - input: source('lake', 'customers')
        batches:
          - rows:
              - {id: 1, name: ann, _change_type: insert, _commit_version: 1}
              - {id: 2, name: ben, _change_type: insert, _commit_version: 1}
          - rows:
              - {id: 2, name: ben, _change_type: update_preimage, _commit_version: 2}
              - {id: 2, name: bo, _change_type: update_postimage, _commit_version: 2}
              - {id: 2, name: bob, _change_type: insert, _commit_version: 3}
              - {id: 2, name: bo, _change_type: delete, _commit_version: 3}
              - {id: 1, name: ann, _change_type: delete, _commit_version: 3}
    expect:
      table:
        - {id: 2, name: bob, version: 3, change: insert}
"""


@pytest.mark.smoke
def test_unit_tests_give_the_columns_of_changes(lake: ProjectFolder) -> None:
    """A fixture of the source has the columns of the table and those of changes."""
    lake.write({"tests/models/replica.yml": UNIT_TEST})

    done = lake.invoke("test")

    assert done.code == 0, done.out + done.err
