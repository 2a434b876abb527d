"""A real Prometheus on loopback that reads the metrics of a run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.services.service_process import LOOPBACK, ServiceProcess, free_ports

_CONFIGURATION = """\
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: sqlstream
    static_configs: [{{targets: ["{target}"]}}]
"""


@dataclass(frozen=True)
class Prometheus:
    """The address of a running Prometheus."""

    url: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Returns the series of an instant query. Raises: urllib.error.HTTPError for an expression with an error."""
        parameters = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{parameters}", timeout=60) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return found

    def check(self, metrics: str) -> str:
        """Returns what `promtool check metrics` finds in an exposition, empty if all is well."""
        command = ["promtool", "check", "metrics"]
        done = subprocess.run(command, input=metrics, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr


def started_prometheus(url: str, folder: Path) -> Iterator[Prometheus]:
    """Yields a Prometheus that reads the metrics at `url`. Skips the test where there is none; `.ci/run` installs it."""
    program = shutil.which("prometheus")
    if program is None:
        if os.environ.get("SQLSTREAM_TEST_SERVERS") == "required":
            raise FileNotFoundError("prometheus is not on the PATH")
        pytest.skip("prometheus is not on the PATH")
    (folder / "prometheus.yml").write_text(_CONFIGURATION.format(target=url.removeprefix("http://")))
    (port,) = free_ports(1)
    address = f"{LOOPBACK}:{port}"
    options = [f"--storage.tsdb.path={folder}/data", f"--web.listen-address={address}"]
    command = [program, f"--config.file={folder}/prometheus.yml", *options]
    process = ServiceProcess(command, port, folder / "prometheus.log")
    process.start()
    yield Prometheus(f"http://{address}")
    process.stop()
