"""docs/configuration.md matches the code: every key, name, limit, setting and method."""

from __future__ import annotations

import re
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import BaseModel

from sqlstream.compiler.render.model_functions import model_names, names_of_model
from sqlstream.compiler.render.rendered import RenderOptions
from sqlstream.compiler.render.sandbox.bounds import RenderLimits
from sqlstream.compiler.render.sandbox.environment import TemplateEnvironment
from sqlstream.compiler.selection.methods import METHODS
from sqlstream.location import Location
from sqlstream.project.configuration import documents
from sqlstream.project.configuration.fields import Document
from sqlstream.project.configuration.target import Target
from sqlstream.project.values import ModelFile
from sqlstream.spark.jvm.session import spark_settings
from sqlstream.state.spark_settings import FROZEN_SETTINGS, SOURCE_EVOLUTION
from tests.support.drift import DRIFTS, expected
from tests.tools import make_configuration, make_connect, make_guarantees, make_metrics, make_rules

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "configuration.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    """Returns the text of the page below a heading, up to the next heading of any level."""
    after = PAGE.split(f"# {heading}\n", 1)[1]
    return after.split("\n#", 1)[0]


def target(master: str) -> Target:
    """A target that sets only its master and a package."""
    return Target(
        name="local", master=master, storage=".sqlstream/local", packages=("a:b:1",), location=Location("project.yml")
    )


def test_the_tables_of_keys_are_up_to_date() -> None:
    """The tables of keys are up to date; otherwise run `python -m tests.tools.make_configuration`."""
    assert make_configuration.fill_tables(PAGE) == PAGE


def test_the_page_of_rules_is_up_to_date() -> None:
    """The page of rules is up to date; otherwise run `python -m tests.tools.make_rules`."""
    assert make_rules.PAGE.read_text(encoding="utf-8") == make_rules.make_page()


def test_the_tables_of_metrics_are_up_to_date() -> None:
    """The tables of metrics are up to date; otherwise run `python -m tests.tools.make_metrics`."""
    page = make_metrics.PAGE.read_text(encoding="utf-8")

    assert make_metrics.fill_tables(page) == page


def test_the_uses_of_the_jvm_are_listed() -> None:
    """Each use of the JVM says what happens over Connect; run `python -m tests.tools.make_connect` after a change."""
    page = make_connect.PAGE.read_text(encoding="utf-8")

    assert make_connect.fill_table(page) == page


def test_the_tables_about_sinks_are_up_to_date() -> None:
    """The tables of guarantees and of kept values are up to date; otherwise run `python -m tests.tools.make_guarantees`."""
    guarantees, values = (
        page.read_text(encoding="utf-8") for page in (make_guarantees.PAGE, make_guarantees.VALUES_PAGE)
    )

    assert make_guarantees.fill_table(guarantees) == guarantees
    assert make_guarantees.fill_values(values) == values


def test_the_table_of_changed_data_has_all_changes() -> None:
    """tests/spark/test_drift.py checks what it says."""
    assert set(expected("JSON")) == set(DRIFTS)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, model in vars(documents).items()
        if isinstance(model, type) and issubclass(model, BaseModel) and model is not Document
    ],
)
def test_every_document_has_its_table(name: str) -> None:
    """Every kind of YAML file has a table."""
    assert f"<!-- keys of {name} -->\n| key |" in PAGE


def test_every_template_name_is_described() -> None:
    """Every function and value that templates can use is described."""
    options = RenderOptions({}, {}, target("local"), "shop", datetime.now(UTC), "id", lambda *_: None)
    model = ModelFile("m", "models/m.sql", "", (), "", (), (), None)
    names = {**model_names(TemplateEnvironment(), options), **names_of_model(model)}

    described = set(re.findall(r"`(\w+)", section("Jinja")))

    assert set(names) - described == set()


def test_every_limit_is_listed() -> None:
    """Every limit of templates is listed with its value."""
    limits = RenderLimits()

    assert [
        field.name for field in fields(RenderLimits) if f"| {getattr(limits, field.name):,} |" not in section("Limits")
    ] == []


def test_every_spark_setting_is_listed() -> None:
    """All Spark settings are listed: those of local and other masters, the frozen ones and source evolution."""
    given = {**spark_settings(target("local[2]"), "a", "w"), **spark_settings(target("yarn"), "a", "w")}

    assert [
        name for name in (*given, SOURCE_EVOLUTION, *FROZEN_SETTINGS) if f"`{name}`" not in section("Spark's settings")
    ] == []


@pytest.mark.parametrize("method", METHODS)
def test_every_selection_method_is_listed(method: str) -> None:
    """Every method of --select and --exclude is listed."""
    assert f"`{method}{'.' if method == 'config' else ':'}" in section("Selection")
