"""Queries with Spark's verdict on their names, functions and types, for two test suites.

A line of `judged/*.txt` begins with `+` if Spark's analyzer accepts the query, with `-` if Spark and the compiler refuse
it, and with `?` if Spark refuses it and the compiler reports nothing.
"""

from __future__ import annotations

from pathlib import Path

JUDGED = Path(__file__).parent / "judged"
THEMES = sorted(path.stem for path in JUDGED.glob("*.txt"))

STREAM = (
    "order_id bigint, customer_id int, product string, amount double, quantity int, ordered_at timestamp, "
    "tags array<string>, address struct<city: string, zip: string, geo: struct<lat: double, lon: double>>, "
    "attributes map<string, string>, items array<struct<sku: string, price: double, units: int>>, body string"
)
"""The columns of the stream `o`."""

TABLE = "customer_id int, name string, country string, since timestamp, vip boolean"
"""The columns of the static table `c`."""


JOINED = """
    k int, k2 int, big bigint, s string, ts timestamp, dt date, l string collate UTF8_LCASE, st struct<x:int,y:int>,
    d decimal(10,2), bo boolean, arr array<int>, v string
"""
"""The columns of the streams `a` and `b` that `joins_of_streams.txt` joins."""


def judged_joins() -> list[tuple[str, str]]:
    """Returns joins of two streams as pairs of verdict and query: whether Spark's planner finds a key for the join."""
    lines = (JUDGED.parent / "joins_of_streams.txt").read_text(encoding="utf-8").splitlines()
    return [(line[0], line[2:]) for line in lines]


def judged(theme: str) -> list[tuple[str, str]]:
    """Returns the queries of one file as pairs of verdict and query."""
    lines = (JUDGED / f"{theme}.txt").read_text(encoding="utf-8").splitlines()
    return [(line[0], line[2:]) for line in lines]
