"""Sources that Spark cannot open are found before anything starts, at the key that is wrong."""

from __future__ import annotations

import pytest

from sqlstream.errors import FindingsError
from tests.spark.conftest import ProjectFolder


def test_all_unreadable_sources_are_found(orders: ProjectFolder) -> None:
    """A missing folder and a type that only Spark can check are both found in one run."""
    orders.write(
        {
            "sources/more.yml": "sources:\n  - name: s\n    tables:\n"
            "      - {name: missing, format: json, schema: id int, path: in/missing}\n"
            "      - {name: untyped, format: json, schema: id timestamp with time zone, path: in/orders}\n",
            **{
                f"models/{name}.sql": f"{{{{ config(sink='nowhere') }}}} select id from {{{{ source('s', '{name}') }}}}"
                for name in ("missing", "untyped")
            },
        }
    )

    with pytest.raises(FindingsError) as raised:
        orders.run()

    places = {str(finding.location): finding.code for finding in raised.value.findings}
    assert places == {
        "sources/more.yml:4:61": "source-unreadable",
        "sources/more.yml:5:47": "source-unreadable",
    }


def test_a_host_that_does_not_exist_or_answer_is_named(orders: ProjectFolder) -> None:
    """An unknown or unreachable host is reported at the source's path, where it is written."""
    orders.write(
        {
            "sources/far.yml": "sources:\n  - name: far\n    tables:\n"
            "      - {name: unknown, format: json, schema: id int, path: 'hdfs://no-node.invalid:9000/in'}\n"
            "      - {name: silent, format: json, schema: id int, path: 'hdfs://localhost:1/in'}\n",
            **{
                f"models/{name}.sql": f"{{{{ config(sink='nowhere') }}}} select id from {{{{ source('far', '{name}') }}}}"
                for name in ("unknown", "silent")
            },
        }
    )

    with pytest.raises(FindingsError) as raised:
        orders.run()

    fixes = {str(finding.location): finding.fix for finding in raised.value.findings}
    assert set(fixes) == {"sources/far.yml:4:61", "sources/far.yml:5:60"}
    assert "`no-node.invalid`" in fixes["sources/far.yml:4:61"]
    assert "`localhost:1`" in fixes["sources/far.yml:5:60"]
