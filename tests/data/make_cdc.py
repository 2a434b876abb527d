"""Makes the cdc example: the changes of a table of customers, as Debezium writes them, one JSON event a line.

    make_cdc.py [--out DIR] [--seed N]

The first events are a snapshot of the table; the others create, update and delete rows. The same seed gives the same
bytes.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ordered_files import write_in_order

CITIES = ("Boston", "Newark", "Providence", "Hartford")
NAMES = ("Ada Lund", "Bo Marsh", "Cora Diaz", "Dev Rao", "Ewa Nowak", "Finn O'Hara", "Gus Weiss", "Hana Sato")
START = 1_709_539_200_000  # 2024-03-04T08:00:00Z in milliseconds
CHANGES = 60
DELETE_RATE, CREATE_RATE = 0.15, 0.25

Row = dict[str, Any]


def change(op: str, before: Row | None, after: Row | None, number: int) -> Row:
    """Return a change event without its schema."""
    at = START + 60_000 * number
    return {"before": before, "after": after, "op": op, "ts_ms": at, "source": {"db": "crm", "table": "customers"}}


def changes(rng: random.Random) -> Iterator[Row]:
    """Yield the snapshot of the table, and then its changes."""
    table: dict[int, Row] = {}
    for number, name in enumerate(NAMES, 1):
        table[number] = {"id": number, "name": name, "city": CITIES[number % 4]}
    for number, row in table.items():
        yield change("r", None, row, number)
    newest = len(table)
    for number in range(newest + 1, newest + 1 + CHANGES):
        kind = rng.random()
        if kind < CREATE_RATE or not table:
            newest += 1
            table[newest] = {"id": newest, "name": rng.choice(NAMES), "city": rng.choice(CITIES)}
            yield change("c", None, table[newest], number)
            continue
        row = rng.choice(list(table.values()))
        if kind < CREATE_RATE + DELETE_RATE:
            yield change("d", table.pop(row["id"]), None, number)
            continue
        table[row["id"]] = {**row, "city": rng.choice(CITIES)}
        yield change("u", row, table[row["id"]], number)


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "cdc", help="folder of the file")
    parser.add_argument("--seed", type=int, default=7, help="seed of the random values")
    arguments = parser.parse_args()
    lines = [json.dumps(event, separators=(",", ":")) for event in changes(random.Random(arguments.seed))]
    write_in_order([(arguments.out / "customers.json", ("\n".join(lines) + "\n").encode())])


if __name__ == "__main__":
    main()
