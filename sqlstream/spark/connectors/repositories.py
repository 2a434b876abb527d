"""Downloads jars from Maven repositories, or copies them from a folder."""

from __future__ import annotations

import base64
import hashlib
import os
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from sqlstream.project.connectors.table import Jar

MAVEN_CENTRAL = "https://repo1.maven.org/maven2"
"""The public repository that Maven and Spark use by default (https://central.sonatype.org/)."""

TIMEOUT_SECONDS = 30.0
"""How long a repository can send nothing."""

_CHUNK = 1 << 16

Progress = Callable[[str, int, int], None]
"""Called during a download with the name of the jar, the bytes so far, and all bytes (0 if unknown)."""


@dataclass(frozen=True)
class Repository:
    """A Maven repository: an http(s) URL, or a folder with jars in Maven's layout or without folders."""

    url: str = MAVEN_CENTRAL
    username: str = ""
    password: str = field(default="", repr=False)

    @property
    def is_folder(self) -> bool:
        """Whether the repository is a folder on this machine."""
        return "://" not in self.url

    @property
    def shown(self) -> str:
        """The address without a user or password in it."""
        scheme, mark, rest = self.url.partition("://")
        host, slash, path = rest.partition("/")
        return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}" if mark else self.url


class NotFetchedError(Exception):
    """No repository has the jar. `reasons` has one text for each repository that was asked."""

    def __init__(self, jar: Jar, reasons: Sequence[str]) -> None:
        super().__init__(f"{jar.coordinate}: {'; '.join(reasons)}")
        self.jar = jar
        self.reasons = tuple(reasons)


def fetch_jar(jar: Jar, folder: Path, repositories: Sequence[Repository], progress: Progress) -> Path:
    """Returns the path of the jar below `folder`, in Maven's layout, after a download if it is missing or damaged.

    A file appears under its name only if its checksum is right, so several processes can fetch the same jar at the
    same time. Raises: NotFetchedError.
    """
    path = folder / jar.path
    if has_checksum(path, jar.sha256):
        return path
    reasons = []
    for repository in repositories:
        try:
            _fetch_from(repository, jar, path, progress)
        except (OSError, _WrongChecksumError) as error:
            reasons.append(f"{repository.shown}: {_reason(error)}")
        else:
            return path
    raise NotFetchedError(jar, reasons)


def has_checksum(path: Path, sha256: str) -> bool:
    """Returns whether the file exists and has the checksum."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:
        return False


class _WrongChecksumError(Exception):
    pass


def _fetch_from(repository: Repository, jar: Jar, path: Path, progress: Progress) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with _opened(repository, jar) as (source, size), aside.open("wb") as file:
            _copy(source, file, jar, lambda done: progress(jar.name, done, size))
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def _opened(repository: Repository, jar: Jar) -> Iterator[tuple[BinaryIO, int]]:
    """Yields the bytes of the jar, and their number, 0 if unknown. Raises: OSError."""
    if repository.is_folder:
        root = Path(repository.url).expanduser()
        file = next((each for each in (root / jar.path, root / jar.name) if each.is_file()), root / jar.path)
        with file.open("rb") as source:
            yield source, file.stat().st_size
        return
    request = urllib.request.Request(f"{repository.url.rstrip('/')}/{jar.path}")  # noqa: S310 - the user's own address
    if repository.username or repository.password:
        pair = base64.b64encode(f"{repository.username}:{repository.password}".encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {pair}")
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310
        yield response, int(response.headers.get("Content-Length") or 0)


def _copy(source: BinaryIO, target: BinaryIO, jar: Jar, on_bytes: Callable[[int], None]) -> None:
    """Raises: OSError, _WrongChecksumError."""
    digest, done = hashlib.sha256(), 0
    while chunk := source.read(_CHUNK):
        target.write(chunk)
        digest.update(chunk)
        done += len(chunk)
        on_bytes(done)
    if digest.hexdigest() != jar.sha256:
        raise _WrongChecksumError(f"the SHA-256 of {jar.name} is {digest.hexdigest()}, expected {jar.sha256}")


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError) and not isinstance(error.reason, str):
        cause = error.reason
        return str(cause) if isinstance(cause, ssl.SSLError) else (getattr(cause, "strerror", None) or str(cause))
    return getattr(error, "strerror", None) or str(error)
