"""A server without TLS that asks for a password in a form that others can read does not get it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sqlstream.project.databases.dialect import Dialect
from sqlstream.project.databases.logins import read_login
from sqlstream.project.databases.mysql import MARIADB, MYSQL
from sqlstream.spark.writing.databases.python_drivers import DriverError, open_connection

PASSWORD = "tulip4711"
CAPABILITIES = 0x200 | 0x8000 | 0x80000
"""The protocol of MySQL 4.1, and that the client chooses how it logs in; no TLS."""


def greeting(plugin: bytes) -> bytes:
    """Returns the first packet of a server that wants clients to log in with `plugin`."""
    low, high = (CAPABILITIES & 0xFFFF).to_bytes(2, "little"), (CAPABILITIES >> 16).to_bytes(2, "little")
    salt = b"12345678" + b"\0" + low + b"\x21" + b"\2\0" + high + bytes([21]) + bytes(10) + b"901234567890\0"
    return b"\x0a8.0.0\0" + bytes(4) + salt + plugin + b"\0"


@contextmanager
def server(plugin: bytes, answer: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Yields the port of a server that sends `answer` when a client logs in, and what it has received."""
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            client, _ = listener.accept()
            with client:
                for number, packet in ((0, greeting(plugin)), (2, answer)):
                    client.sendall(len(packet).to_bytes(3, "little") + bytes([number]) + packet)
                    received.append(client.recv(4096))
                received.append(client.recv(4096))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1], received
        thread.join(60)


@pytest.mark.parametrize(
    ("plugin", "answer", "words"),
    [
        (b"mysql_native_password", b"\xfemysql_clear_password\0\0", "asks for the password in clear"),
        (b"mysql_native_password", b"\xfedialog\0\0", "asks for the password in clear"),
        (b"caching_sha2_password", b"\1\4", "password"),  # the client could now ask for a key
    ],
)
@pytest.mark.parametrize("dialect", [MYSQL, MARIADB])
def test_a_password_is_never_readable(dialect: Dialect, plugin: bytes, answer: bytes, words: str) -> None:
    """The driver in Python gives up, as the JDBC drivers do."""
    with server(plugin, answer) as (port, received):
        url = f"jdbc:{dialect.name}://127.0.0.1:{port}/shop"
        login = read_login(dialect, {"url": url, "user": "ada", "password": PASSWORD})
        with pytest.raises(DriverError, match=words):
            open_connection(dialect, login)

    assert PASSWORD.encode() not in b"".join(received)
    assert received[1:] in ([b""], [b"", b""])
