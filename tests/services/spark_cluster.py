"""A real standalone cluster of Spark for tests: a master and workers on loopback, each its own process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.services.service_process import LOOK_SECONDS, LOOPBACK, START_SECONDS, ServiceProcess, free_ports

_SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_DEPLOY = "org.apache.spark.deploy"
_REGISTERED = "Successfully registered with master"

EXECUTOR_GIGABYTES = 1
"""The memory of an executor if a target does not set it."""


@dataclass(frozen=True)
class SparkCluster:
    """A running cluster: the address of its master, and its workers."""

    master: str
    workers: tuple[ServiceProcess, ...]

    def kill_worker(self, number: int) -> None:
        """Ends a worker by `kill -9`. Its executors end themselves once they miss it."""
        self.workers[number].stop(signal.SIGKILL)

    def start_killed_workers(self) -> None:
        """Starts the workers that do not run, and returns when they have registered."""
        for worker in self.workers:
            if not worker.is_running:
                _start_worker(worker)


@contextmanager
def spark_cluster(
    folder: Path, workers: int = 2, cores: int = 1, applications: int = 1, hidden: Path | None = None
) -> Iterator[SparkCluster]:
    """Runs a cluster until the body ends. `cores` are those that each application gets of each worker, and
    `applications` the number of those that run at the same time. Work folders and logs are in `folder`. The workers do
    not have the folder `hidden`, as if they were other machines: they see an empty one in its place.
    """
    port, *others = free_ports(workers + 1)
    master = f"spark://{LOOPBACK}:{port}"
    shares = {"SPARK_MASTER_OPTS": f"-Dspark.deploy.defaultCores={workers * cores}"}
    size = ("-c", str(cores * applications), "-m", f"{EXECUTOR_GIGABYTES * applications}g")
    nodes = [_process(folder, "master.Master", port, "master", env=shares)]
    for number, own in enumerate(others):
        nodes.append(_process(folder, "worker.Worker", own, f"worker-{number}", master, *size, hidden=hidden))
    try:
        nodes[0].start()
        with ThreadPoolExecutor() as starting:
            list(starting.map(_start_worker, nodes[1:]))
        yield SparkCluster(master, tuple(nodes[1:]))
    finally:
        for node in reversed(nodes):
            node.stop()


def without_folder(path: Path) -> list[str]:
    """Returns the start of a command that runs the rest of it where the folder `path` is empty."""
    return ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(path)]


def _process(
    folder: Path,
    name: str,
    port: int,
    node: str,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    hidden: Path | None = None,
) -> ServiceProcess:
    given = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # as on another machine
    environment = {
        **given,
        **(env or {}),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_WORKER_DIR": str(folder / node),
        "SPARK_LOCAL_DIRS": str(folder / f"{node}-local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    (folder / f"{node}-local").mkdir()
    listens = ("--host", LOOPBACK, "--port", str(port), "--webui-port", "0")
    command = [str(_SPARK_CLASS), f"{_DEPLOY}.{name}", *arguments, *listens]
    command = command if hidden is None else [*without_folder(hidden), *command]
    return ServiceProcess(command, port, folder / f"{node}.log", environment)


def _start_worker(worker: ServiceProcess) -> None:
    """Starts a worker and waits until it has registered. Raises: RuntimeError with its log."""
    before = _registrations(worker)
    worker.start()
    deadline = time.monotonic() + START_SECONDS
    while _registrations(worker) == before:
        if time.monotonic() > deadline:
            raise RuntimeError(f"a worker did not register:\n{worker.log.read_text(errors='replace')[-4000:]}")
        time.sleep(LOOK_SECONDS)


def _registrations(worker: ServiceProcess) -> int:
    return worker.log.read_text(errors="replace").count(_REGISTERED) if worker.log.exists() else 0
