"""What a source has that a query has not read, from Spark's progress."""

from __future__ import annotations

from sqlstream.state.sources.lag import source_lag


def test_records_of_kafka_are_counted_by_partition() -> None:
    """The lag of a topic is the difference of the latest offsets and those that the batch has read."""
    source = {"endOffset": {"raw": {"0": 5, "1": 3}}, "latestOffset": {"raw": {"0": 9, "1": 3, "2": 100}}}
    assert source_lag(source) == {"records": 4}
    as_text = {"endOffset": '{"raw": {"0": 5}}', "latestOffset": '{"raw": {"0": 7}}'}
    assert source_lag(as_text) == {"records": 2}


def test_other_sources_have_no_known_lag() -> None:
    """A source without offsets of Kafka has an unknown lag, in any form of its offsets."""
    assert source_lag({"endOffset": {"logOffset": 3}, "latestOffset": None}) == {}
    assert source_lag({"endOffset": "12", "latestOffset": "13"}) == {}
    assert source_lag({"endOffset": "no JSON", "latestOffset": "{"}) == {}
