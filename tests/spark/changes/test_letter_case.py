"""Edits of only letter case: `unchanged` exactly where real Spark returns the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlstream.app.loading.load import load
from sqlstream.app.plan.compiled_identity import identity_without_spark
from sqlstream.app.request import ProjectRequest
from sqlstream.state.changes import describe_changes
from sqlstream.state.checkpoints import CheckpointState
from sqlstream.state.ledger import QueryIdentity

COLUMNS = "k string, v int, m map<string, int>, n map<string, map<string, int>>, s struct<a: int, b: int>, j string"
ROWS = (
    "values ('a', 1, map('key', 1, 'Key', 2), map('x', map('key', 3), 'X', map('key', 4)), named_struct('a', 5, 'b', 6), "
    """'{"f": 7, "F": 8}') as t(k, v, m, n, s, j)"""
)
ORDERS = "{{ source('shop', 'orders') }}"

DIFFERENT = {
    "the key of a map": ("m.key as c", "m.Key as c"),
    "the key of a map, after an alias": ("o.m.key as c", "o.m.Key as c"),
    "the key of a map, after the name of the source": ("shop__orders.m.key as c", "shop__orders.m.KEY as c"),
    "the key of a map with the name of the relation": ("m.key as c", "m.Key as c"),
    "a key of a map in a map": ("n.x.key as c", "n.X.key as c"),
    "a key in a condition": ("k, case when m.key = 1 then 1 end as c", "k, case when m.kEy = 1 then 1 end as c"),
    "a field of a variant": ("cast(parse_json(j):f as int) as c", "cast(parse_json(j):F as int) as c"),
    "a name that becomes text": ("to_json(struct(v)) as c", "to_json(struct(V)) as c"),
    "an alias that becomes text": ("to_json(struct(v as w)) as c", "to_json(struct(v as W)) as c"),
    "a type as text": ("typeof(struct(v as w)) as c", "typeof(struct(v as W)) as c"),
}
"""Edits with other results."""

SAME = {
    "keywords and functions": ("upper(k) as c", "UPPER(k) AS c"),
    "a column": ("v + 1 as c", "V + 1 as c"),
    "a qualified column": ("o.v as c", "O.V as c"),
    "a column after the name of the source": ("shop__orders.v as c", "shop__orders.V as c"),
    "an alias": ("v as c", "v as C"),
    "the column of a map": ("m.key as c", "M.key as c"),
    "a function in front of text": ("to_json(struct(v)) as c", "TO_JSON(STRUCT(v)) AS c"),
    "the name of a type": ("cast(v as string) as c", "cast(v as STRING) as c"),
}
"""Edits with the same results, which are no change."""

MAYBE = {
    "a field of a struct": ("s.a as c", "s.A as c"),
}
"""Edits that could have other results if the column was a map."""


def identity_of(root: Path, name: str, columns: str) -> QueryIdentity:
    """Returns the identity of a query with these columns."""
    alias = " o" if "o." in columns.lower().replace("shop__orders.", "") else " m" if "of the relation" in name else ""
    files = {
        "project.yml": "name: shop\ntargets: {local: {master: 'local[2]', storage: store}}\n",
        "sources.yml": "sources:\n  - name: shop\n    tables:\n      - name: orders\n        format: json\n"
        f"        path: in/orders\n        schema: '{COLUMNS}'\n",
        "sinks.yml": "sinks:\n  - {name: lake, format: parquet, path: '{{ model.name }}'}\n",
        "models/rows.sql": f"{{{{ config(sink='lake') }}}} select {columns} from {ORDERS}{alias}\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    compiled = load(ProjectRequest(root)).compiled
    (model,) = compiled.models.values()
    return identity_without_spark(compiled, model, CheckpointState(0, None, False, "ledger.json"))


def rows_of(spark: SparkSession, identity: QueryIdentity) -> list[tuple[object, ...]]:
    """Returns the rows of the compiled SQL."""
    return [
        tuple(row)
        for row in spark.sql(f"with shop__orders as (select * from {ROWS}) {identity.models['rows']}").collect()
    ]


@pytest.mark.parametrize("name", [*DIFFERENT, *SAME, *MAYBE])
def test_no_edit_with_other_results_is_unchanged(name: str, tmp_path: Path, spark: SparkSession) -> None:
    """An edit that changes Spark's rows is a change; one of names of columns, functions and keywords is none."""
    old, new = (identity_of(tmp_path, name, columns) for columns in (DIFFERENT | SAME | MAYBE)[name])

    assert old.fingerprints == new.fingerprints
    assert (rows_of(spark, old) == rows_of(spark, new)) == (name not in DIFFERENT)
    assert (describe_changes(old, new) == ()) == (name in SAME)
