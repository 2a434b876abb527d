"""A real YARN for tests: a resource manager and node managers on loopback, each its own process, with an HDFS."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyspark

from tests.services.hdfs import Hdfs, java_server, start_hdfs, write_settings
from tests.services.service_process import LOOK_SECONDS, LOOPBACK, START_SECONDS, ServiceProcess, free_ports

_PACKAGE = "org.apache.hadoop.yarn.server"

_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

SMALL = {
    # the Spark of this machine: otherwise each start copies 400 MB to HDFS
    "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",
    "spark.executor.memory": "512m",
    "spark.yarn.am.memory": "512m",
    **dict.fromkeys(("spark.yarn.am.extraJavaOptions", "spark.executor.extraJavaOptions"), _SHORT_LIVED),
}
"""Settings of Spark with which applications start fast, and need little memory."""


@dataclass(frozen=True)
class Yarn:
    """A running YARN with its HDFS. `conf` is a folder for HADOOP_CONF_DIR, and `web` the address of YARN's REST API."""

    conf: Path
    hdfs: Hdfs
    manager: ServiceProcess
    nodes: tuple[ServiceProcess, ...]
    web: str

    def applications(self, *states: str) -> list[dict[str, Any]]:
        """Returns what YARN knows of the applications in `states` such as `RUNNING`, of all without one."""
        answer = _ask(self.web, f"apps?states={','.join(states)}")["apps"]
        return answer["app"] if answer else []

    def with_local_files(self, folder: Path) -> dict[str, str]:
        """Returns the variables with which applications use YARN, but this machine's files for paths without a scheme.
        Writes their settings to a new `folder`.
        """
        folder.mkdir()
        shutil.copy(self.conf / "yarn-site.xml", folder)
        write_settings(folder / "core-site.xml", {"fs.defaultFS": "file:///"})
        settings = {**SMALL, "spark.yarn.stagingDir": f"{self.hdfs.uri}/staging"}
        (folder / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        return {"HADOOP_CONF_DIR": str(folder), "SPARK_CONF_DIR": str(folder)}


@contextmanager
def yarn_cluster(folder: Path, nodes: int = 2, cores: int = 2, memory: int = 3072) -> Iterator[Yarn]:
    """Runs YARN and HDFS until the body ends. Each node has `cores` and `memory` (in MB) for containers. Settings, work
    folders and logs are in `folder`. Downloads Hadoop's servers into the user's cache if they are missing.
    """
    for name in ("hdfs", "conf"):
        (folder / name).mkdir()
    hdfs = start_hdfs(folder / "hdfs")
    servers: list[ServiceProcess] = []
    try:
        scheduler, tracker, admin, clients, web = free_ports(5)
        shared = {
            "yarn.resourcemanager.hostname": LOOPBACK,
            "yarn.resourcemanager.address": f"{LOOPBACK}:{clients}",
            "yarn.resourcemanager.scheduler.address": f"{LOOPBACK}:{scheduler}",
            "yarn.resourcemanager.resource-tracker.address": f"{LOOPBACK}:{tracker}",
            "yarn.resourcemanager.admin.address": f"{LOOPBACK}:{admin}",
            "yarn.resourcemanager.webapp.address": f"{LOOPBACK}:{web}",
        }
        _configure(folder / "conf", folder, shared)
        servers.append(_manager(folder, shared, clients))
        servers += [_node(folder / f"node-{number}", folder, shared, cores, memory) for number in range(nodes)]
        servers[0].start()
        with ThreadPoolExecutor() as starting:
            list(starting.map(ServiceProcess.start, servers[1:]))
        yarn = Yarn(folder / "conf", hdfs, servers[0], tuple(servers[1:]), f"http://{LOOPBACK}:{web}")
        _wait_for_nodes(yarn)
        yield yarn
    finally:
        for server in reversed(servers):
            server.stop(signal.SIGKILL)  # nobody needs their data
        hdfs.stop()


def _manager(folder: Path, shared: Mapping[str, object], port: int) -> ServiceProcess:
    own = folder / "manager"
    _configure(own, folder, {**shared, "yarn.scheduler.minimum-allocation-mb": 128})
    queues = {
        "yarn.scheduler.capacity.root.queues": "default",
        "yarn.scheduler.capacity.root.default.capacity": 100,
        # otherwise the masters of applications may have a tenth of the memory
        "yarn.scheduler.capacity.maximum-am-resource-percent": 1,
    }
    write_settings(own / "capacity-scheduler.xml", queues)
    return java_server(own, f"{_PACKAGE}.resourcemanager.ResourceManager", port)


def _node(own: Path, folder: Path, shared: Mapping[str, object], cores: int, memory: int) -> ServiceProcess:
    port, localizer, web, collector = free_ports(4)
    settings = {
        "yarn.nodemanager.address": f"{LOOPBACK}:{port}",
        "yarn.nodemanager.localizer.address": f"{LOOPBACK}:{localizer}",
        "yarn.nodemanager.webapp.address": f"{LOOPBACK}:{web}",
        "yarn.nodemanager.collector-service.address": f"{LOOPBACK}:{collector}",
        "yarn.nodemanager.local-dirs": own / "local",
        "yarn.nodemanager.log-dirs": own / "logs",
        "yarn.nodemanager.resource.memory-mb": memory,
        "yarn.nodemanager.resource.cpu-vcores": cores,
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.enable": "false",
    }
    _configure(own, folder, {**shared, **settings})
    return java_server(own, f"{_PACKAGE}.nodemanager.NodeManager", port)


def _configure(own: Path, folder: Path, settings: Mapping[str, object]) -> None:
    """Writes settings of YARN to the folder `own`, and those of HDFS."""
    own.mkdir(exist_ok=True)
    shutil.copy(folder / "hdfs" / "core-site.xml", own)
    write_settings(own / "yarn-site.xml", settings)


def _wait_for_nodes(yarn: Yarn) -> None:
    """Waits until all nodes have registered. Raises: RuntimeError."""
    deadline = time.monotonic() + START_SECONDS
    while _ask(yarn.web, "metrics")["clusterMetrics"]["activeNodes"] < len(yarn.nodes):
        if time.monotonic() > deadline:
            log = yarn.nodes[-1].log.read_text(errors="replace")
            raise RuntimeError(f"the nodes of YARN did not register:\n{log[-4000:]}")
        time.sleep(LOOK_SECONDS)


def _ask(web: str, what: str) -> Any:
    with urlopen(f"{web}/ws/v1/cluster/{what}") as answer:
        return json.load(answer)
