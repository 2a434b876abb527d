"""Servers of S3 for tests, on loopback: moto, which keeps all objects in memory and has conditional writes, and
S3Proxy, which ignores the conditions.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow.fs import FileSelector, S3FileSystem

from sqlstream.project.connectors.connectors import Jar
from sqlstream.spark.jvm.class_archive import cache_folder
from sqlstream.spark.jvm.jars import Repository, fetch_jar
from sqlstream.spark.jvm.java import java_path
from tests.services.service_process import LOOPBACK, ServiceProcess, free_ports

KEY, PASSWORD, BUCKET = "test-key", "canary-4711", "streams"

_REQUEST = re.compile(r'"(?:\x1b\[[0-9;]*m)*([A-Z]+) (/\S+) HTTP/1\.1')


@dataclass(frozen=True)
class S3:
    """A running server with the bucket `BUCKET`."""

    url: str
    process: ServiceProcess

    @property
    def files(self) -> S3FileSystem:
        """The objects of the server. Paths are `bucket/key`."""
        return _client(self.url)

    def names(self, folder: str) -> set[str]:
        """Returns the keys of all objects below `folder`, without it."""
        start = f"{BUCKET}/{folder}/"
        listed = self.files.get_file_info(FileSelector(start, recursive=True, allow_not_found=True))
        return {found.path.removeprefix(start) for found in listed if found.is_file}

    def requests(self) -> list[tuple[str, str]]:
        """Returns the method and the address of all requests so far."""
        return _REQUEST.findall(self.process.log.read_text(errors="replace"))

    def settings(self) -> Mapping[str, str]:
        """Returns the settings of Spark for the server, with the password as a secret of sqlstream."""
        return {
            "spark.hadoop.fs.s3a.endpoint": self.url,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": KEY,
            "spark.hadoop.fs.s3a.secret.key": "{{ env_var('SQLSTREAM_SECRET_S3') }}",
        }

    def stop(self) -> None:
        """Stops the server, which forgets everything."""
        self.process.stop()


def start_s3(folder: Path) -> S3:
    """Starts a server that writes its log into `folder`, and creates the bucket."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "moto.server", "-H", LOOPBACK, "-p", str(port)]
    return _started(S3(f"http://{LOOPBACK}:{port}", ServiceProcess(command, port, folder / "s3.log")))


def _started(server: S3) -> S3:
    server.process.start()
    _client(server.url, allow_bucket_creation=True).create_dir(BUCKET)
    return server


class _S3ProxyJar(Jar):
    """The jar of S3Proxy that contains what it depends on."""

    @property
    def name(self) -> str:
        """The name of the file."""
        return super().name.replace(".jar", "-jar-with-dependencies.jar")


_S3PROXY = _S3ProxyJar("org.gaul:s3proxy:2.6.0", "12e5e88d805cfed07f7d88b4a44a0d8ecb9f9d3cebeb544bb34fbc4ded1049d8")


def start_s3proxy(folder: Path) -> S3:
    """Starts S3Proxy, which writes its log into `folder` and accepts each password, and creates the bucket. It keeps all
    objects in memory: with files, it takes empty folders for objects.
    """
    java, cache, (port,) = java_path(os.environ), cache_folder(os.environ), free_ports(1)
    if java is None or cache is None:
        raise RuntimeError("S3Proxy needs Java and a folder for a cache")
    settings = {
        "s3proxy.endpoint": f"http://{LOOPBACK}:{port}",
        "s3proxy.authorization": "none",
        "s3proxy.ignore-unknown-headers": "true",
        "jclouds.provider": "transient",
        "jclouds.identity": "none",
        "jclouds.credential": "none",
    }
    given = folder / "s3proxy.properties"
    given.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    jar = fetch_jar(_S3PROXY, cache / "jars", [Repository()], lambda *_: None)
    command = [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-jar", str(jar), "--properties", str(given)]
    return _started(S3(f"http://{LOOPBACK}:{port}", ServiceProcess(command, port, folder / "s3proxy.log")))


def _client(url: str, **more: Any) -> S3FileSystem:
    return S3FileSystem(
        access_key=KEY, secret_key=PASSWORD, endpoint_override=url, scheme="http", region="us-east-1", **more
    )
