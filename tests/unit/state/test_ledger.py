"""The ledger as text, and invalid texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sqlstream.state.ledger import Ledger, LedgerUnreadableError, PendingLedger, SourceUse, read_ledger
from tests.support.identities import STATEFUL, ledger_of

ACCEPTED = {"at": "2024-01-02T00:00:00+00:00", "changes": ["the SQL of `per_hour` changed"]}
LEDGER = replace(
    ledger_of(replace(STATEFUL, sources=(SourceUse("shop__orders", "shop.orders", "ts 10 minutes"),))),
    accepted=(ACCEPTED,),
)


@pytest.mark.parametrize("ledger", [LEDGER, replace(LEDGER, output=None, accepted=())])
def test_a_ledger_survives_a_round_trip(ledger: Ledger) -> None:
    """Writing and reading a ledger loses nothing, including characters outside ASCII."""
    assert read_ledger(ledger.to_json()) == ledger


def test_the_text_names_its_format_and_ends_with_a_line_break() -> None:
    """The text has the number of its format, so other programs can identify it."""
    text = LEDGER.to_json()

    assert json.loads(text)["ledger_version"] == 1
    assert text.endswith("}\n")


def test_a_torn_ledger_is_unreadable_wherever_it_is_torn() -> None:
    """No prefix of the text is a valid ledger."""
    text = LEDGER.to_json().rstrip()

    for length in range(len(text)):
        with pytest.raises(LedgerUnreadableError):
            read_ledger(text[:length])


def test_a_later_format_is_refused() -> None:
    """A ledger in a later format is refused, and the message has the number of the format."""
    later = json.dumps({**json.loads(LEDGER.to_json()), "ledger_version": 2})

    with pytest.raises(LedgerUnreadableError, match="later sqlstream wrote it, in format 2"):
        read_ledger(later)


def test_unknown_keys_are_ignored() -> None:
    """A later sqlstream can add keys to the same format."""
    more = json.dumps({**json.loads(LEDGER.to_json()), "host": "a"})

    assert read_ledger(more) == LEDGER


def test_the_format_of_a_sink_is_read_in_any_letter_case() -> None:
    """The sink's format is read in any letter case, as an earlier sqlstream wrote it."""
    text = replace(LEDGER, identity=replace(STATEFUL, sink_format="Parquet")).to_json()

    assert read_ledger(text).identity.sink_format == "parquet"


@pytest.mark.parametrize("text", ["", "null", "[]", '"ledger"', "{}", '{"ledger_version": "1"}', "7"])
def test_json_that_is_not_a_ledger_is_unreadable(text: str) -> None:
    """JSON of any type that is not a ledger is unreadable."""
    with pytest.raises(LedgerUnreadableError):
        read_ledger(text)


@pytest.mark.parametrize(
    ("place", "spoil"),
    [
        ("identity", lambda data: data.pop("identity")),
        ("version", lambda data: data.update(version="1")),
        ("identity.fingerprints", lambda data: data["identity"].update(fingerprints=None)),
        ("identity.models", lambda data: data["identity"].update(models=["select 1"])),
        ("identity.sources.0.table", lambda data: data["identity"]["sources"][0].pop("table")),
        ("identity.stateful", lambda data: data["identity"].update(stateful="no")),
        ("accepted.0", lambda data: data.update(accepted=["yes"])),
    ],
)
def test_a_value_of_the_wrong_type_is_named(place: str, spoil: Callable[[dict[str, Any]], object]) -> None:
    """The message is one line and names the value."""
    data = json.loads(LEDGER.to_json())
    spoil(data)

    with pytest.raises(LedgerUnreadableError) as caught:
        read_ledger(json.dumps(data))

    assert f"`{place}`" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pending_ledger_takes_effect_with_the_next_commit() -> None:
    """A pending ledger takes effect with the next commit; until then, the checkpoint belongs to the earlier query."""
    changed = replace(LEDGER, identity=replace(STATEFUL, output_mode="update"))
    ledger = read_ledger(replace(LEDGER, pending=PendingLedger(4, changed)).to_json())

    assert ledger.settled(4) == ledger
    assert ledger.settled(5) == changed
