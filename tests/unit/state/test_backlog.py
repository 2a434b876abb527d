"""What a source has that a query has not read, from Spark's progress."""

from __future__ import annotations

from sqlstream.state.runs.backlog import source_backlog


def test_records_of_kafka_are_counted_by_partition() -> None:
    """The backlog of a topic is the difference of the latest offsets and those that the batch has read."""
    source = {"endOffset": {"raw": {"0": 5, "1": 3}}, "latestOffset": {"raw": {"0": 9, "1": 3, "2": 100}}}
    assert source_backlog(source) == {"records": 4}
    as_text = {"endOffset": '{"raw": {"0": 5}}', "latestOffset": '{"raw": {"0": 7}}'}
    assert source_backlog(as_text) == {"records": 2}


def test_other_sources_have_no_known_backlog() -> None:
    """A source without offsets of Kafka has an unknown backlog, in any form of its offsets."""
    assert source_backlog({"endOffset": {"logOffset": 3}, "latestOffset": None}) == {}
    assert source_backlog({"endOffset": "12", "latestOffset": "13"}) == {}
    assert source_backlog({"endOffset": "no JSON", "latestOffset": "{"}) == {}
