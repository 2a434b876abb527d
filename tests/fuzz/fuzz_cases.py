"""Creates the fuzzed project of a seed, always the same one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.fuzz.fuzz_bases import pick_base
from tests.fuzz.fuzz_files import BYTE_MUTATIONS, FILE_MUTATIONS, SEED_MUTATIONS
from tests.fuzz.fuzz_jinja import JINJA_MUTATIONS
from tests.fuzz.fuzz_sql import SQL_MUTATIONS
from tests.fuzz.fuzz_yaml import YAML_MUTATIONS

KINDS = ("yaml", "sql", "jinja", "sql", "yaml", "jinja", "sql", "bytes", "yaml", "seed")
"""The kinds of mutations, which the seeds use in turn."""

ENDINGS = {
    "yaml": (".yml",),
    "jinja": (".sql", ".sql", ".sql", ".yml"),
    "sql": (".sql", ".sql", ".sql", ".sql", ".ddl"),
    "seed": (".csv",),
}
"""The endings of the files that a kind changes, with repetitions as weights."""

TEXT_MUTATIONS: dict[str, Sequence[Callable[[Random, str], str]]] = {
    "yaml": YAML_MUTATIONS,
    "jinja": JINJA_MUTATIONS,
    "sql": SQL_MUTATIONS,
    "seed": SEED_MUTATIONS,
}

LARGEST = 3_000_000
"""The maximal size of a mutated file in bytes. The compiler still reads most files of this size."""


@dataclass(frozen=True)
class FuzzCase:
    """A mutated project: `mutations` describe the changes, `files` are the changed files."""

    seed: int
    kind: str
    base: str
    mutations: tuple[str, ...]
    files: dict[str, bytes]

    def write(self, folder: Path) -> None:
        """Writes the files into `folder`, except those with names that this system does not support."""
        for path, data in self.files.items():
            target = folder / path
            with suppress(OSError):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.base}: {', '.join(self.mutations)}"


def make_case(seed: int) -> FuzzCase:
    """Returns the project of `seed`, with one to three mutations."""
    rng = Random(seed)
    kind = KINDS[seed % len(KINDS)]
    base = pick_base(rng)
    files = dict(base.files)
    done = [_mutate(rng, kind, files) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    return FuzzCase(seed, kind, base.name, tuple(filter(None, done)), files)


def _mutate(rng: Random, kind: str, files: dict[str, bytes]) -> str:
    """Changes `files` and returns a description of the change."""
    if kind == "bytes":
        return _mutate_bytes(rng, files)
    ending = rng.choice(ENDINGS[kind])
    paths = [path for path in sorted(files) if path.endswith(ending)] or sorted(files)
    path = rng.choice(paths)
    mutation = rng.choice(TEXT_MUTATIONS[kind])
    text = mutation(rng, files[path].decode("utf-8", "surrogateescape"))
    files[path] = text.encode("utf-8", "surrogateescape")[:LARGEST]
    return f"{mutation.__name__} of {path}"


def _mutate_bytes(rng: Random, files: dict[str, bytes]) -> str:
    if not files:
        return ""
    path = rng.choice(sorted(files))
    if rng.random() < 0.3:
        change = rng.choice(FILE_MUTATIONS)
        change(rng, files, path)
        return f"{change.__name__} {path}"
    mutation = rng.choice(BYTE_MUTATIONS)
    files[path] = mutation(rng, files[path])[:LARGEST]
    return f"{mutation.__name__} of {path}"
