"""`make bench-connectors`: compares queries from Kafka with the same queries in plain PySpark.

    upsert   rows per second into PostgreSQL, by unique_key; by hand: foreachBatch, Spark's JDBC writer, a merge
    parquet  rows per second into Parquet files, with from_json in the model
    json     the same, with value_format: json in the source, which also checks each message

Both sides run as commands, in turns, with the same settings, over the same topic. Results are medians. The times of
batches are those that Spark reports (triggerExecution), without the first ones, in which the JVM warms up.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.runs.measured import batches_of_run, batches_of_script
from sqlstream.location import Location
from sqlstream.project.configuration.target import Target
from sqlstream.project.connectors.connectors import CONNECTORS, jars_of
from sqlstream.spark.jvm.class_archive import cache_folder, use_options
from sqlstream.spark.jvm.jars import Repository, fetch_jar
from sqlstream.spark.jvm.launch import JARS
from sqlstream.spark.jvm.session import FINITE_RUN_JVM, JVM_OPTIONS, spark_settings
from sqlstream.spark.storage.storage import CHECKPOINT_FILES, PLAIN_FILES
from tests.services.database_server import PASSWORD, USER, DatabaseServer
from tests.services.kafka_broker import start_kafka
from tests.services.kafka_topics import create_topic
from tests.services.postgres import start_postgres

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

BATCHES, WARM_UP = 30, 10
GOALS = {"upsert": 1.5, "parquet": 0.97, "json": 0.97}
SINKS = {
    "upsert": "format: jdbc, options: {{url: '{url}', user: {user}, password: {password}, dbtable: events}}",
    "parquet": "format: parquet, path: events",
    "json": "format: parquet, path: events",
}
TABLE = "create table events (id bigint primary key, kind text, amount int, price float, at timestamptz)"
COLUMNS = "id bigint, kind string, amount int, price double, at timestamp"
PARSING = (
    "select row.* from (select from_json(cast(value as string), 'COLUMNS') as row from {{ source('bus', 'events') }})"
)
TYPED = "select id, kind, amount, price, at from {{ source('bus', 'events') }}"


@dataclass(frozen=True)
class Bench:
    """The servers, the topic's options, and a folder for runs."""

    database: DatabaseServer
    kafka: dict[str, str]
    folder: Path

    def sqlstream(self, case: str, out: Path) -> list[float]:
        """Returns the durations of the batches of a run."""
        key = ", unique_key='id'" if case == "upsert" else ""
        table = {"name": "events", "format": "kafka", "options": self.kafka}
        if case == "json":
            table |= {"value_format": "json", "schema": COLUMNS}
        sink = SINKS[case].format(url=self.database.url, user=USER, password=PASSWORD)
        query = TYPED if case == "json" else PARSING.replace("COLUMNS", COLUMNS)
        files = {
            "project.yml": "name: bench\ntargets: {local: {master: 'local[2]', storage: store}}\n",
            "sources.yml": f"sources: [{{name: bus, tables: [{json.dumps(table)}]}}]\n",
            "sinks.yml": f"sinks: [{{name: out, {sink}}}]\n",
            "models/events.sql": f"{{{{ config(sink='out'{key}) }}}} {query}\n",
        }
        for name, text in files.items():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_text(text)
        run([sys.executable, "-m", "sqlstream", "run", "--available-now"], out)
        return batches_of_run(out)["events"]

    def by_hand(self, case: str, out: Path) -> list[float]:
        """Returns the durations of the batches of a script."""
        if case == "upsert":
            self.database.run(TABLE)
        jdbc = {"url": self.database.url, "user": USER, "password": PASSWORD, "driver": "org.postgresql.Driver"}
        given = json.dumps({"kafka": self.kafka, "jdbc": jdbc})
        part = "parquet" if case == "json" else case
        script = [sys.executable, str(HERE / "runs/by_hand.py"), part, str(out), json.dumps(settings(out)), given]
        return batches_of_script(run(script, ROOT))["events"]

    def measure(self, case: str, side: str, number: int) -> list[float]:
        """Returns the durations of one measurement. Tables of earlier ones are dropped."""
        self.database.run("drop table if exists events, events_staging, _sqlstream_batches")
        out = self.folder / f"{case}-{side}-{number}"
        out.mkdir()
        return self.sqlstream(case, out) if side == "sqlstream" else self.by_hand(case, out)


def main() -> None:
    """Measures the given cases and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", nargs="+", choices=list(GOALS), default=list(GOALS))
    parser.add_argument("--repeat", type=int, default=5, help="number of measurements of each case")
    parser.add_argument("--rows", type=int, default=1_200_000, help="messages in the topic")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-connectors-") as name:
        folder = Path(name)
        broker, database = start_kafka(folder / "kafka"), start_postgres()
        try:
            options = fill(broker.servers, given.rows)
            for case in given.case:
                report(Bench(database, options, folder), case, given.repeat, given.rows)
        finally:
            database.stop()
            broker.stop()


def fill(servers: str, rows: int) -> dict[str, str]:
    """Writes the messages, and returns the options of a source that reads them in `BATCHES` batches."""
    topic = create_topic(servers, "events")
    producer = Producer({"bootstrap.servers": servers, "log_level": 0, "queue.buffering.max.messages": rows + 1})
    for number in range(rows):
        row = {"id": number, "kind": f"kind {number % 9}", "amount": number % 1000, "price": number / 7}
        producer.produce(topic.name, key=str(number), value=json.dumps({**row, "at": "2024-01-31T12:00:00Z"}))
        producer.poll(0)
    if producer.flush(120):
        raise SystemExit("the broker did not take all messages")
    limit = str(-(-rows // BATCHES))
    source = {"kafka.bootstrap.servers": servers, "subscribe": topic.name, "startingOffsets": "earliest"}
    return {**source, "maxOffsetsPerTrigger": limit}


def report(bench: Bench, case: str, repeat: int, rows: int) -> None:
    """Measures both sides of a case in turns, and prints rows per second and the ratio."""
    found: dict[str, list[float]] = {"sqlstream": [], "by hand": []}
    for number in range(repeat):
        for side, speeds in found.items():
            batches = bench.measure(case, side, number)[WARM_UP:BATCHES]
            speeds.append(rows * len(batches) / BATCHES / sum(batches) * 1000)
    one, other = (statistics.median(speeds) for speeds in found.values())
    verdict = "reached" if one / other >= GOALS[case] else "MISSED"
    measured = f"{one:10,.0f} {other:10,.0f} rows/s"
    print(f"{case:8} {measured}, ratio {one / other:.2f}, goal {GOALS[case]}: {verdict}", flush=True)


def settings(out: Path) -> dict[str, str]:
    """Returns the settings that sqlstream gives Spark, and the jars of both connectors."""
    target = Target(name="local", master="local[2]", storage="store", location=Location("project.yml"))
    options = {JVM_OPTIONS: f"{use_options(os.environ)} {FINITE_RUN_JVM}", CHECKPOINT_FILES: PLAIN_FILES}
    jars = connector_jars("kafka", "postgresql")
    return {**spark_settings(target, "bench", str(out / "warehouse")), JARS: jars, **options}


def connector_jars(*names: str) -> str:
    """Returns the paths of the connectors' jars, separated by commas."""
    cache = cache_folder(os.environ)
    if cache is None:
        raise SystemExit("there is no folder for a cache")
    jars = [
        str(fetch_jar(jar, cache / "jars", [Repository()], lambda *_: None))
        for name in names
        if (release := CONNECTORS[name].release_for("4.3")) is not None
        for jar in jars_of(release)
    ]
    return ",".join(jars)


def run(command: list[str], folder: Path) -> str:
    """Returns what a command prints. Raises: SystemExit if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:4])} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
