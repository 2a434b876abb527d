"""YAML files that another process parses, in a project that is large enough for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest
from sqlstream.app.loading import kept_yaml
from sqlstream.app.loading import load as loading
from sqlstream.app.loading.load import load
from sqlstream.app.loading.processes import Processes
from sqlstream.app.loading.reading_ahead import FILES_WORTH_A_PROCESS, YAML_WORTH_A_PROCESS
from sqlstream.project.yaml import YamlMapping, parse_yaml


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of many models, each described in a file of its own, on a machine with two cores."""
    monkeypatch.setattr(loading, "processes", lambda: Processes(2))
    (tmp_path / "models").mkdir()
    (tmp_path / "project.yml").write_text(
        "name: shop\nversion: 1.0.0\ntargets: {local: {master: local, storage: .sqlstream}}\n"
    )
    for number in range(FILES_WORTH_A_PROCESS):
        (tmp_path / f"models/m{number:03}.sql").write_text("select 1 as one\n")
        described = f"models: [{{name: m{number:03}, description: 'number {number}'}}]\n"
        (tmp_path / f"models/m{number:03}.yml").write_text(f"version: 2\n{described}")
    return tmp_path


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that this very process parses."""
    paths: list[str] = []

    def parse(text: str, path: str) -> YamlMapping:
        paths.append(path)
        return parse_yaml(text, path)

    monkeypatch.setattr(kept_yaml, "parse_yaml", parse)
    return paths


def descriptions(root: Path) -> list[str]:
    """What the models' files say of them."""
    models = load(ProjectRequest(root, env={})).compiled.models.values()
    return sorted(model.file.description for model in models)


def test_half_of_the_files_are_parsed_by_another_process(root: Path, parsed: list[str]) -> None:
    """What they say is the same, and the next command parses none at all."""
    expected = sorted(f"number {number}" for number in range(FILES_WORTH_A_PROCESS))

    assert descriptions(root) == expected
    assert len(parsed) == FILES_WORTH_A_PROCESS // 2

    parsed.clear()
    assert descriptions(root) == expected
    assert parsed == []


def test_few_unknown_files_are_parsed_where_they_are_needed(root: Path, parsed: list[str]) -> None:
    """Another process would cost more than it saves."""
    descriptions(root)
    parsed.clear()
    for number in range(YAML_WORTH_A_PROCESS - 1):
        (root / f"models/n{number:03}.sql").write_text("select 1 as one\n")
        (root / f"models/n{number:03}.yml").write_text("version: 2\n")

    descriptions(root)

    assert len(parsed) == YAML_WORTH_A_PROCESS - 1


def test_what_is_wrong_in_such_a_file_is_told_once_with_its_line(root: Path) -> None:
    """In the order of the files, whoever parses them."""
    for name in ("m001", f"m{FILES_WORTH_A_PROCESS - 1}"):
        (root / f"models/{name}.yml").write_text("version: 2\nmodels: [\n")

    with pytest.raises(FindingsError) as caught:
        load(ProjectRequest(root, env={}))

    places = [finding.location for finding in caught.value.findings]
    assert [place.path for place in places if place] == ["models/m001.yml", f"models/m{FILES_WORTH_A_PROCESS - 1}.yml"]
