"""Formats the state of a query: its rows and its sizes, as text or JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

from sqlstream.report.numbers import bytes_text, count_text, plural
from sqlstream.report.rows import json_text, rows_json, rows_text
from sqlstream.report.table import table_text
from sqlstream.state.results.state import Repartitioned, ShownState, StateSize, StoreSize

_HEADER = ("operator", "partition", "rows", "on disk")


def state_text(shown: ShownState, width: int | None) -> str:
    """Returns a table for each store, at most `width` characters wide (None: no limit)."""
    return "\n\n".join(rows_text(store, width) for store in shown.stores)


def state_json(shown: ShownState) -> str:
    """Returns one JSON object with an entry for each store."""
    return rows_json(shown.stores)


def size_text(size: StateSize) -> str:
    """Returns a table of partitions, and a line about each store."""
    rows = [
        (store.store.title, str(partition), count_text(count), bytes_text(disk))
        for store in size.stores
        for partition, count, disk in _partitions(store)
    ]
    return "\n".join([table_text(_HEADER, rows, right=(1, 2, 3)), "", *(map(_line, size.stores))])


def _line(size: StoreSize) -> str:
    total = f"{size.store.title}: {plural(size.rows, 'row')}, {bytes_text(sum(size.bytes_on_disk.values()))} on disk"
    if size.skew is None:
        return total
    return f"{total}; the largest partition has {size.skew:.1f} times the rows of an average one"


def _partitions(size: StoreSize) -> list[tuple[int, int, int]]:
    rows = {each.partition: each.rows for each in size.partitions}
    return [(each, rows.get(each, 0), size.bytes_on_disk.get(each, 0)) for each in sorted({*rows, *size.bytes_on_disk})]


def repartitioned_text(done: Repartitioned) -> str:
    """Returns what a repartition did."""
    archived = f"Archived what an interrupted repartition left, in {done.archived}\n" if done.archived else ""
    if done.before == done.after:
        return f"{archived}Nothing to do: the state of `{done.model}` has {plural(done.after, 'partition')} already."
    text = f"Repartitioned the state of `{done.model}` from {done.before} to {plural(done.after, 'partition')}"
    return f"{archived}{text}, as batch {done.batch} of version {done.version}."


def size_json(size: StateSize) -> str:
    """Returns the sizes as one JSON object."""
    found = {
        "model": size.model,
        "version": size.version,
        "stores": [
            {
                "operator": store.store.operator,
                "kind": store.store.kind,
                "store": store.store.name,
                "rows": store.rows,
                "skew": store.skew,
                "partitions": [
                    {"partition": partition, "rows": rows, "bytes": disk}
                    for partition, rows, disk in _partitions(store)
                ],
            }
            for store in size.stores
        ],
    }
    return json.dumps(found, indent=2)


def repartitioned_json(done: Repartitioned) -> str:
    """Returns what a repartition did; `before` and `after` are equal if there was nothing to do."""
    return json_text(asdict(done), indent=2)
