"""Rules on watermarks: one on each stream, on a timestamp."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.flow.nodes import Aggregate, Watermark
from sqlstream.compiler.rules.query import Query, QueryProblem
from sqlstream.project.types import Primitive, Unknown


def second_watermarks(query: Query) -> Iterator[QueryProblem]:
    """A watermark over rows that already have one, with no aggregation between them, fails in the first batch."""
    for node in query.all(Watermark):
        for below in node.children[0].walk(Aggregate):
            if isinstance(below, Watermark):
                first = "its source" if below.event_time.where is None else query.names.get(below.where.model, "it")
                yield QueryProblem(
                    node.where,
                    "second-watermark",
                    f"`{node.column}` gets a watermark where `{below.column}` already has one",
                    f"{first} declares a watermark of {below.event_time.delay}; Spark refuses a second one in the "
                    "first batch",
                    "keep one of the two",
                )
                break


def wrong_event_times(query: Query) -> Iterator[QueryProblem]:
    """A watermark needs a timestamp."""
    for node in query.all(Watermark):
        for column in node.columns or ():
            kind = column.type
            if column.event_time is not node.event_time or kind is None or isinstance(kind, Unknown):
                continue
            if kind != Primitive("timestamp"):
                yield QueryProblem(
                    node.where,
                    "watermark-type",
                    f"`{column.name}` cannot have a watermark: it is {kind}",
                    "event time is a timestamp to Spark, and no other type",
                    f"make it one in a model below, for example to_timestamp({column.name}) as {column.name}",
                )


RULES = (second_watermarks, wrong_event_times)
