"""Where a query writes, as its ledger names it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstream.compiler.compiled import Output
from sqlstream.location import Location
from sqlstream.state.sinks import has_other_sink, sink_text
from tests.support.identities import STATEFUL

KAFKA = replace(STATEFUL, sink_format="kafka", sink_path=None, sink_address="totals")
JDBC = replace(STATEFUL, sink_format="jdbc", sink_path="totals", sink_address="shop")


@pytest.mark.parametrize(
    ("format_", "options", "address"),
    [
        ("kafka", {"topic": "totals", "kafka.bootstrap.servers": "one:9092"}, "totals"),
        ("kafka", {"kafka.bootstrap.servers": "one:9092"}, ""),
        ("jdbc", {"URL": "jdbc:postgresql://one:5432/shop?ssl=true"}, "shop"),
        ("jdbc", {"url": "jdbc:mariadb://one/shop"}, "shop"),
        ("jdbc", {"url": "{{ env_var('SQLSTREAM_SECRET_URL') }}"}, None),
        ("parquet", {"url": "jdbc:mariadb://one/shop"}, None),
    ],
)
def test_the_address_of_an_output(format_: str, options: dict[str, str], address: str | None) -> None:
    """It is what stays when a server moves: the topic, or the name of the database."""
    assert Output("sink", format_, None, (), options, Location("sinks.yml", 1, 1)).address == address


def test_another_topic_or_database_is_another_sink() -> None:
    """The rows of the earlier batches are in the old one."""
    assert has_other_sink(KAFKA, replace(KAFKA, sink_address="sums"))
    assert has_other_sink(JDBC, replace(JDBC, sink_address="archive"))
    assert not has_other_sink(replace(JDBC, sink_address=None), JDBC)
    assert [sink_text(KAFKA), sink_text(JDBC)] == ["kafka topic `totals`", "jdbc `totals` in the database `shop`"]
