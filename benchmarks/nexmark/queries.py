"""The project's queries: a copy to run, what the compiler makes of them, and a comparison with a batch run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

PROJECT = Path(__file__).parent
SOURCE = "source.nexmark.nexmark.events"
TRIGGER = "models: {+trigger: available_now}"
VIEWS = {"person": (0, "person"), "auction": (1, "auction"), "bid": (2, "bid"), "bid__2": (2, "bid")}
"""The type and the column of each view's events. The compiler names the second stream of bids in a query `bid__2`."""

CLOSED = "< timestamp '2024-01-01 12:00:00'"
"""Windows before this time are closed at the end. The closing events, a day later, have a window that stays open."""

COMPARED = {
    "q5": f"select * from {{rows}} where start_time {CLOSED}",
    "q7": f"select * from {{rows}} where bid_time {CLOSED}",
    "q8": f"select * from {{rows}} where start_time {CLOSED}",
    "q11": f"select * from {{rows}} where start_time {CLOSED}",
    "q12": "select bidder, sum(bids) as bids from {rows} group by bidder",
}
"""What is compared of queries whose batch run has more windows, or other ones: those of q12 are of processing time."""


@dataclass(frozen=True)
class Query:
    """A compiled query."""

    name: str
    sql: str
    output_mode: str
    unique_key: Sequence[str]
    partition_by: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        """Returns the fields by name."""
        return asdict(self)


def copy_project(folder: Path, models: str = TRIGGER, only: str = "q*") -> Path:
    """Copies the project to a new folder and returns it: with other defaults of its models, and the queries `only`."""
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("target", "logs", "__pycache__"))
    for path in set(folder.glob("models/q*.sql")) - set(folder.glob(f"models/{only}.sql")):
        path.unlink()
    settings = folder / "project.yml"
    settings.write_text(settings.read_text().replace(TRIGGER, models))
    return folder


def queries_of(project: Path) -> list[Query]:
    """Returns the queries of a project that has been compiled."""
    nodes = json.loads((project / "target/manifest.json").read_text())["nodes"].values()
    return [
        Query(
            node["name"],
            (project / "target/compiled/nexmark/models" / f"{node['name']}.sql").read_text(),
            node["config"]["output_mode"],
            node["config"]["unique_key"],
            node["config"]["partition_by"],
        )
        for node in nodes
        if node["config"].get("sink")
    ]


def schema_of(project: Path) -> str:
    """Returns the columns of the events as Spark DDL."""
    schema = json.loads((project / "target/manifest.json").read_text())["sources"][SOURCE]["schema"]
    return str(schema)


def differences(
    spark: SparkSession, project: Path, data: Path, names: Collection[str]
) -> Mapping[str, tuple[int, int, int]]:
    """Returns three numbers for each query of a finished run of the target `check`: its rows, those that only the
    stream has, and those that only a batch run of the same SQL has. Of rows with the same key, the last one counts.
    """
    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    create_views(lambda: spark.read.parquet(f"{data}/events"), spark.read.parquet(f"{data}/side_input"))
    found = {}
    for query in (query for query in queries_of(project) if query.name in names):
        stream, batch = (
            spark.sql(COMPARED.get(query.name, "select * from {rows}"), rows=rows)
            for rows in (_streamed(spark, project, query), spark.sql(query.sql))
        )
        stream = stream.select(*batch.columns).cache()
        found[query.name] = (stream.count(), stream.exceptAll(batch).count(), batch.exceptAll(stream).count())
    return found


def create_views(read: Callable[[], DataFrame], side_input: DataFrame) -> None:
    """Creates the views that the queries read, each with its own stream of the events, which `read` returns."""
    for view, (number, kind) in VIEWS.items():
        read().where(f"event_type = {number}").select("date_time", f"{kind}.*").createOrReplaceTempView(view)
    side_input.createOrReplaceTempView("nexmark__side_input")


def _streamed(spark: SparkSession, project: Path, query: Query) -> DataFrame:
    if query.partition_by:
        return spark.read.parquet(f"{project}/store/{query.name}")
    rows = spark.read.parquet(f"{project}/rows/{query.name}")
    if query.output_mode == "append":
        return rows.drop("batch")
    keys = ", ".join(query.unique_key)
    last = f"select last.* from (select max_by(struct(*), int(batch)) as last from {{rows}} group by {keys})"
    return spark.sql(last, rows=rows).drop("batch")
