"""Which configuration and sinks a batch model may have, and where it may write."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, compile_models
from sqlstream.app.loading.load import try_load

FILES = {
    "project.yml": "name: shop\ntargets: {local: {master: local, storage: store}}\n"
    "models: {+output_mode: update, +trigger: 10 seconds}\n",
    "sources.yml": "sources:\n  - name: shop\n    tables:\n"
    "      - {name: customers, format: json, path: in/customers, schema: id int, mode: batch}\n"
    "      - {name: orders, format: json, path: in/orders, schema: id int}\n",
    "models/orders.sql": "{{ config(sink='orders', output_mode='append') }} select * from {{ source('shop', 'orders') }}",
}


def codes(folder: Path, config: str, path: str = "report") -> list[str]:
    """Returns the error codes of a batch model with the `config` that writes to the `path`."""
    sinks = f"sinks:\n  - {{name: lake, format: json, path: '{path}'}}\n  - {{name: orders, format: json, path: a/b}}\n"
    model = f"{{{{ config(sink='lake'{config}) }}}} select * from {{{{ source('shop', 'customers') }}}}"
    for name, text in {**FILES, "sinks.yml": sinks, "models/report.sql": model}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    try:
        compile_models(ProjectRequest(folder))
    except FindingsError as error:
        return [finding.code for finding in error.findings if finding.is_error]
    return []


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("", []),
        (", trigger='available_now', output_mode='append'", []),
        (", trigger='10 seconds'", ["batch-model"]),
        (", trigger={'real_time': '1 second'}", ["batch-model"]),
        (", output_mode='complete'", ["batch-model"]),
    ],
)
def test_streaming_options_are_refused(tmp_path: Path, config: str, expected: list[str]) -> None:
    """Streaming triggers and output modes of a batch model itself are refused; folder defaults are ignored."""
    assert codes(tmp_path, config) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("report", []),
        ("a", ["shared-output"]),
        ("a/c", []),
        (".", ["shared-output"]),
        ("queries", ["shared-output"]),
        ("{{ target.name }}/../..", ["shared-output"]),
        ("../in/customers/report", []),
        ("../in", ["shared-output"]),
    ],
)
def test_an_output_folder_contains_nothing_else(tmp_path: Path, path: str, expected: list[str]) -> None:
    """A batch output folder may not contain the storage, other outputs, checkpoints or the model's inputs."""
    assert codes(tmp_path, "", path) == expected


@pytest.mark.parametrize(
    ("sink", "code"),
    [
        ("{name: lake, format: python, function: 'm:Each'}", "batch-model"),
        ("{name: lake, format: python, function: 'm:send'}", None),
        ("{name: lake, format: table, table: t}", "temporary-catalog"),
    ],
)
def test_some_sinks_are_refused(tmp_path: Path, sink: str, code: str | None) -> None:
    """A batch model cannot write with a Python class, or to a table in a temporary catalog."""
    codes(tmp_path, "")
    (tmp_path / "python").mkdir()
    (tmp_path / "python/m.py").write_text(
        "class Each:\n    def process(self, row): pass\n\ndef send(rows, batch): pass\n"
    )
    (tmp_path / "sinks.yml").write_text(f"sinks:\n  - {sink}\n  - {{name: orders, format: json, path: a/b}}\n")
    found = {finding.code for finding in try_load(ProjectRequest(tmp_path)).findings if finding.is_error}
    assert found & {"batch-model", "temporary-catalog", "python-name"} == ({code} if code else set())
