"""The streams that a query reads: one reader for each path from the query to a source, each with a stable name, and
whether Spark can continue to read one where another stopped.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.project.files.paths import alternatives_of, folder_of_pattern, is_absolute, join, plain_path
from sqlstream.project.formats.formats import FORMATS, format_of
from sqlstream.project.values import SourceTable
from sqlstream.state.ledger import SOURCE, Ledger, QueryIdentity, SourceUse
from sqlstream.state.signature.signature import shown_source
from sqlstream.state.spark_settings import SOURCE_EVOLUTION, is_credential, without_credentials

PYTHON, KAFKA = "python", "kafka"

SERVERS, _TOPICS, _TOPIC_PATTERN, _PARTITIONS = "kafka.bootstrap.servers", "subscribe", "subscribepattern", "assign"
FAILS_ON_LOSS = "failondataloss"

START_OPTIONS = (
    *("startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp", "startingoffsetsbytimestampstrategy"),
    *("startingversion", "stream-from-timestamp"),
)
"""Options, in lower case, with effect only in the first batch of a reader."""

_FILE_OPTIONS = ("filenameonly", "recursivefilelookup", "pathglobfilter", "maxfileage", "latestfirst")
_LIMITS = ("maxfilespertrigger", "maxbytespertrigger")
_DELTA_OPTIONS = ("ignoredeletes", "ignorechanges", "skipchangecommits", "readchangefeed")
_KEPT_OPTIONS = {
    *(*_FILE_OPTIONS, *_LIMITS, "ignoredpathsegmentregex", "basepath"),
    *(SERVERS, _TOPICS, _TOPIC_PATTERN, _PARTITIONS, FAILS_ON_LOSS),
    *(*START_OPTIONS, *_DELTA_OPTIONS),
}
"""The options of known formats that decide which rows a stream reads. The others can contain passwords."""

_IGNORED = re.compile(
    r"\b(?:ignore(?:Missing|Corrupt)Files|startingVersion|stream-from-timestamp) [^,]*(?:, )?", re.IGNORECASE
)
_IGNORED_OF_STATIC = re.compile(
    r"\b(?:ignore(?:Missing|Corrupt)Files|partitionColumn|lowerBound|upperBound|fetchsize|queryTimeout) [^,]*(?:, )?",
    re.IGNORECASE,
)
"""Options without effect on the rows of an input, which an earlier sqlstream has written into `contents`."""

_SERVERS_IN = re.compile(rf"(?<={re.escape(SERVERS)} )\S+?(?=, |\Z)", re.IGNORECASE)
"""The brokers of a static table in `contents`, with commas between them."""


@dataclass(frozen=True)
class _Found:
    """A reader of a query, without its name. `table` and `via` are those that the ledger has of it, before a rename."""

    use: SourceUse
    table: str
    via: str


def source_uses(compiled: CompiledProject, model: CompiledModel, ledger: Ledger | None = None) -> tuple[SourceUse, ...]:
    """Returns the readers of the query of `model`, in the order of first appearance in the flattened query. `ledger` is
    the ledger from which it resumes.

    Spark's checkpoint identifies a source only by its name, so a reader keeps its name when other references are added,
    removed or moved. A reader gets the name of the same path. If that is new, because a view was renamed, it gets the
    name of the only reader of the same table whose path no longer exists. New readers get unused names:
    `<source>__<table>`, then `__2`, `__3`. So does a reader of a path where Spark cannot continue.
    `unsure_tables` returns the tables for which this may be wrong.
    """
    old = ledger.identity.sources if ledger else ()
    tables = {use.table for use in old}
    found = [_as_before(use, table, tables) for use, table in _walk(compiled, model, ())]
    kept = _by_path(found, old)
    kept |= _by_table(
        [each for each in found if each.use.via not in kept], [use for use in old if use.name not in kept.values()]
    )
    # The checkpoint keeps the offsets of dropped readers. A reader with the name of one would continue there.
    taken = {use.name for use in old} | set(ledger.retired if ledger else ())
    named: list[SourceUse] = []
    for each in found:
        name = kept.get(each.use.via) or _new_name(each.use, taken)
        taken.add(name)
        named.append(replace(each.use, name=name))
    return tuple(named)


def unsure_tables(old: Sequence[SourceUse], new: Sequence[SourceUse]) -> tuple[str, ...]:
    """Returns the tables for which it is unknown which reader continues where an earlier one stopped.

    This happens if a table has lost readers and has new ones, and if one text has a different number of references to
    it than before, because only their order distinguishes them.
    """
    now = {use.name: use for use in new}
    before = [replace(use, table=now[use.name].table) if use.name in now else use for use in old]
    tables = dict.fromkeys(use.table for use in (*before, *new))
    return tuple(table for table in tables if _is_unsure(table, before, new))


def _is_unsure(table: str, old: Sequence[SourceUse], new: Sequence[SourceUse]) -> bool:
    before = {use.name for use in old if use.table == table}
    after = {use.name for use in new if use.table == table}
    if before - after and after - before:
        return True
    texts = [
        Counter(use.via.rpartition("/")[0] for use in uses if use.table == table and use.via) for uses in (old, new)
    ]
    return any(texts[0][text] != texts[1][text] for text in texts[0].keys() & texts[1].keys())


def names_sources(identity: QueryIdentity) -> bool:
    """Returns whether the checkpoint of a query identifies sources by name, and not by their order."""
    return identity.settings.get(SOURCE_EVOLUTION) == "true"


def continuing(old: QueryIdentity, new: QueryIdentity) -> list[tuple[SourceUse, SourceUse]]:
    """Returns the readers of `new` that continue where one of `old` stopped: before and now."""
    if not names_sources(old):
        return [pair for pair in zip(old.sources, new.sources, strict=False) if _is_same_input(*pair)]
    before = {use.name: use for use in old.sources}
    return [(before[use.name], use) for use in new.sources if use.name in before]


def has_same_readers(old: QueryIdentity, new: QueryIdentity) -> bool:
    """Returns whether two forms of a query read the same streams: what one has read, the other can read again."""
    pairs = continuing(old, new)
    return len(pairs) == len(old.sources) == len(new.sources) and all(has_same_path(*pair) for pair in pairs)


def _is_same_input(before: SourceUse, now: SourceUse) -> bool:
    is_named = before.name == now.name or before.table == now.table
    is_there = path_of(before) is not None and has_same_path(before, now)
    return (is_named or is_there) and can_continue(before, now)


def respelled(old: QueryIdentity, new: QueryIdentity) -> QueryIdentity:
    """Returns `old` with its paths in the words of `new` where these mean the same: relative, absolute, a URI.
    Its inputs lack the options that are known to have no effect, and renamed tables have their new names in what it
    says of their columns and code.
    """
    now = {before.name: use for before, use in continuing(old, new)}
    sources = tuple(
        replace(
            use,
            path=now[use.name].path if use.name in now and has_same_path(use, now[use.name]) else use.path,
            options={name: without_credentials(value) for name, value in use.options.items()},
        )
        for use in old.sources
    )
    contents = {name: _in_words_of(old, new, name) for name in old.contents}
    paths = dict(old.static_paths)
    for name in old.static_paths.keys() & old.contents.keys() & new.static_paths.keys():
        (then, path), (written, present) = old.static_paths[name], new.static_paths[name]
        if path == present:
            contents[name], paths[name] = contents[name].replace(then, written, 1), (written, present)
    names = {before.table: use.table for before, use in continuing(old, new)}
    schemas = {names.get(name, name): text for name, text in old.schemas.items()}
    code = old.code and {_renamed_source(name, names): text for name, text in old.code.items()}
    added = new.added_contents if old.added_contents is None else old.added_contents
    return replace(
        old,
        sources=sources,
        contents=contents,
        added_contents=added,
        static_paths=paths,
        schemas=schemas,
        code=code,
    )


def _renamed_source(name: str, names: Mapping[str, str]) -> str:
    """Returns a key of `QueryIdentity.code` with the new name of its source."""
    kind, _, table = name.partition(" ")
    return f"{kind} {names.get(table, table)}" if kind == SOURCE else name


def _in_words_of(old: QueryIdentity, new: QueryIdentity, name: str) -> str:
    """Returns what a ledger has of an input, in the form that it has today. The same brokers can have other names if
    one of them is named as before.
    """
    text, now = old.contents[name], new.contents.get(name, "")
    if old.added_contents is None:  # of an earlier sqlstream
        is_stream = name in {shown_source(use.name) for use in (*old.sources, *new.sources)}
        shorter = (_IGNORED if is_stream else _IGNORED_OF_STATIC).sub("", text)
        if shorter != text:
            text = shorter.removesuffix(" ").removesuffix(",")
        text += (new.added_contents or {}).get(name, "")
        # an early ledger has no quotes around values with commas
        text = now if text == now.replace("'", "") else text
    then, here = _SERVERS_IN.search(text), _SERVERS_IN.search(now)
    if then and here and set(then[0].split(",")) & set(here[0].split(",")):
        text = text[: then.start()] + here[0] + text[then.end() :]
    return text


def has_same_path(before: SourceUse, now: SourceUse) -> bool:
    """Returns whether two readers read the same path or table. Early ledgers have relative paths, or none."""
    old, new = path_of(before), path_of(now)
    return old is None or new is None or old == new


def path_of(use: SourceUse) -> str | None:
    """Returns the path, URI or table of a reader in its normal form, None if it is unknown."""
    if use.path is None or _is_table(use):
        return use.path
    return plain_path("/", use.path) if is_absolute(use.path) else None


def _is_table(use: SourceUse) -> bool:
    return use.format == "table" or (not is_absolute(use.path or "") and (use.stored or format_of(use.format).is_table))


def folder_of(use: SourceUse) -> str:
    """Returns the folder in which the pattern of a reader of files begins, and its path if that is no pattern."""
    return use.folder or folder_of_pattern(path_of(use) or "/", "/", lambda _: False)


def kind_of(use: SourceUse) -> str:
    """Returns what kind of offsets a reader has, empty if that is unknown."""
    return "files" if format_of(use.format).is_file else use.format


def can_continue(before: SourceUse, now: SourceUse) -> bool:
    """Returns whether Spark can read `now` where it stopped reading `before`, so that it reads no row again."""
    if before.format and kind_of(before) != kind_of(now):  # an early ledger has no formats
        return False
    if before.stored or now.stored:
        return before.stored == now.stored and has_same_path(before, now)
    if kind_of(now) == KAFKA:
        return reads_topic_of(now, before)
    if kind_of(now) == PYTHON:
        return True  # which rows its offsets mean only its author knows
    return has_same_path(before, now) or (kind_of(now) == "files" and _finds_files(before, now))


def _finds_files(before: SourceUse, now: SourceUse) -> bool:
    """Returns whether Spark finds the files of the last batch at another path, and knows those that it has read.

    On a restart it reads the files of the last batch again. They must be below the path, unless it is a pattern
    (FileStreamSource gives each batch the path as its `basePath`; tested on 4.3: "Wrong basePath"). It knows files by
    their URIs, or with `fileNameOnly` by their names.
    """
    new = path_of(now) or ""
    if folder_of(now) == new:
        return f"{path_of(before)}/".startswith(f"{new.rstrip('/')}/")
    return is_set(now, "filenameonly") or are_near(before, now)


def are_near(one: SourceUse, other: SourceUse) -> bool:
    """Returns whether two readers of files can find some in the same folder."""
    folders = [f"{folder_of(use).rstrip('/')}/" for use in (one, other)]
    return folders[0].startswith(folders[1]) or folders[1].startswith(folders[0])


def are_nested(one: SourceUse, other: SourceUse) -> bool:
    """Returns whether one of two readers of files can find what the other finds, in the same folders."""
    pairs = ((first, second) for first in _names_of(one) for second in _names_of(other))
    return any(all(map(_can_match, *pair)) for pair in pairs)


def _names_of(use: SourceUse) -> Iterator[list[tuple[str, bool]]]:
    """Yields the names in the path of a reader for each of its alternatives, and whether each is part of a pattern."""
    folder = folder_of(use)
    first = len(folder.rstrip("/").split("/"))
    for path in alternatives_of(path_of(use) or "", folder):
        yield [(name, at >= first) for at, name in enumerate(path.split("/"))]


def _can_match(one: tuple[str, bool], other: tuple[str, bool]) -> bool:
    (name, is_pattern), (second, is_other) = one, other
    return name == second or (is_other and fnmatchcase(name, second)) or (is_pattern and fnmatchcase(second, name))


def can_overlap(one: SourceUse, other: SourceUse) -> bool:
    """Returns whether two readers of different tables can read the same rows."""
    if one.format and other.format and kind_of(one) != kind_of(other):
        return False
    if kind_of(one) == kind_of(other) == KAFKA:
        return share_servers(one, other) and (reads_topic_of(one, other) or reads_topic_of(other, one))
    paths = [path_of(use) for use in (one, other)]
    if None in paths:
        return bool(one.format and other.format) and one.format not in FORMATS
    if kind_of(one) == "files" and kind_of(other) in ("files", ""):
        return are_near(one, other)
    return paths[0] == paths[1]


def is_set(use: SourceUse, option: str) -> bool:
    """Returns whether an option, in lower case, is true."""
    return use.options.get(option, "").strip().lower() == "true"


def topics_of(use: SourceUse) -> frozenset[str]:
    """Returns the topics that a Kafka reader names; none if it has a pattern."""
    if _PARTITIONS in use.options:
        try:
            return frozenset(json.loads(use.options[_PARTITIONS]))
        except (ValueError, TypeError):
            return frozenset()
    return frozenset(filter(None, (name.strip() for name in use.options.get(_TOPICS, "").split(","))))


def reads_topic(use: SourceUse, topic: str) -> bool:
    """Returns whether a Kafka reader reads a topic, and True if that is unknown."""
    pattern = use.options.get(_TOPIC_PATTERN)
    if pattern is None:
        return topic in topics_of(use) or not topics_of(use)
    try:
        return re.fullmatch(pattern, topic) is not None
    except re.error:  # a pattern of Java
        return True


def reads_topic_of(use: SourceUse, other: SourceUse) -> bool:
    """Returns whether a Kafka reader reads a topic that `other` reads, and True if that is unknown."""
    named = topics_of(other)
    return any(reads_topic(use, topic) for topic in named) if named else True


def share_servers(one: SourceUse, other: SourceUse) -> bool:
    """Returns whether two Kafka readers have a broker in common, and True if that is unknown."""
    lists = [{name.strip() for name in use.options.get(SERVERS, "").split(",")} - {""} for use in (one, other)]
    return not all(lists) or bool(lists[0] & lists[1])


def _as_before(use: SourceUse, table: SourceTable, tables: Collection[str]) -> _Found:
    former = table.previous_name
    # `previous_name` counts only in the first run after the rename: then the ledger still has the former name alone.
    if former is None or former not in tables or use.table in tables:
        return _Found(use, use.table, use.via)
    above, slash, view = use.via.rpartition("/")
    base, earlier = (name.replace(".", "__", 1) for name in (use.table, former))
    return _Found(use, former, f"{above}{slash}{earlier}{view.removeprefix(base)}")


def _by_path(found: Sequence[_Found], old: Sequence[SourceUse]) -> dict[str, str]:
    before = {(use.table, use.via): use for use in old if use.via}
    pairs = ((each.use, before.get((each.table, each.via))) for each in found)
    return {use.via: known.name for use, known in pairs if known is not None and can_continue(known, use)}


def _by_table(found: Sequence[_Found], old: Sequence[SourceUse]) -> dict[str, str]:
    """Returns the names of readers that must be the same as before, by path. Ledgers without paths are in order."""
    kept: dict[str, str] = {}
    for table in {each.table for each in found}:
        here, before = [each.use for each in found if each.table == table], [use for use in old if use.table == table]
        without_paths = all(not use.via for use in before)
        if len(here) == len(before) and (len(here) == 1 or without_paths):
            pairs = zip(here, before, strict=True)
            kept |= {use.via: known.name for use, known in pairs if can_continue(known, use)}
    return kept


def table_of(name: str) -> str:
    """Returns the table of a reader that is known only by its name."""
    return re.sub(r"__[0-9]+\Z", "", shown_source(name))


def _new_name(use: SourceUse, taken: Collection[str]) -> str:
    base = use.table.replace(".", "__", 1)
    number = 1
    while (name := base if number == 1 else f"{base}__{number}") in taken:
        number += 1
    return name


def _walk(
    compiled: CompiledProject, model: CompiledModel, above: tuple[str, ...]
) -> Iterator[tuple[SourceUse, SourceTable]]:
    """Yields the readers without their names, and their tables. `via` are the views from the query to the source."""
    for read in model.reads:
        path = (*above, read.view)
        if read.node_id in compiled.models:
            yield from _walk(compiled, compiled.models[read.node_id], path)
        elif read.node_id in compiled.tables and compiled.tables[read.node_id].mode == "stream":
            table = compiled.tables[read.node_id]
            watermark = f"{table.watermark.column} {table.watermark.delay}" if table.watermark else None
            origin = table.table or table.python if table.path is None else join(str(compiled.project.root), table.path)
            declared = f"{table.location.path}:{table.location.line}"
            is_file = format_of(table.format).is_file and table.path is not None
            yield (
                SourceUse(
                    *("", table.full_name, watermark, origin, "/".join(path), table.stored is not None, table.format),
                    options=_options_of(table),
                    folder=_folder_of(table, str(compiled.project.root)) if is_file else "",
                    declared=declared,
                    formerly=table.previous_name or "",
                ),
                table,
            )


def _folder_of(table: SourceTable, root: str) -> str:
    path = join(root, table.path or "")
    # The output of a model is one folder, also if its name has characters of patterns.
    return plain_path("/", path) if table.stored else folder_of_pattern(path, root, os.path.exists)


def _options_of(table: SourceTable) -> Mapping[str, str]:
    # In other formats any option can decide which rows are read.
    is_known = table.format in FORMATS and table.format != PYTHON
    shown = {name.lower(): str(value) for name, value in sorted(table.options.items())}
    return {
        name: without_credentials(value)
        for name, value in shown.items()
        if (name in _KEPT_OPTIONS if is_known else not is_credential(name))
    }
