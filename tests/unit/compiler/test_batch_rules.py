"""What may not be asked of a batch model, and where it may write."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, compile_models

FILES = {
    "project.yml": "name: shop\ntargets: {local: {master: local, storage: store}}\n"
    "models: {+output_mode: update, +trigger: 10 seconds}\n",
    "sources.yml": "sources:\n  - name: shop\n    tables:\n"
    "      - {name: customers, format: json, path: in/customers, schema: id int, mode: batch}\n"
    "      - {name: orders, format: json, path: in/orders, schema: id int}\n",
    "models/orders.sql": "{{ config(sink='orders', output_mode='append') }} select * from {{ source('shop', 'orders') }}",
}


def codes(folder: Path, config: str, path: str = "report") -> list[str]:
    """The codes of the errors of a batch model with the `config`, whose sink has the `path`."""
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
def test_what_streams_alone_have(tmp_path: Path, config: str, expected: list[str]) -> None:
    """What the model itself asks for counts; defaults of its folder are passed over."""
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
def test_a_folder_that_is_replaced_holds_nothing_else(tmp_path: Path, path: str, expected: list[str]) -> None:
    """Neither the storage, another output, a checkpoint nor what the model reads may lie in it."""
    assert codes(tmp_path, "", path) == expected


@pytest.mark.parametrize(
    ("sink", "code"),
    [
        ("{name: lake, format: python, function: 'm:f'}", "batch-model"),
        ("{name: lake, format: table, table: t}", "temporary-catalog"),
    ],
)
def test_sinks_of_batches(tmp_path: Path, sink: str, code: str) -> None:
    """A batch is not given to Python; a table it is written into, where the catalog lasts."""
    codes(tmp_path, "")
    (tmp_path / "sinks.yml").write_text(f"sinks:\n  - {sink}\n  - {{name: orders, format: json, path: a/b}}\n")
    with pytest.raises(FindingsError) as caught:
        compile_models(ProjectRequest(tmp_path))
    found = {finding.code for finding in caught.value.findings if finding.is_error}
    assert code in found
    assert ("batch-model" in found) == (code == "batch-model")
