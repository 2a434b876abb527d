"""The queries that Spark allows under a real-time trigger, checked with the one test source that it accepts there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from sqlstream import ProjectRequest
from sqlstream.app.loading.load import try_load
from tests.spark.conftest import bare_session

LONGEST_SECONDS = 60
"""The longest time to wait for a refusal. The first batch of a query lasts five seconds."""

BY_LENGTH = "select value, count(*) as c from {a} group by value"

ALLOWED = {
    "a projection": "select upper(value) as v from {a} where n > 1",
    "an aggregation": BY_LENGTH,
    "a window": "select window(ts, '1 minute') as w, count(*) as c from {a} group by window(ts, '1 minute')",
    "a union of two": "select value from {a} union all select value from {b}",
    "a static join": "select x.value, k from {a} x join {s} y on x.value = y.value",
    "a static join by WHERE": "select x.value, k from {a} x, {s} y where x.value = y.value",
    "a static aggregation": "select x.value, c from {a} x join (select /*+ COALESCE(1) */ value, count(*) as c from {s} "
    "group by value) y on x.value = y.value",
    "repartition": "select /*+ REPARTITION(2) */ value from {a}",
}
REFUSED = {
    "a join of streams": "select x.value from {a} x join {b} y on x.value = y.value",
    "a union with itself": "with x as (select value from {a}) select value from x union all select value from x",
    "a union over an aggregation": f"{BY_LENGTH} union all select value, n from {{b}}",
    "except": "select value from {a} except select value from {s}",
    "a static join without a key": "select x.value, k from {a} x join {s} y on x.n > y.k",
    "a static cross join": "select x.value, k from {a} x cross join {s} y",
    "coalesce": "select /*+ COALESCE(1) */ value from {a}",
    "a range": "select /*+ REPARTITION_BY_RANGE(2, value) */ value from {a}",
}

FILES = {
    "project.yml": "name: shop\n",
    "sinks.yml": "sinks:\n  - {name: console, format: console}\n",
    "sources.yml": """sources:
  - name: shop
    tables:
      - &events
        name: a
        format: kafka
        options: {subscribe: a, kafka.bootstrap.servers: 'localhost:9092'}
      - {<<: *events, name: b}
      - {name: s, format: parquet, path: in, mode: batch, schema: 'value string, k int'}
""",
    **{
        f"models/{name}.sql": "select cast(value as string) as value, length(value) as n, timestamp as ts "
        f"from {{{{ source('shop', '{name}') }}}}"
        for name in "ab"
    },
}


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with the streams `a` and `b`, the static table `s`, and cores for all tasks of a query at once."""
    spark = bare_session("local[4]")
    jvm = spark._jvm
    assert jvm is not None
    source = jvm.org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream
    for name in "ab":
        stream = source.singlePartition(spark._jsparkSession, jvm.org.apache.spark.sql.Encoders.STRING())
        rows = DataFrame(stream.toDF(), spark)
        rows.selectExpr("value", "length(value) as n", "cast(value as timestamp) as ts").createOrReplaceTempView(name)
    table = str(tmp_path_factory.mktemp("static") / "s")
    spark.sql("select 'x' as value, 1 as k").write.parquet(table)
    spark.read.parquet(table).createOrReplaceTempView("s")
    yield spark
    spark.stop()


def is_refused_by_spark(
    session: SparkSession, sql: str, checkpoint: Path, interval: str, sink: str, *, is_allowed: bool
) -> bool:
    """Returns whether Spark refuses the query for its mode, at start or at the end of the first batch. An allowed query
    is watched only until its tasks run.
    """
    writer = session.sql(sql.format(a="a", b="b", s="s")).writeStream.format(sink).queryName("real_time")
    writer = writer.outputMode("update").option("checkpointLocation", str(checkpoint))
    running = session.sparkContext.statusTracker()
    try:
        query = writer.trigger(realTime=interval).start()  # type: ignore[call-overload]
        if not is_allowed:
            return not query.awaitTermination(LONGEST_SECONDS)
        while not running.getActiveStageIds():
            query.awaitTermination(0.1)
    except PySparkException as error:
        if any(words in str(error) for words in ("REAL_TIME_MODE", "async progress", "Identical sources")):
            return True
        raise
    query.stop()
    return False


def is_refused_by_the_compiler(root: Path, sql: str, interval: str, sink: str) -> bool:
    """Returns whether only rules on real-time triggers refuse the query."""
    config = f"{{{{ config(sink='{sink}', output_mode='update', trigger={{'real_time': '{interval}'}}) }}}}\n"
    names = {"a": "{{ ref('a') }}", "b": "{{ ref('b') }}", "s": "{{ source('shop', 's') }}"}
    sinks = f"sinks:\n  - {{name: {sink}, format: {sink}}}\n"
    for name, text in {**FILES, "sinks.yml": sinks, "models/asked.sql": config + sql.format(**names)}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    codes = {finding.code for finding in try_load(ProjectRequest(root)).errors}
    assert codes <= {"real-time-trigger"}
    return "real-time-trigger" in codes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "interval", "sink", "is_refused"),
    [
        *(pytest.param(sql, "5 minutes", "console", False, id=name) for name, sql in ALLOWED.items()),
        *(pytest.param(sql, "5 seconds", "console", True, id=name) for name, sql in REFUSED.items()),
        pytest.param(ALLOWED["a projection"], "4 seconds", "console", True, id="a short trigger"),
        pytest.param(ALLOWED["a projection"], "5 seconds", "console", False, id="the shortest trigger"),
        pytest.param(ALLOWED["a projection"], "5 minutes", "memory", True, id="a memory sink"),
        pytest.param(ALLOWED["a projection"], "5 minutes", "noop", True, id="a noop sink"),
    ],
)
def test_the_compiler_refuses_what_spark_refuses(
    streams: SparkSession, tmp_path: Path, sql: str, interval: str, sink: str, is_refused: bool
) -> None:
    """The compiler refuses and accepts the same queries as Spark."""
    checkpoint = tmp_path / "checkpoint"
    assert is_refused_by_spark(streams, sql, checkpoint, interval, sink, is_allowed=not is_refused) == is_refused
    assert is_refused_by_the_compiler(tmp_path / "project", sql, interval, sink) == is_refused
