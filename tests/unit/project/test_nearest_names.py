"""The nearest names and the phrase that offers them."""

from __future__ import annotations

from sqlstream.project.wording import did_you_mean, nearest


def test_nearest_ignores_case_and_is_sorted_by_likeness() -> None:
    """The most similar name is first, in its own spelling; letter case does not matter."""
    assert nearest("ORDRES", ["Orders", "orders_by_day", "customers"])[0] == "Orders"
    assert nearest("amout", ["amount", "amounts", "account"], count=1) == ("amount",)
    assert nearest("x" * 1_000_000, ["amount"]) == ()


def test_phrase_offers_the_nearest_or_all_names() -> None:
    """Without a similar name the phrase lists some names; without any name it says so."""
    assert did_you_mean("amout", ["amount", "id"]) == "did you mean `amount`?"
    assert did_you_mean("zzz", ["b", "a"]) == "use one of `a`, `b`"
    assert did_you_mean("zzz", [f"n{at:02}" for at in range(20)]).endswith("`n07` and 12 more")
    assert did_you_mean("lake", []) == "declare `lake` first; none are declared yet"
