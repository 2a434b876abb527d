"""The only reader of project files: text from inside the project, or a finding."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location, location_at
from sqlstream.project.wording import quoted

PROJECT_FILE = "project.yml"
DBT_PROJECT_FILE = "dbt_project.yml"

LARGEST_FILE_BYTES = 5 * 1024 * 1024
"""The greatest size of a file. No SQL, YAML or seed in a repository is larger; data belongs in a source."""

ARTIFACTS_FOLDER = "target"
"""The folder at the project's root that sqlstream writes, and never reads as part of the project."""


@dataclass(frozen=True)
class FileListing:
    """The files below one folder: posix paths relative to the root, sorted, and the findings for links."""

    paths: tuple[str, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class ProjectFiles:
    """The files of the project at `root`. Every path is posix and relative to it. Each folder is listed once.

    `_found` are the files already listed, which are inside the project.
    """

    root: Path
    _found: set[str] = field(default_factory=set, repr=False, compare=False)
    _listings: dict[str, FileListing] = field(default_factory=dict, repr=False, compare=False)

    def exists(self, relative: str) -> bool:
        """Returns whether a file exists at `relative`, inside or outside of the project."""
        return os.path.lexists(self.root / relative)

    def read_text(self, relative: str, named_at: Location | None = None) -> str:
        """Returns the file's text, without a byte order mark and with Unix line ends.

        `named_at` is the location that names the file, if a person wrote the path. Raises: FindingsError for a file
        that is missing, outside the project, unreadable, too large or not UTF-8.
        """
        return self.read_exactly(relative, named_at).replace("\r\n", "\n")

    def read_exactly(self, relative: str, named_at: Location | None = None) -> str:
        """Returns the file's text like `read_text`, but with its original line ends."""
        at = named_at or Location(relative)
        path = os.path.join(self.root, relative)  # noqa: PTH118 - paths as text: there are thousands of files
        if relative not in self._found and "\0" not in relative and not is_inside(path, self.root):
            raise FindingsError([_outside(relative, at)])
        return _decode(_read_bytes(path, relative, at), relative).removeprefix("\ufeff")

    def try_read(self, relative: str, findings: list[Finding], named_at: Location | None = None) -> str | None:
        """Returns the file's text like `read_text`, or None after adding the errors to `findings`."""
        try:
            return self.read_text(relative, named_at)
        except FindingsError as error:
            findings.extend(error.findings)
            return None

    def files_in(self, folder: str) -> tuple[str, ...]:
        """Returns the paths of the entries of `folder`, sorted; empty if it does not exist."""
        try:
            return tuple(sorted(f"{folder}/{name}" for name in os.listdir(self.root / folder)))  # noqa: PTH208
        except OSError:
            return ()

    def list_files(self, folder: str, *suffixes: str) -> FileListing:
        """Returns the files below `folder` that end in one of `suffixes`; empty if it does not exist.

        Hidden files and folders are left out. A link inside the project is followed once; a link out of it is a
        finding.
        """
        if folder not in self._listings:
            walk = _Walk(self.root)
            walk.run(folder)
            self._listings[folder] = FileListing(tuple(sorted(walk.files)), tuple(walk.findings))
            self._found.update(walk.files)
        whole = self._listings[folder]
        return FileListing(tuple(path for path in whole.paths if path.endswith(suffixes)), whole.findings)


def checksum(text: str) -> str:
    """Returns the sha256 of a file's text under the name that dbt's manifest uses."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def find_project_root(start: Path) -> Path:
    """Returns the nearest folder with a project.yml: `start` or one of its parents.

    Raises: FindingsError with `project-not-found`.
    """
    folder = start.absolute()
    for candidate in (folder, *folder.parents):
        if (candidate / PROJECT_FILE).is_file():
            return candidate
    raise FindingsError([project_not_found(folder)])


def project_not_found(folder: Path) -> Finding:
    """Returns the finding for a folder outside of any project. It mentions the dbt project around it."""
    what = f"there is no {PROJECT_FILE} in {quoted(folder)} or above it"
    dbt_root = next((path for path in (folder, *folder.parents) if (path / DBT_PROJECT_FILE).is_file()), None)
    if dbt_root is not None:
        why = f"`{DBT_PROJECT_FILE}` in {quoted(dbt_root)} makes it a dbt project, which sqlstream does not read"
        fix = f"add a {PROJECT_FILE} next to it, with `name:` and `targets:`; `sqlstream init NAME` creates an example"
        return Finding("project-not-found", what, why, fix)
    return Finding(
        "project-not-found",
        what,
        f"a project is a folder with a {PROJECT_FILE}",
        "change to the project folder, use --project-dir, or create a project with `sqlstream init NAME`",
    )


def is_inside(path: Path | str, root: Path) -> bool:
    """Returns whether `path`, with all links followed, is `root` or inside it."""
    # realpath, unlike Path.resolve in Python 3.11, does not raise on a circle of links.
    real, real_root = os.path.realpath(path), os.path.realpath(root)
    return PurePath(real).is_relative_to(real_root)


class _Walk:
    """One walk below a folder: collects the visible files, and enters every real folder once.

    Paths are posix and relative to the root.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: list[str] = []
        self.findings: list[Finding] = []
        self._folders: list[str] = []
        self._links: list[str] = []
        self._seen = {os.path.realpath(root / ARTIFACTS_FOLDER)}

    def run(self, folder: str) -> None:
        path = self.root / folder
        if os.path.lexists(path):
            self._add(folder, is_link=path.is_symlink(), is_folder=os.path.isdir(path))  # noqa: PTH112
        while self._folders or self._links:
            # Links wait until all real folders are known, so that a file keeps its own path rather than a link's.
            current = self._folders.pop() if self._folders else self._links.pop()
            real = os.path.realpath(self.root / current)
            if real not in self._seen:
                self._seen.add(real)
                self._enter(current)

    def _enter(self, folder: str) -> None:
        try:
            with os.scandir(self.root / folder) as found:
                entries = sorted(found, key=lambda entry: entry.name, reverse=True)
        except OSError as error:
            self.findings.append(_unreadable(folder, str(error.strerror).lower(), Location(folder)))
            return
        for entry in entries:
            if not entry.name.startswith("."):
                self._add(f"{folder}/{entry.name}", is_link=entry.is_symlink(), is_folder=_is_folder(entry))

    def _add(self, path: str, *, is_link: bool, is_folder: bool) -> None:
        if is_link and not is_inside(self.root / path, self.root):
            self.findings.append(_outside(path, Location(path)))
        elif is_folder:
            (self._links if is_link else self._folders).append(path)
        else:
            self.files.append(path)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a circle of links
        return False


def _read_bytes(path: str, relative: str, at: Location) -> bytes:
    try:
        status = os.stat(path)  # noqa: PTH116
        if not stat.S_ISREG(status.st_mode):
            raise FindingsError([_unreadable(relative, "it is not a regular file", at)])
        if status.st_size > LARGEST_FILE_BYTES:
            raise FindingsError([_too_large(relative, status.st_size, at)])
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return file.read()
    except FileNotFoundError:
        raise FindingsError([_not_found(relative, at)]) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FindingsError([_unreadable(relative, reason.lower(), at)]) from error


def _decode(data: bytes, relative: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        finding = Finding(
            "file-not-utf8",
            f"{quoted(relative)} is not UTF-8 text",
            f"the byte 0x{data[error.start]:02x} here is not part of a UTF-8 character",
            "save the file as UTF-8",
            location_at(relative, before, len(before)),
        )
        raise FindingsError([finding]) from error


def _outside(relative: str, at: Location) -> Finding:
    return Finding(
        "file-outside-project",
        f"{quoted(relative)} is outside the project",
        "its path, including links, leads out of the project folder",
        "copy the file to the project, or use a file in the project",
        at,
    )


def _not_found(relative: str, at: Location) -> Finding:
    return Finding(
        "file-not-found",
        f"there is no file {quoted(relative)}",
        "paths of project files are relative to the folder of project.yml",
        "fix the path or add the file",
        at,
    )


def _unreadable(relative: str, reason: str, at: Location) -> Finding:
    return Finding(
        "file-unreadable",
        f"{quoted(relative)} cannot be read",
        f"the operating system reports: {reason}",
        "make it a regular file that you can read, or remove it from the project",
        at,
    )


def _too_large(relative: str, size_bytes: int, at: Location) -> Finding:
    return Finding(
        "file-too-large",
        f"{quoted(relative)} is too large for a project file",
        f"it has {size_bytes:,} bytes; the limit is {LARGEST_FILE_BYTES:,}",
        "keep data outside the project and declare it as a source",
        at,
    )
