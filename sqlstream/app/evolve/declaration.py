"""Adds new fields of a source to the file that declares its columns. All else in the file stays as it is."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlstream.errors import FindingsError
from sqlstream.location import Location
from sqlstream.project.configuration.columns import Schema, fields_of, with_columns
from sqlstream.project.declarations.schema_changes import RESCUED
from sqlstream.project.messages.message_format import PREFIX
from sqlstream.project.types.data_types import Field, Struct, columns_ddl, type_ddl
from sqlstream.project.types.found_types import NewColumns, new_columns
from sqlstream.project.values import SourceTable
from sqlstream.project.yaml import YamlMapping, YamlSequence, follow, parse_yaml, plain
from sqlstream.project.yaml.nodes import Spans
from sqlstream.project.yaml.writing import BOM, Edit, YamlFile, flow_text, read_yaml_file, scalar_text

YamlPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Evolution:
    """How the declaration of a source changes: its `columns`, and the file `path` (relative to the project's root) from
    `before` to `after`. Both are None if there is nothing to add, or if the file cannot be changed so that only the
    columns change.
    """

    columns: NewColumns
    path: str
    before: str | None = None
    after: str | None = None


def evolve(root: Path, table: SourceTable, found: Struct) -> Evolution:
    """Returns how the declaration of `table` changes to have the `found` fields. Its file is read again, because the
    user may have changed it; one that cannot be read is one that cannot be changed.
    """
    with suppress(OSError, UnicodeDecodeError, FindingsError):
        declared = _declared(root, table)
        if declared is not None and declared.fields:
            columns = new_columns(declared.fields, found, _taken(table, found))
            after = declared.changed(columns) if columns.named else None
            before = None if after is None else declared.file.text
            bom = BOM if declared.file.has_bom else ""
            return Evolution(
                columns, declared.path, *(None if text is None else bom + text for text in (before, after))
            )
    fields = fields_of(table.spark_schema) if table.messages is None else table.messages.record_columns
    known = [each for each in fields if each.name != RESCUED]
    return Evolution(new_columns(known, found, _taken(table, found)), table.location.path)


def _taken(table: SourceTable, found: Struct) -> list[str]:
    """Returns the names that no column can have."""
    reserved = [field.name for field in found.fields if field.name.casefold().startswith(PREFIX)]
    return [RESCUED, *(reserved if table.messages is not None else ())]


def _declared(root: Path, table: SourceTable) -> _SchemaFile | _Ddl | _Columns | None:
    """Returns the declaration of `table` as its file has it now; None if another part of the file writes it. Raises:
    OSError, UnicodeDecodeError, FindingsError.
    """
    path = table.location.path
    file = read_yaml_file(root / path)
    document = parse_yaml(file.text, path)
    at = _path_of(document, table)
    if at is None:
        return None
    written = plain(follow(document, at) or document)
    keys = written if isinstance(written, dict) else {}
    if isinstance(keys.get("schema_file"), str):
        return _SchemaFile(keys["schema_file"], read_yaml_file(root / keys["schema_file"]))
    if keys.get("schema") is not None:
        return _Ddl(path, file, (*at, "schema"), str(keys["schema"]))
    return _Columns(path, file, (*at, "columns"), keys.get("columns"))


def _path_of(document: YamlMapping, table: SourceTable) -> YamlPath | None:
    """Returns the path of the declaration of `table` in its file."""
    for at, source in enumerate(_items(follow(document, ("sources",)))):
        for index, each in enumerate(_items(follow(source, ("tables",)))):
            if [plain(name) for name in (follow(source, ("name",)), follow(each, ("name",))) if name] == [
                table.source,
                table.name,
            ]:
                return "sources", at, "tables", index
    return None


def _items(node: object) -> Sequence[Any]:
    return node.items if isinstance(node, YamlSequence) else ()


@dataclass(frozen=True)
class _SchemaFile:
    """A file with a schema, as DDL or as JSON."""

    path: str
    file: YamlFile

    @property
    def fields(self) -> tuple[Field, ...]:
        return _fields_in(self.file.text, is_json=self._is_json)

    @property
    def _is_json(self) -> bool:
        return self.path.endswith(".json")

    def changed(self, columns: NewColumns) -> str | None:
        expected = _expected(self.fields, columns)
        texts = _json_texts(self.file.text, columns) if self._is_json else _ddl_texts(self.file.text, columns, expected)
        texts = (text.replace("\r\n", "\n").replace("\n", self.file.newline) for text in texts)
        return next((text for text in texts if _fields_in(text, is_json=self._is_json) == expected), None)


@dataclass(frozen=True)
class _Ddl:
    """The text of `schema:` at the path `at` of a YAML file."""

    path: str
    file: YamlFile
    at: YamlPath
    ddl: str

    @property
    def fields(self) -> tuple[Field, ...]:
        return _fields_in(self.ddl)

    def changed(self, columns: NewColumns) -> str | None:
        expected, span = _expected(self.fields, columns), Spans(self.file.text).of(self.at)
        if span is None:
            return None
        for ddl in _ddl_texts(self.ddl, columns, expected):
            for edit in self._edits(span, ddl):
                text = self.file.with_edits([edit]).text
                # a candidate that is no YAML, or another one, is not the one
                with suppress(FindingsError):
                    found = str(plain(follow(parse_yaml(text, self.path), self.at) or YamlSequence((), Location(""))))
                    if _fields_in(found) == expected and _differs_only(self.file.text, text, self.at, found):
                        return text
        return None

    def _edits(self, span: tuple[int, int], ddl: str) -> Iterator[Edit]:
        begin, end = span
        if ddl.startswith(self.ddl.rstrip()):
            added, quote = ddl[len(self.ddl.rstrip()) :], self.file.text[end - 1]
            is_quoted = self.file.text[begin] == quote and quote in "'\""
            escaped = added.replace("'", "''") if quote == "'" else json.dumps(added, ensure_ascii=False)[1:-1]
            yield (end - 1, end - 1, escaped) if is_quoted else (end, end, added.replace("\n", self._next_line(span)))
        yield begin, end, flow_text(ddl)

    def _next_line(self, span: tuple[int, int]) -> str:
        """Returns a line end with the indentation of the last line of a block."""
        line = self.file.text[self.file.text.rfind("\n", 0, span[1]) + 1 : span[1]]
        return "\n" + line[: len(line) - len(line.lstrip())]


@dataclass(frozen=True)
class _Columns:
    """The list `columns:` at the path `at` of a YAML file, whose value is `items`."""

    path: str
    file: YamlFile
    at: YamlPath
    items: object

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns, none if the list has templates or columns without a type."""
        entries = self.items if isinstance(self.items, list) else []
        if not all(isinstance(each, dict) and each.get("name") and each.get("data_type") for each in entries):
            return ()
        columns = (f"`{str(each['name']).replace('`', '``')}` {each['data_type']}" for each in entries)
        return _fields_in(", ".join(columns))

    def changed(self, columns: NewColumns) -> str | None:
        spans, items = Spans(self.file.text), copy.deepcopy(self.items)
        edits = [self._added(spans, columns.added)] if columns.added else []
        if not isinstance(items, list):
            return None
        types = {field.name: type_ddl(field.type, as_written=True) for field in columns.changed}
        for index, entry in enumerate(items):
            kind = types.get(str(entry["name"]))
            if kind is not None:
                span, entry["data_type"] = spans.of((*self.at, index, "data_type")), kind
                edits.append(None if span is None else (*span, flow_text(kind)))
        items += [{"name": field.name, "data_type": type_ddl(field.type, as_written=True)} for field in columns.added]
        found = [edit for edit in edits if edit is not None]
        with suppress(FindingsError):
            text = self.file.with_edits(found).text
            if len(found) == len(edits) and _differs_only(self.file.text, text, self.at, items):
                return text
        return None

    def _added(self, spans: Spans, added: Sequence[Field]) -> Edit | None:
        """Returns the edit that adds columns in the style of the last one; None if it is an alias or the like."""
        text, whole = self.file.text, spans.of(self.at)
        count = len(self.items) if isinstance(self.items, list) else 0
        last = spans.of((*self.at, count - 1))
        if whole is None or last is None or not whole[0] <= last[0] < last[1] <= whole[1]:
            return None
        entries = [{"name": field.name, "data_type": type_ddl(field.type, as_written=True)} for field in added]
        before = text[text.rfind("\n", 0, last[0]) + 1 : last[0]]
        if text[whole[0]] == "[":
            between = f",\n{before}" if not before.strip() else ", "
            return last[1], last[1], "".join(between + flow_text(entry) for entry in entries)
        if _DASH.fullmatch(before) is None:
            return None
        inside = " " * len(before)
        if text[last[0]] == "{":
            lines = [f"{before}{flow_text(entry)}\n" for entry in entries]
        else:
            lines = [
                f"{before}name: {scalar_text(entry['name'])}\n{inside}data_type: {scalar_text(entry['data_type'])}\n"
                for entry in entries
            ]
        line_end = text.find("\n", last[1])
        if line_end >= 0:
            return line_end + 1, line_end + 1, "".join(lines)
        return len(text), len(text), "\n" + "".join(lines).rstrip("\n")


_DASH = re.compile(r" *- +")
"""The beginning of the line of an item, up to its value."""


def _differs_only(before: str, after: str, at: YamlPath, value: object) -> bool:
    """Whether two texts of a YAML file have the same values, but for that at the path `at`, which has become `value`.

    Raises: FindingsError if one of them is not YAML.
    """
    wanted, found = plain(parse_yaml(before, "")), plain(parse_yaml(after, ""))
    parent: Any = wanted
    for part in at[:-1]:
        parent = parent[part]
    parent[at[-1]] = value
    return wanted == found


def _expected(fields: Sequence[Field], columns: NewColumns) -> tuple[Field, ...]:
    changed = {field.name: field for field in columns.changed}
    return (*(changed.get(field.name, field) for field in fields), *columns.added)


def _fields_in(text: str, *, is_json: bool = False) -> tuple[Field, ...]:
    return fields_of(Schema(Location(""), **({"json": text} if is_json else {"ddl": text})))


def _ddl_texts(ddl: str, columns: NewColumns, expected: Sequence[Field]) -> Iterator[str]:
    """Yields DDL that may have the expected columns, first the one that keeps what is written."""
    text = ddl.rstrip()
    comma = "\n, " if "--" in text else ", "  # a comment ends with its line
    yield text + comma + columns_ddl(columns.added, as_written=True) + ddl[len(text) :]
    yield columns_ddl(expected, as_written=True)


def _json_texts(text: str, columns: NewColumns) -> Iterator[str]:
    """Yields the JSON of a schema with the columns, indented as before."""
    added = with_columns(Schema(Location(""), json=text), columns.added).json or text
    indent = re.search(r"\n( +)", text)
    end = "\n" if text.endswith("\n") else ""
    yield json.dumps(json.loads(added), indent=len(indent[1]) if indent else None, ensure_ascii=False) + end
