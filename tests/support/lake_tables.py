"""Reads tables of Delta Lake and Iceberg with a session that sqlstream did not create, for tests on Spark 4.1."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession

from sqlstream.project.connectors.connectors import CONNECTORS, EXTENSIONS, SESSION_CATALOG
from tests.spark.conftest import ProjectFolder, bare_session

FORMATS = ("delta", "iceberg")

SINKS = "sinks:\n" + "".join(
    f"  - {{name: {each}, format: {each}, path: '{{{{ model.name }}}}'}}\n" for each in FORMATS
)

RAW_TABLE = """  - name: lake
    tables:
      - {name: raw, format: delta, path: store/raw, schema: id int, options: {startingVersion: 0}}
"""
"""The source `lake.raw` in sources.yml: the output `raw` of another query."""

SETTINGS = {
    EXTENSIONS: ",".join(CONNECTORS[each].settings[EXTENSIONS] for each in FORMATS),
    SESSION_CATALOG: CONNECTORS["delta"].settings[SESSION_CATALOG],
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.catalog.files": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.files.type": "hadoop",
    "spark.sql.catalog.files.cache-enabled": "false",
}


def commits_of(table: Path) -> set[str]:
    """Returns the files of the commits of a table in either format. Iceberg writes others, and renames them."""
    return {path.name for pattern in ("_delta_log/*.json", "metadata/v*.metadata.json") for path in table.glob(pattern)}


@contextmanager
def lake_session(folder: ProjectFolder) -> Iterator[SparkSession]:
    """A session in the JVM of the last run, whose class path has the jars. Its catalog `files` has the storage."""
    settings = {**SETTINGS, "spark.sql.catalog.files.warehouse": str(folder.root / "store")}
    session = bare_session("local[1]", **{name.replace(".", "__"): value for name, value in settings.items()})
    try:
        yield session
    finally:
        session.stop()


def rows(session: SparkSession, folder: ProjectFolder, format_name: str, name: str, *columns: str) -> list[Any]:
    """Returns the rows of a table in the storage, as sorted tuples of some columns (default: all)."""
    frame = session.read.format(format_name).load(str(folder.root / "store" / name))
    return sorted((tuple(row) for row in frame.select(*columns or frame.columns).collect()), key=str)


def commits(session: SparkSession, folder: ProjectFolder, format_name: str, name: str) -> int:
    """Returns the number of versions or snapshots of a table that its writers have made with rows."""
    if format_name == "iceberg":
        return session.table(f"files.`{name}`.snapshots").count()
    history: list[Row] = session.sql(f"DESCRIBE HISTORY delta.`{folder.root / 'store' / name}`").collect()
    return sum(row["operation"] not in ("CREATE TABLE", "ADD COLUMNS") for row in history)


def forget_last_commit(folder: ProjectFolder, query: str) -> None:
    """Makes the checkpoint of a query as after a kill between the commit of the table and that of the checkpoint."""
    commits_folder = Path(folder.root / "store/queries" / query / "v1/checkpoint/commits")
    last = max((path for path in commits_folder.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
