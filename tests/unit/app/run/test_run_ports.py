"""A run whose port for metrics is taken ends before Spark starts."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from sqlstream import ProjectRequest, RunRequest, UsageError, run_models

FILES = {
    "project.yml": "name: shop\nversion: 1.0.0\n",
    "sources.yml": "sources:\n  - {name: s, tables: [{name: t, format: rate}]}\n",
    "sinks.yml": "sinks:\n  - {name: nowhere, format: noop}\n",
    "models/a.sql": "{{ config(sink='nowhere') }} select value from {{ source('s', 't') }}",
}


def test_a_port_in_use_ends_the_run(tmp_path: Path) -> None:
    """The run names the port and its option; it has not looked for Java yet."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        request = RunRequest(ProjectRequest(tmp_path, env={"PATH": ""}), metrics_port=port)
        with pytest.raises(UsageError, match=f"--metrics-port on 127.0.0.1 port {port}"):
            run_models(request, lambda _: None)
