"""Which version of a query is current, and where each writes."""

from __future__ import annotations

import pytest

from sqlstream.state.query_versions import (
    MOST_SWITCHES,
    Switch,
    Versions,
    VersionsUnreadableError,
    read_parts,
    versioned_path,
)


def test_without_a_file_the_newest_version_is_current() -> None:
    """Only a promotion, a rollback or a parallel version needs the file."""
    assert read_parts(None, 3, "x") == Versions(3)


SWITCH = Switch("2024-01-01T00:00:00+00:00", "promote", 2, 1)


def test_the_last_switches_are_kept() -> None:
    """The file lists a limited number of promotions and rollbacks, the newest last."""
    parts = Versions(1, parallel=2)
    for _ in range(MOST_SWITCHES):
        promoted = parts.promoted()
        assert promoted is not None
        back = promoted.recorded("promote", parts, "now").rolled_back()
        assert back is not None
        parts = back.recorded("rollback", promoted.recorded("promote", parts, "now"), "later")

    assert len(parts.history) == MOST_SWITCHES
    assert parts.history[-2:] == (Switch("now", "promote", 2, 1), Switch("later", "rollback", 1, 2))


def test_parts_survive_their_file() -> None:
    """What is written is read back."""
    parts = Versions(2, parallel=3, previous=1, published=("orders",), history=(SWITCH,))
    assert read_parts(parts.to_json(), 9, "x") == parts


def test_a_damaged_file_is_an_error() -> None:
    """It is not guessed which version is current."""
    with pytest.raises(VersionsUnreadableError, match=r"^/q/versions\.json is not valid"):
        read_parts("{", 1, "/q/versions.json")


def test_promotion_and_rollback_are_inverse() -> None:
    """A version that was rolled back can be promoted again."""
    beside = Versions(1).with_parallel(2)
    promoted = beside.promoted()
    assert promoted == Versions(2, previous=1, published=())
    assert promoted is not None
    assert promoted.rolled_back() == Versions(1, parallel=2, published=())
    assert (Versions(1).promoted(), Versions(1).rolled_back()) == (None, None)


def test_a_rollback_loses_no_version() -> None:
    """If a version runs in parallel with the current one, a second rollback returns to where it was."""
    parts = Versions(2, parallel=3, previous=1, published=("orders",))
    back = parts.rolled_back()
    assert back == Versions(1, parallel=3, previous=2, published=("orders",))
    assert back is not None
    assert (back.rolled_back(), back.highest) == (parts, 3)


def test_a_full_refresh_can_be_rolled_back() -> None:
    """The version before is kept, and so is a parallel one."""
    assert Versions(1, parallel=2).refreshed(3) == Versions(3, parallel=2, previous=1, published=())
    assert Versions(3, previous=1).refreshed(3) == Versions(3, previous=1)


@pytest.mark.parametrize(
    ("version", "place"), [(1, "s3a://bucket/orders"), (2, "s3a://bucket/orders.v2"), (12, "s3a://bucket/orders.v12")]
)
def test_each_version_has_its_own_output(version: int, place: str) -> None:
    """Version 1 writes to the plain path, later versions to their own paths."""
    assert versioned_path("s3a://bucket/orders", version) == place


def test_the_first_version_has_its_own_path_once_another_one_is_published() -> None:
    """The plain path then shows readers the current version."""
    assert versioned_path("/data/orders", 1, is_published=True) == "/data/orders.v1"


def test_only_the_numbers_of_parts_are_parts() -> None:
    """A version that is none of them has no part, also while readers wait for the current one."""
    parts = Versions(4, parallel=3, previous=2, is_waiting=True)
    assert [parts.part_of(number) for number in (4, 3, 2, 1)] == ["current", "parallel", "previous", ""]
