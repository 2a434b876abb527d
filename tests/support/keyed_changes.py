"""Changes of rows by key, in a random order, and the rows that must remain."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

COLUMNS = "id int, at int, n int, name string, op string"
"""The columns of a change: its key, its sequence (`at`, `n`), a value, and `d` for a deletion."""

SOURCES = f"""\
sources:
  - name: shop
    tables:
      - {{name: changes, format: json, path: in/changes, schema: "{COLUMNS}", options: {{maxFilesPerTrigger: 1}}}}
"""


def model(sink: str, more: str = "") -> str:
    """Returns a model that keeps the last change of each key in a table of `sink`; `more` is more configuration."""
    config = f"sink='{sink}', unique_key='id', sequence_by='at', delete_when=\"op = 'd'\"{more}"
    return f"{{{{ config({config}) }}}}\nselect id, at, n, name, op from {{{{ source('shop', 'changes') }}}}"


@dataclass(frozen=True)
class Changes:
    """Batches of changes, and the rows (id, at, n, name) that remain, sorted."""

    batches: tuple[list[dict[str, Any]], ...]
    remaining: list[tuple[int, int, int, str]]

    def versions(self, *tracked: str) -> list[tuple[int, int, str, int, int, int | None, bool]]:
        """Returns the versions (id, n, name, at, valid_from, valid_to, is_current) of all rows, sorted by id and time.
        A change of the columns `tracked` begins one. `at` must be unique for each key.

        This is the SCD of type 2 as one writes it by hand in pandas, with all changes at once.
        """
        changes = pd.DataFrame([change for batch in self.batches for change in batch])
        changes = changes.drop_duplicates(["id", "at"]).sort_values(["id", "at"], ignore_index=True)
        before = changes.groupby("id").shift()
        is_other = (changes[list(tracked)] != before[list(tracked)]).any(axis=1)
        begins = before["op"].isna() | (before["op"] == "d") | (changes["op"] == "d") | is_other
        changes["version"] = begins.cumsum()
        versions = changes.groupby("version").agg(
            **{name: (name, "last") for name in ("id", "n", "name", "at", "op")}, valid_from=("at", "first")
        )
        versions["valid_to"] = versions.groupby("id")["valid_from"].shift(-1)
        found = versions[versions["op"] != "d"].drop(columns="op").to_dict("records")
        return [
            (row["id"], row["n"], row["name"], row["at"], row["valid_from"], _int(row["valid_to"]), is_current)
            for row in found
            for is_current in [bool(pd.isna(row["valid_to"]))]
        ]


def _int(value: float) -> int | None:
    return None if pd.isna(value) else int(value)


def keyed_changes(seed: int, count: int, keys: int, batches: int, *, times: bool = False) -> Changes:
    """Returns `count` changes of `keys` keys in random batches, a tenth of them twice, a quarter of them deletions. No
    two different changes of a key have the same sequence, or the same `at` with `times`.
    """
    random_ = random.Random(seed)
    made: list[dict[str, Any]] = []
    for number in range(count):
        op = "d" if random_.random() < 0.25 else "u"
        change = {
            "id": number % keys,
            "at": number // (keys * 3),
            "n": number // keys % 3,
            "name": f"v{number}",
            "op": op,
        }
        if times:
            change |= {"at": number // keys, "n": random_.randrange(9), "name": random_.choice("xy")}
        made += [change] * (2 if random_.random() < 0.1 else 1)
    random_.shuffle(made)
    parts = tuple(made[start::batches] for start in range(batches))
    return Changes(parts, remaining_rows(made))


def remaining_rows(changes: Sequence[dict[str, Any]]) -> list[tuple[int, int, int, str]]:
    """Returns the rows that remain after changes, sorted: those of the highest sequence, unless it is a deletion."""
    last: dict[int, dict[str, Any]] = {}
    for change in sorted(changes, key=lambda change: (change["at"], change["n"])):
        last[change["id"]] = change
    kept = (change for change in last.values() if change["op"] != "d")
    return sorted((change["id"], change["at"], change["n"], change["name"]) for change in kept)


def as_text(rows: Iterable[Sequence[object]]) -> list[tuple[str, ...]]:
    """Returns rows as the clients of all databases show them, sorted."""
    shown = {"None": "", "NULL": "", "True": "1", "False": "0", "t": "1", "f": "0", "\\N": ""}
    return sorted(tuple(shown.get(str(value), str(value)) for value in row) for row in rows)
