"""Writes the small files that the corpus' sources read, the same on every run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
PRODUCTS = ("tea", "bread", "soap")

BATCHES = ((0, 2, 4, 6, 8), (9, 44, 46, 48, 50, 52))
"""The times of rows in each stream's files, in minutes after noon. The second file starts in the last window of the
first one, and then moves every watermark past all earlier rows.
"""

FIRST_MODIFIED = 1_704_110_400
"""The modification time of the first file in seconds. Each file has another time, which decides the order of reading."""


def write_data(folder: Path) -> None:
    """Writes the files of all sources into `folder`: two files for each stream, one for each static table."""
    for number, minutes in enumerate(BATCHES):
        _write(folder / f"orders/{number}.json", map(_order, minutes), number)
        _write(folder / f"payments/{number}.json", map(_payment, minutes), number)
        _write(folder / f"clicks/{number}.json", map(_click, minutes), number)
        _write_text(folder / f"lines/{number}.txt", f"tea and bread\nline {number}\n", number)
    _write(folder / "customers/all.json", map(_customer, range(3)), 0)
    _write(folder / "prices/all.json", map(_price, PRODUCTS), 0)


def _order(minute: int) -> dict[str, object]:
    product = PRODUCTS[minute // 2 % 3]
    return {
        "order_id": minute,
        "customer_id": minute % 4,
        "product": product,
        "amount": minute * 1.5 + 1,
        "quantity": minute % 3 + 1,
        "ordered_at": _at(minute),
        "tags": ["new", product],
        "address": {"city": "Bonn", "zip": f"5311{minute % 10}", "geo": {"lat": 50.7, "lon": 7.1}},
        "attributes": {"colour": "red", "size": str(minute)},
        "items": [{"sku": product, "price": 1.5, "units": 2}, {"sku": "bag", "price": 0.1, "units": 1}],
        "body": json.dumps({"channel": "web", "visits": minute}),
    }


def _payment(minute: int) -> dict[str, object]:
    return {
        "order_id": minute,
        "customer_id": minute % 4,
        "method": "card" if minute % 4 else "cash",
        "paid": minute * 1.5 + 1,
        "paid_at": _at(minute + 1),
        "event": {"at": _at(minute + 1), "kind": "payment"},
    }


def _click(minute: int) -> dict[str, object]:
    return {"user_id": minute % 4, "page": "ab"[minute // 2 % 2], "clicked_at": _at(minute), "gap_seconds": 60}


def _customer(number: int) -> dict[str, object]:
    since = _at(-1440 * number)
    return {"customer_id": number, "name": f"c{number}", "country": "DE", "since": since, "vip": number == 0}


def _price(product: str) -> dict[str, object]:
    return {"product": product, "price": 2.0, "valid_from": _at(-60), "valid_to": _at(600)}


def _at(minute: int) -> str:
    return (NOON + timedelta(minutes=minute)).isoformat()


def _write(path: Path, rows: Iterable[Mapping[str, object]], number: int) -> None:
    _write_text(path, "".join(json.dumps(row) + "\n" for row in rows), number)


def _write_text(path: Path, text: str, number: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    modified = FIRST_MODIFIED + number
    os.utime(path, (modified, modified))
