"""A real HDFS for tests: a name node and a data node on loopback, from PySpark's jars and one from Maven Central."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pyspark

from sqlstream.project.connectors.connectors import Jar
from sqlstream.spark.jvm.class_archive import cache_folder
from sqlstream.spark.jvm.jars import Repository, fetch_jar
from sqlstream.spark.jvm.java import java_path
from tests.services.service_process import LOOK_SECONDS, LOOPBACK, START_SECONDS, ServiceProcess, free_ports

_SERVERS = Jar(
    "org.apache.hadoop:hadoop-client-minicluster:3.5.0",
    "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c",
)
"""Hadoop's servers, in the version of Hadoop that Spark 4.3 has."""

_PACKAGE = "org.apache.hadoop.hdfs.server"

_LIVE_NODES = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"


@dataclass(frozen=True)
class Hdfs:
    """A running HDFS: its URI, and its processes."""

    uri: str
    nodes: tuple[ServiceProcess, ...]

    def stop(self) -> None:
        """Stops the servers."""
        for node in self.nodes:
            node.stop()


def start_hdfs(folder: Path, env: Mapping[str, str] = os.environ) -> Hdfs:
    """Starts a file system with its data in `folder`. Downloads its jar into the user's cache if it is missing."""
    java, cache = java_path(env), cache_folder(env)
    if java is None or cache is None:
        raise RuntimeError("HDFS needs Java and a folder for a cache")
    names, web, data = free_ports(3)
    uri = f"hdfs://{LOOPBACK}:{names}"
    for file in ("core-site.xml", "hdfs-site.xml"):
        (folder / file).write_text(_settings(folder, uri, web, data), encoding="utf-8")
    jar = fetch_jar(_SERVERS, cache / "jars", [Repository()], lambda *_: None)
    class_path = os.pathsep.join([str(folder), str(jar), str(Path(pyspark.__file__).parent / "jars/*")])
    command = [java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", class_path]
    name_node = f"{_PACKAGE}.namenode.NameNode"
    subprocess.run([*command, name_node, "-format"], capture_output=True, check=True)
    nodes = (
        ServiceProcess([*command, name_node], names, folder / "names.log"),
        ServiceProcess([*command, f"{_PACKAGE}.datanode.DataNode"], data, folder / "data.log"),
    )
    for node in nodes:
        node.start()
    _wait_for_data_node(web)
    return Hdfs(uri, nodes)


def _settings(folder: Path, uri: str, web: int, data: int) -> str:
    settings = {
        "fs.defaultFS": uri,
        "dfs.replication": 1,
        "dfs.namenode.name.dir": folder / "names",
        "dfs.datanode.data.dir": folder / "data",
        "dfs.namenode.http-address": f"{LOOPBACK}:{web}",
        "dfs.datanode.address": f"{LOOPBACK}:{data}",
        "dfs.datanode.http.address": f"{LOOPBACK}:0",
        "dfs.datanode.ipc.address": f"{LOOPBACK}:0",
    }
    lines = [f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()]
    return "\n".join(["<configuration>", *lines, "</configuration>\n"])


def _wait_for_data_node(web: int) -> None:
    """Waits until the name node knows its data node. Raises: RuntimeError."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with urlopen(f"http://{LOOPBACK}:{web}{_LIVE_NODES}") as answer:
            (state,) = json.load(answer)["beans"]
        if state["NumLiveDataNodes"]:
            return
        time.sleep(LOOK_SECONDS)
    raise RuntimeError("the data node of HDFS did not start")
