"""Initializes slow classes of Spark before a query needs them."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from sqlstream.spark.jvm.gateway import JVM_ERRORS

SLOW_CLASSES = {
    "org.apache.spark.sql.catalyst.util.CollationAwareUTF8String": re.compile(
        r"(?i)\b(?:upper|ucase|lower|lcase|initcap)\s*\("
    )
}
"""Slow classes, with the SQL that needs them. This one computes the title case of every character in one second."""


def slow_classes(texts: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of the slow classes that the SQL `texts` need."""
    known = tuple(texts)
    return tuple(name for name, needs in SLOW_CLASSES.items() if any(map(needs.search, known)))


def initialize_classes(gateway: Any, classes: Sequence[str]) -> None:
    """Starts a thread that initializes `classes` in the JVM of `gateway`."""
    if classes:
        threading.Thread(target=_initialize, args=(gateway, classes), name="slow-classes", daemon=True).start()


def _initialize(gateway: Any, classes: Sequence[str]) -> None:
    # the JVM may end first, or not have the class
    with suppress(*JVM_ERRORS):
        for name in classes:
            getattr(gateway.jvm, "java.lang.Class").forName(name)
