"""Whether a changed query continues to write to the same output, with the same key."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.project.files.paths import plain_path
from sqlstream.project.formats.formats import format_of
from sqlstream.state.ledger import QueryIdentity
from sqlstream.state.output_columns import ColumnChange, lowercase

UNSTORED = ("console", "memory", "noop")
"""Sinks whose rows do not outlive a run."""

PYTHON_FORMAT = "python"
"""The format of sinks that are functions or classes in python/."""


def has_other_sink(old: QueryIdentity, new: QueryIdentity) -> bool:
    """Returns whether the sink of a query would lack the rows of the earlier batches, which went to another one."""
    if old.sink_format in UNSTORED and new.sink_format in UNSTORED:
        return False
    return not is_same_sink(old, new)


def has_other_output(old: QueryIdentity, new: QueryIdentity) -> bool:
    """Returns whether the first sink of a query changed, or the key of its rows."""
    return has_other_sink(old, new) or any(key_change(old, new))


def is_same_sink(old: QueryIdentity, new: QueryIdentity) -> bool:
    """Returns whether two queries write to the same place in the same way."""
    return _sink(old) == _sink(new) and _has_same_address(old, new)


def _has_same_address(old: QueryIdentity, new: QueryIdentity) -> bool:
    """Returns whether two sinks of the same format and path are one. A function is one sink while its name in sinks.yml
    or its options stay the same.
    """
    if old.sink_address is None or new.sink_address is None:
        return True
    if new.sink_format != PYTHON_FORMAT:
        return old.sink_address == new.sink_address
    return any(one == other for one, other in zip(old.sink_address.split(), new.sink_address.split(), strict=True))


def _sink(identity: QueryIdentity) -> tuple[str, str | None, bool]:
    """Returns the format and the path of the sink, and whether each batch replaces all files there."""
    path = identity.sink_path
    return identity.sink_format, None if path is None else plain_path("/", path), identity.writes_snapshots


def sink_text(identity: QueryIdentity) -> str:
    """Returns the sink of a query in words."""
    mode = " in complete mode" if identity.writes_snapshots else ""
    if identity.sink_format == PYTHON_FORMAT and identity.sink_address is not None:
        return f"`{identity.sink_path}` as sink `{identity.sink_address.split()[0]}`"
    address = f" in the database `{identity.sink_address}`" if identity.sink_address else ""
    if identity.sink_format == "kafka" and identity.sink_address is not None:
        return f"kafka topic `{identity.sink_address}`" if identity.sink_address else "kafka topics by column"
    return (
        f"{identity.sink_format} `{identity.sink_path}`{address}{mode}" if identity.sink_path else identity.sink_format
    )


def key_change(old: QueryIdentity, new: QueryIdentity) -> Iterator[ColumnChange]:
    """Yields the change of the `unique_key` by which a table replaces rows, if it changed.

    The rows of the earlier batches keep the key that they have, so the query would add them again. A ledger of an early
    sqlstream has no key; then a key of a column that is not in the output is a change.
    """
    facts = format_of(new.sink_format)
    if not (facts.is_table or facts.is_database) or new.unique_key is None:
        return
    written = None if old.columns is None else set(lowercase([column.name for column in old.columns]))
    missing = [key for key in new.unique_key if written is not None and key.lower() not in written]
    if old.unique_key is None and not missing:
        return
    if old.unique_key is not None and set(lowercase(old.unique_key)) == set(lowercase(new.unique_key)):
        return
    before = "" if old.unique_key is None else ", ".join(old.unique_key)
    now = ", ".join(new.unique_key) or "nothing"
    text = f"its unique_key was {before or 'another one'}, and is now {now}"
    undo = f"set unique_key back to [{before}]" if before else "restore the old unique_key"
    lost = [
        key for key in old.unique_key or () if key.lower() not in lowercase([each.name for each in new.columns or ()])
    ]
    if lost and new.columns is not None:
        undo += f", and select {', '.join(map(quote_identifier, lost))} again"
    yield ColumnChange(text, missing[0] if missing else None, undo, is_key=True)
