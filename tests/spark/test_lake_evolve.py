"""Tables of Delta Lake and Iceberg get the columns of new fields, once the patch of `schema_changes: evolve` is applied."""

from __future__ import annotations

import subprocess

from tests.spark.conftest import ProjectFolder
from tests.support.lake_tables import FORMATS, SINKS, lake_session, rows

SOURCES = (
    "sources: [{name: shop, tables: [{name: orders, format: json, path: in, schema_changes: evolve, "
    "schema: 'id int, item struct<sku: string>'}]}]\n"
)


def test_tables_get_the_columns_of_new_fields(folder: ProjectFolder) -> None:
    """A patched source adds its column to tables that are appended to and merged into."""
    folder.write({"sinks.yml": SINKS, "sources.yml": SOURCES})
    for each in FORMATS:
        select = "select * except (_rescued_data) from {{ source('shop', 'orders') }}"
        folder.write(
            {
                f"models/appended_{each}.sql": f"{{{{ config(sink='{each}') }}}} {select}",
                f"models/merged_{each}.sql": f"{{{{ config(sink='{each}', unique_key='id') }}}} "
                + select.replace("_rescued_data", "_rescued_data, item"),
            }
        )
    folder.rows("in/1.json", [{"id": 1, "item": {"sku": "a"}, "color": "red"}], modified=1)
    assert folder.run().succeeded
    subprocess.run(["git", "apply", "target/schema_changes/shop.orders.patch"], cwd=folder.root, check=True)
    folder.rows("in/2.json", [{"id": 1, "item": {"sku": "b"}, "color": "blue"}], modified=2)

    outcome = folder.run()

    assert (outcome.succeeded, outcome.warnings) == (True, ())
    with lake_session(folder) as session:
        for each in FORMATS:
            appended = rows(session, folder, each, f"appended_{each}", "id", "item.sku", "color")
            assert appended == [(1, "a", None), (1, "b", "blue")]
            assert rows(session, folder, each, f"merged_{each}", "id", "color") == [(1, "blue")]
