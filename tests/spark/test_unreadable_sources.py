"""Sources that Spark cannot open are found before anything starts, at the key that is wrong."""

from __future__ import annotations

import pytest
from conftest import ProjectFolder

from sqlstream.errors import FindingsError


def test_every_source_that_cannot_be_opened_is_found(orders: ProjectFolder) -> None:
    """A missing folder and a type that only Spark can judge, both at once."""
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
