"""What differs between two queries in a way that changes the meaning of state, in words."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.compiler.fingerprint import PYTHON
from sqlstream.state.ledger import QueryIdentity, SourceUse


def describe_changes(old: QueryIdentity, new: QueryIdentity) -> tuple[str, ...]:
    """Returns what differs between two identities in a way that changes the meaning of state, in words."""
    before, after = _renamed(old, new), new.fingerprints
    changed = [name for name in after if before.get(name, after[name]) != after[name]]
    changes = [f"the {_language(name, after[name])} of `{name}` changed" for name in changed]
    changes += [f"`{name}` was added" for name in after if name not in before]
    changes += [f"`{name}` was removed" for name in before if name not in after]
    changes += _other_duplicates(old, new)
    if old.output_mode != new.output_mode:
        changes.append(f"the output mode changed from {old.output_mode} to {new.output_mode}")
    if _told(old) != _told(new):
        paths = {use.path for use in old.sources} != {use.path for use in new.sources}
        changes.append(f"the sources changed from {sources_text(old, paths=paths)} to {sources_text(new, paths=paths)}")
    zone = "spark.sql.session.timeZone"
    if old.settings.get(zone) != new.settings.get(zone):
        changes.append(f"the time zone changed from {old.settings.get(zone)} to {new.settings.get(zone)}")
    return tuple(changes)


def _language(name: str, fingerprint: str) -> str:
    if ":" in name:  # a function of python/
        return "code"
    return "Python" if fingerprint.startswith(PYTHON) else "SQL"


def _other_duplicates(old: QueryIdentity, new: QueryIdentity) -> list[str]:
    """What differs in the columns by which the models that are in both are deduplicated."""
    before = {new.model if name == old.model else name: keys for name, keys in old.deduplicated.items()}
    both = [name for name in new.fingerprints if name in _renamed(old, new)]
    return [
        f"`{name}` was deduplicated by {_keys(before.get(name))} and is by {_keys(new.deduplicated.get(name))}"
        for name in both
        if _lowered(before.get(name)) != _lowered(new.deduplicated.get(name))
    ]


def _keys(columns: Sequence[str] | None) -> str:
    return ", ".join(columns or ("nothing",))


def _lowered(columns: Sequence[str] | None) -> list[str]:
    return [name.lower() for name in columns or ()]


def _told(identity: QueryIdentity) -> frozenset[tuple[str, str, str | None, str | None]]:
    """What a checkpoint knows of the sources: neither their order nor the views on the way to them."""
    return frozenset((use.name, use.table, use.watermark, use.path) for use in identity.sources)


def _renamed(old: QueryIdentity, new: QueryIdentity) -> dict[str, str]:
    """The old fingerprints with the terminal model under its new name: a rename by `previous_name` is no change."""
    return {new.model if name == old.model else name: digest for name, digest in old.fingerprints.items()}


def sources_text(identity: QueryIdentity, *, paths: bool) -> str:
    """Returns the sources of a query in words, with where they are read from if `paths` says so."""
    return ", ".join(_source(use, path=paths) for use in identity.sources) or "none"


def _source(use: SourceUse, *, path: bool) -> str:
    details = [f"watermark {use.watermark}"] if use.watermark else []
    details += [f"path {use.path}"] if path and use.path else []
    return f"{use.table} ({', '.join(details)})" if details else use.table
