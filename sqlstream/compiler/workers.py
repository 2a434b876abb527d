"""How a project is divided into parts that several processes compile at the same time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from sqlstream.compiler.cache.memory import Entries
from sqlstream.compiler.graph import closure_of
from sqlstream.compiler.sql.sql_text import TEXTS_IN_MEMORY

MODELS_WORTH_A_WORKER = 50
"""Models for which another process pays: compiling them takes about 250 ms, starting a process some 50 ms."""

MODELS_WORTH_A_RENDERER = 200
"""Models to render for which another process pays: those that need no Jinja take about 40 ms."""

MODELS_IN_A_PART = TEXTS_IN_MEMORY // 4
"""Most models of a part that no earlier part has; each has up to two texts, which are read again."""

PARTS_FOR_A_WORKER = 4
"""A worker takes this share of the models that are left, so parts become smaller and all workers end together."""


class Workers(Protocol):
    """Runs several jobs at the same time."""

    count: int

    def run(self, jobs: Sequence[Callable[[], Entries]]) -> Iterable[Entries]:
        """Returns the results of the jobs that did not fail, in no order."""


def share(names: Sequence[str], workers: Workers, worth: int) -> list[Sequence[str]]:
    """Returns `names` in parts of about the same size, at least `worth` each; one part if there are too few names."""
    count = max(1, min(PARTS_FOR_A_WORKER * workers.count, len(names) // worth))
    return [names[start::count] for start in range(count)]


def share_graph(
    parents: Mapping[str, Collection[str]], names: Sequence[str], workers: Workers
) -> list[Collection[str]]:
    """Returns parts of the models `names`, which are in the order of the graph.

    Each part has all upstream models of its models, so a model can be in several parts. The last parts are the
    smallest. Returns one part if several are not worth their cost.
    """
    if len(names) < 2 * MODELS_WORTH_A_WORKER:
        return [names]
    parts: list[Collection[str]] = list(_parts(parents, names, PARTS_FOR_A_WORKER * workers.count))
    repeated = sum(map(len, parts)) - len(names)
    return parts if repeated * 2 < len(names) else [names]


def _parts(parents: Mapping[str, Collection[str]], names: Collection[str], count: int) -> Iterator[set[str]]:
    """Yields the parts; each ends when it has 1/`count` of the models that were in no part before it."""
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
    """Yields, for each of `names` that no other model reads, this model and its upstream models in `names`."""
    wanted = set(names)
    read = {parent for name in names for parent in parents[name]}
    return (closure_of(parents, [leaf]) & wanted for leaf in names if leaf not in read)
