"""A Spark Connect server for tests, from the pip package of PySpark, and a connection to it that can break."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

from sqlstream.compiler.spark_versions import minor_version_text
from sqlstream.project.connectors.connectors import CONNECTORS, jars_of
from sqlstream.spark.jvm.class_archive import cache_folder
from sqlstream.spark.jvm.jars import Repository, fetch_jar
from tests.services.service_process import LOOPBACK, ServiceProcess, free_ports

SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
CHUNK = 65536


@dataclass(frozen=True)
class ConnectServer:
    """A running server; `folder` is its working directory."""

    port: int
    process: ServiceProcess

    @property
    def address(self) -> str:
        """The value of `remote`."""
        return f"sc://{LOOPBACK}:{self.port}"

    def kill(self) -> None:
        """Ends the server as `kill -9` does, with everything that runs in it."""
        self.process.stop(signal.SIGKILL)

    def start(self) -> None:
        """Starts the server again, on the same port."""
        self.process.start()

    def stop(self) -> None:
        """Stops the server."""
        self.process.stop(signal.SIGKILL)


def start_connect(folder: Path, python: str = sys.executable, **settings: str) -> ConnectServer:
    """Starts a server with two cores that runs in `folder`, with workers that run `python`. `settings` are Spark settings
    with `__` for dots.
    """
    (port,) = free_ports(1)
    home = Path(pyspark.__file__).parent
    given = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.host": LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **{name.replace("__", "."): value for name, value in settings.items()},
    }
    options = [part for name, value in given.items() for part in ("--conf", f"{name}={value}")]
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--class", SERVER_CLASS, *options]
    env = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": LOOPBACK}
    process = ServiceProcess([*command, "spark-internal"], port, folder / "connect.log", env)
    process.start()
    return ConnectServer(port, process)


def connector_jars(*names: str) -> str:
    """Returns the paths of the jars of connectors, in the user's cache, as the setting `spark.jars` has them."""
    cache = cache_folder(os.environ)
    assert cache is not None
    paths = []
    for name in names:
        release = CONNECTORS[name].release_for(minor_version_text(pyspark.__version__))
        assert release is not None
        paths += [str(fetch_jar(jar, cache / "jars", [Repository()], lambda *_: None)) for jar in jars_of(release)]
    return ",".join(paths)


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
def cut(server: ConnectServer) -> Iterator[Cut]:
    """Yields a port through which `server` can be reached until `break_all`."""
    found = Cut(server.port)
    try:
        yield found
    finally:
        found.close()
