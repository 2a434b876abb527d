"""Where each version of a query writes files: version 1 to the plain path of the sink, version n to `<path>.v<n>`."""

from __future__ import annotations


def place_of(plain: str, version: int) -> str:
    """Returns the path to which version `version` writes, where `plain` is the path of the sink.

    A new checkpoint must never share its predecessor's folder, because Spark's file sink then silently skips batches.
    """
    return plain if version == 1 else f"{plain}.v{version}"
