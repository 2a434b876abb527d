"""Classes of Spark that take long to be initialised, which is begun before a query needs them."""

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
"""Each with the SQL that needs it. This one works out the title case of every character, which takes a second."""


def slow_classes(texts: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of the slow classes that any of the SQL `texts` needs."""
    known = tuple(texts)
    return tuple(name for name, needs in SLOW_CLASSES.items() if any(needs.search(text) for text in known))


def initialise(gateway: Any, classes: Sequence[str]) -> None:
    """Begins to initialise `classes` in the JVM of `gateway`, in a thread of their own, and returns."""
    if classes:
        threading.Thread(target=_initialise, args=(gateway, classes), name="slow-classes", daemon=True).start()


def _initialise(gateway: Any, classes: Sequence[str]) -> None:
    # a JVM that ends meanwhile, or has no such class, has nothing to initialise
    with suppress(*JVM_ERRORS):
        for name in classes:
            getattr(gateway.jvm, "java.lang.Class").forName(name)
