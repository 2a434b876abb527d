"""Work that is done on several cores: parts of a project compiled for nothing but what they leave in the memory.

The compilation itself then goes on as always, finds most of its work done, and does the rest itself. So its result does
not depend on the workers: not on their number, and not on whether one of them failed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Protocol

from sqlstream.compiler.cache.memory import Entries, Memory
from sqlstream.compiler.graph import closure_of
from sqlstream.compiler.sql.sql_text import REMEMBERED

MODELS_WORTH_A_WORKER = 50
"""Models to be compiled for which another process pays: they take about 250 ms, and it some 50 ms."""

MODELS_WORTH_A_RENDERER = 200
"""Models to be rendered for which another process pays: those that need no Jinja take about 40 ms."""

MODELS_IN_A_PART = REMEMBERED // 4
"""New models that are worked on at a time at most; each has up to two texts, which are read again."""

MODELS_TO_RECALL_MEANWHILE = 300
"""Remembered models for which it pays to have few others analysed in a process of their own: to recall them takes as
long as to load sqlglot, some 200 ms.
"""

PARTS_FOR_A_WORKER = 4
"""How much of what is left a worker takes at a time: the more there is, the more, so that all end together."""


class Workers(Protocol):
    """Does several jobs at the same time."""

    count: int

    def run(self, jobs: Sequence[Callable[[], Entries]]) -> Iterable[Entries]:
        """Returns what the jobs gave, those aside that failed."""

    def beside(self, job: Callable[[], Entries]) -> AbstractContextManager[Callable[[], Entries | None]]:
        """Does a job while the body goes on; gives what waits for its result, None where it failed."""


def work_ahead(
    memory: Memory,
    workers: Workers | None,
    parts: Sequence[Collection[str]],
    job: Callable[[Collection[str], Memory], None],
) -> None:
    """Has the workers do `job` for each of `parts`, each with a memory of its own, and takes over what they noted."""
    if workers is None or len(parts) < 2:
        return
    jobs = [partial(_noted, memory, part, job) for part in parts]
    for entries in workers.run(jobs):
        memory.new.update(entries)


@contextmanager
def working(
    memory: Memory,
    workers: Workers | None,
    parts: Sequence[Collection[str]],
    others: int,
    job: Callable[[Collection[str], Memory], None],
) -> Iterator[None]:
    """Has the workers do `job` for `parts`: several before the body begins, a single one beside it, where the `others`,
    which are remembered, give the body something to do until `Memory.settle` waits for it.
    """
    work_ahead(memory, workers, parts, job)
    if workers is None or len(parts) != 1 or not parts[0] or others < MODELS_TO_RECALL_MEANWHILE:
        yield
        return
    with workers.beside(partial(_noted, memory, parts[0], job)) as noted, memory.awaiting(noted):
        yield


def _noted(memory: Memory, part: Collection[str], job: Callable[[Collection[str], Memory], None]) -> Entries:
    """What `job` notes, which is noted in this process too, for the next job that it does."""
    own = memory.copy()
    job(frozenset(part), own)
    noted = {at: entry for at, entry in own.new.items() if memory.new.get(at) != entry}
    memory.new.update(noted)
    return noted


def share(names: Sequence[str], workers: Workers | None, worth: int) -> list[Sequence[str]]:
    """Returns `names` in parts of about the same size to be worked on at the same time, none of which is smaller than
    `worth`; one part where that does not pay.
    """
    count = 1 if workers is None else max(1, min(PARTS_FOR_A_WORKER * workers.count, len(names) // worth))
    return [names[start::count] for start in range(count)]


def share_graph(
    parents: Mapping[str, Collection[str]], names: Sequence[str], workers: Workers | None
) -> list[Collection[str]]:
    """Returns parts of the models `names`, which are in the order of the graph, to be analysed at the same time.

    Each holds all that its models read, so that some may stand in several parts; the last ones are the smallest. One
    part where it does not pay to have more.
    """
    if workers is None or len(names) < 2 * MODELS_WORTH_A_WORKER:
        return [names]
    parts: list[Collection[str]] = list(_parts(parents, names, PARTS_FOR_A_WORKER * workers.count))
    again = sum(map(len, parts)) - len(names)
    return parts if again * 2 < len(names) else [names]


def _parts(parents: Mapping[str, Collection[str]], names: Collection[str], count: int) -> Iterator[set[str]]:
    """Gives the parts; a part ends where it has one of `count` shares of the models that were in none before it."""
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
    """Gives each of `names` that no other reads, with those of `names` that it reads, directly or not."""
    wanted = set(names)
    read = {parent for name in names for parent in parents[name]}
    return (closure_of(parents, [leaf]) & wanted for leaf in names if leaf not in read)
