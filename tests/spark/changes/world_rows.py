"""The rows that the queries read, before and after their edits: nulls, duplicates, late rows, keys of one side only."""

from __future__ import annotations

from typing import Any

PHASES = (1, 2, 3)
"""The old query reads the data of phase 1. The changed one reads those of phase 2, and of phase 3, which touch all keys
and move the watermark past all windows."""

# After phase 1 the watermark is at 12:17, because of rows without values. The query that filters them out would have an
# earlier one. The windows of 5 minutes are open from 12:15 on, those of 10 minutes from 12:10 on.
ORDERS = {
    1: (
        (1, "12:00", "a", "x", 1, 1.5),
        (2, "12:01", "b", "y", 2, 2.5),
        (3, "12:02", "A", "x", 3, 3.5),
        (4, "12:03", None, "x", 4, 4.5),
        (5, "12:04", "a", "y", None, 5.5),
        (6, "12:12", "c", "x", 6, 6.5),
        (6, "12:12", "c", "x", 6, 6.5),
        (30, "12:15", "only before", "x", 3, 0.5),
        (31, "12:15", "A", "a", 5, 1.5),
        (32, "02:00", "b", "x", 1000, 2.5),
        (33, "12:18", "a", "x", 1, 1.5),
        (34, "12:18", "b", "y", None, 2.5),
        (35, "12:11", "a", "x", 1, 2.5),
        (36, "12:19", "d", "x", 2, 2.5),
        (None, "12:16", "e", "x", 4, 2.5),
        # the same windows and keys as in phase 2, with other values
        (0, "12:18", "a", "x", 4, 1.75),
        (12, "12:15", "b", "y", 4, 1.75),
        (39, "12:15", "a", "x", 2, 1.75),
        (21, "12:16", "c", "x", 4, 8.5),
        # refunded in phase 2, 2, 9 and 18 minutes later
        (37, "12:18", "f", "x", 1, 1.5),
        (45, "12:07", "h", "x", 2, 2.5),
        (46, "11:58", "i", "x", 2, 2.5),
        # null but for the keys of a deduplication, so most filters drop them
        (15, "12:18", None, None, None, None),
        (16, "12:18", "b", None, None, None),
        (17, "12:18", None, "x", None, None),
        (80, "12:18", None, "m", None, None),
        (81, "12:18", "q", None, None, None),
        (82, "12:18", "r", "x", None, None),
        # the latest rows, alone in their windows
        (95, "12:23", "a", None, None, None),
        *((number, "12:25", None, None, None, None) for number in (90, 91, 92)),
        (None, "12:27", None, None, None, None),
    ),
    2: (
        (7, "12:18", "a", "x", 7, 7.5),
        (20, "12:18", "a", "x", 3, 7.5),
        (1, "12:17", "a", "x", 1, 1.5),
        (8, "12:18", "d", "y", 8, 8.5),
        (9, "10:30", "a", "x", 9, 9.5),
        (10, "12:18", "b", None, 10, None),
        (11, "12:19", "a", "x", -5, 2.5),
        (40, "12:19", "only after", "y", 2, 4.5),
        (41, "12:03", "c", "x", 4, 4.5),
        (5, "12:18", "a", "y", 5, 5.5),
        (33, "12:18", "a", "x", 1, 2.5),
        (13, "12:17", "a", "x", 4, 7.5),
        (24, "12:17", "b", "y", 3, 7.5),
        (22, "12:17", "c", "x", 4, 6.5),
        # late, but not for a query without the latest rows of phase 1
        (43, "12:16", "b", "x", 5, 2.5),
        (44, "12:12", "b", "x", 5, 2.5),
        # refunded in phase 1, 9 and 18 minutes earlier
        (47, "12:16", "l", "x", 2, 2.5),
        (48, "12:16", "m", "x", 2, 2.5),
        # keys of phase 1, now with values
        (15, "12:18", "b", "x", 4, 9.5),
        (16, "12:18", "b", "x", 4, 9.5),
        (17, "12:18", "b", "x", 4, 9.5),
        (18, "12:18", "b", "m", 4, 9.5),
        (19, "12:18", "q", "x", 4, 9.5),
        (23, "12:18", "r", "x", 4, 9.5),
    ),
    3: (
        *((50 + number, "12:40", key, "x", number, 1.5) for number, key in enumerate(("a", "b", "A", "c", "d", None))),
        (60, "12:41", "only before", "x", 2, 2.5),
        (61, "12:41", "only after", "x", 2, 2.5),
        (6, "12:42", "c", "y", 6, 6.5),
        (15, "12:43", "a", "x", 4, 9.5),
        (17, "12:43", "a", "x", 4, 9.5),
        (18, "12:43", "a", "m", 4, 9.5),
        (99, "23:00", "z", "z", 99, 99.5),
    ),
}
REFUNDS = {
    1: (
        (1, "12:05", "a", "x", 2, 1.5),
        (3, "12:06", "b", "x", 9, 1.5),
        (20, "12:07", "a", "y", 1, 1.5),
        (21, "12:20", "c", "y", 1, 1.5),
        (47, "12:07", "l", "x", 3, 2.5),
        (48, "11:58", "m", "x", 3, 2.5),
        # keys that are null, and twice the same row, which is twice in orders, too
        (None, "12:16", "e", "x", 4, 2.5),
        (5, "12:17", None, "x", 3, 1.5),
        (17, "12:18", None, None, None, None),
        (6, "12:14", "c", "x", 6, 6.5),
        (6, "12:14", "c", "x", 6, 6.5),
        (30, "12:16", "c", "x", 5, 0.5),
        # keys without an order, or with one in phase 2 only
        (70, "12:18", "only refunds", "x", 2, 2.5),
        (40, "12:18", "only after", "y", 2, 4.5),
        (93, "12:27", "a", None, None, None),
    ),
    2: (
        (2, "12:17", "b", "x", 3, 1.5),
        (7, "12:19", "a", "x", 1, 1.5),
        (30, "12:18", "c", "y", 5, 1.5),
        (1, "12:18", "a", "x", 7, 1.5),
        (33, "12:20", "a", "x", 3, 1.5),
        (37, "12:20", "f", "x", 3, 1.5),
        (43, "12:18", "b", "x", 7, 1.5),
        (44, "12:17", "b", "x", 7, 1.5),
        (45, "12:16", "h", "x", 3, 2.5),
        (46, "12:16", "i", "x", 3, 2.5),
        # a repeated row, rows without a key or a value, and a late one
        (6, "12:17", "c", "x", 6, 6.5),
        (None, "12:18", None, "x", 2, 2.5),
        (34, "12:18", "b", None, None, 2.5),
        (16, "12:18", "b", "x", None, None),
        (71, "12:18", "only refunds", "y", 3, 2.5),
        (31, "12:19", "only before", "x", 3, 0.5),
        (4, "02:00", "a", "x", 4, 1.5),
    ),
    3: ((8, "12:41", "b", "x", 3, 1.5), (50, "12:42", "a", "x", 4, 1.5), (98, "23:00", "z", "z", 98, 1.5)),
}


def wider_values(phase: int, number: int | None, value: int | None) -> dict[str, Any]:
    """Returns the values of a row for columns that get a wider type after phase 1."""
    large = 0 if phase == 1 or (number or 0) % 2 else 5_000_000_000
    sku = "a" if number is None or number % 2 else "b"
    item = {"sku": sku, "price": value, "lot": large + (number or 0)}
    found = {"w": None if value is None else value + large, "item": item, "day": f"2024-01-0{1 + (value or 0) % 9}"}
    return {
        **found,
        "items": [item, {**item, "sku": "c"}],
        "amount": None if value is None else value + large / 8 + 0.1,
    }
