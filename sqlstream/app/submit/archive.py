"""The archive of a submitted run: the files of the project, and sqlstream itself."""

from __future__ import annotations

import hashlib
import io
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import sqlstream
from sqlstream.app.loading.logs import LOGS_FOLDER
from sqlstream.app.session.start_driver import PACKAGES, PROJECT
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.location import Location
from sqlstream.project.files.files import ARTIFACTS_FOLDER, LARGEST_FILE_BYTES, is_inside
from sqlstream.spark.secrets import Secrets

SUFFIXES = frozenset(
    {".yml", ".yaml", ".sql", ".py", ".csv", ".md", ".json", ".avsc", ".proto", ".desc", ".txt", ".lock", ".sh"}
)
"""The files that a run can read: declarations, code, seeds, schemas of columns and messages, and scripts of alerts."""

SKIPPED_FOLDERS = frozenset({ARTIFACTS_FOLDER, LOGS_FOLDER, "tests"})
"""The folders of a project that a run does not read. Names that begin with a dot are left out, too."""

_KEY_FILE = re.compile(r"(?i)(secret|credential|password|keyfile|service[-_.]?account|(^|[-_.])keys?\b).*\.(json|txt)$")
"""The names of files that are likely to contain secrets, and are no models, seeds or declarations."""

LARGEST_ARCHIVE_BYTES = 100_000_000
"""The largest size of the project's files: data belongs in a source."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can have. With one time for all files, the same project gives the same bytes."""


@dataclass(frozen=True)
class Archive:
    """A packed project: the name of its file, which contains a digest of the contents, its bytes, and the paths of the
    project's files in it.
    """

    name: str
    content: bytes
    files: tuple[str, ...]


def unmistakable_secrets(env: Mapping[str, str]) -> Secrets:
    """Returns the secrets whose values are unlikely to occur by chance, as a user name or `true` can."""
    return Secrets({name: value for name, value in env.items() if len(value) >= LEAST_LETTERS and _DIGIT.search(value)})


LEAST_LETTERS = 8
_DIGIT = re.compile(r"\d")


def pack(root: Path, project: str, secrets: Secrets, *, with_sqlstream: bool) -> Archive:
    """Returns the archive of the project in the folder `root`. The same files give the same name and the same bytes.

    Leaves out target/, logs/, tests/, hidden names, virtual environments, links out of the project, files that a run
    does not read, and files whose names say that they contain secrets. Raises: FindingsError if a file contains the
    value of a secret; UsageError if the project is too large, or a file cannot be read.
    """
    files = {path: _read(root / path) for path in sorted(_project_files(root))}
    exposed = [_exposed(path) for path, content in files.items() if _has_secret(content, secrets)]
    if exposed:
        raise FindingsError(exposed)
    size = sum(map(len, files.values()))
    if size > LARGEST_ARCHIVE_BYTES:
        raise UsageError(
            f"the files of the project have {size / 1e6:,.0f} MB\n"
            f"  why: `submit` sends them with each run, at most {LARGEST_ARCHIVE_BYTES / 1e6:,.0f} MB\n"
            "  fix: move data out of the project folder, and read it as a source"
        )
    entries = {f"{PROJECT}/{path}": content for path, content in files.items()}
    if with_sqlstream:
        entries |= {f"{PACKAGES}/{path}": content for path, content in _package_files()}
    digest = hashlib.sha256()
    for path, content in entries.items():
        digest.update(f"{path}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return Archive(f"{kubernetes_name(project)}-{digest.hexdigest()[:12]}.zip", _zipped(entries), tuple(files))


def kubernetes_name(name: str) -> str:
    """Returns the name of a project in the letters that every cluster accepts in a name, also Kubernetes. It begins
    with a letter, as the names of services must.
    """
    found = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    whole = found if found[:1].isalpha() else f"project-{found}"
    return whole[:MOST_LETTERS].strip("-")


MOST_LETTERS = 50
"""The letters that names of objects may have, with room for what Spark and the operator add (at most 63)."""


def _zipped(entries: dict[str, bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as packed:
        for path, content in entries.items():
            info = zipfile.ZipInfo(path, _EPOCH)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            packed.writestr(info, content)
    return written.getvalue()


def _project_files(root: Path) -> Iterator[str]:
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if _is_read(Path(folder, name), is_top=Path(folder) == root)]
        for name in names:
            path = Path(folder, name)
            wanted = path.suffix.lower() in SUFFIXES and not name.startswith(".") and not _KEY_FILE.search(name)
            if wanted and is_inside(path, root) and path.is_file() and path.stat().st_size <= LARGEST_FILE_BYTES:
                yield path.relative_to(root).as_posix()


def _is_read(folder: Path, *, is_top: bool) -> bool:
    skipped = folder.name.startswith(".") or folder.name in ("__pycache__", "node_modules")
    skipped = skipped or (is_top and folder.name in SKIPPED_FOLDERS)
    return not skipped and not folder.is_symlink() and not (folder / "pyvenv.cfg").exists()


def _package_files() -> Iterator[tuple[str, bytes]]:
    """Yields the files of the installed sqlstream."""
    package = Path(sqlstream.__file__).parent
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"{package.name}/{path.relative_to(package).as_posix()}", _read(path)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from error


def _has_secret(content: bytes, secrets: Secrets) -> bool:
    text = content.decode("utf-8", errors="replace")
    return secrets.redact(text) != text


def _exposed(path: str) -> Finding:
    return Finding(
        "cannot-submit",
        f"`{path}` contains the value of a secret",
        "the archive of a submitted run is stored on machines of the cluster",
        "read it with {{ env_var('SQLSTREAM_SECRET_...') }} instead, or move the file out of the project folder",
        Location(path),
    )
