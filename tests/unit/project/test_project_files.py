"""Project files are read, and other files are refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sqlstream.errors import FindingsError
from sqlstream.location import Location
from sqlstream.project.files.files import LARGEST_FILE_BYTES, ProjectFiles, find_project_root


@pytest.fixture
def files(tmp_path: Path) -> ProjectFiles:
    """An empty project with a folder next to it."""
    (tmp_path / "project").mkdir()
    (tmp_path / "beside").mkdir()
    return ProjectFiles(tmp_path / "project")


def refused(files: ProjectFiles, path: str, named_at: Location | None = None) -> tuple[str, Location | None]:
    """Returns the code and location of the finding for a file that cannot be read."""
    with pytest.raises(FindingsError) as caught:
        files.read_text(path, named_at)
    (finding,) = caught.value.findings
    return finding.code, finding.location


def test_text_is_read_without_byte_order_mark_and_carriage_returns(files: ProjectFiles) -> None:
    """Text is read without the byte order mark and carriage returns that editors on Windows add."""
    (files.root / "a.sql").write_bytes("\ufeffselect 1\r\nselect ü\r\n".encode())
    assert files.read_text("a.sql") == "select 1\nselect ü\n"


def test_missing_file_is_located_where_it_is_named(files: ProjectFiles) -> None:
    """A missing file is reported where its path is written."""
    named_at = Location("sources.yml", 3, 5)
    assert refused(files, "schemas/x.ddl", named_at) == ("file-not-found", named_at)


def test_first_byte_that_is_not_utf8_is_located(files: ProjectFiles) -> None:
    """A file that is not UTF-8 is reported at its first bad byte, with line and column in characters."""
    (files.root / "a.sql").write_bytes("select 1\n-- é".encode() + b"\xe9 and more")
    assert refused(files, "a.sql") == ("file-not-utf8", Location("a.sql", 2, 5))


def test_too_large_file_is_refused(files: ProjectFiles) -> None:
    """A file larger than the limit is not read."""
    (files.root / "a.sql").write_bytes(b"x" * (LARGEST_FILE_BYTES + 1))
    assert refused(files, "a.sql") == ("file-too-large", Location("a.sql"))


def test_pipe_is_refused_without_waiting(files: ProjectFiles) -> None:
    """A pipe is refused at once, because reading it would block."""
    os.mkfifo(files.root / "a.sql")
    assert refused(files, "a.sql") == ("file-unreadable", Location("a.sql"))


@pytest.mark.parametrize("path", ["../beside/a.sql", "models/../../beside/a.sql", "/etc/hostname", "link.sql"])
def test_file_outside_the_project_is_refused(files: ProjectFiles, path: str) -> None:
    """`..`, absolute paths and links out of the project are refused."""
    (files.root.parent / "beside" / "a.sql").write_text("select 1")
    (files.root / "link.sql").symlink_to("../beside/a.sql")
    assert refused(files, path)[0] == "file-outside-project"


def test_listing_is_sorted_and_omits_hidden_files(files: ProjectFiles) -> None:
    """Only visible files with the suffix are listed, sorted by path."""
    for name in ("m/b.sql", "m/a/c.sql", "m/.hidden.sql", "m/.folder/x.sql", "m/a.yml"):
        (files.root / name).parent.mkdir(parents=True, exist_ok=True)
        (files.root / name).write_text("")
    assert files.list_files("m", ".sql").paths == ("m/a/c.sql", "m/b.sql")
    assert files.list_files("nowhere", ".sql").paths == ()


def test_circular_links_end(files: ProjectFiles) -> None:
    """Links to a parent folder or to themselves neither hang the listing nor list a file twice."""
    (files.root / "m/a").mkdir(parents=True)
    (files.root / "m/a/x.sql").write_text("")
    (files.root / "m/a/up").symlink_to("../../m")
    (files.root / "m/self.sql").symlink_to("self.sql")
    assert files.list_files("m", ".sql").paths == ("m/a/x.sql", "m/self.sql")
    assert refused(files, "m/self.sql")[0] == "file-unreadable"


def test_links_out_of_the_project_are_findings(files: ProjectFiles) -> None:
    """A link to a file or folder outside the project gives a finding at the link, and nothing in it is listed."""
    (files.root.parent / "beside" / "a.sql").write_text("")
    (files.root / "m").mkdir()
    (files.root / "m/folder").symlink_to("../../beside")
    (files.root / "m/file.sql").symlink_to("../../beside/a.sql")
    (files.root / "m/inside.sql").symlink_to("../project.yml")
    listing = files.list_files("m", ".sql")
    assert listing.paths == ("m/inside.sql",)
    assert sorted((finding.code, str(finding.location)) for finding in listing.findings) == [
        ("file-outside-project", "m/file.sql:1:1"),
        ("file-outside-project", "m/folder:1:1"),
    ]


def test_project_root_is_found_from_below(tmp_path: Path) -> None:
    """The project root is the nearest parent folder with a project.yml."""
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "project.yml").write_text("name: x")
    assert find_project_root(tmp_path / "a/b") == tmp_path


def test_folder_in_no_project_is_a_finding(tmp_path: Path) -> None:
    """A folder with no project.yml in any parent folder gives a finding."""
    with pytest.raises(FindingsError) as caught:
        find_project_root(tmp_path)
    assert [finding.code for finding in caught.value.findings] == ["project-not-found"]


@pytest.mark.parametrize("path", ["a" * 300, "a/" * 3000, "a\x00b", "a.ddl/b"])
def test_an_impossible_path_is_a_finding(files: ProjectFiles, path: str) -> None:
    """A path that the operating system cannot have gives a finding where it is written."""
    with pytest.raises(FindingsError) as caught:
        files.read_text(path, Location("sources.yml", 7, 5))
    (finding,) = caught.value.findings
    assert finding.code in ("file-unreadable", "file-not-found")
    assert finding.location == Location("sources.yml", 7, 5)
