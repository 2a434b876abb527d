"""Every code has an explanation."""

from __future__ import annotations

import pytest

from sqlstream.app.explain import page_of
from sqlstream.codes import CODES
from sqlstream.errors import UsageError


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_explained(code: str) -> None:
    """The explanation has the meaning, an example with the code and the fix, and nothing of the next code."""
    page = page_of(code)

    assert page.startswith(f"### {code}\n\n{CODES[code]}")
    assert f"[{code}]" in page
    assert page.count("\n### ") == 0
    assert "\n## " not in page


def test_an_unknown_code_suggests_the_nearest() -> None:
    """An unknown code is a usage error that suggests the nearest code."""
    with pytest.raises(UsageError, match="unknown-ref"):
        page_of("unknown-reff")
