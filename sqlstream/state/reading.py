"""Which rows of its sources a changed query reads again, or never, on its checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlstream.errors import Finding
from sqlstream.location import Place
from sqlstream.numbers import plural
from sqlstream.project.formats.file_options import CHANGE_FEED
from sqlstream.project.formats.formats import FORMATS
from sqlstream.project.types.data_types import Struct
from sqlstream.project.types.ddl import TypeSyntaxError, parse_schema
from sqlstream.project.wording import quoted_list
from sqlstream.state.ledger import Ledger, QueryIdentity, SourceUse
from sqlstream.state.output_files import StoredFile
from sqlstream.state.readers import (
    FAILS_ON_LOSS,
    KAFKA,
    PYTHON,
    START_OPTIONS,
    are_nested,
    can_continue,
    can_overlap,
    continuing,
    has_same_path,
    kind_of,
    names_sources,
    path_of,
    reads_topic,
    share_servers,
    table_of,
    topics_of,
)
from sqlstream.state.refusals import refresh_text
from sqlstream.state.signature.signature import shown_source
from sqlstream.state.sources.source_files import FileChoice, file_choice, file_name, local_path, unread_files


@dataclass(frozen=True)
class ReadSoFar:
    """What the checkpoint and the files show of a reader. `offset` is as in Spark's log, None if it has read nothing.

    `read` are the files that it has read, by URI, with the times of their changes (ms since 1970). `before` and `now`
    are the files at its earlier and its present path. All of them are None if they are unknown.
    """

    offset: Any = None
    read: Mapping[str, int] | None = None
    before: tuple[StoredFile, ...] | None = None
    now: tuple[StoredFile, ...] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it has read nothing so far."""
        return self.offset is None or self.read == {}


# The offset is not None: what is unknown must not count as "has read nothing".
_UNKNOWN = ReadSoFar(offset="unknown")


@dataclass(frozen=True)
class ReadingChange:
    """What changed in the rows that a query reads. `text` says it in one line. If rows would be missing in the output
    or be there twice, `risk` says what the query would do, `why` what is behind it, and `ways` how to do better.
    `accepting` says what the query does if the user accepts that, None if Spark would fail.
    """

    text: str
    risk: str | None = None
    why: str = ""
    ways: tuple[str, ...] = ()
    accepting: str | None = None


def reading_refused(identity: QueryIdentity, ledger_path: str, change: ReadingChange, place: Place) -> Finding:
    """Returns the refusal of a change with a risk."""
    ways = [*change.ways, refresh_text(identity.model)]
    if change.accepting is not None:
        ways.append(f"add `--accept-state-change {identity.model}`, and it {change.accepting}")
    why = f"{change.why} ({ledger_path} has the earlier sources)"
    return Finding(
        "source-change",
        f"`{identity.model}` {change.risk}",
        why,
        "; or ".join(ways),
        place.location,
        calls=place.calls,
    )


def has_other_reads(old: QueryIdentity, new: QueryIdentity) -> bool:
    """Returns whether a query reads other sources than before, or in another way."""
    pairs = continuing(old, new)
    is_same = len(pairs) == len(old.sources) == len(new.sources)
    # the topics of an early ledger are only in the offsets
    unknown = any(not before.format and kind_of(now) == KAFKA for before, now in pairs)
    return not is_same or unknown or any(_differ(*pair) or pair[0].table != pair[1].table for pair in pairs)


def moved_readers(old: QueryIdentity, new: QueryIdentity) -> list[tuple[SourceUse, SourceUse]]:
    """Returns the readers of files that continue with other paths or options: before and now."""
    return [
        pair for pair in continuing(old, new) if kind_of(pair[1]) == "files" and not pair[1].stored and _differ(*pair)
    ]


def _differ(before: SourceUse, now: SourceUse) -> bool:
    changed = bool(before.format) and (before.options, before.format) != (now.options, now.format)
    return changed or not has_same_path(before, now)


def reading_changes(ledger: Ledger, new: QueryIdentity, so_far: Mapping[str, ReadSoFar]) -> tuple[ReadingChange, ...]:
    """Returns what changed in the rows that the query in `ledger` reads. `so_far` is about the readers in the ledger,
    by their names.
    """
    old = ledger.identity
    changes: list[ReadingChange] = []
    kept = continuing(old, new)
    for before, now in kept:
        feeds = [_reads_changes(identity, use) for identity, use in ((old, before), (new, now))]
        if None not in feeds and feeds[0] != feeds[1] and not so_far.get(before.name, _UNKNOWN).is_empty:
            changes.append(_other_rows(now, reads_changes=bool(feeds[1])))
        if can_continue(before, now):
            changes += _of_continuing(before, now, so_far.get(before.name, _UNKNOWN), ledger)
        else:
            changes.append(_moved_source(before, now))
    if not names_sources(old):
        pairs = zip(old.sources, new.sources, strict=False)  # another number of them is refused
        changes += [_moved_source(*pair) for pair in pairs if pair not in kept and pair[0].table == pair[1].table]
        return tuple(changes)
    names = {use.name for use in old.sources}
    lost = [use for use in old.sources if use.name not in {now.name for _, now in kept}]
    known = [use for use in lost if not so_far.get(use.name, _UNKNOWN).is_empty]
    switched = {use.table for use in (*old.sources, *new.sources) if use.stored} & {*old.models, *new.models}
    for now in new.sources:
        if now.name not in names:
            changes.append(_of_new(now, known, _former(ledger), old, new, switched=bool(switched)))
    if not any(change.risk for change in changes):  # otherwise a new reader is in the place of a lost one
        gone = [use for use in lost if use.table not in {now.table for now in new.sources}]
        changes += [ReadingChange(f"{_named(use)} is no longer read: it is never read from here on") for use in gone]
    return tuple(changes)


_CHANGE_OPTION = re.compile(rf"\b(?:{'|'.join(CHANGE_FEED)}) true\b", re.IGNORECASE)


def _reads_changes(identity: QueryIdentity, use: SourceUse) -> bool | None:
    """Returns whether a reader has the changes of a table, and not its rows; None if an early ledger does not say."""
    content = identity.contents.get(shown_source(use.name))
    return None if content is None else use.format == "delta" and _CHANGE_OPTION.search(content) is not None


def _other_rows(now: SourceUse, *, reads_changes: bool) -> ReadingChange:
    rows, others = "the changes of the table", "only the rows that were added to it"
    after, before = (rows, others) if reads_changes else (others, rows)
    return ReadingChange(
        f"{_named(now)} now has {after}, not {before}",
        f"would continue to read {_named(now)} with other rows",
        f"{_declared(now)} reads {after}, but until now the query has read {before}; its output would mix both",
        accepting=f"reads {after} from the version where it stopped; if it stopped in the middle of a version, rows of "
        "that version can be missing or read twice",
    )


def _former(ledger: Ledger) -> list[SourceUse]:
    """Returns the readers that the query had before. An earlier sqlstream wrote only their names."""
    current = {use.name for use in ledger.identity.sources}
    # A Kafka reader that continues may have read other topics before.
    known = [use for use in ledger.former if use.name not in current or kind_of(use) == KAFKA]
    names = {use.name for use in ledger.former} | current
    return [*known, *(SourceUse(name, table_of(name), None) for name in ledger.retired if name not in names)]


def _of_new(
    now: SourceUse,
    lost: Sequence[SourceUse],
    former: Sequence[SourceUse],
    old: QueryIdentity,
    new: QueryIdentity,
    *,
    switched: bool,
) -> ReadingChange:
    """Returns what a reader means that the checkpoint does not know."""
    text = f"{_named(now)} is read from its start"
    again = f"reads all of {_named(now)}"
    # The explanations from here on come from the surest to a mere likeness of columns; the first that applies is
    # reported.
    if now.stored or switched:
        earlier = next((use for use in lost if use.stored and use.table == now.table), None)
        return ReadingChange(text) if earlier is None else _started_over(earlier, now, text, again)
    moved = next((use for use in lost if _is_table_of(use, now) and not can_continue(use, now)), None)
    if moved is not None:
        return _moved(moved, now, text, again)
    returned = next((use for use in former if _is_table_of(use, now)), None)
    if returned is not None:
        return ReadingChange(
            text,
            f"would read {_named(now)} again, which it has read before",
            f"{_declared(now)} was an input until a change removed it; Spark has forgotten where it stopped, so "
            "its rows would be in the output again",
            ("read it in another model, which has a checkpoint for itself",),
            again,
        )
    renamed = next((use for use in (*lost, *former) if not _is_table_of(use, now) and can_overlap(use, now)), None)
    if renamed is not None:
        return _renamed(renamed, now, text, again)
    swapped = next((use for use in lost if not _is_table_of(use, now) and _has_columns_of(use, now, old, new)), None)
    if swapped is not None:
        return ReadingChange(
            text,
            f"would read {_named(now)} from its start, in the place of {_named(swapped)}",
            f"{_declared(now)} reads {_where(now)}, and {_named(swapped)} was {_where(swapped)}; rows that both have "
            "would be in the output twice",
            (f"if it is {_named(swapped)} under another name, add {_previous_name(swapped, now)}",),
            again,
        )
    return ReadingChange(text)


def _moved_source(before: SourceUse, now: SourceUse) -> ReadingChange:
    """Returns what another place means for a reader that keeps its name or its position: Spark would fail."""
    change = (_started_over if now.stored else _moved)(before, now, f"{_named(now)} has another place", "")
    return replace(change, accepting=None)


def _is_table_of(earlier: SourceUse, now: SourceUse) -> bool:
    return earlier.table in (now.table, now.formerly)


def _started_over(earlier: SourceUse, now: SourceUse, text: str, again: str) -> ReadingChange:
    return ReadingChange(
        text,
        f"has read an earlier output of `{now.table}`",
        f"`{now.table}` has started over: its output was {earlier.path}; it is now {now.path}, which contains its rows "
        "again",
        accepting=again,
    )


def _moved(before: SourceUse, now: SourceUse, text: str, again: str) -> ReadingChange:
    ways: tuple[str, ...] = ()
    if kind_of(now) == "files":
        ways = (
            "use a pattern that matches both paths, such as {old,new}",
            "if the files kept their names, set the option `fileNameOnly: true` and use a pattern, such as new/*",
        )
    return ReadingChange(
        text,
        f"would read {_named(now)} again, at another place",
        f"{_declared(now)} reads {_where(now)}, and was {_where(before)}; Spark reads everything there, so rows "
        "that are in both places would be in the output twice",
        ways,
        again,
    )


def _renamed(earlier: SourceUse, now: SourceUse, text: str, again: str) -> ReadingChange:
    return ReadingChange(
        text,
        f"would read the rows of {_named(earlier)} again, as {_named(now)}",
        f"{_declared(now)} reads {_where(now)}, which the query has read as {_named(earlier)}; the checkpoint does not "
        "know the new name, so the rows would be in the output twice",
        (f"if the source was renamed, add {_previous_name(earlier, now)}",),
        again,
    )


def _previous_name(earlier: SourceUse, now: SourceUse) -> str:
    (group, _, table), (group_now, _, table_now) = (use.table.partition(".") for use in (earlier, now))
    keys = [f"`previous_name: {table}` to table `{table_now}`"] if table != table_now else []
    keys += [f"`previous_name: {group}` to source `{group_now}`"] if group != group_now else []
    return " and ".join(keys)


def _has_columns_of(one: SourceUse, other: SourceUse, old: QueryIdentity, new: QueryIdentity) -> bool:
    """Returns whether two readers have the same columns, or one all of the other's, or this is unknown."""
    if one.stored or other.stored:
        return False
    names = [_column_names(schemas.get(use.table)) for schemas, use in ((old.schemas, one), (new.schemas, other))]
    return None in names or names[0] <= names[1] or names[1] <= names[0]  # type: ignore[operator]


def _column_names(schema: str | None) -> frozenset[str] | None:
    try:
        found = parse_schema(schema) if schema else None
    except TypeSyntaxError:
        return None
    return frozenset(each.name.lower() for each in found.fields) if isinstance(found, Struct) else None


def _of_continuing(before: SourceUse, now: SourceUse, so_far: ReadSoFar, ledger: Ledger) -> Iterator[ReadingChange]:
    """Yields what other places and options of a reader mean that continues where it stopped."""
    kind = kind_of(now)
    if kind == "files" and not now.stored and _differ(before, now):
        yield from _of_files(before, now, so_far)
    if kind == KAFKA:
        yield from _of_topics(before, now, so_far, ledger)
    if before.format and (kind == PYTHON or kind not in FORMATS) and kind != "files":
        yield from _of_unknown(before, now)
    changed = [name for name in START_OPTIONS if before.format and before.options.get(name) != now.options.get(name)]
    if changed:
        yield ReadingChange(
            f"{_named(now)}: the start option is without effect, because the query continues where it stopped: "
            + ", ".join(changed)
        )


def _of_unknown(before: SourceUse, now: SourceUse) -> Iterator[ReadingChange]:
    """Yields the change of a source of which only its author knows what its offsets mean."""
    names = sorted(
        name
        for name in before.options.keys() | now.options.keys()
        if before.options.get(name) != now.options.get(name) and name not in START_OPTIONS
    )
    if before.path != now.path:
        names.insert(0, "class" if now.format == PYTHON else "path")
    if names:
        yield ReadingChange(
            f"{_named(now)} continues with another {', '.join(names)}",
            f"would continue to read {_named(now)} with another {', '.join(names)}",
            f"sqlstream does not know which rows the source in {_declared(now)} reads with its earlier offsets; they "
            "could be read twice or not at all",
            accepting="continues at the same offsets",
        )


def _of_files(before: SourceUse, now: SourceUse, so_far: ReadSoFar) -> Iterator[ReadingChange]:
    """Yields what another path or other options of files mean. Spark knows the files that it has read by their URIs, or
    with `fileNameOnly` by their names.
    """
    choices = [file_choice(use.options) for use in (before, now)]
    text = f"{_named(now)} reads {_where(now)}, and was {_where(before)}: files that were read are not read again"
    if has_same_path(before, now):
        text = f"{_named(now)} has other options: files that were read are not read again"
    if so_far.is_empty:
        return
    if so_far.read is None or so_far.now is None or choices[1] is None:
        # If one of the two finds what the other finds, a file keeps its URI, by which Spark knows it.
        if not are_nested(before, now):
            yield ReadingChange(
                text,
                f"would read {_named(now)} with another pattern",
                f"{_declared(now)} reads {_where(now)}, and was {_where(before)}; sqlstream cannot list the files, and "
                "those that were moved or renamed would be in the output twice",
                accepting="reads the files that Spark does not know yet",
            )
        else:
            yield ReadingChange(f"{text}, nor are those that are older than `maxFileAge`")
        return
    unread = unread_files(so_far.now, so_far.read, choices[1])
    known = {local_path(uri) or uri for uri in so_far.read}
    # Files that were copied to another folder may have new times, so there the names alone decide.
    is_elsewhere = not any(file.name in known for file in so_far.now)
    again = _read_before(unread, so_far.read, by_name=is_elsewhere or _by_path_now(choices))
    if again:
        yield ReadingChange(
            f"{_named(now)}: {plural(len(again), 'file')} would be read again",
            f"would read {plural(len(again), 'file')} of {_named(now)} again",
            f"{_declared(now)} reads {_where(now)}, and was {_where(before)}; {again[0]} has the name of a file that "
            "was read at another place",
            ("set the option `fileNameOnly: true`, if no two files have the same name: Spark then knows the files",),
            "reads them again",
        )
    never = _newly_too_old(so_far, so_far.read, choices[0], choices[1])
    if never:
        yield ReadingChange(
            f"{_named(now)}: {plural(len(never), 'file')} would never be read",
            f"would never read {plural(len(never), 'file')} of {_named(now)}",
            f"{never[0]} is older than `maxFileAge` allows: Spark counts it from the newest file that was read",
            (f"set the option `maxFileAge` of {_declared(now)} to more, such as 10000d, until they are read",),
            "ignores them",
        )
    if not again and not never:
        yield ReadingChange(text)


def _by_path_now(choices: Sequence[FileChoice | None]) -> bool:
    """Returns whether Spark knew files by their names, and now by their URIs."""
    return bool(choices[0] and choices[0].by_name and choices[1] and not choices[1].by_name)


def _read_before(unread: Sequence[StoredFile], read: Mapping[str, int], *, by_name: bool) -> list[str]:
    """Returns those of the unread files that were read at another place: files of the same name and time, or only of
    the same name.
    """
    known = {(file_name(local_path(uri) or uri), modified) for uri, modified in read.items()}
    names = {name for name, _ in known}
    return sorted(
        file.name
        for file in unread
        if (file_name(file.name), file.modified) in known or (by_name and file_name(file.name) in names)
    )


def _newly_too_old(
    so_far: ReadSoFar, read: Mapping[str, int], before: FileChoice | None, now: FileChoice | None
) -> list[str]:
    """Returns the files that the reader ignores for their age, and did not ignore before."""
    if before is None or now is None or so_far.now is None:
        return []
    ignored = [_too_old(files, read, choice) for files, choice in ((so_far.before or (), before), (so_far.now, now))]
    return sorted(ignored[1] - ignored[0])


def _too_old(files: Sequence[StoredFile], read: Mapping[str, int], choice: FileChoice) -> set[str]:
    ageless = FileChoice(choice.pattern, choice.is_recursive, choice.by_name, None)
    unread = unread_files(files, read, ageless)
    return {file.name for file in unread} - {file.name for file in unread_files(unread, read, choice)}


def _of_topics(before: SourceUse, now: SourceUse, so_far: ReadSoFar, ledger: Ledger) -> Iterator[ReadingChange]:
    """Yields what other brokers and topics mean. Spark reads new topics from their first record, regardless of the
    options, and fails if a topic is missing, unless `failOnDataLoss` is false.
    """
    if not share_servers(before, now):
        yield ReadingChange(
            f"{_named(now)} continues at the same offsets on other brokers",
            f"would continue to read {_named(now)} at the same offsets on other brokers",
            f"{_declared(now)} has none of the brokers that it had; on another cluster the same offsets are other "
            "records, so rows would be lost or read twice",
            ("name one of the earlier brokers too, if it is the same cluster",),
            "continues at the same offsets, which is right if it is the same cluster",
        )
    known = frozenset(so_far.offset) if isinstance(so_far.offset, dict) else topics_of(before)
    gone = sorted(topic for topic in known if not reads_topic(now, topic))
    if gone and now.options.get(FAILS_ON_LOSS, "true").strip().lower() != "false":
        yield ReadingChange(
            f"{_named(now)} no longer reads {quoted_list(gone)}",
            f"would fail, because {_named(now)} no longer reads {quoted_list(gone)}",
            f"the checkpoint has offsets of {quoted_list(gone)}, which {_declared(now)} does not read; Spark takes "
            "this for lost data",
            ("set the option `failOnDataLoss: false` until the next batch is committed",),
        )
    elif gone:
        yield ReadingChange(f"{_named(now)} no longer reads {quoted_list(gone)}: it is never read from here on")
    added = sorted(topics_of(now) - known) if known else []
    again = sorted(topic for topic in added if any(topic in topics_of(use) for use in ledger.former))
    if again:
        yield ReadingChange(
            f"{_named(now)} reads {quoted_list(again)} from the first record",
            f"would read {quoted_list(again)} again, which it has read before",
            f"{_declared(now)} has read {quoted_list(again)} before a change; Spark has forgotten where it stopped, "
            "and starts with the first record",
            ("read it in another model, which has a checkpoint for itself",),
            "reads it from the first record",
        )
    elif added:
        yield ReadingChange(
            f"{_named(now)} reads {quoted_list(added)} from the first record; startingOffsets has no effect on it"
        )


def _named(use: SourceUse) -> str:
    return f"`{use.table}`"


def _declared(use: SourceUse) -> str:
    return f"`{use.table}` ({use.declared})" if use.declared else f"`{use.table}`"


def _where(use: SourceUse) -> str:
    """Returns in words what a reader reads."""
    if kind_of(use) == KAFKA:
        named = ", ".join(sorted(topics_of(use))) or use.options.get("subscribepattern", "")
        return f"topic {named}" if named else "Kafka"
    return path_of(use) or use.path or use.format or "an unknown place"
