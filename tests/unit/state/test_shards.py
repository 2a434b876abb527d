"""The shard of a query depends only on its id and the number of shards."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from sqlstream.state.runs.shards import MOST_SHARDS, Shard

IDS = [f"orders_{index}" for index in range(1000)]


def shard_of(query_id: str, count: int) -> int:
    """Returns the number of the only shard that has the query."""
    (number,) = [number for number in range(1, count + 1) if Shard(number, count).has(query_id)]
    return number


@pytest.mark.parametrize("count", [1, 2, 3, 8, 64])
def test_each_query_is_in_one_shard(count: int) -> None:
    """Shards are disjoint and complete, also for names that are not ASCII, and none has much more than its part."""
    for query_id in ("größe", "a/1", "", "A" * 10_000):
        assert 1 <= shard_of(query_id, count) <= count
    numbers = [shard_of(query_id, count) for query_id in IDS]
    assert max(map(numbers.count, range(1, count + 1))) < 2.5 * len(IDS) / count + 1


def test_the_shards_of_known_queries_never_change() -> None:
    """A new version of sqlstream keeps the shards of queries that run: this list must not be adapted."""
    assert [shard_of(query_id, 8) for query_id in IDS[:12]] == [2, 7, 5, 1, 7, 7, 7, 1, 6, 7, 2, 4]


def test_one_shard_more_takes_only_its_part() -> None:
    """From 8 to 9 shards, queries move only to the new shard, and about a ninth of them do."""
    moved = [query_id for query_id in IDS if shard_of(query_id, 8) != shard_of(query_id, 9)]

    assert {shard_of(query_id, 9) for query_id in moved} == {9}
    assert 60 < len(moved) < 170


def test_the_process_does_not_matter() -> None:
    """Another process with another hash seed finds the same shards."""
    code = "from sqlstream.state.runs.shards import Shard; print([Shard(2, 8).has(f'orders_{i}') for i in range(50)])"
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}

    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == str([Shard(2, 8).has(query_id) for query_id in IDS[:50]])


@pytest.mark.parametrize(
    "text", ["", "2", "2/", "/8", "0/8", "9/8", "0/0", "1/0", "a/b", "2/8/1", "-1/8", "2 /8", "٢/٨", "2/8\n", "1/1001"]
)
def test_a_text_that_is_no_shard_is_refused(text: str) -> None:
    """A text is refused unless it has two numbers, of which the first is at most the second."""
    with pytest.raises(ValueError, match="shard"):
        Shard.parse(text)


def test_a_shard_is_read_and_written() -> None:
    """Texts of shards are read as they are written, from the first to the last."""
    for text in ("1/1", "2/8", "8/8", f"{MOST_SHARDS}/{MOST_SHARDS}"):
        assert str(Shard.parse(text)) == text
