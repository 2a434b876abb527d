"""Every code has a page."""

from __future__ import annotations

import pytest

from sqlstream.app.explain import page_of
from sqlstream.codes import CODES
from sqlstream.errors import UsageError


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_explained(code: str) -> None:
    """What it means, an example with the code itself, and what to do; nothing of the next page."""
    page = page_of(code)

    assert page.startswith(f"### {code}\n\n{CODES[code]}")
    assert f"[{code}]" in page
    assert page.count("\n### ") == 0
    assert "\n## " not in page


def test_a_code_that_is_none_is_answered_with_the_nearest() -> None:
    """The command line names nothing."""
    with pytest.raises(UsageError, match="unknown-ref"):
        page_of("unknown-reff")
