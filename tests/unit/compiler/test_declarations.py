"""Sources and sinks are checked where they are declared, used or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, compile_models

ORDERS = "{name: orders, format: json, path: in, schema: 'id int, ts timestamp'"
OTHER = ORDERS.replace("orders", "a")
FILES = {
    "project.yml": "name: shop\n",
    "sources.yml": f"sources:\n  - name: shop\n    tables:\n      - {ORDERS}}}\n",
    "sinks.yml": "sinks:\n  - {name: out, format: noop}\n",
    "models/orders_out.sql": "{{ config(sink='out') }} select id, ts from {{ source('shop', 'orders') }}",
}


def found(root: Path, files: dict[str, str]) -> list[str]:
    """Returns the code and place of each error and warning of a project with these additional files."""
    for name, text in {**FILES, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    try:
        findings = compile_models(ProjectRequest(root)).loaded.warnings
    except FindingsError as error:
        findings = error.findings
    return sorted(f"{finding.code} {finding.location}" for finding in findings)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("{name: a, format: jsn, path: in, schema: id int}", "unknown-format sources.yml:5:27"),
        ("{name: a, format: json, schema: id int}", "missing-path sources.yml:5:16"),
        ("{name: a, format: json, path: in}", "missing-schema sources.yml:5:16"),
        ("{name: a, format: rate, schema: a int}", "fixed-schema sources.yml:5:41"),
        ("{name: a, format: socket, options: {host: h}}", "missing-key sources.yml:5:16"),
        ("{name: a, format: text, path: in, options: {maxFilesPerTriger: 1}}", "unknown-option sources.yml:5:72"),
        ("{name: a, format: text, path: in, options: {wholetext: yess}}", "option-value sources.yml:5:64"),
        ("{name: a, format: table}", "missing-key sources.yml:5:16"),
        ("{name: a, format: python, class: 'a:B'}", "python-name sources.yml:5:42"),
        (OTHER + ", watermark: {column: tss, delay: 1 day}}", "unknown-column sources.yml:5:75"),
        (OTHER + ", watermark: {column: id, delay: 1 day}}", "watermark-type sources.yml:5:75"),
        (OTHER + ", mask: [idd]}", "unknown-column sources.yml:5:75"),
    ],
)
def test_an_unused_source_is_checked(tmp_path: Path, table: str, expected: str) -> None:
    """The format, path, schema, options, watermark and masks of an unused source are checked."""
    assert found(tmp_path, {"sources.yml": f"{FILES['sources.yml']}      - {table}\n"}) == [expected]


@pytest.mark.parametrize(
    ("sink", "expected"),
    [
        ("{name: a, format: parqet}", "unknown-format sinks.yml:3:23"),
        ("{name: a, format: parquet}", "missing-path sinks.yml:3:12"),
        ("{name: a, format: xml, path: a}", "missing-key sinks.yml:3:12"),
        ("{name: a, format: json, path: a, options: {compression: zap}}", "option-value sinks.yml:3:61"),
        ("{name: a, format: json, path: a, options: {compresion: gzip}}", "unknown-option sinks.yml:3:60"),
        ("{name: a, format: json, options: {path: a}}", "invalid-value sinks.yml:3:29"),
        ("{name: a, format: table}", "missing-key sinks.yml:3:12"),
        ("{name: a, format: python, function: 'a:b'}", "python-name sinks.yml:3:41"),
        ("{name: a, format: json, path: '{{ modle.name }}'}", "jinja-undefined sinks.yml:3:35"),
    ],
)
def test_an_unused_sink_is_checked(tmp_path: Path, sink: str, expected: str) -> None:
    """The format, path, options, names and Jinja of an unused sink are checked."""
    assert found(tmp_path, {"sinks.yml": f"{FILES['sinks.yml']}  - {sink}\n"}) == [expected]


@pytest.mark.parametrize(
    "path",
    [
        "{{ var('bucket') }}",
        "{{ env_var('BUCKET') }}",
        "{{ model.name }}",
        "{{ model.meta.folder }}",
        "{{ model.tags | join('/') }}",
    ],
)
def test_an_unused_sink_may_use_model_properties_and_unset_variables(tmp_path: Path, path: str) -> None:
    """An unused sink may use model properties and unset variables; a second compilation from the cache agrees."""
    files = {"sinks.yml": f'{FILES["sinks.yml"]}  - {{name: a, format: json, path: "{path}"}}\n'}

    assert found(tmp_path, files) == []
    assert found(tmp_path, files) == []


def test_an_unused_table_sink_is_allowed_with_a_temporary_catalog(tmp_path: Path) -> None:
    """An unused table sink is allowed on a target whose catalog is temporary."""
    files = {"sinks.yml": f"{FILES['sinks.yml']}  - {{name: a, format: table, table: lake.orders}}\n"}

    assert found(tmp_path, files) == []


def test_a_wrong_watermark_of_a_source_is_one_finding(tmp_path: Path) -> None:
    """An invalid watermark of a source gives one finding, even if several queries read the source."""
    files = {
        "sources.yml": FILES["sources.yml"].replace("'}", "', watermark: {column: id, delay: 1 day}}"),
        "models/more.sql": FILES["models/orders_out.sql"],
    }

    assert found(tmp_path, files) == ["watermark-type sources.yml:4:80"]
