"""Versions of models as in dbt: files, columns, configuration, and which one ref() reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sqlstream.app.compile.explain_model import emission_of
from sqlstream.app.compile.lineage import trace_compiled
from sqlstream.app.compile.ls import list_nodes
from sqlstream.app.loading.load import load_for_reading, try_load
from sqlstream.app.loading.selecting import select
from sqlstream.app.request import ProjectRequest, Selection
from sqlstream.app.stored.stored_query import terminal_model
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.errors import FindingsError, UsageError

ORDERS = "{{{{ config(sink='lake') }}}} select {} from {{{{ source('shop', 'orders') }}}}\n"
FILES = {
    "project.yml": "name: shop\n",
    "sinks.yml": "sinks: [{name: lake, format: parquet, path: '{{ model.name }}'}]\n",
    "sources.yml": "sources: [{name: shop, tables: [{name: orders, format: json, path: in, schema: 'id int, a int, b int'}]}]\n",
    "models/orders_v1.sql": ORDERS.format("id, a, b"),
    "models/orders.sql": ORDERS.format("id, cast(a as string) as a"),
    "models/next_orders.sql": ORDERS.format("id, a, 1 as c"),
    "models/reader.sql": "{{ config(sink='lake') }} select o.id, v.b from {{ ref('orders') }} o cross join "
    "{{ ref('shop', 'orders', v=1) }} v\n",
    "models/coded.py": "def model(sqlstream, spark):\n    sqlstream.config(sink='lake')\n"
    "    return sqlstream.ref('orders', version=3).join(sqlstream.ref('orders'), 'id')\n",
    "models/_models.yml": """
groups: [{name: sales, owner: {name: Ada}}]
models:
  - name: orders
    latest_version: 2
    description: All orders
    access: protected
    config: {contract: {enforced: true}, group: sales, tags: [all]}
    constraints: [{type: check, expression: id > 0}]
    columns:
      - {name: id, data_type: int, constraints: [{type: not_null}]}
      - {name: a, data_type: int, data_tests: [not_null]}
      - {name: b, data_type: int, constraints: [{type: not_null}]}
    versions:
      - {v: 1, deprecation_date: 2020-01-01}
      - v: 2
        description: Without b
        columns: [{exclude: [b]}, {name: a, data_type: string}]
        config: {tags: [latest]}
      - v: 3
        defined_in: next_orders
        access: private
        columns: [{include: [id, a]}, {name: c, data_type: int, constraints: [{type: not_null}]}]
exposures:
  - {name: board, type: dashboard, owner: {name: Ada}, depends_on: ["ref('orders', v=1)", "ref('orders')"]}
""",
}


def write(root: Path, files: Mapping[str, str] = {}) -> ProjectRequest:
    """Writes the project of these tests and returns its request."""
    for name, text in {**FILES, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return ProjectRequest(root)


@pytest.fixture
def compiled(tmp_path: Path) -> CompiledProject:
    """The project without the Python model, which reads a private version."""
    request = write(tmp_path)
    (tmp_path / "models/coded.py").unlink()
    return load_for_reading(request).compiled


def model(compiled: CompiledProject, name: str) -> CompiledModel:
    """Returns a model by the name of its file."""
    return compiled.models[f"model.shop.{name}"]


def test_each_version_has_its_own_properties(compiled: CompiledProject) -> None:
    """A version begins with the model's keys, and its own replace them or are added."""
    old, new, later = (model(compiled, name) for name in ("orders_v1", "orders", "next_orders"))

    assert [[column.name for column in each.file.columns] for each in (old, new, later)] == [
        ["id", "a", "b"],
        ["id", "a"],
        ["id", "a", "c"],
    ]
    assert [column.data_type for column in new.file.columns] == ["int", "string"]
    assert [each.file.description for each in (old, new, later)] == ["All orders", "Without b", "All orders"]
    assert [each.config.access for each in (old, new, later)] == ["protected", "protected", "private"]
    assert (old.config.tags, new.config.tags) == (("all",), ("all", "latest"))
    assert [[(c.type, c.columns) for c in each.constraints] for each in (old, new, later)] == [
        [("not_null", ("id",)), ("not_null", ("b",)), ("check", ())],
        [("not_null", ("id",)), ("check", ())],
        [("not_null", ("id",)), ("check", ()), ("not_null", ("c",))],
    ]
    assert [len(each.file.data_tests) for each in (old, new, later)] == [1, 0, 1]
    assert [each.file.deprecated is not None for each in (old, new, later)] == [True, False, False]
    assert [each.file.version and each.file.version.is_latest for each in (old, new, later)] == [False, True, False]


def test_ref_reads_the_latest_version_or_the_given_one(compiled: CompiledProject) -> None:
    """In SQL and in exposures, ref() without a version reads the latest one."""
    parents = compiled.graph.parents

    assert parents["model.shop.reader"] == ("model.shop.orders", "model.shop.orders_v1")
    assert parents["exposure.shop.board"] == ("model.shop.orders_v1", "model.shop.orders")
    assert "from orders o cross join orders_v1 v" in model(compiled, "reader").sql


def findings(request: ProjectRequest) -> list[str]:
    """Returns the code and place of each error."""
    return [f"{finding.code} {finding.location}" for finding in try_load(request).errors]


def test_a_python_model_reads_a_version(tmp_path: Path) -> None:
    """A Python model gives the version as a literal; here it is private, and the model is in no group."""
    assert findings(write(tmp_path)) == ["private-ref models/coded.py:3:12"]

    text = FILES["models/coded.py"].replace("config(", "config(group='sales', ").replace("version=3", "v=2 + 1")
    assert findings(write(tmp_path, {"models/coded.py": text})) == ["python-model models/coded.py:3:12"]
    request = write(tmp_path, {"models/coded.py": text.replace("2 + 1", "3")})
    assert load_for_reading(request).compiled.graph.parents["model.shop.coded"] == (
        "model.shop.next_orders",
        "model.shop.orders",
    )


@pytest.mark.parametrize(
    ("file", "before", "after", "expected"),
    [
        ("models/reader.sql", "v=1", "v=4", "unknown-ref models/reader.sql:1:85"),
        ("models/reader.sql", "ref('orders')", "ref('reader', v=1)", "unknown-ref models/reader.sql:1:52"),
        ("models/reader.sql", "v=1", "w=1", "jinja-failed models/reader.sql:1:85"),
        ("models/_models.yml", "latest_version: 2", "latest_version: 5", "invalid-value models/_models.yml:5:21"),
        ("models/_models.yml", "v=1", "v=9", "unknown-ref models/_models.yml:25:69"),
        ("models/_models.yml", "v: 3", "v: 2", "duplicate-name models/_models.yml:20:12"),
        ("models/coded.py", "version=3", "v=7", "unknown-ref models/coded.py:3:12"),
        ("models/_models.yml", "{exclude: [b]}, ", "", "contract models/_models.yml:13:16"),
    ],
)
def test_a_wrong_version_is_an_error_at_its_place(
    tmp_path: Path, file: str, before: str, after: str, expected: str
) -> None:
    """Unknown versions and columns that do not fit the file of the version are located."""
    changed = {"models/coded.py": FILES["models/coded.py"].replace("config(", "config(group='sales', ")}
    changed[file] = changed.get(file, FILES[file]).replace(before, after)

    assert expected in " ".join(findings(write(tmp_path, changed)))


def test_a_new_latest_version_reaches_its_readers_in_the_cache(tmp_path: Path) -> None:
    """A model from the cache is rendered again when another version is the latest one."""
    request = write(tmp_path)
    (tmp_path / "models/coded.py").unlink()
    load_for_reading(request)

    (tmp_path / "models/_models.yml").write_text(
        FILES["models/_models.yml"].replace("latest_version: 2", "latest_version: 1")
    )
    (tmp_path / "models/orders.sql").rename(tmp_path / "models/orders_v2.sql")
    assert load_for_reading(request).compiled.graph.parents["model.shop.reader"] == ("model.shop.orders_v1",)


@pytest.mark.parametrize(
    ("criterion", "expected"),
    [
        ("orders", ["next_orders", "orders", "orders_v1"]),
        ("orders.v1", ["orders_v1"]),
        ("orders_v1", ["orders_v1"]),
        ("orders.v2", ["orders"]),
        ("orders_v2", ["orders"]),
        ("shop.orders.v3", ["next_orders"]),
        ("next_orders", ["next_orders"]),
        ("order?", ["next_orders", "orders", "orders_v1"]),
        ("orders.v[12]", ["orders", "orders_v1"]),
        ("orders.v1+", ["board", "orders_v1", "reader"]),
        ("1+orders.v3", ["next_orders", "orders"]),
        ("version:latest", ["orders"]),
        ("version:old", ["orders_v1"]),
        ("version:prerelease", ["next_orders"]),
        ("version:none", ["reader"]),
        ("orders,version:old+", ["orders_v1"]),
    ],
)
def test_versions_are_selected_as_in_dbt(compiled: CompiledProject, criterion: str, expected: list[str]) -> None:
    """A model's name selects all its versions, and `orders.v1` one; `version:` compares with the latest one."""
    chosen, _ = select(compiled, Selection((criterion,)))

    assert sorted(node.rsplit(".", 1)[-1] for node in chosen) == expected


@pytest.mark.parametrize(
    ("criterion", "code", "fix"),
    [
        ("orders.v4", "empty-selection", "orders.v3"),
        ("version:newest", "unknown-selector", "version:latest"),
        ("group:sale", "empty-selection", "group:sales"),
        ("access:privat", "empty-selection", "access:private"),
    ],
)
def test_a_wrong_selector_of_versions_has_a_hint(
    compiled: CompiledProject, criterion: str, code: str, fix: str
) -> None:
    """A version, group or access that no model has is an error, which names those that there are."""
    with pytest.raises(FindingsError) as error:
        select(compiled, Selection((criterion,)))

    assert error.value.findings[0].code == code
    assert fix in error.value.findings[0].fix


def test_ls_names_versions_as_dbt_does(compiled: CompiledProject) -> None:
    """`ls` prints the model and its version, and each name selects what it names."""
    names = list_nodes(ProjectRequest(compiled.project.root), Selection(("orders",))).names

    assert names == ("shop.orders.v3", "shop.orders.v2", "shop.orders.v1")
    assert [len(select(compiled, Selection((name,)))[0]) for name in names] == [1, 1, 1]


@pytest.mark.parametrize(
    ("versions", "latest"),
    [("[{v: 9}, {v: 10}]", "10"), ("[{v: beta}, {v: alpha}]", "beta"), ("[{v: 1}, {v: a}]", "a")],
)
def test_the_latest_version_is_the_highest_one(tmp_path: Path, versions: str, latest: str) -> None:
    """Versions are compared as numbers if both are, otherwise as texts, as in dbt."""
    files = {
        f"models/m_v{v}.sql": "select 1 as a\n"
        for v in ("9", "10", "alpha", "beta", "1", "a")
        if f"{{v: {v}}}" in versions
    }
    for name, text in {
        **files,
        "project.yml": "name: shop\n",
        "models/m.yml": f"models: [{{name: m, versions: {versions}}}]\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    assert load_for_reading(ProjectRequest(tmp_path)).compiled.project.versions["m"].latest == f"m_v{latest}"


def test_models_are_selected_by_group_and_access(compiled: CompiledProject) -> None:
    """`group:` and `access:` match the configuration, as dbt's methods do."""
    found = {
        criterion: {node.rsplit(".", 1)[-1] for node in select(compiled, Selection((criterion,)))[0]}
        for criterion in ("group:sales", "access:private", "access:protected,group:sales")
    }

    assert found == {
        "group:sales": {"orders", "orders_v1", "next_orders"},
        "access:private": {"next_orders"},
        "access:protected,group:sales": {"orders", "orders_v1"},
    }


def test_a_version_without_the_column_of_a_constraint_is_refused(tmp_path: Path) -> None:
    """A check constraint of the model also applies to a version that excludes its column."""
    properties = FILES["models/_models.yml"].replace("expression: id > 0", "expression: id > b")
    request = write(tmp_path, {"models/_models.yml": properties})
    (tmp_path / "models/coded.py").unlink()

    found = [(each.code, str(each.location)) for each in try_load(request).errors if each.code == "unknown-column"]

    assert found == [("unknown-column", "models/_models.yml:9:19")] * 2


@pytest.mark.parametrize(("version", "name"), [("v2", "orders"), ("v1", "orders_v1"), ("v3", "next_orders")])
def test_commands_take_every_spelling_of_a_version(tmp_path: Path, version: str, name: str) -> None:
    """A command that takes the name of a model takes that of its file, and its version as in dbt, with its columns."""
    request = write(tmp_path)
    (tmp_path / "models/coded.py").unlink()
    loaded = load_for_reading(request)

    for spelling in (name, f"orders.{version}", f"orders_{version}"):
        assert terminal_model(loaded, spelling).name == name
        assert emission_of(loaded.compiled, spelling) == emission_of(loaded.compiled, name)
        assert trace_compiled(loaded, spelling) == trace_compiled(loaded, name)
        assert [column.name for column in trace_compiled(loaded, f"{spelling}.ID").columns] == ["id"]
        with pytest.raises(UsageError, match="has no column `none`"):
            trace_compiled(loaded, f"{spelling}.none")
    with pytest.raises(UsageError, match=r"there is no terminal model `orders\.v4`"):
        terminal_model(loaded, "orders.v4")
