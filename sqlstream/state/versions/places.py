"""Where each version of a query writes files: version n to `<path>.v<n>`, and version 1 to the plain path of the sink
until another version is published there.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import replace

from sqlstream.state.layout import output_table
from sqlstream.state.ledger import Ledger

_SQLITE_PLACE = re.compile(r"(?P<file>.+)#v(?P<version>[1-9][0-9]*)\Z")


def place_of(plain: str, version: int, *, is_published: bool = False) -> str:
    """Returns the path to which version `version` writes, where `plain` is the path of the sink. `is_published`: the
    plain path shows readers the current version, see `Versions.published`.

    A new checkpoint must never share its predecessor's folder, because Spark's file sink then silently skips batches.
    """
    return plain if version == 1 and not is_published else f"{plain}.v{version}"


def sqlite_place(plain: str, version: int, *, is_published: bool = False) -> str:
    """Returns where version `version` writes in the file `plain`, which has a table for each version: `<plain>#v<n>`,
    or `plain` for version 1 until another version is published.
    """
    return plain if version == 1 and not is_published else f"{plain}#v{version}"


def split_sqlite_place(place: str) -> tuple[str, int | None]:
    """Returns the file and the version in a place from `sqlite_place`, None for the plain place."""
    match = _SQLITE_PLACE.match(place)
    return (match["file"], int(match["version"])) if match else (place, None)


def with_new_names(ledger: Ledger, published: Container[str]) -> Ledger:
    """Returns the ledger of version 1 with the places to which it writes now: its query may not have run since the
    plain paths and tables in `published` show another version.
    """
    uses = zip(ledger.identity.by_sink, (ledger.output, *ledger.also), strict=True)
    output, *also = (_new_name(place, use.sink_path, use.sink_format, published) for use, place in uses)
    return replace(ledger, output=output, also=tuple(also))


def _new_name(place: str | None, declared: str | None, sink_format: str, published: Container[str]) -> str | None:
    if place is None or declared is None or declared not in published or _last(place) != _last(declared):
        return place
    if sink_format == "sqlite":
        return sqlite_place(place, 1, is_published=True)
    new = place_of if "/" in place else output_table  # relative paths are complete in a ledger
    return new(place, 1, is_published=True)


def _last(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2]
