"""`sqlstream lineage`, for the examples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlstream.cli.main import main

REPOSITORY = Path(__file__).parents[3]


def lineage(*arguments: str) -> int:
    """Runs the command on the repository's own project and returns its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(["lineage", "--project-dir", str(REPOSITORY), *arguments])
    return int(ended.value.code or 0)


def test_a_model_shows_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """A model shows one line per column, with its type and origins."""
    assert lineage("cloudtrail_failed_logins") == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["column", "type", "watermark", "made", "from"]
    assert lines[-1].split() == ["user_names", "array<string>", "-", "aws.cloudtrail_logs_in_order.Records"]


def test_a_column_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON output of a column is its entry in the manifest."""
    assert lineage("cloudtrail_hourly.errors", "--output", "json") == 0

    found = json.loads(capsys.readouterr().out)
    assert found["model"] == "cloudtrail_hourly"
    assert [(column["name"], column["data_type"]) for column in found["columns"]] == [("errors", "bigint")]
    assert found["columns"][0]["origins"][0]["column"] == "Records"


@pytest.mark.parametrize("name", ["cloudtrail_hurly", "cloudtrail_hourly.erors"])
def test_an_unknown_name_suggests_the_nearest(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown name is a usage error (exit code 2) that suggests the nearest name."""
    assert lineage(name) == 2

    assert "did you mean" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("undeclared", "declare the schema of the source `shop.raw`, which `undeclared` reads"),
        ("reader", "declare the schema of the source `shop.raw`, which `undeclared` reads"),
        ("mapped", "sqlstream cannot analyze the SQL of `mapped`, although Spark may accept it"),
    ],
)
def test_unknown_columns_have_a_reason(
    tmp_path: Path, model: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """For unknown columns, the output names the source or model that hides them, despite errors elsewhere."""
    files = {
        "project.yml": "name: shop\n",
        "sources.yml": "sources:\n  - name: shop\n    tables:\n      - {name: raw, format: parquet, mode: batch, path: in}\n"
        "      - {name: orders, format: json, path: in, schema: id int}\n",
        "models/undeclared.sql": "select * from {{ source('shop', 'raw') }}",
        "models/reader.sql": "select * from {{ ref('undeclared') }}",
        "models/mapped.sql": "from {{ source('shop', 'orders') }} map id using 'cat' as id",
        "models/wrong.sql": "select nothing from {{ source('shop', 'orders') }}",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    with pytest.raises(SystemExit) as ended:
        main(["lineage", "--project-dir", str(tmp_path), model])

    assert ended.value.code == 2
    assert why in capsys.readouterr().err


def test_a_star_in_a_function_has_all_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`max_by(struct(*), ...)`, which keeps the latest row of each key, has all columns and their types."""
    with pytest.raises(SystemExit):
        main(["init", "shop", "--project-dir", str(tmp_path)])
    sql = "select max_by(struct(*), ordered_at) as latest, count(*) as n from {{ ref('orders_clean') }} group by shop"
    (tmp_path / "shop" / "models" / "latest.sql").write_text(sql, encoding="utf-8")
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["lineage", "--project-dir", str(tmp_path / "shop"), "latest", "--output", "json"])

    latest, count = json.loads(capsys.readouterr().out)["columns"]
    assert latest["data_type"].startswith("struct<order_id:bigint,ordered_at:timestamp,")
    assert {origin["column"] for origin in latest["origins"]} > {"order_id", "ordered_at", "product", "shop"}
    assert count["origins"] == []


SOURCES = {
    "kafka": "format: kafka, options: {kafka.bootstrap.servers: 'kafka:9092', subscribe: a, includeHeaders: 'true'}",
    "rate": "format: rate",
    "ticks": "format: rate-micro-batch, options: {rowsPerBatch: 1}",
    "socket": "format: socket, options: {host: localhost, port: 9999, includeTimestamp: 'TRUE'}",
    "files": "format: binaryFile, path: in",
    "lines": "format: text, path: in",
    "json": "format: json, path: in, schema: 'id int, at timestamp'",
    "parquet": "format: parquet, path: in, mode: batch",
    "table": "format: table, table: shop.orders",
    "python": "format: python, class: 'made:Made'",
    "jdbc": "format: jdbc, mode: batch, options: {url: 'jdbc:x', dbtable: t}",
    "delta": "format: delta, path: in",
}
COLUMNS = {
    "kafka": ["headers", "key", "offset", "partition", "timestamp", "timestampType", "topic", "value"],
    **{key: ["timestamp", "value"] for key in ("rate", "ticks", "socket")},
    "files": ["content", "length", "modificationTime", "path"],
    "lines": ["value"],
    "json": ["at", "id"],
    **{key: ["amount", "id"] for key in ("parquet", "table", "python", "jdbc", "delta")},
}
"""What a model reads from each source: all columns of a fixed format, or two undeclared columns."""


@pytest.mark.parametrize("source", SOURCES)
def test_each_column_is_traced_to_its_source(tmp_path: Path, source: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each column is traced to its source in every format, through a view of all columns, an alias and a filter."""
    named = ", ".join(f"s.`{name}` as c_{name.lower()}" for name in COLUMNS[source])
    files = {
        "project.yml": "name: shop\n",
        "sources.yml": f"sources: [{{name: made, tables: [{{name: {source}, {SOURCES[source]}}}]}}]\n",
        "python/made.py": "from pyspark.sql.datasource import DataSource\n\nclass Made(DataSource):\n    pass\n",
        "models/every.sql": f"select * from {{{{ source('made', '{source}') }}}}",
        "models/asked.sql": f"select {named} from {{{{ ref('every') }}}} s where s.`{COLUMNS[source][0]}` is not null",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    with pytest.raises(SystemExit):
        main(["lineage", "asked", "--project-dir", str(tmp_path), "--output", "json"])

    found = json.loads(capsys.readouterr().out)["columns"]
    origins = {column["name"]: [(it["unique_id"], it["column"]) for it in column["origins"]] for column in found}
    assert origins == {f"c_{name.lower()}": [(f"source.shop.made.{source}", name)] for name in COLUMNS[source]}
