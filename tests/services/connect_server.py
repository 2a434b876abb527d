"""A Spark Connect server for tests, from the pip package of PySpark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sqlstream.compiler.spark_versions import minor_version_text
from sqlstream.project.connectors.connectors import CONNECTORS, jars_of
from sqlstream.spark.jvm.class_archive import cache_folder
from sqlstream.spark.jvm.jars import Repository, fetch_jar
from tests.services.service_process import LOOPBACK, ServiceProcess, free_ports

SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"

SERVER_PYTHON = "SQLSTREAM_TEST_SERVER_PYTHON"
"""The variable with the Python whose PySpark the servers are, by default that of the tests."""


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


def start_connect(folder: Path, python: str = "", **settings: str) -> ConnectServer:
    """Starts a server with two cores that runs in `folder`, with workers that run `python` (default: its own Python).
    `settings` are Spark settings with `__` for dots.
    """
    (port,) = free_ports(1)
    home, _ = server_spark()
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
    env = {
        **os.environ,
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": python or server_python(),
        "SPARK_LOCAL_IP": LOOPBACK,
    }
    process = ServiceProcess([*command, "spark-internal"], port, folder / "connect.log", env)
    process.start()
    return ConnectServer(port, process)


def server_python() -> str:
    """Returns the Python of servers."""
    return os.environ.get(SERVER_PYTHON, sys.executable)


@cache
def server_spark() -> tuple[Path, str]:
    """Returns the folder and the version of the Spark of servers."""
    command = [server_python(), "-c", "import pyspark; print(pyspark.__path__[0], pyspark.__version__)"]
    home, version = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    return Path(home), version


def connector_jars(*names: str) -> str:
    """Returns the paths of the jars of connectors, in the user's cache, as the setting `spark.jars` has them."""
    cache = cache_folder(os.environ)
    assert cache is not None
    paths = []
    for name in names:
        release = CONNECTORS[name].release_for(minor_version_text(server_spark()[1]))
        assert release is not None
        paths += [str(fetch_jar(jar, cache / "jars", [Repository()], lambda *_: None)) for jar in jars_of(release)]
    return ",".join(paths)


def kill_in_turns(process: subprocess.Popen[str], server: ConnectServer, number: int) -> None:
    """Ends a run as `kill -9` does, if `number` is odd. Otherwise ends the server, after which the run must end with code
    1, and starts it again.
    """
    if number % 2:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return
    server.kill()
    printed, _ = process.communicate()
    assert process.returncode == 1, printed
    server.start()
