"""In a large project another process reads files ahead."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest
from sqlstream.app.loading import load as loading
from sqlstream.app.loading.load import load
from sqlstream.app.loading.prefetch import FILES_WORTH_A_PROCESS
from sqlstream.app.loading.processes import Processes


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of many models with one description file each, on a machine with two cores."""
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


def test_reading_ahead_changes_nothing(root: Path) -> None:
    """Reading ahead gives the same descriptions as the files."""
    models = load(ProjectRequest(root, env={})).compiled.models.values()
    assert sorted(model.file.description for model in models) == sorted(
        f"number {number}" for number in range(FILES_WORTH_A_PROCESS)
    )


def test_invalid_yaml_is_reported_once_with_its_line(root: Path) -> None:
    """Invalid YAML is reported once with its line, in the order of the files."""
    for name in ("m001", f"m{FILES_WORTH_A_PROCESS - 1}"):
        (root / f"models/{name}.yml").write_text("version: 2\nmodels: [\n")

    with pytest.raises(FindingsError) as caught:
        load(ProjectRequest(root, env={}))

    places = [finding.location for finding in caught.value.findings]
    assert [place.path for place in places if place] == ["models/m001.yml", f"models/m{FILES_WORTH_A_PROCESS - 1}.yml"]
