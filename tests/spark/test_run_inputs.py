"""What the queries of a project read, and which names and folders a project may have."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream.errors import FindingsError
from sqlstream.state.runs.events import TableShown
from tests.spark.conftest import ProjectFolder, order_rows

Rows = Callable[[Path], list[dict[str, Any]]]


def test_several_terminal_models_fan_out_of_one_view(orders: ProjectFolder, read_parquet: Rows) -> None:
    """Each terminal model over a shared view is a query; the view itself is not."""
    orders.write(
        {
            "models/positive.sql": "select * from {{ source('shop', 'orders') }} where amount > 0",
            "models/as.sql": "{{ config(sink='lake') }} select id from {{ ref('positive') }} where kind = 'a'",
            "models/bs.sql": "{{ config(sink='lake') }} select id from {{ ref('positive') }} where kind = 'b'",
        }
    )

    outcome = orders.run()

    assert [result.model for result in outcome.results] == ["as", "bs"]
    assert sorted(row["id"] for row in read_parquet(orders.root / "store/as")) == [2, 4, 12, 14]
    assert sorted(row["id"] for row in read_parquet(orders.root / "store/bs")) == [1, 3, 11, 13]


def test_a_static_table_and_a_seed_join_a_stream(orders: ProjectFolder, read_parquet: Rows) -> None:
    """`mode: batch` and seeds are static, and a seed's declared types apply: a zip code keeps its leading zero."""
    orders.write(
        {
            "models/_tables.yml": "sources:\n  - name: static\n    tables:\n      - {name: kinds, format: csv, mode: batch,"
            " path: in/kinds.csv, options: {header: true}}\n",
            "in/kinds.csv": "kind,label\na,Apple\nb,Book\n",
            "seeds/shops.csv": "kind,zip,size\na,01234,3\nb,02345,4\n",
            "seeds/_seeds.yml": "seeds:\n  - {name: shops, columns: [{name: zip, data_type: string}]}\n",
            "models/joined.sql": "{{ config(sink='lake') }}\nselect id, label, zip, size + 1 as size "
            "from {{ source('shop', 'orders') }}\njoin {{ source('static', 'kinds') }} using (kind)\n"
            "join {{ ref('shops') }} using (kind)",
        }
    )

    assert orders.result().rows_out == 10

    rows = {row["id"]: row for row in read_parquet(orders.root / "store/joined")}
    assert rows[1] == {"id": 1, "label": "Book", "zip": "02345", "size": 5}


def test_columns_of_csv_in_another_order_are_refused_before_a_run(orders: ProjectFolder) -> None:
    """Spark would swap the values of the columns without an error, so the run does not start."""
    orders.write(
        {
            "models/_prices.yml": "sources:\n  - name: csv\n    tables:\n      - {name: prices, format: csv, path: in/csv,"
            " schema: 'price int, weight int', options: {header: true}}\n",
            "in/csv/0.csv": "weight,price\n1,100\n",
            "models/prices.sql": "{{ config(sink='lake') }}\nselect price from {{ source('csv', 'prices') }}",
        }
    )

    with pytest.raises(FindingsError) as refused:
        orders.run()

    assert [(each.code, str(each.location)) for each in refused.value.findings] == [
        ("csv-header", "models/_prices.yml:4:59")
    ]


def test_a_watermark_closes_windows(orders: ProjectFolder, read_parquet: Rows) -> None:
    """An append aggregation emits a window after an event later than the window's end plus the delay."""
    orders.rows("in/orders/9.json", [{"id": 1, "ts": "2024-01-01T05:00:00Z", "kind": "a", "amount": 1}], modified=9)
    orders.write(
        {
            "models/per_hour.sql": "{{ config(sink='lake') }}\n"
            "select /*+ WATERMARK(ts, '10 minutes') */ window.start as hour, count(*) as orders\n"
            "from {{ source('shop', 'orders') }} group by window(ts, '1 hour')",
        }
    )

    orders.result()

    rows = read_parquet(orders.root / "store/per_hour")
    assert sorted((row["hour"].hour, row["orders"]) for row in rows) == [(0, 5), (1, 5)]


@pytest.mark.slow
def test_a_project_runs_from_any_folder(orders: ProjectFolder, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A project runs from any folder: relative paths are below the project, and the working directory stays empty."""
    orders.write({"models/all.sql": "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}"})
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    command = [sys.executable, "-m", "sqlstream", "run", "--available-now", "--project-dir", str(orders.root)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}

    done = subprocess.run(command, cwd=elsewhere, env=env, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert (orders.root / "store/all/_spark_metadata").is_dir()
    assert list(elsewhere.iterdir()) == []


def test_names_with_hyphens_and_reserved_words_run(orders: ProjectFolder) -> None:
    """Hyphens and reserved words work as names of a view, a query and a memory table; options do not change them."""
    orders.write(
        {
            "models/select.sql": "select id from {{ source('shop', 'orders') }}",
            "models/a-b.sql": "{{ config(sink='table', options={'queryName': 'other'}) }} select id from {{ ref('select') }}",
        }
    )

    orders.run()

    (shown,) = [event for event in orders.events if isinstance(event, TableShown)]
    assert (shown.model, shown.count) == ("a-b", 10)


def test_the_project_folder_is_no_pattern(tmp_path: Path) -> None:
    """Brackets in the path of the project folder are literal, not a file pattern."""
    project = ProjectFolder(tmp_path / "orders [1] {a,b}")
    project.write(
        {
            "project.yml": "name: shop\ntargets: {local: {storage: store}}\n",
            "sources.yml": "sources:\n  - name: shop\n    tables:\n      - {name: orders, format: json, path: 'in/*', schema: id int}\n",
            "sinks.yml": "sinks:\n  - {name: lake, format: parquet, path: '{{ model.name }}'}\n",
            "models/all.sql": "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }} where id = 1",
        }
    )
    project.rows("in/orders/0.json", order_rows(0))

    assert project.result().rows_out == 1


def test_a_seed_is_csv_as_spreadsheets_write_it(orders: ProjectFolder) -> None:
    """A seed is CSV as spreadsheets write it: doubled quotes, line breaks in quotes, any header, types by name."""
    orders.write(
        {
            "seeds/said.csv": 'id,"we`ird, a.b",ZIP\n1,"say ""hi""\nand go",01234\n',
            "seeds/_seeds.yml": "seeds:\n  - {name: said, columns: [{name: zip, data_type: string}]}\n",
            "models/shown.sql": "{{ config(sink='table') }}\n"
            "select said.* from {{ source('shop', 'orders') }} join {{ ref('said') }} using (id)",
        }
    )

    orders.run()

    (shown,) = [event for event in orders.events if isinstance(event, TableShown)]
    assert shown.columns == ("id", "we`ird, a.b", "ZIP")
    assert shown.rows == ((1, 'say "hi"\nand go', "01234"),)


def test_the_compiled_text_runs_unchanged(orders: ProjectFolder) -> None:
    """The compiled text runs unchanged: Spark does not substitute what looks like a variable."""
    orders.write(
        {
            "models/shown.sql": "{{ config(sink='table') }}\n"
            "select '${env:HOME} ${system:user.name} ${x}' as text from {{ source('shop', 'orders') }} where id = 1"
        }
    )

    orders.run()

    (shown,) = [event for event in orders.events if isinstance(event, TableShown)]
    assert shown.rows == (("${env:HOME} ${system:user.name} ${x}",),)


@pytest.mark.parametrize(
    "command",
    [
        "insert overwrite directory '{precious}' using parquet select 1 as a",
        "create table made using parquet as select 1 as a",
        "with one as (select 1 as a) insert overwrite directory '{precious}' using parquet select * from one",
        "from (select 1 as a) insert overwrite directory '{precious}' using parquet select a",
        "drop table if exists nothing",
        "set spark.sql.shuffle.partitions=3",
    ],
)
def test_a_model_that_is_a_command_never_runs(orders: ProjectFolder, command: str) -> None:
    """A model that is a command is refused and never runs; Spark would execute an INSERT OVERWRITE and delete data."""
    orders.write(
        {
            "precious/report.csv": "kept",
            "models/view.sql": command.format(precious=orders.root / "precious"),
            "models/all.sql": "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }} cross join {{ ref('view') }}",
        }
    )

    with pytest.raises(FindingsError) as caught:
        orders.run()

    (finding,) = caught.value.findings
    assert finding.code == "no-query"
    assert str(finding.location).startswith("models/view.sql:1:")
    assert (orders.root / "precious/report.csv").read_text() == "kept"
    assert not (orders.root / "store").exists()
