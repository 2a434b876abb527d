"""Seeds in queries: no value is lost silently, and mistakes are found before anything starts."""

from __future__ import annotations

import pytest

from sqlstream.errors import FindingsError
from sqlstream.state.runs.events import TableShown
from tests.spark.conftest import ProjectFolder


def test_a_seed_in_a_folder_with_pattern_characters(orders: ProjectFolder) -> None:
    """A seed in a folder with pattern characters in its name runs, with inferred types."""
    orders.write(
        {
            "seeds/[old]/{a,b}/kinds.csv": 'kind;label;size\na;"x;y";3\n',
            "seeds/_s.yml": "seeds:\n  - {name: kinds, config: {delimiter: ';'}, columns: "
            "[{name: label, data_type: string}]}\n",
            "models/shown.sql": "{{ config(sink='table') }}\n"
            "select kinds.*, size + 1 as more from {{ source('shop', 'orders') }} join {{ ref('kinds') }} using (kind) "
            "where id = 0",
        }
    )

    orders.run()

    (shown,) = [event for event in orders.events if isinstance(event, TableShown)]
    assert shown.rows == (("a", "x;y", 3, 4),)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_values_of_the_wrong_type_are_found(ansi: str, orders: ProjectFolder) -> None:
    """Values that do not fit their type are found before anything starts, at their place in the file."""
    orders.write(
        {
            "project.yml": "name: shop\nversion: 1.0.0\ntargets: {local: {master: 'local[2]', storage: store, "
            f"spark: {{spark.sql.ansi.enabled: {ansi}}}}}}}\n",
            "seeds/kinds.csv": 'kind,size,since\na,3,2024-01-01\n\n"b\nb",abc,2024-13-01\nc,,\nd,1.5,2024\n',
            "seeds/_s.yml": "seeds:\n  - name: kinds\n    columns:\n      - {name: size, data_type: int}\n"
            "      - {name: since, data_type: date}\n",
            "models/shown.sql": "{{ config(sink='table') }}\n"
            "select id from {{ source('shop', 'orders') }} join {{ ref('kinds') }} using (kind)",
        }
    )

    with pytest.raises(FindingsError) as raised:
        orders.run()

    assert [(str(finding.location), finding.code) for finding in raised.value.findings] == [
        ("seeds/kinds.csv:5:4", "seed-value"),
        ("seeds/kinds.csv:5:8", "seed-value"),
        ("seeds/kinds.csv:7:3", "seed-value"),
    ]


def test_types_without_a_cast_from_text_are_found(orders: ProjectFolder) -> None:
    """Types that no text can be cast to are found before anything starts, at their place in the YAML."""
    orders.write(
        {
            "seeds/kinds.csv": "kind,size\na,3\n",
            "seeds/_s.yml": "seeds:\n  - name: kinds\n    columns:\n      - {name: kind, data_type: array<int>}\n"
            "      - {name: size, data_type: geometry}\n",
            "models/shown.sql": "{{ config(sink='table') }}\n"
            "select id from {{ source('shop', 'orders') }} cross join {{ ref('kinds') }}",
        }
    )

    with pytest.raises(FindingsError) as raised:
        orders.run()

    assert [(str(finding.location), finding.code) for finding in raised.value.findings] == [
        ("seeds/_s.yml:4:33", "seed-column"),
        ("seeds/_s.yml:5:33", "seed-column"),
    ]
