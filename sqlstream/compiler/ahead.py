"""Work that is done ahead on several cores: parts of a project compiled for nothing but what they leave in the memory.

The compilation itself then goes on as always, finds most of its work done, and does the rest itself. So its result does
not depend on the workers: not on their number, and not on whether one of them failed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from sqlstream.compiler.cache.memory import Entries, Memory
from sqlstream.compiler.sql_text import REMEMBERED

MODELS_WORTH_A_WORKER = 50
"""Models to be compiled from which on another process pays: they take about 250 ms, and it some 50 ms."""

MODELS_WORTH_A_RENDERER = 200
"""Models to be rendered from which on another process pays: those that need no Jinja take about 40 ms."""

MODELS_IN_A_BATCH = REMEMBERED // 4
"""New models that are worked on at a time; each has up to two texts."""


class Workers(Protocol):
    """Does several jobs at the same time."""

    count: int

    def run(self, jobs: Sequence[Callable[[], Entries]]) -> Iterable[Entries]:
        """Returns what the jobs gave, those aside that failed."""


def work_ahead(
    memory: Memory,
    workers: Workers | None,
    parts: Sequence[Sequence[str]],
    job: Callable[[Collection[str], Memory], None],
) -> None:
    """Has the workers do `job` for each of `parts`, each with a memory of its own, and takes over what they noted."""
    if workers is None or len(parts) < 2:
        return
    jobs = [partial(_noted, memory, part, job) for part in parts]
    for entries in workers.run(jobs):
        memory.new.update(entries)


def _noted(memory: Memory, part: Sequence[str], job: Callable[[Collection[str], Memory], None]) -> Entries:
    own = memory.copy()
    job(frozenset(part), own)
    return {at: entry for at, entry in own.new.items() if memory.new.get(at) != entry}


def share(names: Sequence[str], workers: Workers | None, worth: int) -> list[Sequence[str]]:
    """Returns `names` in as many parts of about the same size as it pays to work on at the same time, none of which is
    smaller than `worth`.
    """
    count = _worth(len(names), workers, worth)
    return [names[start::count] for start in range(count)]


def share_graph(
    parents: Mapping[str, Collection[str]], names: Sequence[str], workers: Workers | None
) -> list[list[str]]:
    """Returns parts of the models `names`, which are in the order of the graph, to be analysed at the same time.

    Each holds all that its models read, so that some may stand in several parts. One part where most of them would.
    """
    count = _worth(len(names), workers, MODELS_WORTH_A_WORKER)
    if count < 2:
        return [list(names)]
    parts: list[set[str]] = [set() for _ in range(count)]
    for closure in _closures(parents, names):
        min(parts, key=lambda part: len(part | closure) if part & closure else len(part)).update(closure)
    largest = max(map(len, parts))
    return (
        [[name for name in names if name in part] for part in parts] if largest * 4 < len(names) * 3 else [list(names)]
    )


def batches(parents: Mapping[str, Collection[str]], names: Collection[str]) -> Iterator[set[str]]:
    """Gives parts of `names` to be worked on one after another, each with all that its models read: so few models that
    are in no part before it that their texts are still remembered when they are read again.
    """
    done: set[str] = set()
    batch: set[str] = set()
    fresh = 0
    for closure in _closures(parents, names):
        fresh += len(closure - done - batch)
        batch |= closure
        if fresh >= MODELS_IN_A_BATCH:
            yield batch
            done |= batch
            batch, fresh = set(), 0
    if batch:
        yield batch


def _closures(parents: Mapping[str, Collection[str]], names: Collection[str]) -> Iterator[set[str]]:
    """Gives each of `names` that no other reads, with those of `names` that it reads, directly or not."""
    wanted = set(names)
    read = {parent for name in names for parent in parents[name]}
    return (closure_of(parents, [leaf]) & wanted for leaf in names if leaf not in read)


def _worth(models: int, workers: Workers | None, worth: int) -> int:
    return 1 if workers is None else max(1, min(workers.count, models // worth))


def closure_of(parents: Mapping[str, Collection[str]], nodes: Iterable[str]) -> set[str]:
    """Returns `nodes` with all that they read, directly or not."""
    found: set[str] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(parents[node])
    return found
