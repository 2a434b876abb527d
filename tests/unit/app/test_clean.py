"""What `sqlstream clean` removes, and what it never touches."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.app.clean import clean_project
from sqlstream.errors import FindingsError, UsageError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with artifacts, a log and a stored checkpoint."""
    root = tmp_path / "project"
    for name in (
        "project.yml",
        "target/manifest.json",
        "target/compiled/shop/models/a.sql",
        "logs/sqlstream.log",
        ".sqlstream/local/queries/a/v1/ledger.json",
    ):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("name: shop\nversion: 1.0.0\n")
    return root


def test_only_target_is_removed(project: Path) -> None:
    """`clean` removes only target/, also from a subfolder of the project; logs, checkpoints and data stay."""
    (project / "models").mkdir()

    assert clean_project(project / "models") == project / "target"

    assert sorted(path.name for path in project.iterdir()) == [".sqlstream", "logs", "models", "project.yml"]
    assert (project / ".sqlstream/local/queries/a/v1/ledger.json").exists()


def test_a_second_clean_has_nothing_to_do(project: Path) -> None:
    """A second `clean` reports that there is nothing to remove."""
    clean_project(project)

    assert clean_project(project) is None


@pytest.mark.parametrize(
    "stored", ["local/queries/a/v1/ledger.json", "data/a/_spark_metadata/0"], ids=["checkpoint", "output"]
)
def test_a_target_folder_with_storage_is_refused(project: Path, stored: str) -> None:
    """A target/ folder that contains storage is refused, and nothing is removed."""
    path = project / "target" / stored
    path.parent.mkdir(parents=True)
    path.write_text("{}")

    with pytest.raises(UsageError):
        clean_project(project)

    assert path.exists()
    assert (project / "target/manifest.json").exists()


def test_a_link_is_not_followed(project: Path, tmp_path: Path) -> None:
    """A target/ that is a link is not followed, because it may lead to data."""
    (project / "target").rename(tmp_path / "elsewhere")
    (project / "target").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UsageError):
        clean_project(project)

    assert (tmp_path / "elsewhere/manifest.json").exists()


def test_a_link_inside_target_is_removed_without_its_destination(project: Path) -> None:
    """A link inside target/ is removed, but not the checkpoint or other files that it points to."""
    (project / "target/link").symlink_to(project / ".sqlstream")

    assert clean_project(project) == project / "target"

    assert (project / ".sqlstream/local/queries/a/v1/ledger.json").exists()


def test_a_file_named_target_is_refused(tmp_path: Path) -> None:
    """A file named target is refused, because sqlstream did not create it."""
    (tmp_path / "project.yml").write_text("name: shop\nversion: 1.0.0\n")
    (tmp_path / "target").write_text("mine")

    with pytest.raises(UsageError):
        clean_project(tmp_path)

    assert (tmp_path / "target").read_text() == "mine"


def test_outside_a_project_nothing_is_removed(tmp_path: Path) -> None:
    """A target/ folder outside a project stays."""
    (tmp_path / "target").mkdir()

    with pytest.raises(FindingsError) as caught:
        clean_project(tmp_path)

    assert [finding.code for finding in caught.value.findings] == ["project-not-found"]
    assert (tmp_path / "target").exists()
