"""The names of a query's readers in its checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstream import ProjectRequest, compile_models
from sqlstream.state.ledger import SourceUse
from sqlstream.state.readers import source_uses, unsure_tables
from tests.support.identities import STATEFUL, ledger_of

FILES = {
    "project.yml": "name: shop\ntargets:\n  local: {master: local, storage: store}\ndefault_target: local\n",
    "sources.yml": "sources:\n  - name: shop\n    tables:\n      - {name: orders, format: json, path: in, schema: id int}\n"
    "      - {name: refunds, format: rate}\n      - {name: zones, format: csv, path: z, schema: id int, mode: batch}\n",
    "sinks.yml": "sinks:\n  - {name: nowhere, format: noop}\n",
    "models/big.sql": "select id from {{ source('shop', 'orders') }} where id > 10",
    "models/small.sql": "select id from {{ source('shop', 'orders') }} where id <= 10",
}
CONFIG = "{{ config(sink='nowhere') }} "
BIG, SMALL = "select id from {{ ref('big') }}", "select id from {{ ref('small') }}"
REFUNDS = "select value as id from {{ source('shop', 'refunds') }}"


def uses_of(
    folder: Path, sql: str, old: tuple[SourceUse, ...] = (), retired: str = "", **files: str
) -> tuple[SourceUse, ...]:
    """Returns the readers of a query whose terminal model contains `sql`."""
    models: Mapping[str, str] = {f"models/{name}.sql": text for name, text in files.items()}
    for name, text in {**FILES, **models, "models/all.sql": CONFIG + sql}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    compiled = compile_models(ProjectRequest(folder)).loaded.compiled
    ledger = replace(ledger_of(replace(STATEFUL, sources=old)), retired=tuple(retired.split()))
    return source_uses(compiled, compiled.models["model.shop.all"], ledger)


def named(uses: tuple[SourceUse, ...]) -> dict[str, str]:
    """Returns the name of each reader by its path."""
    return {use.via: use.name for use in uses}


def test_each_path_to_a_stream_has_a_reader(tmp_path: Path) -> None:
    """Each path to a stream has a reader, named in the order of first appearance; a static table has none."""
    zones = "select id from {{ source('shop', 'zones') }}"

    uses = uses_of(tmp_path, f"{BIG} union all {SMALL} union all {REFUNDS} where value in ({zones})")

    assert named(uses) == {
        "big/shop__orders": "shop__orders",
        "small/shop__orders": "shop__orders__2",
        "shop__refunds": "shop__refunds",
    }


@pytest.mark.parametrize("sql", [f"{SMALL} union all {BIG}", f"{REFUNDS} union all {SMALL} union all {BIG}"])
def test_a_reader_keeps_its_name_when_references_move(tmp_path: Path, sql: str) -> None:
    """A reader keeps its name when references move; otherwise rows would be lost or read twice."""
    old = uses_of(tmp_path, f"{BIG} union all {SMALL}")

    assert named(old).items() <= named(uses_of(tmp_path, sql, old)).items()


def test_a_removed_reference_does_not_rename_others(tmp_path: Path) -> None:
    """When a reference is removed, the other readers keep their names."""
    old = uses_of(tmp_path, f"{BIG} union all {SMALL}")

    assert named(uses_of(tmp_path, SMALL, old)) == {"small/shop__orders": "shop__orders__2"}


def test_a_renamed_view_keeps_its_reader(tmp_path: Path) -> None:
    """A reader keeps its name when a view on its path is renamed."""
    old = uses_of(tmp_path, f"{BIG} union all {SMALL}")

    uses = uses_of(
        tmp_path, f"select id from {{{{ ref('large') }}}} union all {SMALL}", old, large=FILES["models/big.sql"]
    )

    assert named(uses)["large/shop__orders"] == "shop__orders"


def test_a_new_reader_gets_a_new_name(tmp_path: Path) -> None:
    """A new reader gets a new name and reads from the start; the others continue."""
    old = uses_of(tmp_path, BIG)

    uses = uses_of(tmp_path, f"{SMALL} union all {BIG}", old)

    assert named(uses) == {"small/shop__orders": "shop__orders__2", "big/shop__orders": "shop__orders"}


def test_names_of_a_ledger_without_paths_apply_in_order(tmp_path: Path) -> None:
    """Names of a ledger without paths, as the first ledgers were, apply in order."""
    old = (
        SourceUse("shop__orders", "shop.orders", None, "in"),
        SourceUse("shop__orders__2", "shop.orders", None, "in"),
    )

    assert [use.name for use in uses_of(tmp_path, f"{BIG} union all {SMALL}", old)] == [use.name for use in old]


def test_a_name_is_never_reused(tmp_path: Path) -> None:
    """A name is never reused, because the checkpoint still has the offsets of its last reader."""
    old = uses_of(tmp_path, BIG)

    uses = uses_of(tmp_path, f"{BIG} union all {SMALL}", old, retired="shop__orders__2")

    assert named(uses) == {"big/shop__orders": "shop__orders", "small/shop__orders": "shop__orders__3"}


@pytest.mark.parametrize(
    ("before", "after", "unsure"),
    [
        (f"{BIG} union all {SMALL}", f"{SMALL} union all {BIG}", ()),
        (f"{BIG} union all {SMALL}", BIG, ()),
        (BIG, f"{REFUNDS} union all {BIG}", ()),
        (BIG, f"{BIG} union all {SMALL}", ()),
        (REFUNDS, f"{REFUNDS} union all {REFUNDS}", ("shop.refunds",)),
        (f"{REFUNDS} union all {REFUNDS}", REFUNDS, ("shop.refunds",)),
        (f"{REFUNDS} union all {REFUNDS}", f"{REFUNDS} union all {REFUNDS}", ()),
    ],
)
def test_references_in_one_text_are_identified_by_order(
    tmp_path: Path, before: str, after: str, unsure: tuple[str, ...]
) -> None:
    """References in one text are ambiguous if their number changes; references in separate models never are."""
    old = uses_of(tmp_path, before)

    assert unsure_tables(old, uses_of(tmp_path, after, old)) == unsure


def test_several_renamed_views_are_ambiguous(tmp_path: Path) -> None:
    """Several renamed views are ambiguous, because their readers may have different offsets."""
    old = uses_of(tmp_path, f"{BIG} union all {SMALL}")
    renamed = "select id from {{ ref('large') }} union all select id from {{ ref('little') }}"

    uses = uses_of(tmp_path, renamed, old, large=FILES["models/big.sql"], little=FILES["models/small.sql"])

    assert unsure_tables(old, uses) == ("shop.orders",)
    assert not {use.name for use in old} & {use.name for use in uses}
