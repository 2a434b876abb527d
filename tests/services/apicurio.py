"""Apicurio Registry, a real one for `make registry`. It keeps its schemas in memory and has Confluent's interface too."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

from sqlstream.project.connectors.connectors import Jar
from sqlstream.spark.jvm.class_archive import cache_folder
from sqlstream.spark.jvm.jars import Repository, fetch_jar
from sqlstream.spark.jvm.java import java_path
from tests.services.service_process import LOOPBACK, ServiceProcess, free_ports

VERSION = "3.0.9"
"""The last one that runs on Java 17."""


class _Archive(Jar):
    @property
    def name(self) -> str:
        """The name of the file, which is no jar."""
        return f"apicurio-registry-app-{VERSION}-all.tar.gz"


_ARCHIVE = _Archive(
    f"io.apicurio:apicurio-registry-app:{VERSION}", "2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43"
)


def start_apicurio(folder: Path) -> tuple[ServiceProcess, str]:
    """Starts the registry in `folder`, and returns its process and its address. Downloads 150 MB the first time."""
    cache, java = cache_folder(os.environ), java_path(os.environ)
    if cache is None or java is None:
        raise RuntimeError("the registry needs Java and a folder for a cache")
    archive = fetch_jar(_ARCHIVE, cache / "jars", [Repository()], lambda *_: None)
    with tarfile.open(archive) as content:
        content.extractall(folder, filter="data")
    (port,) = free_ports(1)
    options = [f"-Dquarkus.http.port={port}", f"-Dquarkus.http.host={LOOPBACK}", "-Xmx384m", "-XX:+UseSerialGC"]
    jar = folder / f"apicurio-registry-app-{VERSION}-runner.jar"
    process = ServiceProcess([java, *options, "-jar", str(jar)], port, folder / "registry.log")
    process.start()
    return process, f"http://{LOOPBACK}:{port}/apis/ccompat/v7"
