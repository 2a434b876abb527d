"""Errors in several files are reported together, without errors that only follow from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, compile_models

FILES = {
    "project.yml": "name: shop\n",
    "sources.yml": "sources:\n  - name: shop\n    tables: [{name: orders, format: json, path: in, schema: id int}]\n",
    "sinks.yml": "sinks:\n  - {name: out, format: noop}\n",
    "models/a.sql": "{{ config(sink='out') }} select id from {{ source('shop', 'orders') }}",
}
WRONG_CONFIG = "{{ config(snk='out') }} select id from {{ source('shop', 'orders') }}"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"models/a.sql": WRONG_CONFIG, "models/a.yml": "models:\n  - {name: a, config: {snik: out}}\n"},
            ["unknown-key models/a.sql:1:11", "unknown-key models/a.yml:2:24"],
        ),
        (
            {"models/a.sql": WRONG_CONFIG, "project.yml": "name: shop\nmodels: {+snik: out}\n"},
            ["unknown-key models/a.sql:1:11", "unknown-key project.yml:2:10"],
        ),
        (
            {"models/a.sql": WRONG_CONFIG, "project.yml": "name: shop\nvrs: {a: 1}\nmodels: {+snik: out}\n"},
            ["unknown-key models/a.sql:1:11", "unknown-key project.yml:2:1", "unknown-key project.yml:3:10"],
        ),
        (
            {"models/a.sql": "select {{ var('a') ", "sinks.yml": "sinks: [{name: out, frmat: noop}]\n"},
            ["jinja-syntax models/a.sql:1:18", "missing-key sinks.yml:1:9", "unknown-key sinks.yml:1:21"],
        ),
        (
            {"models/a.sql": "{{ config(sink='out') }} select 1", "sinks.yml": "sinks: [{name: out, format: noop}\n"},
            ["yaml-syntax sinks.yml:1:8"],
        ),
        (
            {"models/a.sql": "select {{ var('a') }}", "project.yml": "name: shop\nvrs: {a: 1}\n"},
            ["unknown-key project.yml:2:1"],
        ),
        (
            {
                "models/a.sql": "select {{ config.require('meta').b }}",
                "models/a.yml": "models: [{name: a, config: [x]}]\n",
            },
            ["invalid-value models/a.yml:1:20"],
        ),
    ],
)
def test_errors_of_several_files_come_together(tmp_path: Path, files: dict[str, str], expected: list[str]) -> None:
    """YAML and template errors come together; a name that is missing because its file is broken is no finding."""
    for name, text in {**FILES, **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    with pytest.raises(FindingsError) as raised:
        compile_models(ProjectRequest(tmp_path))

    assert sorted(f"{finding.code} {finding.location}" for finding in raised.value.findings) == expected
