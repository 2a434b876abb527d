"""`state:` in real projects: new and modified nodes as in dbt, with documented improvements."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from sqlstream.app.compile.compile import compile_models
from sqlstream.app.compile.ls import list_nodes
from sqlstream.app.loading.load import load
from sqlstream.app.loading.selecting import select, selection_graph
from sqlstream.app.request import ProjectRequest, Selection
from sqlstream.compiler.selection.select import select_nodes
from sqlstream.errors import FindingsError, UsageError

TESTS = Path(__file__).parents[3]
TABLE: dict[str, Any] = yaml.safe_load((TESTS / "unit/compiler/states.yml").read_text(encoding="utf-8"))
Files = Mapping[str, str | list[str] | None]

SAME: Mapping[str, list[str]] = {
    "state:modified": [],
    "state:modified.body": [],
    "state:modified.macros": [],
    "state:modified+": [],
}
DIFFERENT: Mapping[str, Mapping[str, list[str]]] = {
    "a comment": SAME,
    "a comment of Jinja": SAME,
    "white space": SAME,
    "a comment of SQL in a macro": SAME,
    "a source's tags": {**SAME, "state:modified.configs": []},
    "a new source": {"state:modified": ["source.aws.fresh"], "state:modified+": ["source.aws.fresh"]},
    "a new exposure": {"state:modified": ["exposure.fresh"], "state:modified+": ["exposure.fresh"]},
}
"""Where sqlstream's answer differs from dbt's: formatting and tags do not count, and new nodes are also modified."""

ALSO: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "a folder's meta": {
        "state:modified": ("model.orders",),
        "state:modified.configs": ("model.orders",),
        "state:modified+": ("exposure.fraud_scores", "model.orders", "model.repeat_orders"),
    }
}
"""Modified only for sqlstream: dbt ignores a folder's `meta` if the model adds to it."""


def change(project: Path, files: Files) -> None:
    """Applies the changes of a row of the table to a project's files."""
    paths = [path for path in project.rglob("*") if path.is_file() and "target" not in path.relative_to(project).parts]
    texts = {path.relative_to(project).as_posix(): path.read_text() for path in paths}
    for name, text in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink()
        elif isinstance(text, list):
            assert text[0] in texts[name]
            path.write_text(texts[name].replace(text[0], text[1], 1))
        else:
            path.write_text(texts[text[1:]] if text.startswith("=") else text)


def states(project: Path, saved: Path, words: list[str]) -> dict[str, list[str]]:
    """Returns the short ids that each selector gives, compared with a saved manifest."""
    compiled = load(ProjectRequest(project)).compiled
    graph = selection_graph(compiled, {}, saved)
    name = f".{compiled.project.name}."
    found = {word: select_nodes(graph, [word], []) for word in words}
    return {word: sorted(node.replace(name, ".", 1) for node in nodes) for word, nodes in found.items()}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the table, with the `target` folder of its compilation."""
    project = tmp_path_factory.mktemp("states") / "project"
    shutil.copytree(TESTS / "projects/selection", project)
    change(project, TABLE["base"])
    compile_models(ProjectRequest(project))
    return project


@pytest.mark.parametrize("row", TABLE["changes"], ids=lambda row: str(row["change"]))
def test_changed_nodes_are_those_of_dbt(base: Path, tmp_path: Path, row: dict[str, Any]) -> None:
    """New and modified nodes are dbt's, except for documented differences; old and unmodified are the rest."""
    project = tmp_path / "project"
    shutil.copytree(base, project, ignore=shutil.ignore_patterns("target"))
    change(project, row["files"])
    expected = {**row["expect"], **DIFFERENT.get(row["change"], {})}
    for word, nodes in ALSO.get(row["change"], {}).items():
        expected[word] = sorted({*expected[word], *nodes})
    every = sorted(expected["state:new"] + expected["state:old"])
    expected["state:unmodified"] = [node for node in every if node not in expected["state:modified"]]

    assert states(project, base / "target", list(expected)) == expected


PROJECT: Files = {
    "project.yml": "name: shop\nvars: {least: 1, other: 2}\ntargets:\n  dev: {vars: {least: 10}}\n"
    "  prod:\n    sources: {shop.orders: {path: s3a://orders}}\n    sinks: {lake: {path: s3a://lake}}\n"
    "default_target: dev\nmodels: {+trigger: \"{{ env_var('TRIGGER', '5 seconds') }}\"}\n",
    "sources.yml": "sources:\n  - name: shop\n    options: {maxFilesPerTrigger: 2}\n    tables:\n"
    "      - {name: orders, format: json, schema: 'id int, at timestamp', path: \"{{ env_var('DATA', 'data') }}\"}\n",
    "sinks.yml": 'sinks:\n  - {name: lake, format: parquet, path: "lake/{{ model.name }}", description: files}\n'
    "  - {name: pond, format: json, path: \"{{ var('other') }}\"}\n",
    "models/large.sql": "{{ config(sink='lake') }}\nselect id, '{{ target.name }} {{ env_var('USER_NAME', 'x') }}' as by\n"
    "from {{ source('shop', 'orders') }}\nwhere id > {{ var('least') }}\n",
    "models/small.sql": "{{ config(sink='pond') }}\nselect * from {{ source('shop', 'orders') }}\n",
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A small compiled project that depends on its environment; `saved` next to it has its manifest."""
    project = tmp_path / "project"
    change(project, PROJECT)
    compile_models(ProjectRequest(project, "dev"))
    (project / "target").rename(tmp_path / "saved")
    return project


def modified(project: Path, word: str = "state:modified", **request: Any) -> set[str]:
    """Returns the names of the nodes that a selector gives, compared with the saved manifest."""
    selection = Selection((word,), state=project.parent / "saved" / "manifest.json")
    chosen, _ = select(load(ProjectRequest(project, **request)).compiled, selection)
    return {node.rsplit(".", 1)[-1] for node in chosen}


def test_another_environment_is_no_modification(shop: Path) -> None:
    """A different target, --vars or environment variable does not modify a node."""
    env = {"TRIGGER": "1 minute", "DATA": "s3a://data", "USER_NAME": "ada"}

    assert modified(shop, target="prod", env=env, variables={"least": 5, "other": "x"}) == set()


@pytest.mark.parametrize(
    ("file", "before", "after", "expected"),
    [
        ("project.yml", "least: 1,", "least: 3,", {"large"}),
        ("project.yml", "other: 2", "other: \"{{ var('least') }}\"", {"small"}),
        ("project.yml", "{least: 10}", "{least: 11}", set()),
        ("project.yml", "'5 seconds'", "'6 seconds'", {"large", "small"}),
        ("sources.yml", "id int, at", "id int,\n          at /* event time */", set()),
        ("sources.yml", "id int", "id bigint", {"orders"}),
        ("sources.yml", "maxFilesPerTrigger: 2", "maxFilesPerTrigger: 3", {"orders"}),
        ("sources.yml", "'data'", "'other'", {"orders"}),
        ("sources.yml", "name: orders,", "name: orders, description: all, tags: [x],", set()),
        ("sinks.yml", "parquet", "orc", {"large"}),
        ("sinks.yml", "description: files", "description: folders", set()),
        ("models/large.sql", "'x'", "'y'", {"large"}),
        ("models/large.sql", "select id,", "SELECT   id -- the number\n  ,", set()),
        ("models/large.sql", "select id,", "select ID,", {"large"}),
        ("models/large.sql", "select id,", "select /*+ BROADCAST(o) */ id,", {"large"}),
        ("models/large.sql", "{{ var('least') }}", '{{var("least")}}', set()),
    ],
)
def test_a_changed_text_is_a_modification(shop: Path, file: str, before: str, after: str, expected: set[str]) -> None:
    """A changed text modifies the nodes that it concerns and no others; formatting makes no difference."""
    change(shop, {file: [before, after]})

    assert modified(shop) == expected


@pytest.mark.parametrize(
    ("file", "before", "after", "part"),
    [
        ("project.yml", "least: 1,", "least: 3,", "body"),
        ("sinks.yml", "parquet", "orc", "configs"),
    ],
)
def test_a_modification_belongs_to_its_part(shop: Path, file: str, before: str, after: str, part: str) -> None:
    """A variable modifies the template that reads it, and a sink the configuration that names it."""
    change(shop, {file: [before, after]})

    found = {word: modified(shop, f"state:modified.{word}") for word in ("body", "configs", "macros")}

    assert found == {word: {"large"} if word == part else set() for word in found}


@pytest.mark.parametrize(
    ("before", "after", "is_changed"),
    [
        ("data_type: int", "data_type: integer", False),
        ("data_type: int", "data_type: int, description: the number", False),
        ("{type: not_null}", "", True),
        ("enforced: true", "enforced: false", True),
        ("columns: [", "columns: [{name: by, data_type: string}, ", True),
    ],
)
def test_a_changed_contract_is_a_modification(shop: Path, before: str, after: str, is_changed: bool) -> None:
    """Types, columns and constraints of an enforced contract modify it; aliases and descriptions do not."""
    text = (
        "models:\n  - name: small\n    config: {contract: {enforced: true}}\n"
        "    columns: [{name: id, data_type: int, constraints: [{type: not_null}]}, {name: at, data_type: timestamp}]\n"
    )
    change(shop, {"models/_small.yml": text})
    compile_models(ProjectRequest(shop, "dev"))
    shutil.rmtree(shop.parent / "saved")
    (shop / "target").rename(shop.parent / "saved")

    change(shop, {"models/_small.yml": text.replace(before, after)})
    if after.startswith("columns"):
        change(shop, {"models/small.sql": ["select *", "select 'x' as by, *"]})
    assert modified(shop, "state:modified.contract") == ({"small"} if is_changed else set())


@pytest.mark.parametrize(
    ("before", "after", "is_changed"),
    [
        ("{on_violation: warn}", "{on_violation: warn, description: needed}", False),
        ("[not_null: {on_violation: warn}]", "[not_null]", False),
        ("{on_violation: warn}", "{on_violation: drop}", True),
        ("[not_null: {on_violation: warn}]", "[]", True),
        ("{on_violation: warn}", "{on_violation: warn, where: id > 1}", True),
    ],
)
def test_a_changed_data_test_is_a_modification(shop: Path, before: str, after: str, is_changed: bool) -> None:
    """What a data test checks and does modifies its model, its description does not."""
    text = "models:\n  - name: small\n    columns:\n      - {name: id, data_tests: [not_null: {on_violation: warn}]}\n"
    change(shop, {"models/_small.yml": text})
    compile_models(ProjectRequest(shop, "dev"))
    shutil.rmtree(shop.parent / "saved")
    (shop / "target").rename(shop.parent / "saved")

    change(shop, {"models/_small.yml": text.replace(before, after)})
    assert modified(shop) == ({"small"} if is_changed else set())


def test_a_function_of_python_modifies_the_models_that_call_it(tmp_path: Path) -> None:
    """A changed Python function modifies the models that call it, in SQL or through a macro; comments do not count."""
    project = tmp_path / "project"
    change(project, PROJECT)
    function = (
        "from pyspark.sql.functions import udf\n\n\n@udf('string')\ndef cleaned(text):\n    return text.strip()\n"
    )
    change(
        project, {"python/texts.py": function, "macros/tidy.sql": "{% macro tidy(x) %}cleaned({{ x }}){% endmacro %}"}
    )
    change(project, {"project.yml": ["name: shop", "name: shop\nfunctions: [texts:cleaned]"]})
    change(project, {"models/large.sql": ["select id,", "select {{ tidy('id') }} as id,"]})
    change(project, {"models/small.sql": ["select *", "select Cleaned(id) as id"]})
    change(project, {"models/third.sql": "select id as cleaned_id from {{ source('shop', 'orders') }}"})
    compile_models(ProjectRequest(project, "dev"))
    (project / "target").rename(tmp_path / "saved")

    change(project, {"python/texts.py": ["return text.strip()", "return text.strip()  # no blanks"]})
    assert modified(project) == set()
    change(project, {"python/texts.py": ["text.strip()", "text.strip().lower()"]})
    assert modified(project) == {"large", "small"}
    assert modified(project, "state:modified.macros") == {"large", "small"}


def test_a_schema_can_move_into_a_file(shop: Path) -> None:
    """Moving a schema into a file without changing its text is no modification."""
    change(shop, {"schemas/orders.ddl": "id int,\nat timestamp\n"})
    change(shop, {"sources.yml": ["schema: 'id int, at timestamp'", "schema_file: schemas/orders.ddl"]})

    assert modified(shop) == set()


def test_nothing_modified_is_a_warning_and_no_error(shop: Path) -> None:
    """Selecting nothing modified is a warning, so that a pipeline succeeds; a misspelt tag next to it is an error."""
    listing = list_nodes(ProjectRequest(shop), Selection(("state:modified+",), state=shop.parent / "saved"))

    assert listing.names == ()
    assert [(warning.code, warning.is_error) for warning in listing.warnings] == [("empty-selection", False)]
    with pytest.raises(FindingsError):
        modified(shop, "state:modified,tag:nothing")


def test_the_last_compilation_can_be_the_state(shop: Path) -> None:
    """`compile --state target` reads the manifest before it overwrites it."""
    compile_models(ProjectRequest(shop))
    change(shop, {"models/new.sql": "select 1 as one\n"})

    compiled = compile_models(ProjectRequest(shop), Selection(("state:new",), state=shop / "target"))

    assert [model.name for model in compiled.models] == ["new"]


def test_a_state_is_needed(shop: Path) -> None:
    """`state:` without --state is a usage error, as in dbt."""
    with pytest.raises(UsageError, match="--state"):
        select(load(ProjectRequest(shop)).compiled, Selection(("state:modified",)))


@pytest.mark.parametrize(
    "text",
    [
        None,
        "{",
        "[" * 100_000,
        "[]",
        "{}",
        '{"metadata": 1}',
        '{"metadata": {"manifest_version": 1}}',
        '{"metadata": {"manifest_version": 2}}',
        "\ud800",
    ],
)
def test_an_invalid_state_is_refused(shop: Path, text: str | None) -> None:
    """A state file that is missing, invalid JSON, no manifest or of another version is refused."""
    path = shop.parent / "saved" / "manifest.json"
    path.unlink()
    if text is not None:
        path.write_bytes(text.encode(errors="surrogatepass"))

    with pytest.raises(UsageError, match=r"manifest\.json"):
        modified(shop)


def test_a_damaged_entry_is_refused(shop: Path) -> None:
    """A manifest with an entry that is no mapping is refused."""
    path = shop.parent / "saved" / "manifest.json"
    content = json.loads(path.read_text())
    content["nodes"]["model.shop.large"] = 1
    path.write_text(json.dumps(content))

    with pytest.raises(UsageError, match="damaged"):
        modified(shop)
