"""Fixtures and settings of all unit tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # no test depends on how fast the machine is
settings.load_profile("untimed")


@pytest.fixture(autouse=True, scope="module")
def without_java() -> Iterator[None]:
    """Hides Java, so that no unit test starts it; Spark tests in the same process can find it again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", "/nowhere")
        yield
