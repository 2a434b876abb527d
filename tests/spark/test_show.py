"""`sqlstream show`: rows of models as a batch over the available data; it starts no query and leaves no files."""

from __future__ import annotations

import json
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sqlstream import FindingsError, ProjectRequest, UsageError
from sqlstream.app.request import Selection
from sqlstream.app.show.show import ShowRequest, show_rows
from sqlstream.cli.main import main
from sqlstream.state.shown_rows import ShownRows
from tests.spark.conftest import ProjectFolder

READS = "from {{ source('shop', 'orders') }}"
WINDOWS = (
    "{{ config(sink='lake') }}\nselect /*+ WATERMARK(ts, '1 minute') */ window.start as since, count(*) as n\n"
    f"{READS}\ngroup by window(ts, '1 hour')"
)


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files that only this process uses."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def show(project: ProjectFolder, *select: str, **wishes: Any) -> tuple[ShownRows, ...]:
    """Shows a selection in this process."""
    return show_rows(ShowRequest(ProjectRequest(project.root), Selection(tuple(select)), **wishes)).nodes


def inline(project: ProjectFolder, sql: str) -> tuple[tuple[object, ...], ...]:
    """Returns the rows of an inline query."""
    (shown,) = show(project, inline=sql)
    return shown.rows


def refused(project: ProjectFolder, *select: str, **wishes: Any) -> list[str]:
    """Returns the locations and codes of the findings that refuse to show a selection."""
    with pytest.raises(FindingsError) as error:
        show(project, *select, **wishes)
    return sorted(f"{finding.location}: {finding.code}" for finding in error.value.findings)


def _files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


@pytest.mark.smoke
def test_a_stateful_model_shows_every_window(orders: ProjectFolder, temporary: Path) -> None:
    """A stateful model shows every window, also one that a stream would still hold; no files are left behind."""
    orders.write(
        {
            "models/hourly.sql": WINDOWS,
            "models/late.sql": "select since from {{ ref('hourly') }}",
            "seeds/kinds.csv": "kind,name\na,Apple\n",
        }
    )
    before = _files(orders.root)

    shown = show(orders, "+late kinds", limit=2)

    assert {each.name: tuple(sorted(each.rows)) for each in shown if each.name != "shop__orders"} == {
        "kinds": (("a", "Apple"),),
        "hourly": (("2024-01-01 00:00:00", 5), ("2024-01-01 01:00:00", 5)),
        "late": (("2024-01-01 00:00:00",), ("2024-01-01 01:00:00",)),
    }
    source = next(each for each in shown if each.name == "shop__orders")
    assert [(column.name, column.data_type) for column in source.columns][:2] == [("id", "int"), ("ts", "timestamp")]
    assert len(source.rows) == 2
    assert {name for name in _files(orders.root) - before if not name.startswith(("target", "logs"))} == set()
    assert list(temporary.iterdir()) == []


def test_values_keep_their_digits_and_structure(orders: ProjectFolder) -> None:
    """Values keep all digits, microseconds, years beyond Python's, duplicate names and types that JSON lacks."""
    rows = inline(
        orders,
        "select 1 as a, 2 as a, 1.50 as d, timestamp'2024-01-01 00:00:00.123456' as t, timestamp'20000-01-01' as far,"
        " named_struct('at', date'2024-01-01', 'none', null) as s, map('k', array(1, null)) as m, x'6869' as b,"
        " interval '1' day as i, null as v, timestamp_ntz'2024-06-01 12:00:00' as ntz, double('NaN') as nan",
    )  # fmt: skip

    assert rows == (
        (1, 2, Decimal("1.50"), "2024-01-01 00:00:00.123456", "+20000-01-01 00:00:00",
         {"at": "2024-01-01", "none": None}, {"k": [1, None]}, "aGk=", "INTERVAL '1' DAY", None, "2024-06-01 12:00:00",
         "NaN"),
    )  # fmt: skip


def test_a_rate_source_is_sampled_once(orders: ProjectFolder, temporary: Path) -> None:
    """A rate source is sampled once and read as a batch, so that a model over it can join it with itself."""
    orders.write(
        {
            "sources.yml": "sources:\n  - name: made\n    tables:\n"
            "      - {name: beats, format: rate, options: {rowsPerSecond: 1000}}\n",
            "models/beats.sql": "select value, timestamp from {{ source('made', 'beats') }}",
        }
    )

    (shown,) = show(
        orders,
        inline="select a.value, count(*) as n from {{ ref('beats') }} a join {{ ref('beats') }} b on a.value = b.value"
        " group by a.value order by a.value",
    )

    assert shown.rows == ((0, 1), (1, 1), (2, 1), (3, 1), (4, 1))
    assert list(temporary.iterdir()) == []


def test_functions_of_the_project_can_be_called(orders: ProjectFolder) -> None:
    """`show` can call functions of the project, as a run can."""
    project = (orders.root / "project.yml").read_text()
    own = "from pyspark.sql.functions import udf\n@udf('int')\ndef twice(number):\n    return 2 * number\n"
    orders.write({"project.yml": f"{project}functions: [own:twice]\n", "python/own.py": own})

    assert inline(orders, f"select twice(id) as two {READS} where id = 3") == ((6,),)


def test_findings_are_on_the_models_own_lines(orders: ProjectFolder) -> None:
    """Findings of rules, analysis and row errors are on the model's own lines; other broken models do not matter."""
    orders.write(
        {
            "models/named.sql": f"select id,\n  kid\n{READS}",
            "models/typed.sql": f"select id,\n  array_contains(array(id), array(id)) as wrong\n{READS}",
            "models/divided.sql": f"select id,\n  id / (id - id) as never\n{READS}",
            "models/reader.sql": "select never from {{ ref('divided') }}",
            "models/good.sql": f"select id {READS}",
        }
    )

    assert refused(orders, "named") == ["models/named.sql:2:3: unknown-column"]
    assert refused(orders, "typed divided") == [
        "models/divided.sql:2:3: query-failed",
        "models/typed.sql:2:3: sql-analysis",
    ]
    assert refused(orders, "reader") == ["models/divided.sql:2:3: query-failed"]
    assert refused(orders, inline="select id,\n  nothing from {{ ref('good') }}") == ["inline:2:3: unknown-column"]
    assert len(show(orders, "good")[0].rows) == 5


def test_a_missing_source_is_a_finding(orders: ProjectFolder) -> None:
    """A missing source gives a finding at its path, and a missing secret is reported."""
    sources = (orders.root / "sources.yml").read_text()
    orders.write({"sources.yml": sources.replace("in/orders", "in/nothing")})
    assert refused(orders, "source:shop.orders") == ["sources.yml:6:15: source-unreadable"]

    orders.write(
        {"sources.yml": sources.replace("{maxFiles", "{key: \"{{ env_var('SQLSTREAM_SECRET_KEY') }}\", maxFiles")}
    )
    assert refused(orders, inline=f"select 1 {READS}") == ["sources.yml:8:9: missing-env-var"]


def test_an_inline_query_cannot_disable_itself(orders: ProjectFolder) -> None:
    """An inline query that disables itself is refused, because nothing is left to show."""
    with pytest.raises(UsageError):
        show(orders, inline="{{ config(enabled=false) }} select 1")


def test_the_command_prints_a_table_json_and_csv(orders: ProjectFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints a table, JSON or CSV; progress goes to stderr, and a pipe gets full-width columns."""
    orders.write({"models/all.sql": f"select id, named_struct('k', kind) as s, null as n {READS} order by id"})

    def out(*arguments: str) -> str:
        with pytest.raises(SystemExit, match=r"^0$"):
            main(["show", "--project-dir", str(orders.root), "--select", "all", "--limit", "2", "--quiet", *arguments])
        return capsys.readouterr().out

    assert out().splitlines() == [
        "all, the first 2 rows",
        "id   s            n",
        "──────────────────────",
        ' 0   {"k": "a"}   null',
        ' 1   {"k": "b"}   null',
    ]
    assert json.loads(out("--output", "json"))["results"][0]["rows"] == [
        {"id": 0, "s": {"k": "a"}, "n": None},
        {"id": 1, "s": {"k": "b"}, "n": None},
    ]
    assert out("--output", "csv") == 'id,s,n\n0,"{""k"": ""a""}",\n1,"{""k"": ""b""}",\n'
