"""On a Spark whose internals have moved, queries run, stop and resume with the public API alone."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from sqlstream.errors import FindingsError
from sqlstream.spark.jvm.internals import call_internal, can_change_queries, is_missing
from sqlstream.spark.reading import memory_streams
from sqlstream.state.runs.events import Status
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.testing.session_settings import check_supported
from tests.spark.conftest import LONGEST_WAIT_SECONDS, WITHOUT_INTERNALS, ProjectFolder, wait_for

Rows = Callable[[Path], list[dict[str, Any]]]


@pytest.fixture
def public(folder: ProjectFolder) -> ProjectFolder:
    """A project with ten files of orders, whose target turns the internals off."""
    folder.write({"project.yml": WITHOUT_INTERNALS})
    for number in range(10):
        folder.rows(f"in/orders/{number}.json", [{"id": number, "amount": 1}], modified=number)
    return folder


def copied(trigger: str, sleep: int = 0) -> str:
    """A model that writes each order, one file per batch."""
    waited = f", reflect('java.lang.Thread', 'sleep', cast({sleep} as bigint)) as waited" if sleep else ""
    return (
        f"{{{{ config(sink='lake', trigger='{trigger}') }}}}\nselect id{waited} from {{{{ source('shop', 'orders') }}}}"
    )


def test_a_run_counts_every_batch(public: ProjectFolder, read_parquet: Rows) -> None:
    """Each batch is reported once, with the same figures as a listener gives."""
    public.write({"models/copied.sql": copied("10 seconds")})

    result = public.result()

    told = [event for event in public.events if isinstance(event, BatchProgress)]
    assert result.status is Status.SUCCESS
    assert (result.batches, result.rows_in, result.rows_out) == (10, 10, 10)
    assert sorted(event.batch_id for event in told) == list(range(10))
    assert sorted(row["id"] for row in read_parquet(public.root / "store/copied")) == list(range(10))


@pytest.mark.slow
def test_a_signal_stops_a_run_and_the_next_one_resumes_exactly(public: ProjectFolder, read_parquet: Rows) -> None:
    """After a signal the exit code is 0 and the current batch is finished; over both runs each row is written once."""
    public.write({"models/copied.sql": copied("100 milliseconds", sleep=1000)})
    process = public.command("run")
    public.wait_for_batch(process, "copied", 1)

    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 0, rest
    assert "PASS=1" in rest
    written = sorted(row["id"] for row in read_parquet(public.root / "store/copied"))
    assert 2 <= len(written) < 10
    assert public.result().status is Status.SUCCESS
    assert sorted(row["id"] for row in read_parquet(public.root / "store/copied")) == list(range(10))


@pytest.mark.slow
def test_a_second_signal_stops_now(public: ProjectFolder, read_parquet: Rows) -> None:
    """A second signal interrupts a batch that would take minutes; the next run repeats it."""
    public.write({"models/copied.sql": copied("100 milliseconds", sleep=600_000)})
    process = public.command("run", "--log-format", "json")
    wait_for(process, '"query_started"')
    public.wait_for_batch(process, "copied", 0)

    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 0, rest
    assert '"status": "interrupted"' in rest
    public.write({"models/copied.sql": copied("100 milliseconds")})
    public.result()
    assert sorted(row["id"] for row in read_parquet(public.root / "store/copied")) == list(range(10))


@pytest.mark.slow
def test_a_query_that_waits_for_its_trigger_stops_at_once(public: ProjectFolder) -> None:
    """A query that waits an hour for its trigger stops without waiting."""
    public.write({"models/copied.sql": copied("1 hour")})
    process = public.command("run")
    wait_for(process, "copied batch 0:")

    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 0, rest
    assert public.committed("copied") == {"0"}


def test_sparks_refusal_comes_at_the_start(public: ProjectFolder) -> None:
    """Without the internals nothing can be checked in advance, so Spark's refusal is reported for the query."""
    rules = "rules: {append-without-watermark: ignore}\n"
    model = (
        "{{ config(sink='lake') }}\nselect amount, count(*) as n from {{ source('shop', 'orders') }} group by amount"
    )
    public.write({"project.yml": WITHOUT_INTERNALS + rules, "models/grouped.sql": model})

    result = public.result()

    assert (result.status, result.finding and result.finding.code) == (Status.ERROR, "query-failed")


def test_a_command_does_not_run(public: ProjectFolder) -> None:
    """A model that is a command does not run; the compiler sees from its first words that it is not a query."""
    public.write({"models/gone.sql": "{{ config(sink='lake') }}\ndrop table orders"})
    process = public.command("run")

    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 1
    assert "[no-query]" in out


def test_a_seed_has_the_same_types(public: ProjectFolder) -> None:
    """Seed types are inferred from the lines of the file, as with the internals."""
    public.write(
        {
            "seeds/names.csv": 'id,name,at\n1,"a, b",2024-01-01\n',
            "models/named.sql": "{{ config(sink='lake') }}\nselect typeof(id) as id, name, typeof(at) as at\n"
            "from {{ ref('names') }}",
        }
    )

    public.result()

    rows = parquet.read_table(public.root / "store/named").to_pylist()
    assert rows == [{"id": "int", "name": "a, b", "at": "date"}]


MISSING: dict[str, Callable[[SparkSession], object]] = {
    "a class": lambda spark: spark._jvm.org.apache.spark.sql.Nowhere.apply(),  # type: ignore[union-attr]
    "a class that is looked up": lambda spark: spark._jvm.java.lang.Class.forName("org.apache.spark.sql.Nowhere"),  # type: ignore[union-attr]
    "a method of a class": lambda spark: spark._jvm.org.apache.spark.sql.Encoders.nothing(),  # type: ignore[union-attr]
    "a method of an object": lambda spark: spark._jsparkSession.nothing(),
    "a method with other parameters": lambda spark: spark._jsparkSession.newSession(1, 2),
    "a field": lambda spark: spark._jvm.java.lang.Class.forName("java.lang.String").getField("nothing"),  # type: ignore[union-attr]
    "a field of PySpark": lambda spark: spark._jnothing,  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("internal", MISSING.values(), ids=MISSING)
def test_missing_internals_have_a_public_fallback(
    spark: SparkSession, internal: Callable[[SparkSession], object]
) -> None:
    """The public way is used if something has moved: a class, a method, a parameter or a field."""
    assert call_internal(spark, "thing", lambda: internal(spark), lambda: "public") == "public"


def test_an_error_of_spark_is_no_missing_internal(spark: SparkSession) -> None:
    """An error that Spark raises about a query is raised, not treated as a missing internal."""
    with pytest.raises(AnalysisException):
        call_internal(spark, "parser", lambda: spark.sql("select nothing"), lambda: None)


@pytest.mark.parametrize("error", [TypeError("unsupported operand"), AttributeError("x", name="x")])
def test_a_mistake_in_the_code_is_no_missing_internal(error: Exception) -> None:
    """A mistake in the code is raised, not hidden."""
    assert not is_missing(error)


def test_internals_are_used_if_available(spark: SparkSession) -> None:
    """A tested Spark uses the internals, unless the session turns them off."""
    session = spark.newSession()
    assert can_change_queries(session)
    assert can_change_queries(session, "4.3.9")
    assert not can_change_queries(session, "4.4.0")
    assert call_internal(session, "thing", lambda: "internal", lambda: "public") == "internal"

    session.conf.set("spark.sqlstream.internals", "false")
    assert not can_change_queries(session)
    assert call_internal(session, "thing", lambda: "internal", lambda: "public") == "public"


def test_unit_tests_are_refused_on_a_spark_without_internals(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unit tests run on a later Spark with the internals that they need. Without, a finding lists the versions."""
    check_supported(spark, "4.9.0")
    monkeypatch.setattr(memory_streams, "_SQL", "org.apache.spark.moved")

    with pytest.raises(FindingsError) as raised:
        check_supported(spark, "4.9.0")

    (finding,) = raised.value.findings
    assert finding.code == "untested-spark"
    assert "cannot run on Spark 4.9.0" in finding.message
    check_supported(spark, "4.3.7")
