"""A project for clusters: a query with state, a seed, and a Python function that imports another module of python/."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

FUNCTIONS = """from pyspark.sql.functions import udf

from sqlstream import MicroBatch
from factors import FACTOR


@udf("int")
def scaled(value):
    return FACTOR * value


def send(rows, batch: MicroBatch):
    pass
"""
SUMS = """{{ config(sink='lake', output_mode='append') }}
select o.window.start as at, k.name, o.amount
from (
  select window(ts, '1 minute') as window, kind, sum(scaled(amount)) as amount
  from (select /*+ WATERMARK(ts, '1 minute') */ * from {{ source('shop', 'orders') }})
  group by window(ts, '1 minute'), kind
) o join {{ ref('kinds') }} k on o.kind = k.kind
"""
KINDS = {"a": "Apples", "b": "Berries\n and more"}
CODE = {
    "python/factors.py": "FACTOR = 3\n",
    "python/functions.py": FUNCTIONS,
    "seeds/kinds.csv": "kind,name\n" + "".join(f'{kind},"{name}"\n' for kind, name in KINDS.items()),
    "models/sums.sql": SUMS,
}
"""The files of the project, besides its source and sink."""


def project_on(
    target: str, master: str, storage: str, settings: Mapping[str, str], *, has_code: bool = True
) -> dict[str, str]:
    """Returns project.yml with a target whose executors run the Python of the tests."""
    spark = {"spark.pyspark.python": sys.executable, "spark.sql.shuffle.partitions": "2", **settings}
    functions = ["functions:scaled"] if has_code else []
    targets = {target: {"master": master, "storage": storage, "spark": spark}}
    return {"project.yml": json.dumps({"name": "shop", "targets": targets, "functions": functions})}


def orders_in(number: int) -> list[dict[str, Any]]:
    """Returns the rows of a file: those of an hour of a day in January."""
    at = f"2024-01-{1 + number // 24:02}T{number % 24:02}:00"
    return [{"id": i, "ts": f"{at}:{i:02}Z", "kind": "ab"[i % 2], "amount": number + i} for i in range(20)]


def expected_sums(files: int) -> list[tuple[tuple[str, str], int]]:
    """Returns the sorted sums of the windows that are closed after `files` files: a file closes those of the one
    before.
    """
    found: Counter[tuple[str, str]] = Counter()
    for number in range(files - 1):
        for row in orders_in(number):
            found[row["ts"][:16], KINDS[row["kind"]]] += 3 * row["amount"]
    return sorted(found.items())


def sums_of(rows: Iterable[Mapping[str, Any]]) -> list[tuple[tuple[str, str], int]]:
    """Returns the sorted sums in the rows of the output."""
    return sorted(((f"{row['at']:%Y-%m-%dT%H:%M}", row["name"]), row["amount"]) for row in rows)
