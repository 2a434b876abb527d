"""Selection in a real project, from its files to the selected nodes, gives the same answers as dbt."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from sqlstream.app.loading.load import Loaded, load
from sqlstream.app.loading.selecting import select, terminal_models
from sqlstream.app.request import ProjectRequest, Selection
from sqlstream.errors import FindingsError

TESTS = Path(__file__).parents[3]
ROWS: list[dict[str, Any]] = yaml.safe_load((TESTS / "unit/compiler/selectors.yml").read_text(encoding="utf-8"))


def words(value: str | list[str] | None) -> tuple[str, ...]:
    """Returns the values of a row's flags: a string is one flag, a list several."""
    return (value,) if isinstance(value, str) else tuple(value or ())


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """The project of the table, compiled."""
    root = tmp_path_factory.mktemp("selection") / "project"
    shutil.copytree(TESTS / "projects/selection", root)
    return load(ProjectRequest(root))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['select']} without {row.get('exclude')}")
def test_selection_is_that_of_dbt(loaded: Loaded, row: dict[str, Any]) -> None:
    """Each selector gives dbt's nodes; it is an error if dbt refuses it or finds nothing."""
    selection = Selection(words(row["select"]), words(row.get("exclude")))
    expected = [] if row.get("error") else row["expect"]
    if row["select"] == "config.output_mode:append":
        # dbt has no default for unknown keys; in sqlstream a model without the key is append, too
        expected = [node for node in loaded.compiled.graph.order if node.startswith("model.")]
        expected = sorted(
            node.replace(".selection.", ".", 1)
            for node in expected
            if loaded.compiled.models[node].config.output_mode == "append"
        )

    if not expected:
        with pytest.raises(FindingsError, match=r"\[(empty-selection|unknown-selector)\]"):
            select(loaded.compiled, selection)
        return
    chosen, _ = select(loaded.compiled, selection)
    assert sorted(node.replace(".selection.", ".", 1) for node in chosen) == expected


def test_an_empty_selection_names_the_nearest(loaded: Loaded) -> None:
    """An empty selection is an error with the nearest name, where dbt exits with code 0."""
    with pytest.raises(FindingsError) as caught:
        select(loaded.compiled, Selection(("ordrs_by_minute",)))

    (finding,) = caught.value.findings
    assert finding.code == "empty-selection"
    assert "`orders_by_minute`" in finding.fix


def test_a_part_that_matches_nothing_is_a_warning(loaded: Loaded) -> None:
    """A part of a union that matches nothing gives a warning, and the other parts are selected."""
    chosen, warnings = select(loaded.compiled, Selection(("orders nothing_like_it",)))

    assert chosen
    assert [(warning.code, warning.is_error) for warning in warnings] == [("empty-selection", False)]


def test_views_alone_start_nothing(loaded: Loaded) -> None:
    """A selection of views alone is an error that names the terminal models downstream."""
    views = [model for model in loaded.compiled.models.values() if model.output is None]
    view = next(v for v in views if loaded.compiled.graph.children[v.unique_id])

    with pytest.raises(FindingsError) as caught:
        terminal_models(loaded.compiled, [view.unique_id])

    (finding,) = caught.value.findings
    assert finding.code == "no-terminal-model"
    downstream = loaded.compiled.graph.descendants(view.unique_id)
    names = [m.name for m in loaded.compiled.models.values() if m.unique_id in downstream and m.output]
    assert names
    assert all(f"`{name}`" in finding.fix for name in names)


@pytest.mark.parametrize("types", [(), ("seed",)])
def test_an_empty_selection_names_its_parts(loaded: Loaded, types: tuple[str, ...]) -> None:
    """The error of an empty selection names selectors, exclusions and types that match nodes, but none together."""
    name = next(iter(loaded.compiled.models.values())).name
    exclude = () if types else (name,)

    with pytest.raises(FindingsError) as caught:
        select(loaded.compiled, Selection((name,), exclude, types))

    (finding,) = caught.value.findings
    rest = "--resource-type seed" if types else f"--exclude {name}"
    assert f"`{name} {rest}`" in finding.message


def test_an_empty_project_lacks_models(tmp_path: Path) -> None:
    """In an empty project, the error says that a model is missing."""
    (tmp_path / "project.yml").write_text("name: shop\n")

    with pytest.raises(FindingsError) as caught:
        select(load(ProjectRequest(tmp_path)).compiled, Selection())

    assert "models/" in caught.value.findings[0].fix
