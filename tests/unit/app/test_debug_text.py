"""The output of `sqlstream debug`."""

from __future__ import annotations

from sqlstream.app.debug import check_text


def test_a_good_check_is_one_line() -> None:
    """A successful check is one line without its fix."""
    assert (
        check_text("Java", ok=True, found="17.0.15 (/usr/bin/java)", fix="x")
        == "OK     Java      17.0.15 (/usr/bin/java)"
    )


def test_a_failed_check_shows_its_fix() -> None:
    """A failed check shows its fix, if it has one, on the next line."""
    assert check_text("storage", ok=False, found="no", fix="give access") == "ERROR  storage   no\n  fix: give access"
    assert check_text("storage", ok=False, found="no", fix="") == "ERROR  storage   no"
