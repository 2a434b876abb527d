"""The documentation site as files: what is in it, and what it is made of."""

from __future__ import annotations

import http.client
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sqlstream.app.docs.catalog import build_catalog
from sqlstream.app.docs.generate import generate_docs
from sqlstream.app.request import ProjectRequest, Selection, UiRequest
from sqlstream.app.test.unit_tests import open_tests
from sqlstream.app.ui.serve import serving_docs
from sqlstream.cli.main import main
from sqlstream.web.site.page import data_block, site_files, static_page

FILES = {
    "project.yml": "name: shop\nmodels: {+tags: [core]}\n",
    "sinks.yml": "sinks: [{name: lake, format: parquet, path: '{{ model.name }}', description: The **lake**}, {name: other, format: noop}]\n",
    "sources.yml": (
        "sources:\n  - name: shop\n    tables:\n      - name: orders\n        format: json\n        path: orders\n"
        "        columns: [{name: id, data_type: bigint, description: Its number}, {name: price, data_type: double}]\n"
    ),
    "macros/twice.sql": "{# Doubles a number. #}\n{% macro twice(x) %}{{ x }} * 2{% endmacro %}\n",
    "models/core/prices.sql": "select id, price, {{ twice('price') }} as double_price from {{ source('shop', 'orders') }}\n",
    "models/totals.sql": (
        "{{ config(sink='lake', output_mode='complete') }}\n"
        "select sum(double_price + price) as total, count(*) as rows from {{ ref('prices') }}\n"
    ),
    "models/overview.md": "{% docs __overview__ %}Hello *you*{% enddocs %}",
    "models/totals.yml": (
        "models: [{name: totals, description: All orders}]\nunit_tests:\n  - name: adds\n    model: totals\n"
        "    description: It adds\n    given: [{input: ref('prices'), rows: [{price: 1, double_price: 2}]}]\n"
        "    expect: {rows: [{total: 3}]}\n"
    ),
}


START = '<script type="application/json" id="sqlstream-docs">'
"""The start of the data in a page."""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A small project."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def data_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Returns the data of a generated site."""
    return data_in((folder / "target" / "docs" / "index.html").read_text())


def data_in(page: str) -> dict[str, dict[str, Any]]:
    """Returns the data in a page."""
    found = re.search(f"{START}(.*?)</script>", page)
    assert found is not None
    data: dict[str, dict[str, Any]] = json.loads(found[1])
    return data


def test_the_site_has_every_kind_of_node(shop: Path) -> None:
    """Sources, models, sinks, macros and unit tests are in the site, with what depends on them."""
    made = generate_docs(ProjectRequest(shop))
    nodes = data_of(shop)["nodes"]

    assert made.nodes == len(nodes)
    assert {(node["kind"], node["name"]) for node in nodes.values()} == {
        ("source", "shop.orders"),
        ("view", "prices"),
        ("query", "totals"),
        ("sink", "lake"),
        ("sink", "other"),
        ("macro", "twice"),
        ("test", "adds"),
    }
    assert nodes["model.shop.prices"]["read_by"] == ["model.shop.totals"]
    assert nodes["sink.shop.lake"]["depends_on"] == ["model.shop.totals"]
    assert nodes["sink.shop.lake"]["description"] == "<p>The <strong>lake</strong></p>"
    assert nodes["macro.shop.twice"]["words"] == "Doubles a number."
    assert nodes["macro.shop.twice"]["used_in"] == ["model.shop.prices"]
    assert str(nodes["unit_test.shop.totals.adds"]["raw"]).startswith("- name: adds\n  model: totals\n")
    assert data_of(shop)["project"]["overview"] == "<p>Hello <em>you</em></p>"
    assert (shop / "target" / "manifest.json").is_file()


def test_columns_lead_to_the_columns_of_their_own_inputs(shop: Path) -> None:
    """The lineage of a column goes to the model that it reads, and from there to the source."""
    generate_docs(ProjectRequest(shop), compile_=False)
    nodes = data_of(shop)["nodes"]

    def origins(node: str) -> dict[str, object]:
        columns = nodes[node]["columns"]
        assert isinstance(columns, list)
        return {column["name"]: column["from"] for column in columns}

    assert origins("model.shop.totals") == {
        "total": [["model.shop.prices", "double_price"], ["model.shop.prices", "price"]],
        "rows": [],
    }
    assert origins("model.shop.prices")["double_price"] == [["source.shop.shop.orders", "price"]]
    assert not (shop / "target" / "manifest.json").exists()


def test_a_query_says_how_often_and_when(shop: Path) -> None:
    """A query has the guarantee of its output, and when it emits rows."""
    generate_docs(ProjectRequest(shop))
    query = data_of(shop)["nodes"]["model.shop.totals"]

    assert isinstance(query["outputs"], list)
    assert query["outputs"][0]["rows"] == "exactly once"
    assert "each batch emits all groups" in str(query["emission"])


CONTRACT = """
groups: [{name: sales, description: All that sells, owner: {name: Ada, email: ada@example.com}}]
models:
  - name: amounts
    latest_version: 2
    config: {contract: {enforced: true}, group: sales, access: private}
    constraints: [{type: check, name: positive, expression: id > 0}, {type: unique, columns: [id, price]}]
    columns:
      - {name: id, data_type: bigint, constraints: [{type: not_null}]}
      - name: price
        data_type: double
        data_tests:
          - unique
          - accepted_range: {min_value: 0, on_violation: drop, severity: warn, description: Not *free*}
    versions: [{v: 1, deprecation_date: 2020-01-31}, {v: 2}]
"""


def test_a_model_has_its_contract_versions_and_data_tests(shop: Path) -> None:
    """The page of a model says what readers can rely on, who owns it, its versions, and what its rows are tested for."""
    (shop / "models/amounts.yml").write_text(CONTRACT)
    for version in ("1", "2"):
        sql = "{{ config(sink='lake') }} select id, price from {{ source('shop', 'orders') }}"
        (shop / f"models/amounts_v{version}.sql").write_text(sql)
    generate_docs(ProjectRequest(shop))
    nodes = data_of(shop)["nodes"]
    old = nodes["model.shop.amounts_v1"]

    contract = old["contract"]
    assert {name: contract[name] for name in ("enforced", "access", "group", "group_description", "owner")} == {
        "enforced": True,
        "access": "private",
        "group": "sales",
        "group_description": "All that sells",
        "owner": "Ada, ada@example.com",
    }
    assert contract["columns"] == [
        {"name": "id", "type": "bigint", "required": True},
        {"name": "price", "type": "double", "required": False},
    ]
    assert [(each["type"], each["columns"], each["unenforced"] is None) for each in contract["constraints"]] == [
        ("not_null", ["id"], True),
        ("check", [], True),
        ("unique", ["id", "price"], False),
    ]
    assert old["versions"] == nodes["model.shop.amounts_v2"]["versions"]
    assert [tuple(each.values()) for each in old["versions"]] == [
        ("model.shop.amounts_v1", "1", "old", "2020-01-31", True),
        ("model.shop.amounts_v2", "2", "latest", None, False),
    ]
    assert [
        (each["name"], each["condition"], each["on_violation"], each["severity"]) for each in old["data_tests"]
    ] == [
        ("unique_amounts_price", "`price` is unique", None, "error"),
        ("accepted_range_amounts_price", "`price` >= 0", "drop", "warn"),
    ]
    assert old["data_tests"][1]["description"] == "<p>Not <em>free</em></p>"


def test_a_model_without_a_contract_has_none(shop: Path) -> None:
    """A model whose YAML promises nothing has no contract on its page; declared types are only a description."""
    generate_docs(ProjectRequest(shop))
    assert data_of(shop)["nodes"]["model.shop.totals"]["contract"] is None

    (shop / "models/totals.yml").write_text("models: [{name: totals, columns: [{name: rows, data_type: bigint}]}]")
    generate_docs(ProjectRequest(shop))
    contract = data_of(shop)["nodes"]["model.shop.totals"]["contract"]
    assert (contract["enforced"], contract["columns"]) == (False, [])


def test_a_selection_limits_the_site(shop: Path) -> None:
    """With a selection, the site has its nodes, their sinks and tests, and no links to others."""
    generate_docs(ProjectRequest(shop), Selection(("totals",)))
    nodes = data_of(shop)["nodes"]

    assert set(nodes) == {"model.shop.totals", "sink.shop.lake", "unit_test.shop.totals.adds"}
    assert nodes["model.shop.totals"]["depends_on"] == []


def test_a_model_with_an_error_is_on_the_site(shop: Path) -> None:
    """A model that rules refuse has its errors on its page."""
    (shop / "models" / "totals.sql").write_text(FILES["models/totals.sql"].replace("complete", "append"))
    generate_docs(ProjectRequest(shop))
    query = data_of(shop)["nodes"]["model.shop.totals"]

    assert isinstance(query["findings"], list)
    assert "append-without-watermark" in {finding["code"] for finding in query["findings"]}
    assert query["emission"] is None


def test_no_text_can_end_a_script(shop: Path) -> None:
    """Data stays inside its script element, also if it contains HTML."""
    tested = open_tests(ProjectRequest(shop))
    catalog = build_catalog(tested, tested.loaded.compiled.graph.order, "2024-01-01T00:00:00Z")
    catalog["project"]["name"] = "</script><!-- \u2028 & <b>"
    page = static_page(catalog)

    block = data_block(catalog)
    assert not re.search(r"[<>&\u2028]", block.removeprefix(START).removesuffix("</script>\n"))
    assert data_in(page) == json.loads(json.dumps(catalog))
    assert len(re.findall("</script", page)) == len(re.findall("<script", page)) == 4
    assert "<b>" not in page.split("<style>")[0]


def test_the_pages_load_nothing_from_elsewhere(shop: Path) -> None:
    """The policy of both forms allows only their own scripts and styles; the file has no reference to another file."""
    tested = open_tests(ProjectRequest(shop))
    catalog = build_catalog(tested, tested.loaded.compiled.graph.order, "2024-01-01T00:00:00Z")
    files, page = site_files(catalog), static_page(catalog)

    assert "default-src &#x27;none&#x27;" in files["index.html"]
    assert "unsafe" not in files["index.html"] + page.split("<style>")[0]
    assert set(re.findall(r'(?:src|href)="([^"]+)"', files["index.html"])) - {"data:,"} <= set(files)
    assert re.findall(r'<(?:script|link)[^>]* (?:src|href)="([^"]+)"', page.split("<style>")[0]) == ["data:,"]


def test_the_site_is_served_as_safely_as_the_page(shop: Path) -> None:
    """Other names and other sites get nothing, and other machines need a token."""
    main_of(["docs", "generate", "--project-dir", str(shop)])

    with serving_docs(shop, UiRequest(port=0, token="s3cret")) as url:
        port = urlsplit(url).port

        def status(path: str = "/", **headers: str) -> int:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", path, headers=headers)
            found = connection.getresponse().status
            connection.close()
            return found

        assert url.endswith("/?token=s3cret")
        assert [status(), status("/?token=wrong"), status("/?token=s3cret")] == [401, 401, 303]
        known = {"Authorization": "Bearer s3cret"}
        assert [status(**known), status("/nothing", **known)] == [200, 404]
        assert [status(Host="evil.example", **known), status(Host="[::1", **known)] == [421, 400]
        assert status(Origin="http://evil.example", **known) == 403


def main_of(arguments: list[str]) -> None:
    """Runs a command that must succeed."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0


def test_the_commands(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`docs generate` prints where the site is; `docs serve` needs a site, and a free address."""
    with pytest.raises(SystemExit) as ended:
        main(["docs", "serve", "--project-dir", str(shop)])
    assert ended.value.code == 2
    main_of(["docs", "generate", "--static", "--project-dir", str(shop)])

    printed = capsys.readouterr()
    assert "docs generate" in printed.err
    assert re.search(r"static_index\.html: 7 nodes, \d+\.\d kB\n", printed.out)
    assert (shop / "target" / "static_index.html").stat().st_size > 100_000
