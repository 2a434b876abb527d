"""Where each version of a query writes files: version 1 to the plain path of the sink, version n to `<path>.v<n>`.

Once readers of the plain path follow another version, version 1 has moved to `<path>.v1`.
"""

from __future__ import annotations

from sqlstream.state.ledger import Ledger


def version_path(plain: str, version: int) -> str:
    """Returns the folder of a version beside the path `plain`."""
    return f"{plain}.v{version}"


def place_of(plain: str, version: int, ledger: Ledger | None) -> str:
    """Returns the path to which version `version` writes. `ledger` is that of this version, None for a new one.

    A new checkpoint must never share its predecessor's folder, because Spark's file sink then silently skips batches.
    """
    own = version_path(plain, version)
    is_moved = ledger is not None and _name(own) in {
        _name(place) for place in (ledger.output, *ledger.also) if place is not None
    }
    return own if is_moved or version > 1 else plain


def _name(place: str) -> str:
    """Returns the last part of a path. The folders above may have moved since."""
    return place.rpartition("/")[2]


def plain_path_of(place: str, version: int) -> str | None:
    """Returns the plain path of the output that version `version` writes to `place`, None if it is `place`."""
    suffix = version_path("", version)
    return place.removesuffix(suffix) if place.endswith(suffix) else None
