"""Shards: the parts of the queries of a selection that separate runs have, as `--shard 2/8` names them."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_SHARDS = 1000
"""The highest number of shards. To find the shard of a query takes one hash for each."""


@dataclass(frozen=True)
class Shard:
    """Shard `number` of `count`, from 1 on."""

    number: int
    count: int

    @staticmethod
    def parse(text: str) -> Shard:
        """Returns the shard of a text such as `2/8`. Raises: ValueError."""
        match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
        if match is None:
            raise ValueError(f"{text!r} is not a shard; use its number and the number of shards, such as 2/8")
        number, count = map(int, match.groups())
        if count > MOST_SHARDS:
            raise ValueError(f"{text!r} has too many shards; use at most {MOST_SHARDS}")
        if not 1 <= number <= count:
            raise ValueError(f"{text!r} is not a shard; the number is from 1 to the number of shards, such as 2/8")
        return Shard(number, count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def has(self, query_id: str) -> bool:
        """Returns whether the query is in this shard. Each query is in exactly one shard.

        Only the id and `count` decide, so other queries never move it. Each shard has a hash with the query, and the
        highest one wins (rendezvous hashing): one shard more takes its share from all others and moves nothing else.
        """
        return self.number == max(range(1, self.count + 1), key=lambda number: _weight(number, query_id))


def _weight(number: int, query_id: str) -> bytes:
    from hashlib import blake2b  # every command loads this module

    # Not `hash`, which differs from process to process. Changing this moves queries between running shards.
    return blake2b(f"{number}/{query_id}".encode(), digest_size=16).digest()
