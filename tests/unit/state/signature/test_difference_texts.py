"""How a difference between two state signatures reads in a message."""

from __future__ import annotations

from sqlstream.state.signature.compare import StateDifference, state_differences
from sqlstream.state.signature.signature import InputRows, StateOperator, StateSignature


def test_casts_are_shown_without_their_time_zone() -> None:
    """A changed expression is readable: the time zone of a cast, which did not change, is left out."""
    difference = StateDifference(
        "the keys of the aggregation", "cast(t as date, timeZoneId UTC)", "cast(u as date, timeZoneId UTC)", ""
    )

    assert str(difference) == "the keys of the aggregation changed from `cast(t as date)` to `cast(u as date)`"


def test_a_changed_time_zone_is_shown() -> None:
    """A cast that differs only in its time zone keeps it in the message."""
    difference = StateDifference(
        "the keys of the aggregation", "cast(t as date, timeZoneId UTC)", "cast(t as date, timeZoneId Europe/Paris)", ""
    )

    assert str(difference).endswith("changed from `cast(t as date in UTC)` to `cast(t as date in Europe/Paris)`")


def test_a_counter_of_rows_in_an_early_signature_is_no_difference() -> None:
    """Early signatures have the operator that counts corrupt records, with a number of the session."""
    rows = InputRows("shop.orders(k string)")
    counted = InputRows("collectmetrics 1: name sqlstream_dropped_orders, dataframeId 18", (rows,))
    old, new = (
        StateSignature((StateOperator("aggregation", {"keys": ("shop.orders.k",)}, (each,)),), "update", (), "4.3.0")
        for each in (counted, rows)
    )

    assert state_differences(old, new, ()) == ()
