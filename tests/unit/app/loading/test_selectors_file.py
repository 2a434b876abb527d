"""selectors.yml gives the same answers as dbt, and its mistakes are located."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from sqlstream.app.loading.load import load
from sqlstream.app.loading.selecting import select
from sqlstream.app.request import ProjectRequest, Selection
from sqlstream.errors import FindingsError

TESTS = Path(__file__).parents[3]
ROWS: list[dict[str, Any]] = yaml.safe_load((TESTS / "unit/compiler/definitions.yml").read_text(encoding="utf-8"))
OTHER = {"name": "core", "definition": {"tag": "core"}}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the table."""
    root = tmp_path_factory.mktemp("selectors") / "project"
    shutil.copytree(TESTS / "projects/selection", root)
    return root


def chosen(project: Path, selection: Selection, **request: Any) -> list[str]:
    """Returns the short ids that a selection gives."""
    nodes, _ = select(load(ProjectRequest(project, **request)).compiled, selection)
    return sorted(node.replace(".selection.", ".", 1) for node in nodes)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["definition"]))
def test_a_definition_gives_dbts_nodes(project: Path, row: dict[str, Any]) -> None:
    """Each definition gives dbt's nodes; it is an error if dbt refuses it or finds nothing."""
    selectors = [OTHER, {"name": "s", "definition": row["definition"]}]
    (project / "selectors.yml").write_text(yaml.safe_dump({"selectors": selectors}))

    if row.get("expect"):
        assert chosen(project, Selection(selector="s")) == row["expect"]
    else:
        with pytest.raises(FindingsError):
            chosen(project, Selection(selector="s"))


SELECTORS = """\
selectors:
  - name: core
    description: what all else stands on
    definition: tag:core
  - name: seeds
    definition: {resource_type: seed}
  - name: both
    default: "{{ target.name == 'local' | as_bool }}"
    definition:
      union:
        - selector:core
        - method: selector
          value: seed?
          children: true
          children_depth: 1
        - tag: nothing
  - name: less
    definition:
      union:
        - method: tag
          value: core
          exclude: [orders]
        - flows
"""


@pytest.fixture
def named(project: Path) -> Path:
    """The same project with some selectors."""
    (project / "selectors.yml").write_text(SELECTORS)
    return project


CORE = ["exposure.weekly_report", "model.orders", "model.orders_by_hour", "model.orders_by_minute", "seed.customers"]


@pytest.mark.parametrize(
    ("select", "exclude", "expected"),
    [
        (("selector:core",), (), CORE),
        (("selector:core,resource_type:seed",), (), ["seed.customers"]),
        (("selector:[cs]*s",), (), ["seed.customers", "seed.regions_2"]),
        (("flows", "selector:seeds"), (), ["model.flows", "seed.customers", "seed.regions_2"]),
        (("1+selector:seeds+0",), ("selector:core",), ["seed.regions_2"]),
        (("selector:core+1",), ("resource_type:model", "exposure:*"), ["seed.customers"]),
    ],
)
def test_a_selector_is_a_criterion_too(
    named: Path, select: tuple[str, ...], exclude: tuple[str, ...], expected: list[str]
) -> None:
    """`selector:` is a criterion as in dbt 1.12: with wildcards, graph operators and other criteria."""
    assert chosen(named, Selection(select, exclude)) == expected


def test_selectors_build_on_selectors_with_graph_operators(named: Path) -> None:
    """Selectors can refer to other selectors anywhere in the file, with graph operators."""
    found = chosen(named, Selection(selector="both"))

    assert set(found) > {*CORE, "seed.regions_2", "model.customer_regions"}


def test_an_exclusion_in_a_union_applies_to_its_criterion(named: Path) -> None:
    """An exclusion within one criterion of a union applies to that criterion only, unlike in dbt 1.11."""
    assert chosen(named, Selection(selector="less")) == [
        "exposure.weekly_report",
        "model.flows",
        "model.orders_by_hour",
        "model.orders_by_minute",
        "seed.customers",
    ]


def test_the_default_applies_without_a_selection(named: Path) -> None:
    """The default selector applies if nothing else is selected, and resource types filter it."""
    default = chosen(named, Selection())

    assert default == chosen(named, Selection(selector="both"))
    assert chosen(named, Selection(resource_types=("seed",))) == ["seed.customers", "seed.regions_2"]
    assert chosen(named, Selection(excluded_types=("seed", "source", "exposure"))) == [
        x for x in default if x.startswith("model")
    ]
    assert len(chosen(named, Selection(exclude=("flows",)))) > len(default)


def test_a_part_without_matches_is_a_located_warning(named: Path) -> None:
    """A part of a selector that matches nothing gives a warning on its line, however the selector is named."""
    compiled = load(ProjectRequest(named)).compiled

    for selection in (Selection(selector="both"), Selection(("selector:both",))):
        (warning,) = select(compiled, selection)[1]
        assert (warning.code, str(warning.location)) == ("empty-selection", "selectors.yml:16:11")


@pytest.mark.parametrize("selection", [Selection(selector="cor"), Selection(("selector:cor",))])
def test_an_unknown_selector_suggests_the_nearest(named: Path, selection: Selection) -> None:
    """An unknown selector name is an error with the nearest name, for --selector and as a criterion."""
    with pytest.raises(FindingsError) as caught:
        chosen(named, selection)

    (finding,) = caught.value.findings
    assert finding.code == "unknown-selector"
    assert "core`" in finding.fix


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("selectors: [{name: a}]", ["missing-key 1:13"]),
        ("selectors: [{name: a, definition: 5}]", ["invalid-value 1:35"]),
        ("selectors: [{name: a, definition: {}}]", ["invalid-value 1:23"]),
        ("selectors: [{name: a, definition: b, defalt: true}]", ["unknown-key 1:38"]),
        ("selectors: [{name: a, definition: b}, {name: a, definition: c}]", ["duplicate-name 1:46"]),
        (
            "selectors:\n- {name: a, default: true, definition: b}\n- {name: b, default: true, definition: b}",
            ["invalid-value 3:10"],
        ),
        ("selectors: [{name: a, definition: 'tga:x'}]", ["unknown-selector 1:35"]),
        ("selectors: [{name: a, definition: {tga: x}}]", ["unknown-selector 1:36"]),
        ("selectors: [{name: a, definition: {method: tga, value: x}}]", ["unknown-selector 1:44"]),
        ("selectors: [{name: a, definition: {tag: [x]}}]", ["invalid-value 1:36"]),
        ("selectors: [{name: a, definition: {method: tag}}]", ["missing-key 1:36"]),
        (
            "selectors: [{name: a, definition: {tag: x, children: true}}]",
            ["unknown-key 1:36", *["missing-key 1:36"] * 2],
        ),
        (
            "selectors: [{name: a, definition: {method: tag, value: x, childs: true, parents: 1, children_depth: 2}}]",
            ["unknown-key 1:59", "invalid-value 1:82", "invalid-value 1:85"],
        ),
        (
            "selectors: [{name: a, definition: {method: tag, value: x, parents: true, parents_depth: 0}}]",
            ["invalid-value 1:89"],
        ),
        (
            "selectors: [{name: a, definition: {method: tag, value: x, indirect_selection: eagre}}]",
            ["invalid-value 1:79"],
        ),
        ("selectors: [{name: a, definition: {union: []}}]", ["invalid-value 1:36"]),
        ("selectors: [{name: a, definition: {union: [{exclude: [b]}]}}]", ["invalid-value 1:36"]),
        (
            "selectors: [{name: a, definition: {union: [b, {exclude: [c]}, {exclude: [d]}]}}]",
            ["invalid-value 1:64"],
        ),
        ("selectors: [{name: a, definition: {union: [b], parents: true}}]", ["unknown-key 1:48"]),
        ("selectors: [{name: a, definition: {union: [{intersection: [[]]}]}}]", ["invalid-value 1:60"]),
        ("selectors: [{name: a, definition: {exclude: [b]}}]", ["missing-key 1:36"] * 2),
        ("selectors: [{name: a, definition: 'selector:b'}]", ["unknown-selector 1:35"]),
        (
            "selectors:\n- {name: a, definition: 'selector:b'}\n- {name: b, definition: {union: [x, 'selector:a']}}",
            ["cycle 2:10"],
        ),
        ("selectors: [{name: a, definition: '{{ var(\"x\") }}'}]", ["missing-var 1:35"]),
    ],
)
def test_every_mistake_is_located(tmp_path: Path, text: str, expected: list[str]) -> None:
    """Each mistake in selectors.yml is found at its place, with any selection."""
    (tmp_path / "project.yml").write_text("name: shop\n")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "b.sql").write_text("select 1 as one")
    (tmp_path / "selectors.yml").write_text(text)

    with pytest.raises(FindingsError) as caught:
        select(load(ProjectRequest(tmp_path)).compiled, Selection(("b",)))

    findings = caught.value.findings
    assert [f"{each.code} {each.location}".replace("selectors.yml:", "") for each in findings] == expected
    assert all("\n" not in line for each in findings for line in (each.message, each.why, each.fix))
