"""Exposures in YAML files: their keys, what they read, and their configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.loading_cases import found, load, load_good

START = "exposures:\n  - name: board\n    type: dashboard\n    owner: {name: Ada}\n"


def test_all_keys_of_an_exposure(tmp_path: Path) -> None:
    """An exposure has dbt's keys; its owner can have others, and several addresses."""
    text = (
        "exposures:\n  - name: board\n    label: The board (weekly)\n    type: dashboard\n    maturity: high\n"
        "    url: https://bi.example.com/1\n    description: For {{ var('whom') }}\n"
        "    owner: {name: Ada, email: [a@example.com, b@example.com], slack: '#sales'}\n"
    )
    (exposure,) = load_good(tmp_path, {"sinks.yml": text, "project.yml": "name: shop\nvars: {whom: all}\n"}).exposures

    assert (exposure.name, exposure.label, exposure.type) == ("board", "The board (weekly)", "dashboard")
    assert (exposure.maturity, exposure.url) == ("high", "https://bi.example.com/1")
    assert exposure.description == "For all"
    assert exposure.owner_keys == {"name": "Ada", "email": ["a@example.com", "b@example.com"], "slack": "#sales"}
    assert str(exposure.location) == "sinks.yml:2:11"


@pytest.mark.parametrize(
    ("item", "parts"),
    [
        ("ref('orders')", ("ref", "orders")),
        ("\"ref('orders')\"", ("ref", "orders")),
        ("\"{{ ref('orders') }}\"", ("ref", "orders")),
        ("\"{{- ref( 'orders' ) -}}\"", ("ref", "orders")),
        ('ref("orders")', ("ref", "orders")),
        ("ref('shop', 'orders')", ("ref", "shop", "orders")),
        ("source('shop', 'orders')", ("source", "shop", "orders")),
        ("source('shop','orders',)", ("source", "shop", "orders")),
    ],
)
def test_an_exposure_reads_refs_and_sources(tmp_path: Path, item: str, parts: tuple[str, ...]) -> None:
    """Each item of `depends_on` is a call of ref() or source(), as plain text or between {{ }}."""
    project = load_good(tmp_path, {"models/a.yml": f"{START}    depends_on:\n      - {item}\n"})

    (read,) = project.exposures[0].inputs
    assert (read.kind, *read.parts) == parts
    assert str(read.location) == "models/a.yml:6:9"


@pytest.mark.parametrize(
    "item",
    [
        "orders",
        "metric('revenue')",
        "source('shop')",
        "ref()",
        "ref(orders)",
        "ref('a') + ref('b')",
        "5",
        "ref('a', 'b', 'c')",
    ],
)
def test_other_items_are_errors(tmp_path: Path, item: str) -> None:
    """Anything but one call of ref() or source() with quoted names is an error at the item."""
    result = load(tmp_path, {"models/a.yml": f'{START}    depends_on:\n      - "{item}"\n'})

    assert found(result) == ["models/a.yml:6:9 invalid-value"]


def test_the_configuration_comes_from_folders_and_the_entry(tmp_path: Path) -> None:
    """In `config` and the folders of project.yml, the innermost tags and meta win; those of the entry are added."""
    files: dict[str, str | bytes] = {
        "project.yml": "name: shop\nvars: {team: sales}\nexposures:\n  +tags: all\n  shop:\n    +meta: {a: 1}\n"
        "  boards:\n    +tags: [\"{{ var('team') }}\"]\n    board: {+meta: {b: 2}}\n",
        "models/boards/a.yml": f"{START}    tags: [own]\n    meta: {{b: 3, c: 3}}\n",
    }
    (exposure,) = load_good(tmp_path, files).exposures

    assert exposure.tags == ("own", "sales")
    assert exposure.meta == {"b": 2, "c": 3}
    assert exposure.folders == ("boards",)
    assert exposure.written == {"tags": ["{{ var('team') }}"], "meta": {"b": 2}}


@pytest.mark.parametrize(
    ("project", "config"), [("exposures: {+enabled: false}\n", ""), ("", "    config: {enabled: false}\n")]
)
def test_a_disabled_exposure_is_left_out(tmp_path: Path, project: str, config: str) -> None:
    """A disabled exposure is not part of the project."""
    files: dict[str, str | bytes] = {"project.yml": f"name: shop\n{project}", "models/a.yml": START + config}

    assert load_good(tmp_path, files).exposures == ()


@pytest.mark.parametrize(
    ("files", "codes"),
    [
        ({"models/b.yml": START.replace(" board", " Board")}, []),  # as in dbt
        ({"models/b.yml": START}, ["models/b.yml:2:11 duplicate-name"]),
        ({"project.yml": "name: shop\nexposures: {bords: {+tags: x}}\n"}, ["project.yml:2:13 unused-config"]),
        ({"project.yml": "name: shop\nexposures: {+tag: x}\n"}, ["project.yml:2:13 unknown-key"]),
        ({"project.yml": "name: shop\nexposures: {+enabled: maybe}\n"}, ["project.yml:2:23 invalid-value"]),
    ],
)
def test_findings_of_exposures(tmp_path: Path, files: dict[str, Any], codes: list[str]) -> None:
    """Repeated names and wrong configuration are findings at their places."""
    assert found(load(tmp_path, {"models/a.yml": START, **files})) == codes
