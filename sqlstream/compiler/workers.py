"""Divides a project into parts that several processes compile at the same time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from sqlstream.compiler.cache.memory import Entries
from sqlstream.compiler.graph import closure_of
from sqlstream.compiler.sql.sql_text import TEXTS_IN_MEMORY

MODELS_WORTH_A_WORKER = 50
"""The fewest models for another process. They compile in about 250 ms, and a process starts in about 50 ms."""

MODELS_WORTH_A_RENDERER = 200
"""The fewest models to render in another process. Without Jinja they take about 40 ms."""

MODELS_IN_A_PART = TEXTS_IN_MEMORY // 4
"""The most new models in a part. Each has up to two texts to tokenize, which several stages use again."""

PARTS_FOR_A_WORKER = 4
"""The number of parts per worker. Parts become smaller, so that all workers end at about the same time."""


class Workers(Protocol):
    """Runs several jobs at the same time."""

    count: int

    def run(self, jobs: Sequence[Callable[[], Entries]]) -> Iterable[Entries]:
        """Returns the results of the jobs that did not fail, in any order."""


def share(names: Sequence[str], workers: Workers, worth: int) -> list[Sequence[str]]:
    """Returns `names` in parts of about the same size, at least `worth` each, or one part if there are too few."""
    count = max(1, min(PARTS_FOR_A_WORKER * workers.count, len(names) // worth))
    return [names[start::count] for start in range(count)]


def share_graph(
    parents: Mapping[str, Collection[str]], names: Sequence[str], workers: Workers
) -> list[Collection[str]]:
    """Returns the models `names`, which are in the order of the graph, in parts, or one part if that is cheaper.

    Each part includes all upstream models of its models, so a model can be in several parts. The last parts are the
    smallest.
    """
    if len(names) < 2 * MODELS_WORTH_A_WORKER:
        return [names]
    parts: list[Collection[str]] = list(_parts(parents, names, PARTS_FOR_A_WORKER * workers.count))
    repeated = sum(map(len, parts)) - len(names)
    return parts if repeated * 2 < len(names) else [names]


def _parts(parents: Mapping[str, Collection[str]], names: Collection[str], count: int) -> Iterator[set[str]]:
    """Yields the parts. Each ends when it has 1/`count` of the models that no earlier part has."""
    done: set[str] = set()
    part: set[str] = set()
    fresh = 0
    for closure in _closures(parents, names):
        fresh += len(closure - done - part)
        part |= closure
        if fresh >= min(max((len(names) - len(done)) // count, MODELS_WORTH_A_WORKER), MODELS_IN_A_PART):
            yield part
            done |= part
            part, fresh = set(), 0
    if part:
        yield part


def _closures(parents: Mapping[str, Collection[str]], names: Collection[str]) -> Iterator[set[str]]:
    """Yields each model of `names` without children in `names`, together with its upstream models in `names`."""
    wanted = set(names)
    read = {parent for name in names for parent in parents[name]}
    return (closure_of(parents, [leaf]) & wanted for leaf in names if leaf not in read)
