"""Differences between two queries that change the meaning of their state, also those of letter case only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlstream.compiler.comparison.letter_case import CaseChange, Names, case_change, names_in
from sqlstream.compiler.render.rendered import TemplateInputs
from sqlstream.compiler.sql.sql_text import PYTHON
from sqlstream.project.formats.formats import format_of
from sqlstream.state.contents import same_seed, seed_difference
from sqlstream.state.ledger import FUNCTION, SINK, SOURCE, QueryIdentity, SourceUse
from sqlstream.state.readers import respelled
from sqlstream.state.signature.signature import shown_source
from sqlstream.state.spark_settings import CASE_SENSITIVE, changed_settings, reads_python
from sqlstream.state.sql_difference import sql_difference


@dataclass(frozen=True)
class Change:
    """One difference between two queries, in words. `model` is the model with the text, None if no text changed.
    `offset` is the offset of the change in the compiled SQL of the current query, None if unknown. `cause` names what
    changed the SQL of a model whose file is unchanged, and `difference` quotes the SQL.
    """

    text: str
    model: str | None = None
    offset: int | None = None
    cause: str | None = None
    difference: str | None = None
    is_python: bool = False
    """Whether code of Python changed, whose meaning nobody can compare."""
    is_source: bool = False
    """Whether it is the code of a source."""
    is_other_source: bool = False
    """Whether another class reads a stream, which may not understand the offsets in the checkpoint."""
    is_note: bool = False
    """Whether it concerns neither the state nor what the query reads, such as the code of a sink."""


def describe_changes(old: QueryIdentity, new: QueryIdentity) -> tuple[Change, ...]:
    """Returns the differences between two identities that change the meaning of state, and notes on other ones."""
    old = respelled(old, new)
    before, after = _fingerprints(old, new)
    # A model that is new has no change of text: it is `added` below.
    changed = [name for name in after if before.get(name, after[name]) != after[name]]
    changes = [_text_change(old, new, name) for name in changed]
    changes += [_case_change(name, change) for name, change in case_changes(old, new)]
    changes += [Change(f"`{_shown(name)}` was added") for name in after if name not in before]
    changes += [Change(f"`{_shown(name)}` was removed") for name in before if name not in after]
    changes += [*_deduplication_changes(old, new), *_kept_changes(old, new)]
    if old.output_mode != new.output_mode:
        changes.append(Change(f"the output mode changed from {old.output_mode} to {new.output_mode}"))
    if _checkpoint_sources(old) != _checkpoint_sources(new):
        paths = {use.path for use in old.sources} != {use.path for use in new.sources}
        before_text, after_text = sources_text(old, paths=paths), sources_text(new, paths=paths)
        changes.append(Change(f"the sources changed from {before_text} to {after_text}"))
    changes += [
        Change(str(change), is_python=change.is_of_python, is_source=change.is_of_python and reads_python(new))
        for change in changed_settings(old, new)
    ]
    changes += [
        _input_change(old, new, name) for name, text in old.contents.items() if new.contents.get(name, text) != text
    ]
    changes += [
        Change(_schema_change(name)) for name, text in old.schemas.items() if new.schemas.get(name, text) != text
    ]
    changes += _code_changes(old, new)
    if old.contract is not None and list(old.contract.items()) != list((new.contract or {}).items()):
        changes.append(Change("the contract of the model changed", is_note=True))
    return tuple(changes)


def _schema_change(name: str) -> str:
    table, _, part = name.partition(" ")
    return f"the Avro schema of the {part}s of `{table}` changed" if part else f"the columns of `{table}` changed"


def _fingerprints(old: QueryIdentity, new: QueryIdentity) -> tuple[dict[str, str], Mapping[str, str]]:
    """Returns the fingerprints of both, the old ones with the new name of the terminal model.

    If both have digests of Python with all that it imports, these replace those of its own text.
    """
    before, after = _renamed(old, new, old.fingerprints), new.fingerprints
    if old.code is None or new.code is None:
        return before, after
    code = _renamed(old, new, old.code), new.code
    # `fingerprints` has a function under `module:name`, with its module only, and a Python model with its own text
    # only.
    both = [
        {name: text for name, text in found.items() if ":" not in name and not text.startswith(PYTHON)}
        | {name: f"{PYTHON}{text}" for name, text in python.items() if not _is_declared(name)}
        for found, python in zip((before, after), code, strict=True)
    ]
    return both[0], both[1]


def _is_declared(name: str) -> bool:
    """Returns whether a key of `QueryIdentity.code` is a source or sink."""
    return name.startswith((f"{SOURCE} ", f"{SINK} "))


def _input_change(old: QueryIdentity, new: QueryIdentity, name: str) -> Change:
    difference = seed_difference(old, new, name)
    if difference is None:
        return Change(f"the input `{name}` changed from {old.contents[name]} to {new.contents[name]}")
    text = f"from {difference[0] or 'no row'} to {difference[1] or 'no row'}"
    if same_seed(old, new, name):
        return Change(f"the seed `{name}` changed in columns that the query does not read, {text}", is_note=True)
    return Change(f"the seed `{name}` changed {text}")


def _shown(name: str) -> str:
    return name.removeprefix(f"{FUNCTION} ")


def _code_changes(old: QueryIdentity, new: QueryIdentity) -> Iterator[Change]:
    """Yields the changes of the code of sources and sinks, and of the packages that Python imports."""
    for name, text in (new.code or {}).items():
        before = (old.code or {}).get(name, text)
        if not _is_declared(name) or before == text:
            continue
        kind, _, declared = name.partition(" ")
        # The text is the name in python/, and the digest of its code.
        was, now = before.partition(" ")[0], text.partition(" ")[0]
        what = f"the class of {kind} `{declared}` changed from {was} to {now}"
        what = what if was != now else f"the Python code of {kind} `{declared}` changed"
        is_source, streams = kind == SOURCE, {use.table for use in new.sources}
        # Only streams have offsets in the checkpoint.
        is_other = is_source and was != now and declared in streams
        yield Change(what, is_python=is_source, is_source=is_source, is_other_source=is_other, is_note=not is_source)
    for name, version in new.packages.items():
        if old.packages.get(name, version) != version:
            yield Change(f"the package {name} changed from {old.packages[name]} to {version}", is_note=True)


def _text_change(old: QueryIdentity, new: QueryIdentity, name: str) -> Change:
    """Returns the change of a model's SQL or Python code, or of a function in python/."""
    if ":" in name or name.startswith(f"{FUNCTION} "):
        return Change(f"the code of `{_shown(name)}` changed", is_python=True)
    if new.fingerprints.get(name, "").startswith(PYTHON):
        # Its own text is the same, so what it imports or reads has changed.
        if old.fingerprints.get(_earlier_name(old, new, name)) == new.fingerprints[name]:
            text = f"the code that `{name}` imports from python/, or a file that it reads, changed"
            return Change(text, name, is_python=True)
        cause = _cause_in_same_file(old, new, name)
        text = f"the Python code of `{name}` changed" if cause is None else f"{cause}, which `{name}` reads"
        return Change(text, name, cause=cause, is_python=True)
    before = _earlier_name(old, new, name)
    difference = sql_difference(old.models.get(before, ""), new.models[name]) if name in new.models else None
    cause = _cause_in_same_file(old, new, name)
    text = f"the SQL of `{name}` changed"
    if cause is not None:
        text = f"{cause}, which changed the SQL of `{name}`"
    offset = None if difference is None else difference.offset
    return Change(text, name, offset, cause, None if difference is None else str(difference))


def _case_change(name: str | None, change: CaseChange) -> Change:
    """Returns the change of the letter case in the text of a model, or in an output column."""
    if name is None:
        return Change(f"the output column {change}")
    return Change(f"the letter case in the SQL of `{name}` changed", name, change.offset, difference=str(change))


def _cause_in_same_file(old: QueryIdentity, new: QueryIdentity, name: str) -> str | None:
    before = _earlier_name(old, new, name)
    same_file = old.files.get(before) == new.files.get(name)
    return _cause(old.inputs.get(before), new.inputs.get(name)) if same_file else None


def _cause(old: TemplateInputs | None, new: TemplateInputs | None) -> str | None:
    """Returns what changed the SQL of a model whose file is unchanged, None if unknown."""
    if old is None or new is None:
        return None
    variables = [
        f"the variable `{name}` changed from {old.variables.get(name, 'unset')} to {new.variables.get(name, 'unset')}"
        for name in sorted({*old.variables, *new.variables})
        if old.variables.get(name) != new.variables.get(name)
    ]
    environment = [
        f"the environment variable `{name}` changed"
        for name in sorted({*old.environment, *new.environment})
        if old.environment.get(name) != new.environment.get(name)
    ]
    return " and ".join(variables + environment) or "a macro, a reference or the target changed"


def _deduplication_changes(old: QueryIdentity, new: QueryIdentity) -> list[Change]:
    """Returns the changes of `deduplicate` for models in both queries."""
    before = {new.model if name == old.model else name: keys for name, keys in old.deduplicated.items()}
    both = [name for name in new.fingerprints if name in _renamed(old, new, old.fingerprints)]
    return [
        Change(
            f"`{name}` was deduplicated by {_keys(before.get(name))}, and is now deduplicated by "
            f"{_keys(new.deduplicated.get(name))}",
            name,
        )
        for name in both
        if _lowercase(before.get(name)) != _lowercase(new.deduplicated.get(name))
    ]


def _kept_changes(old: QueryIdentity, new: QueryIdentity) -> Iterator[Change]:
    """Yields the changes of what data tests drop, for models in both queries."""
    before = {new.model if name == old.model else name: kept for name, kept in old.kept.items()}
    for name in (name for name in new.fingerprints if name in _renamed(old, new, old.fingerprints)):
        was, now = before.get(name, ()), new.kept.get(name, ())
        added = [f"`{condition}` is new" for condition in now if condition not in was]
        differences = added + [f"`{condition}` is gone" for condition in was if condition not in now]
        if differences:
            text = f"the data tests of `{name}` drop other rows"
            yield Change(text, name, difference="; ".join(differences))


def _keys(columns: Sequence[str] | None) -> str:
    return ", ".join(columns or ("nothing",))


def _lowercase(columns: Sequence[str] | None) -> list[str]:
    return [name.lower() for name in columns or ()]


def _checkpoint_sources(identity: QueryIdentity) -> frozenset[tuple[str, str, str | None, str | None]]:
    """Returns the sources as in a checkpoint, without their order and the views between."""
    return frozenset((use.name, use.table, use.watermark, use.path) for use in identity.sources)


def _earlier_name(old: QueryIdentity, new: QueryIdentity, name: str) -> str:
    return old.model if name == new.model else name


def _renamed(old: QueryIdentity, new: QueryIdentity, digests: Mapping[str, str]) -> dict[str, str]:
    """Returns old digests with the new name of the terminal model: a rename with `previous_name` is safe."""
    return {new.model if name == old.model else name: digest for name, digest in digests.items()}


def sources_text(identity: QueryIdentity, *, paths: bool) -> str:
    """Returns the sources of a query in words, with their paths if `paths` is set."""
    return ", ".join(_source(use, path=paths) for use in identity.sources) or "none"


def _source(use: SourceUse, *, path: bool) -> str:
    details = [f"watermark {use.watermark}"] if use.watermark else []
    details += [f"path {use.path}"] if path and use.path else []
    return f"{use.table} ({', '.join(details)})" if details else use.table


# Edits of only letter case that can change the results of a query.
#
# The fingerprints of SQL ignore letter case, because Spark compares names of columns without it.

_SHOW_NAMES = ("kafka", "csv", "python")
"""Sinks whose rows contain the names of columns, as they are written. JSON refuses another spelling."""


def case_changes(old: QueryIdentity, new: QueryIdentity) -> Iterator[tuple[str | None, CaseChange]]:
    """Yields each model whose SQL differs from before only in letter case, in a place where this can change results,
    with the first word that differs. The name is None for a column of the output.
    """
    renamed = {new.model if name == old.model else name: name for name in old.models}
    same = [
        (name, old.models[renamed[name]])
        for name, text in new.models.items()
        if name in renamed and new.fingerprints.get(name) == old.fingerprints.get(renamed[name])
        if text != old.models[renamed[name]]
    ]
    if not same:
        return
    names = _names(old, new)
    found = [(name, case_change(before, new.models[name], names)) for name, before in same]
    yield from ((name, change) for name, change in found if change is not None)
    if any(format_of(each.sink_format).name in _SHOW_NAMES for each in new.by_sink):
        pairs = zip(old.columns or (), new.columns or (), strict=False)
        spelled = [(one.name, other.name) for one, other in pairs if one.name.lower() == other.name.lower()]
        yield from ((None, CaseChange(0, one, other)) for one, other in spelled if one != other)


def _names(old: QueryIdentity, new: QueryIdentity) -> Names:
    """Returns the names in both versions of a query."""
    are_known = all(each.schemas.keys() >= set(_inputs(each)) for each in (old, new))
    declared = (text for each in (old, new) for text in each.schemas.values())
    found = names_in((*old.models.values(), *new.models.values()), declared if are_known else None)
    code = any(":" in name or text.startswith(PYTHON) for name, text in new.fingerprints.items())
    nested = any("<" in column.type for each in (old, new) for column in each.columns or ())
    is_exact = new.settings.get(CASE_SENSITIVE) == "true"
    return Names(None if is_exact else found.columns, found.are_shown or code or nested or is_exact)


def _inputs(identity: QueryIdentity) -> Iterator[str]:
    """Yields the inputs of a query whose columns can be maps: all but seeds."""
    yield from (use.table for use in identity.sources)
    streams = {shown_source(use.name) for use in identity.sources}
    static = ((name, text) for name, text in identity.contents.items() if name not in streams)
    yield from (name for name, text in static if not text.startswith("seed "))
