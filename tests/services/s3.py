"""A server of S3 for tests, on loopback: moto, which keeps all objects in memory and has conditional writes."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow.fs import FileSelector, S3FileSystem

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
    server = S3(f"http://{LOOPBACK}:{port}", ServiceProcess(command, port, folder / "s3.log"))
    server.process.start()
    _client(server.url, allow_bucket_creation=True).create_dir(BUCKET)
    return server


def _client(url: str, **more: Any) -> S3FileSystem:
    return S3FileSystem(
        access_key=KEY, secret_key=PASSWORD, endpoint_override=url, scheme="http", region="us-east-1", **more
    )
