"""Jars are fetched from Maven repositories and folders, and only with the right checksum."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sqlstream.project.connectors.connectors import Jar
from sqlstream.spark.jvm.jars import NotFetchedError, Repository, fetch_jar

CONTENT = b"classes" * 40_000
JAR = Jar("org.example:thing:1.0", hashlib.sha256(CONTENT).hexdigest())
USER = "Basic " + base64.b64encode(b"ada:secret").decode()


class Served(BaseHTTPRequestHandler):
    """Serves one jar to one user."""

    def __init__(self, content: bytes, asked: list[str], *arguments: object) -> None:
        self._content, self._asked = content, asked
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """Answers 401 without the password and 404 for other paths."""
        self._asked.append(self.path)
        allowed = self.headers.get("Authorization") == USER
        self.send_response(401 if not allowed else 200 if self.path == f"/maven/{JAR.path}" else 404)
        self.send_header("Content-Length", str(len(self._content)))
        self.end_headers()
        if allowed:
            self.wfile.write(self._content)

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


@pytest.fixture
def asked() -> list[str]:
    """The paths that the server was asked for."""
    return []


@pytest.fixture
def content() -> bytes:
    """What the server sends."""
    return CONTENT


@pytest.fixture
def server(content: bytes, asked: list[str]) -> Iterator[str]:
    """A Maven repository that needs a password."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Served, content, asked)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/maven/"
        server.shutdown()
        thread.join()


def fetch(folder: Path, *repositories: Repository) -> Path:
    """Fetches the jar without showing progress."""
    return fetch_jar(JAR, folder, repositories, lambda *_: None)


def test_a_jar_is_downloaded_once(tmp_path: Path, server: str, asked: list[str]) -> None:
    """The second call finds the file and asks no repository."""
    repository = Repository(server, "ada", "secret")

    first, second = fetch(tmp_path, repository), fetch(tmp_path, repository)

    assert first == second == tmp_path / JAR.path
    assert first.read_bytes() == CONTENT
    assert len(asked) == 1


def test_a_damaged_file_is_downloaded_again(tmp_path: Path, server: str) -> None:
    """A file in the cache with another checksum is replaced."""
    path = fetch(tmp_path, Repository(server, "ada", "secret"))
    path.write_bytes(b"torn")

    fetch(tmp_path, Repository(server, "ada", "secret"))

    assert path.read_bytes() == CONTENT


def test_progress_ends_with_all_bytes(tmp_path: Path, server: str) -> None:
    """The last call has the full size."""
    seen: list[tuple[str, int, int]] = []

    fetch_jar(JAR, tmp_path, [Repository(server, "ada", "secret")], lambda *call: seen.append(call))

    assert seen[-1] == (JAR.name, len(CONTENT), len(CONTENT))


@pytest.mark.parametrize("content", [b"other bytes"])
def test_another_content_is_refused(tmp_path: Path, server: str) -> None:
    """Nothing remains in the cache, and the reason names both checksums."""
    with pytest.raises(NotFetchedError) as refused:
        fetch(tmp_path, Repository(server, "ada", "secret"))

    assert JAR.sha256 in str(refused.value)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_the_next_repository_is_asked(tmp_path: Path, server: str) -> None:
    """Repositories are asked in their order."""
    offline = tmp_path / "offline"

    path = fetch(tmp_path / "cache", Repository(str(offline)), Repository(server, "ada", "secret"))

    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("place", [JAR.path, JAR.name])
def test_a_folder_can_have_mavens_layout_or_none(tmp_path: Path, place: str) -> None:
    """A folder of jars serves machines without a network."""
    source = tmp_path / "offline" / place
    source.parent.mkdir(parents=True)
    source.write_bytes(CONTENT)

    assert fetch(tmp_path / "cache", Repository(str(tmp_path / "offline"))).read_bytes() == CONTENT


def test_reasons_name_each_repository_without_passwords(tmp_path: Path, server: str) -> None:
    """The text has the address and the cause of each, and no user or password."""
    with_user = server.replace("//", "//ada:hidden@")

    with pytest.raises(NotFetchedError) as refused:
        fetch(
            tmp_path, Repository(str(tmp_path / "nowhere")), Repository(server, "ada", "wrong"), Repository(with_user)
        )

    text = str(refused.value)
    assert "No such file or directory" in text
    assert f"{server}: HTTP 401" in text
    assert "hidden" not in text
    assert "wrong" not in text
