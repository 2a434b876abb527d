"""A real HDFS for tests: a name node and a data node on loopback, from PySpark's jars and one from Maven Central."""

from __future__ import annotations

import getpass
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urljoin
from urllib.request import Request, urlopen

import pyspark

from sqlstream.project.connectors.connectors import Jar
from sqlstream.spark.jvm.class_archive import cache_folder
from sqlstream.spark.jvm.jars import Repository, fetch_jar
from sqlstream.spark.jvm.java import java_path
from tests.services.service_process import LOOK_SECONDS, LOOPBACK, START_SECONDS, ServiceProcess, free_ports

_SERVERS = (
    Jar(
        "org.apache.hadoop:hadoop-client-minicluster:3.5.0",
        "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c",
    ),
    Jar("org.bouncycastle:bcprov-jdk18on:1.82", "14cde2fdfaa8890480a8e5b67aceef0c90f96682c1e23c133bafdc9e0b3255ce"),
    Jar("org.bouncycastle:bcpkix-jdk18on:1.82", "bdc723e20834832ac6af136cb5b5ff05e43b71d4fa151cc6510d9212ee086e63"),
    Jar("org.bouncycastle:bcutil-jdk18on:1.82", "4420691958ad1c0ba275a6d6d8a6317adbdbdc9277055b6a72aa89c88cda8c7d"),
)
"""Hadoop's servers, in the version of Hadoop that Spark 4.3 has, and what YARN's resource manager also needs."""

_PACKAGE = "org.apache.hadoop.hdfs.server"

_LIVE_NODES = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"


@dataclass(frozen=True)
class Hdfs:
    """A running HDFS: its URI, the address of WebHDFS, and its processes: the name node and a data node."""

    uri: str
    web: str
    nodes: tuple[ServiceProcess, ...]

    def names(self, path: str) -> list[str]:
        """Returns the names in a folder."""
        with urlopen(f"{self.web}{quote(path)}?op=LISTSTATUS") as answer:
            return [status["pathSuffix"] for status in json.load(answer)["FileStatuses"]["FileStatus"]]

    def read(self, path: str) -> bytes:
        """Returns the content of a file."""
        with urlopen(f"{self.web}{quote(path)}?op=OPEN") as answer:
            return bytes(answer.read())

    def write(self, path: str, content: bytes) -> None:
        """Writes a new file, and creates its folders. It is there under its name only when it is complete."""
        aside = f"{path.rpartition('/')[0]}/.aside"
        with urlopen(self._put(aside, "op=CREATE&noredirect=true")) as answer:
            place = json.load(answer)["Location"]
        with urlopen(Request(place, content, method="PUT", headers={"Content-Type": "application/octet-stream"})):
            pass
        with urlopen(self._put(aside, f"op=RENAME&destination={quote(path)}")) as answer:
            assert json.load(answer)["boolean"]

    def _put(self, path: str, query: str) -> Request:
        # the user of the processes that run sqlstream, who owns the files
        return Request(f"{self.web}{quote(path)}?{query}&user.name={getpass.getuser()}", method="PUT")

    def wait_for_data_node(self) -> None:
        """Waits until the name node, which has started, knows its data node and the free space there. Raises:
        RuntimeError.
        """
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with urlopen(urljoin(self.web, _LIVE_NODES)) as answer:
                (state,) = json.load(answer)["beans"]
            if state["CapacityRemaining"] and state["FSState"] == "Operational":
                return
            time.sleep(LOOK_SECONDS)
        raise RuntimeError("the data node of HDFS did not start")

    def stop(self) -> None:
        """Ends the servers at once: nobody needs their data."""
        for node in self.nodes:
            node.stop(signal.SIGKILL)


def start_hdfs(folder: Path, env: Mapping[str, str] = os.environ) -> Hdfs:
    """Starts a file system with its data in `folder`. Downloads its jar into the user's cache if it is missing."""
    names, web, data = free_ports(3)
    uri = f"hdfs://{LOOPBACK}:{names}"
    for file in ("core-site.xml", "hdfs-site.xml"):
        write_settings(folder / file, _settings(folder, uri, web, data))
    name_node = java_server(folder, f"{_PACKAGE}.namenode.NameNode", names, env)
    subprocess.run([*name_node.command, "-format"], capture_output=True, check=True)
    nodes = (name_node, java_server(folder, f"{_PACKAGE}.datanode.DataNode", data, env))
    for node in nodes:
        node.start()
    hdfs = Hdfs(uri, f"http://{LOOPBACK}:{web}/webhdfs/v1", nodes)
    hdfs.wait_for_data_node()
    return hdfs


def java_server(folder: Path, name: str, port: int, env: Mapping[str, str] = os.environ) -> ServiceProcess:
    """Returns one of Hadoop's servers, by its main class, with the settings and the log in `folder`; it is not started."""
    java, cache = java_path(env), cache_folder(env)
    if java is None or cache is None:
        raise RuntimeError("Hadoop's servers need Java and a folder for a cache")
    jars = [str(fetch_jar(jar, cache / "jars", [Repository()], lambda *_: None)) for jar in _SERVERS]
    class_path = os.pathsep.join([str(folder), *jars, str(Path(pyspark.__file__).parent / "jars/*")])
    command = [java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", class_path, name]
    return ServiceProcess(command, port, folder / f"{name.rpartition('.')[2]}.log")


def write_settings(file: Path, settings: Mapping[str, object]) -> None:
    """Writes settings of Hadoop."""
    lines = [f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()]
    file.write_text("\n".join(["<configuration>", *lines, "</configuration>\n"]), encoding="utf-8")


def _settings(folder: Path, uri: str, web: int, data: int) -> Mapping[str, object]:
    return {
        "fs.defaultFS": uri,
        "dfs.replication": 1,
        "dfs.namenode.safemode.extension": 0,  # after a restart it otherwise refuses to write for 30 seconds
        "dfs.namenode.name.dir": folder / "names",
        "dfs.datanode.data.dir": folder / "data",
        "dfs.namenode.http-address": f"{LOOPBACK}:{web}",
        "dfs.datanode.address": f"{LOOPBACK}:{data}",
        "dfs.datanode.http.address": f"{LOOPBACK}:0",
        "dfs.datanode.ipc.address": f"{LOOPBACK}:0",
    }
