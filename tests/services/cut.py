"""Connections to a server of tests that can be broken."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.services.service_process import LOOPBACK

CHUNK = 65536


class Cut:
    """A port that passes everything on to another one, until `break_all` ends all connections through it."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def break_all(self) -> int:
        """Ends all connections in the middle of what they do, and returns how many there were."""
        with self._lock:
            broken, self._open = self._open, set()
        for each in broken:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        return len(broken) // 2

    def close(self) -> None:
        """Ends the port, and all connections."""
        self._listener.close()
        self.break_all()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._pass_on, args=(near,), daemon=True).start()

    def _pass_on(self, near: socket.socket) -> None:
        with suppress(OSError), near, socket.create_connection((LOOPBACK, self._target)) as far:
            with self._lock:
                self._open |= {near, far}
            selector = selectors.DefaultSelector()
            selector.register(near, selectors.EVENT_READ, far)
            selector.register(far, selectors.EVENT_READ, near)
            while True:
                for key, _ in selector.select():
                    taken = key.fileobj.recv(CHUNK)  # type: ignore[union-attr]
                    if not taken:
                        return
                    key.data.sendall(taken)


@contextmanager
def cut(port: int) -> Iterator[Cut]:
    """Yields a port through which a server on `port` can be reached, and whose connections can be broken."""
    found = Cut(port)
    try:
        yield found
    finally:
        found.close()
