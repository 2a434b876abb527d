"""`sqlstream path`: where readers find the rows of a model."""

from __future__ import annotations

import json

from tests.spark.conftest import ProjectFolder

SELECT = "select id from {{ source('shop', 'orders') }}"


def test_the_path_of_each_sink(orders: ProjectFolder) -> None:
    """A query has a path in each sink that has one, from its first run on."""
    orders.write(
        {
            "models/_sinks.yml": "sinks: [{name: second, format: json, path: second}]\n",
            "models/both.sql": f"{{{{ config(sink=['lake', 'second'], fan_out='shared') }}}} {SELECT}",
            "models/none.sql": f"{{{{ config(sink='nowhere') }}}} {SELECT}",
            "models/view.sql": SELECT,
        }
    )
    early = orders.invoke("path", "both")
    orders.run()

    store = orders.root / "store"
    several, none, view = (orders.invoke("path", name) for name in ("both", "none", "view"))
    assert (early.code, "has not started yet" in early.err) == (2, True)
    assert (several.code, "choose one with --sink: `lake`, `second`" in several.err) == (2, True)
    assert orders.invoke("path", "both", "--sink", "second").out == f"{store}/second\n"
    assert (none.code, "have no path and no table" in none.err) == (2, True)
    assert (view.code, "is a view" in view.err) == (2, True)
    found = json.loads(orders.invoke("path", "both", "--sink", "lake", "--output", "json").out)
    assert found == {"model": "both", "outputs": [{"sink": "lake", "path": f"{store}/both"}]}
    every = json.loads(orders.invoke("path", "both", "--output", "json").out)
    assert [each["sink"] for each in every["outputs"]] == ["lake", "second"]
    assert orders.invoke("path", "both", "--sink", "other").code == 2
