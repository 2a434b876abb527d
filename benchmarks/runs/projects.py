"""Writes the sqlstream projects for benchmarks of runs, and a Spark Declarative Pipeline with the same three tables."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODELS = Path(__file__).with_name("models")

PROJECT = """name: bench
version: 1.0.0
targets: {{local: {{master: "local[*]", storage: store, threads: {threads}, max_streams: 1000, spark: {{{spark}}}}}}}
models: {{+trigger: {trigger}, +sink: {sink}}}
"""

SOURCES = """version: 2
sources:
  - name: aws
    tables:
      - name: cloudtrail_logs
        format: json
        path: "{data}/cloudtrail/*/*.json.gz"
        schema_file: models/cloudtrail_schema.ddl
        options: {{maxFilesPerTrigger: 20}}
  - name: made
    tables:
      - name: events
        format: json
        path: "{data}/events"
        schema: event_time timestamp, device string, kind string, amount double
        options: {{maxFilesPerTrigger: 1}}
"""

SINKS = """version: 2
sinks:
  - {name: lake, format: parquet, path: "{{ model.name }}"}
  - {name: nowhere, format: noop}
"""

STATELESS = {"first": "flat", "second": "buys", "third": "twice"}
WINDOWED = {**STATELESS, "third": "windows"}
"""Three models: the name of the query and its file in models/."""

TESTED = ("flat", "cloudtrail")
"""The models with data tests: small rows, and rows that are expensive to compute."""

RULES = {
    "flat": (
        "event_time is not null",
        "device is not null",
        "kind in ('CLICK', 'VIEW', 'BUY', 'LEAVE')",
        "kind <> ''",
        "amount >= 0",
        "amount < 1000",
        "amount < 124.5",
        "char_length(device) between 2 and 10",
        "device rlike '^d[0-9]+$'",
        "event_time >= timestamp '2023-01-01'",
    ),
    "cloudtrail": (
        "event_time is not null",
        "event_id is not null",
        "event_id not like '%00'",
        "char_length(event_id) = 32",
        "event_id rlike '^[0-9a-f]+$'",
        "event_source like '%.amazonaws.com'",
        "event_name <> ''",
        "region rlike '^[a-z]+-[a-z]+-[0-9]$'",
        "char_length(user_agent) < 1000",
        "event_time >= timestamp '2013-01-01'",
    ),
}
"""The conditions of data tests. Four of a thousand rows violate one of them."""


def tests_of(model: str, on_violation: str) -> str:
    """Returns the properties of a model with a data test for each rule, and a quarantine."""
    tests = [
        f'      - expression_is_true: {{name: rule_{number}, expression: "{rule}", on_violation: {on_violation}}}\n'
        for number, rule in enumerate(RULES[model])
    ]
    config = "    config: {quarantine_sink: lake}\n" if on_violation == "quarantine" else ""
    return f"models:\n  - name: {model}\n{config}    data_tests:\n{''.join(tests)}"


def write_project(
    folder: Path,
    data: Path,
    models: Mapping[str, str],
    *,
    sink: str = "lake",
    threads: int = 8,
    spark: Mapping[str, str] | None = None,
    properties: str = "",
    trigger: str = "available_now",
) -> Path:
    """Writes a project over the rows in `data`, and returns its folder. `models` are files of models/ by name, `spark`
    are the target's settings, `properties` those of the models as YAML.
    """
    (folder / "models").mkdir(parents=True)
    shutil.copytree(ROOT / "macros", folder / "macros")
    shutil.copy(ROOT / "models/cloudtrail/cloudtrail_schema.ddl", folder / "models")
    settings = ", ".join(f"{name}: '{value}'" for name, value in (spark or {}).items())
    (folder / "project.yml").write_text(PROJECT.format(threads=threads, sink=sink, spark=settings, trigger=trigger))
    (folder / "sources.yml").write_text(SOURCES.format(data=data))
    (folder / "sinks.yml").write_text(SINKS)
    if properties:
        (folder / "models/properties.yml").write_text(properties)
    for name, file in models.items():
        shutil.copy(MODELS / f"{file}.sql", folder / "models" / f"{name}.sql")
    return folder


PIPELINE = """name: bench
storage: "file://{folder}/storage"
libraries:
  - glob: {{include: transformations/**}}
"""

TABLE = """from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql.functions import avg, count, window

spark = SparkSession.active()


@dp.table(name="{name}")
def {name}():
    rows = spark.readStream.schema("event_time timestamp, device string, kind string, amount double")
    rows = rows.option("maxFilesPerTrigger", 1).json("{data}/events")
    {text}
"""

TABLES = {
    "flat": 'return rows.where("amount > 1").selectExpr("event_time", "device", "upper(kind) as kind", "amount")',
    "buys": "return rows.where(\"kind = 'buy'\")",
    "twice": 'return rows.selectExpr("event_time", "amount * 2 as twice")',
    "windows": 'late = rows.withWatermark("event_time", "10 minutes")\n'
    '    groups = late.groupBy(window("event_time", "10 minutes"), "device")\n'
    '    return groups.agg(avg("amount").alias("average"), count("*").alias("events"))',
}


def write_pipeline(folder: Path, data: Path, models: Mapping[str, str]) -> Path:
    """Writes the pipeline of `models` and returns its folder."""
    (folder / "transformations").mkdir(parents=True)
    (folder / "spark-pipeline.yml").write_text(PIPELINE.format(folder=folder))
    for name, file in models.items():
        text = TABLE.format(name=name, data=data, text=TABLES[file])
        (folder / "transformations" / f"{name}.py").write_text(text)
    return folder
