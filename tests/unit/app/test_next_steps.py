"""The output of `sqlstream init`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.app.init import next_steps_text


@pytest.mark.parametrize(
    ("root", "command"),
    [("/here/shop", "cd shop "), ("/here/a b/shop", "cd 'a b/shop' "), ("/there/shop", "cd /there/shop ")],
)
def test_steps_can_be_typed_as_shown(root: str, command: str) -> None:
    """The steps can be typed as shown; the first one changes into the project folder, quoted for the shell."""
    head, *steps = next_steps_text(Path(root), 18, Path("/here")).splitlines()
    assert "18 files" in head
    assert len(steps) == 4
    assert steps[0].strip().startswith(command)
