"""Words of dbt projects that sqlstream does not have: each has its own hint, and none is a key of sqlstream."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.errors import FindingsError
from sqlstream.project.configuration.config import ContractDocument, ModelConfig, SeedConfig
from sqlstream.project.configuration.data_tests import DataTestConfig, DataTestDocument
from sqlstream.project.configuration.documents import (
    DeclaredColumn,
    ModelColumn,
    ModelProperties,
    ProjectDocument,
    ResourceDocument,
    SeedProperties,
    SourceDocument,
    TableDocument,
)
from sqlstream.project.configuration.freshness import SourceConfigDocument
from sqlstream.project.configuration.validate import allowed_keys
from sqlstream.project.dbt_words import KEYS_BY_PLACE, replacement_for_value
from sqlstream.project.files.files import find_project_root
from sqlstream.project.unit_tests.unit_test_documents import UnitTestsDocument
from tests.support.loading_cases import found, load, load_good

DOCUMENTS = (
    ContractDocument,
    DeclaredColumn,
    ModelColumn,
    ModelConfig,
    ModelColumn,
    ModelProperties,
    ProjectDocument,
    ResourceDocument,
    SeedConfig,
    SeedProperties,
    SourceConfigDocument,
    SourceDocument,
    TableDocument,
    UnitTestsDocument,
    DataTestDocument,
    DataTestConfig,
)


def test_hints_exist_only_for_unknown_keys() -> None:
    """Hints exist only for keys that sqlstream does not have, at levels that its files have."""
    keys = {document.called: set(allowed_keys(document)) for document in DOCUMENTS}

    assert KEYS_BY_PLACE.keys() <= keys.keys()
    of_tables = {"a source table": {"schema"}}  # a hint for the source, whose tables have the key
    assert {
        place: hints.keys() & keys[place] - of_tables.get(place, set()) for place, hints in KEYS_BY_PLACE.items()
    } == {place: set() for place in KEYS_BY_PLACE}


@pytest.mark.parametrize(
    ("value", "word"), [("ephemeral", "already a view"), ("table", "`stored`"), ("incremental", "`stored`")]
)
def test_the_hint_for_materialized_depends_on_its_value(value: str, word: str) -> None:
    """The hint for `materialized` depends on its value: a model without a sink is a view, and a table needs a sink."""
    assert word in str(replacement_for_value("materialized", value))
    assert replacement_for_value("materialized", "stored") is None


@pytest.mark.parametrize(
    ("files", "paths"),
    [
        ({"snapshots/a.sql": "", "analyses/b.sql": "select 1"}, ["analyses:1:1", "snapshots:1:1"]),
        (
            {"tests/a.sql": "", "tests/b.sql": "", "tests/generic/c.sql": ""},
            ["tests/a.sql:1:1"],
        ),
        ({"tests/fixtures/rows.sql": "select 1", "tests/models/t.yml": "unit_tests: []"}, []),
        (
            {"dbt_project.yml": "", "packages.yml": "", "profiles.yml": ""},
            ["dbt_project.yml:1:1", "packages.yml:1:1", "profiles.yml:1:1"],
        ),
    ],
)
def test_files_of_dbt_give_warnings(tmp_path: Path, files: dict[str, str | bytes], paths: list[str]) -> None:
    """Files of dbt in the project root and singular tests give warnings; fixtures and unit tests do not."""
    assert found(load(tmp_path, files)) == [f"{path} dbt-file" for path in paths]


def test_the_warning_can_be_lowered(tmp_path: Path) -> None:
    """`rules:` can lower the warning, because two tools may share a folder."""
    project = load_good(tmp_path, {"project.yml": "name: a\nrules: {dbt-file: ignore}\n"})

    assert project.rules == {"dbt-file": "ignore"}


def test_a_dbt_project_is_recognized(tmp_path: Path) -> None:
    """In a dbt project or below it, the finding about a missing project.yml names dbt_project.yml."""
    (tmp_path / "dbt_project.yml").write_text("name: a\n")
    (tmp_path / "models").mkdir()

    with pytest.raises(FindingsError) as raised:
        find_project_root(tmp_path / "models")

    (finding,) = raised.value.findings
    assert finding.code == "project-not-found"
    assert "dbt_project.yml" in finding.why
