"""`sqlstream init`: the files of a new project, the cases that are refused, and the validity of the new project."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder
from jsonschema import Draft7Validator

from sqlstream.app.compile.compile import compile_models
from sqlstream.app.init import PLACEHOLDER, init_project
from sqlstream.app.request import ProjectRequest
from sqlstream.errors import UsageError
from sqlstream.project.json_schemas import json_schemas
from sqlstream.project.yaml import parse_yaml, plain

REPOSITORY = Path(__file__).parents[3]
SCHEMA_LINE = re.compile(r"# yaml-language-server: \$schema=(\S+)")

FILES = {
    ".gitignore",
    ".vscode/settings.json",
    "README.md",
    "data/orders/2024-03-04T1000.json",
    "data/orders/2024-03-04T1002.json",
    "data/orders/2024-03-04T1004.json",
    "macros/order_total.sql",
    "models/orders/_orders.yml",
    "models/orders/large_orders.sql",
    "models/orders/orders_clean.sql",
    "models/orders/orders_per_minute.sql",
    "models/orders/revenue_per_product.sql",
    "project.yml",
    "schemas/project.schema.json",
    "schemas/resources.schema.json",
    "schemas/selectors.schema.json",
    "schemas/unit_tests.schema.json",
    "seeds/_shops.yml",
    "seeds/shops.csv",
    "sinks.yml",
    "sources.yml",
    "tests/models/orders.yml",
}
YAML_FILES = sorted(name for name in FILES if name.endswith(".yml"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A new project."""
    return init_project("shop", tmp_path).root


def files_of(root: Path) -> set[str]:
    """Returns the files below a folder as posix paths relative to it."""
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def schema_of(path: Path) -> tuple[Path, Draft7Validator]:
    """Returns the schema that the first line of a YAML file names, as an editor resolves it, and its validator."""
    match = SCHEMA_LINE.fullmatch(path.read_text().splitlines()[0])
    assert match is not None
    schema = (path.parent / match[1]).resolve()
    return schema, Draft7Validator(json.loads(schema.read_text()))


def test_writes_and_lists_the_files(tmp_path: Path) -> None:
    """The result lists the files on disk, which are the complete scaffold."""
    made = init_project("shop", tmp_path)
    assert made.root == tmp_path / "shop"
    assert list(made.files) == sorted(FILES)
    assert files_of(made.root) == FILES


def test_the_name_replaces_every_placeholder(project: Path) -> None:
    """The project name replaces every placeholder, and project.yml contains it."""
    assert not [name for name in FILES if PLACEHOLDER in (project / name).read_text()]
    assert 'name: "shop"' in (project / "project.yml").read_text()


@pytest.mark.parametrize("name", ["my-shop", "_x", "No", "null", "orders", "models", "A1-b_2-"])
def test_a_new_project_compiles_without_findings(tmp_path: Path, name: str) -> None:
    """A new project compiles without findings, even if its name is a YAML keyword or the name of one of its folders."""
    root = init_project(name, tmp_path).root
    compiled = compile_models(ProjectRequest(root))
    assert compiled.findings == ()
    assert compiled.loaded.compiled.project.name == name.replace("-", "_")
    names = {"orders_clean", "orders_per_minute", "large_orders", "revenue_per_product"}
    assert {model.name for model in compiled.models} == names
    assert {model.name for model in compiled.models if model.output} == names - {"orders_clean"}
    assert all(model.config.trigger.kind == "available_now" for model in compiled.models)


def test_gitignore_lists_what_sqlstream_writes(project: Path) -> None:
    """Compiling creates only files that .gitignore lists; a models folder named logs is not ignored."""
    ignored = {line for line in (project / ".gitignore").read_text().splitlines() if not line.startswith("#")}
    assert ignored == {"/target/", "/logs/", "/.sqlstream/"}
    compile_models(ProjectRequest(project))
    added = {f"/{name.split('/')[0]}/" for name in files_of(project) - FILES}
    assert added <= ignored


@pytest.mark.parametrize(
    "name", ["", "1shop", "-shop", "my shop", "shop!", "bücher", "shop\n", ".", "..", "a/b", "/", "a\\b"]
)
def test_refuses_an_invalid_name(tmp_path: Path, name: str) -> None:
    """A name may have letters, digits, _ and -. Any other name is refused in one line, and nothing is written."""
    with pytest.raises(UsageError) as caught:
        init_project(name, tmp_path)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "better"), [("my shop!", "`my_shop`"), ("1shop", "`shop`"), ("!!", "`my_project`")])
def test_a_refused_name_suggests_a_valid_one(tmp_path: Path, name: str, better: str) -> None:
    """The refusal suggests a valid name that can be typed as shown."""
    with pytest.raises(UsageError, match=better):
        init_project(name, tmp_path)
    init_project(better.strip("`"), tmp_path)


@pytest.mark.parametrize("held", ["kept.txt", ".kept", "kept/inner.txt"])
def test_refuses_a_folder_that_is_not_empty(tmp_path: Path, held: str) -> None:
    """A folder that contains anything, even hidden files, is refused and stays as it is."""
    kept = tmp_path / "shop" / held
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")
    with pytest.raises(UsageError):
        init_project("shop", tmp_path)
    assert files_of(tmp_path) == {f"shop/{held}"}
    assert kept.read_text() == "mine"


def test_a_second_init_changes_nothing(project: Path) -> None:
    """A second init with the same name does not change the user's edits."""
    (project / "project.yml").write_text("name: edited\n")
    with pytest.raises(UsageError):
        init_project("shop", project.parent)
    assert (project / "project.yml").read_text() == "name: edited\n"


def test_refuses_a_file_of_that_name(tmp_path: Path) -> None:
    """A file with the project's name is not replaced by a folder."""
    (tmp_path / "shop").write_text("mine")
    with pytest.raises(UsageError):
        init_project("shop", tmp_path)
    assert (tmp_path / "shop").read_text() == "mine"


def test_fills_an_empty_folder(tmp_path: Path) -> None:
    """An existing empty folder, such as the checkout of a new repository, is filled."""
    (tmp_path / "shop").mkdir()
    assert files_of(init_project("shop", tmp_path).root) == FILES


def test_refuses_a_missing_parent_folder(tmp_path: Path) -> None:
    """A missing parent folder is refused, so that a typo in --project-dir creates no folders."""
    with pytest.raises(UsageError):
        init_project("shop", tmp_path / "missing")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("trouble", ["too long", "dangling link"])
def test_file_system_errors_are_usage_errors(tmp_path: Path, trouble: str) -> None:
    """An operating system error becomes one sentence, not a traceback."""
    name = "x" * 300 if trouble == "too long" else "shop"
    if trouble == "dangling link":
        (tmp_path / "shop").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError) as caught:
        init_project(name, tmp_path)
    assert isinstance(caught.value.__cause__, OSError)
    assert not (tmp_path / "nowhere").exists()


SCHEMAS = ("project.schema.json", "resources.schema.json", "selectors.schema.json", "unit_tests.schema.json")


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_those_of_the_installed_version(project: Path, name: str) -> None:
    """Each file in schemas/ is a JSON Schema of the installed pydantic models."""
    schema = json.loads((project / "schemas" / name).read_text())
    Draft7Validator.check_schema(schema)
    assert schema == json_schemas()[name]


@pytest.mark.parametrize("name", YAML_FILES)
def test_every_yaml_file_names_its_schema(project: Path, name: str) -> None:
    """The first line of each YAML file points to the right schema, which accepts the file."""
    schema, validator = schema_of(project / name)
    own = {"project.yml": "project.schema.json", "tests/models/orders.yml": "unit_tests.schema.json"}
    expected = own.get(name, "resources.schema.json")
    assert schema == (project / "schemas" / expected).resolve()
    content = plain(parse_yaml((project / name).read_text(), name))
    assert [error.message for error in validator.iter_errors(content)] == []


def case(given: dict[str, Any]) -> dict[str, Any]:
    """Returns a unit test with one input."""
    return {"name": "a", "model": "b", "given": [{"input": "ref('c')", **given}], "expect": {"rows": []}}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("project.yml", {"nmae": "shop"}),
        ("project.yml", {"models": {"+triger": "once"}}),
        ("project.yml", {"models": {"orders": {"+output_mode": "sometimes"}}}),
        ("project.yml", {"targets": {"local": {"mastre": "local[*]"}}}),
        ("sources.yml", {"sources": [{"name": "shop", "tables": [{"name": "orders", "formt": "json"}]}]}),
        ("sinks.yml", {"sinks": [{"name": "lake"}]}),
        ("models/orders/_orders.yml", {"models": [{"name": "a", "config": {"trigger": {"continous": "1 second"}}}]}),
        ("seeds/_shops.yml", {"version": 3}),
        ("tests/models/orders.yml", {"unit_test": []}),
        ("tests/models/orders.yml", {"unit_tests": [{"name": "a", "model": "b"}]}),
        ("tests/models/orders.yml", {"unit_tests": [{"name": "a", "model": "b", "expect": {"row": []}}]}),
        ("tests/models/orders.yml", {"unit_tests": [case({"batches": [{"rows": []}, "restrat"]})]}),
        ("tests/models/orders.yml", {"unit_tests": [case({"batches": [{"rws": []}]})]}),
        ("models/orders/_orders.yml", {"unit_tests": [case({"format": "yaml"})]}),
    ],
)
def test_schemas_find_mistakes(project: Path, name: str, change: dict[str, Any]) -> None:
    """The schemas detect a mistyped key, a wrong value and a missing key at any depth."""
    _, validator = schema_of(project / name)
    content = plain(parse_yaml((project / name).read_text(), name))
    assert isinstance(content, dict)
    assert not validator.is_valid({**content, **change})


@pytest.mark.parametrize("name", ["tests/models/orders.yml", "models/orders/_orders.yml"])
def test_the_schemas_accept_all_unit_tests(project: Path, name: str) -> None:
    """The schemas accept everything that unit tests can contain, and the unit tests of this repository's examples."""
    _, validator = schema_of(project / name)
    given = {"batches": [{"rows": [{"id": 1}], "at": "2024-01-01 00:00"}, "restart", {"fixture": "more"}, "upgrade"]}

    assert validator.is_valid({"unit_tests": [case(given)]})
    for path in (Path(__file__).parents[3] / "tests" / "models").glob("*.yml"):
        content = plain(parse_yaml(path.read_text(), path.name))
        assert [error.message for error in validator.iter_errors(content)] == []


def test_editor_settings_point_to_the_schemas(project: Path) -> None:
    """VS Code's settings are JSON, and each schema that they name exists."""
    settings = json.loads((project / ".vscode/settings.json").read_text())
    assert set(settings["yaml.schemas"]) == {f"schemas/{name}" for name in json_schemas()}
    assert all((project / name).is_file() for name in settings["yaml.schemas"])


def test_the_wheel_contains_every_template() -> None:
    """The wheel contains every file of the scaffold."""
    scaffold = REPOSITORY / "sqlstream/app/scaffold"
    packed = {Path(file.distribution_path) for file in WheelBuilder(str(REPOSITORY)).recurse_included_files()}
    assert {path.relative_to(REPOSITORY) for path in scaffold.rglob("*") if path.is_file()} <= packed
