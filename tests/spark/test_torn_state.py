"""Torn or missing state files: the failure names the file and the fix, and is not retried."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlstream.spark.jvm.state_store import PROVIDER, ROCKSDB
from sqlstream.spark.storage.state_files import torn_files
from sqlstream.state.runs.events import QueryRestarting, Status
from sqlstream.testing.session_settings import IN_MEMORY
from tests.spark.conftest import PROJECT, ProjectFolder, order_rows

SUMS = """{{ config(sink='nowhere', output_mode='update') }}
select kind, sum(amount) as amount from {{ source('shop', 'orders') }} group by kind"""
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
STATE = "store/queries/sums/v1/checkpoint/state/0/0"

Damage = Callable[[Path], None]


def tear(file: Path) -> None:
    """Keeps the first half of a file and drops its checksum, as a full disk does."""
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def tear_beside_checksum(file: Path) -> None:
    """Keeps the first half of a file, and the checksum of the whole file."""
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def remove(file: Path) -> None:
    """Removes a file, as a wrong clean-up rule does."""
    file.unlink()


CASES = {
    "in memory": (
        f", spark: {{{PROVIDER}: {IN_MEMORY}}}",
        [("2.delta", tear), ("2.delta", tear_beside_checksum), ("1.delta", remove), ("_metadata/schema", tear)],
    ),
    "rocksdb": (f", spark: {{{PROVIDER}: {ROCKSDB}}}", [("2.zip", tear), ("2.zip", remove), ("SSTs/*.sst", tear)]),
    "rocksdb with a log": (
        f", spark: {{{PROVIDER}: {ROCKSDB}, {CHANGELOG}: 'true'}}",
        [("2.changelog", tear), ("1.changelog", remove)],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_damaged_state_file_is_named_with_the_fix(case: str, orders: ProjectFolder) -> None:
    """A damaged file is named with the fix, in the last version of the state and in one that it builds on."""
    settings, damages = CASES[case]
    orders.write(
        {"models/sums.sql": SUMS, "project.yml": PROJECT.replace("storage: store", f"storage: store{settings}")}
    )
    orders.result()
    assert list(torn_files(orders.root / STATE)) == []
    orders.rows("in/orders/2.json", order_rows(2), modified=2)
    shutil.copytree(orders.root / "store", orders.root / "whole")

    for pattern, damage in damages:
        shutil.rmtree(orders.root / "store")
        shutil.copytree(orders.root / "whole", orders.root / "store")
        file = max((orders.root / STATE).glob(pattern))
        damage(file)

        result = orders.result()

        assert result.status is Status.ERROR, (pattern, damage)
        finding = result.finding
        assert finding is not None
        assert (finding.code, str(finding.location)) == ("torn-checkpoint", "models/sums.sql:1:1"), finding.why
        assert file.name in finding.why
        assert str(file.parent) in finding.why
        assert "--full-refresh" in finding.fix
        assert not [event for event in orders.events if isinstance(event, QueryRestarting)]
