"""What a client knows of a Spark Connect server: its address, its outages, its errors and the progress of its batches."""

from __future__ import annotations

import json

import pytest
from pyspark.errors import PySparkException

from sqlstream.spark.jvm.connect import NEW_OUTAGE_SECONDS, Outage, address_of, progress_json
from sqlstream.spark.jvm.gateway import causes_of

TRACE = """org.apache.spark.sql.streaming.StreamingQueryException: [CAST_INVALID_INPUT] The value 'x0' cannot be cast.
\tat org.apache.spark.StreamExecution.run(StreamExecution.scala:394)
Caused by: org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] The value 'x0' cannot be cast. SQLSTATE: 22018
== SQL (line 2, position 3) ==
  cast(kind as int) as kind
  ^^^^^^^^^^^^^^^^^

\tat org.apache.spark.UTF8StringUtils.toIntExact(UTF8StringUtils.scala:34)
"""


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("sc://host", ("host", 15002)),
        ("sc://host:443/;use_ssl=true;token=a/b:c", ("host", 443)),
        ("sc://[::1]:15002", ("::1", 15002)),
    ],
)
def test_an_address_has_a_host_and_a_port(url: str, address: tuple[str, int]) -> None:
    """The port of an address without one is Spark's default; parameters are no part of it."""
    assert address_of(url) == address


@pytest.mark.parametrize("url", ["spark://host:7077", "sc://", "sc://host:port", "host:15002"])
def test_another_text_is_no_address(url: str) -> None:
    """Any other text is refused."""
    with pytest.raises(ValueError, match=r"."):
        address_of(url)


def test_an_outage_ends_for_all_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests try again for the patience of a command together; after a quiet time another outage begins."""
    now = 1_000.0
    monkeypatch.setattr("sqlstream.spark.jvm.connect.time.monotonic", lambda: now)
    outage = Outage(60)
    tries = []
    for step in (0.0, 30.0, 29.0, 2.0, NEW_OUTAGE_SECONDS + 1):
        now += step
        tries.append(outage.goes_on())
    outage.is_over = True

    assert [*tries, outage.goes_on()] == [True, True, True, False, True, False]


class _Progress:
    json = json.dumps(
        {
            "batchId": 3,
            "observedMetrics": {"rows": {"values": [7], "schema": {"fields": [{"name": "n"}]}}, "b": {"n": 1}},
        }
    )


def test_observed_metrics_have_the_form_of_the_jvm() -> None:
    """The client's observed metrics become those that a progress of the JVM has."""
    found = json.loads(progress_json(_Progress()))  # type: ignore[arg-type]

    assert found == {"batchId": 3, "observedMetrics": {"rows": {"n": 7}, "b": {"n": 1}}}


def test_the_causes_of_a_failed_query_are_in_its_trace() -> None:
    """The error of a query on a server has its causes as text: their classes, conditions, and the SQL that they mark."""
    error = PySparkException(f"(STREAM_FAILED) [CAST_INVALID_INPUT] The value.\n\nJVM stacktrace:\n{TRACE}")
    (cause,) = causes_of(error)

    assert (cause.kind, cause.condition, cause.sqlstate, cause.fragment) == (
        "org.apache.spark.SparkNumberFormatException",
        "CAST_INVALID_INPUT",
        "22018",
        "cast(kind as int)",
    )
