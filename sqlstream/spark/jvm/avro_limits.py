"""The JVM options with which Avro refuses damaged messages.

Without them Avro allocates the gigabytes that a length in a damaged message claims, which ends the JVM. By default a
broker takes messages of 1 MB.
"""

from __future__ import annotations

from collections.abc import Mapping

AVRO_LIMITS = " ".join(
    f"-Dorg.apache.avro.limits.{name}.maxLength={most}"
    for name, most in (("string", 100_000_000), ("bytes", 100_000_000), ("collectionItems", 10_000_000))
)

_EXECUTORS = "spark.executor.extraJavaOptions"


def executor_limits(settings: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Returns the setting with the limits of executors, before the options in the target's `settings`."""
    return ((_EXECUTORS, f"{AVRO_LIMITS} {settings.get(_EXECUTORS, '')}".strip()),)
