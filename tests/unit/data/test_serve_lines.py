"""The line server sends lines as Spark's socket source needs them."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DATA = Path(__file__).parents[3] / "tests" / "data"
LINES = DATA / "wordcount" / "lines.txt"


@contextmanager
def line_server(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Runs the server on a free port and stops it afterwards; returns both."""
    command = [sys.executable, str(DATA / "serve_lines.py"), "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server, int(server.stdout.readline().rsplit(":", 1)[1])
        finally:
            server.terminate()


def connect(port: int) -> socket.socket:
    """Returns a connection to the server."""
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def test_the_line_server_sends_all_lines_and_ends() -> None:
    """With `--once`, a client gets every line, and then the server exits."""
    with line_server("--rate", "0", "--once") as (server, port):
        with connect(port) as client, client.makefile("rb") as received:
            assert received.read() == LINES.read_bytes()
        assert server.wait(timeout=30) == 0


def test_the_line_server_survives_an_early_disconnect() -> None:
    """With `--once`, a client that leaves before the last line does not end the server."""
    with line_server("--rate", "1000", "--once") as (server, port):
        connect(port).close()
        with connect(port) as client, client.makefile("rb") as received:
            assert received.read() == LINES.read_bytes()
        assert server.wait(timeout=30) == 0


def test_the_line_server_stays_until_its_clients_go() -> None:
    """A second client gets every line while the first is connected; a connection ends when its client leaves."""
    count = len(LINES.read_bytes().splitlines())
    with line_server("--rate", "0") as (server, port), connect(port) as first, connect(port) as second:
        for client in (first, second):
            with client.makefile("rb") as received:
                assert b"".join(received.readline() for _ in range(count)) == LINES.read_bytes()
                assert server.poll() is None
                client.shutdown(socket.SHUT_WR)
                assert received.read() == b""
