"""What all unit tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # no test depends on how fast the machine is
settings.load_profile("untimed")


@pytest.fixture(autouse=True, scope="module")
def without_java() -> Iterator[None]:
    """No unit test starts Java. Tests on Spark may follow in the same process, and find it again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", "/nowhere")
        yield
