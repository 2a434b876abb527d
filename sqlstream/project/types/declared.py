"""Finds declared types that Spark would refuse, each with its line and column."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlstream.errors import Finding
from sqlstream.location import Location, location_at
from sqlstream.project.configuration.documents import ColumnDocument
from sqlstream.project.configuration.validate import Path, is_template
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.types.parser import TypeSyntaxError, parse_schema, parse_type
from sqlstream.project.yaml import YamlMapping, locate, locate_in_scalar

_COLUMN = "c "
"""A name before the type of one column. Clauses after a type, such as NOT NULL, belong to a column."""


def schema_problem(ddl: str, node: YamlMapping, path: Path, files: ProjectFiles) -> Finding | None:
    """Returns the error in the DDL of the YAML text at `path`, None if Spark may accept it."""
    return _problem(ddl, lambda offset: _written(ddl, offset, locate(node, path), files))


def schema_file_problem(text: str, name: str) -> Finding | None:
    """Returns the error in a file of DDL, None if Spark may accept it."""
    return _problem(text, lambda offset: location_at(name, text, offset))


def type_problem(ddl: str, place: Location, files: ProjectFiles) -> Finding | None:
    """Returns the error in one type, which is in YAML at `place`, None if Spark may accept it."""
    return _problem(ddl, lambda offset: _written(ddl, offset, place, files), parse_type)


def column_problems(
    columns: Sequence[ColumnDocument], node: YamlMapping, path: Path, files: ProjectFiles
) -> list[Finding]:
    """Returns the errors in the types of the list of columns at `path`."""
    # many columns share a type, and few types are wrong
    types = {column.data_type for column in columns if column.data_type}
    wrong = {ddl for ddl in types if _problem(_COLUMN + ddl, lambda _: Location("")) is not None}
    findings: list[Finding] = []
    for index, column in enumerate(columns):
        if column.data_type in wrong:
            place = locate(node, (*path, index, "data_type"))
            findings += _column_problem(column.data_type, place, files)
    return findings


def _column_problem(ddl: str, place: Location, files: ProjectFiles) -> list[Finding]:
    found = _problem(_COLUMN + ddl, lambda offset: _written(ddl, offset - len(_COLUMN), place, files))
    return [found] if found else []


def _problem(
    ddl: str, place: Callable[[int], Location], parse: Callable[[str], object] = parse_schema
) -> Finding | None:
    if is_template(ddl):
        return None  # its rendering has failed, which is another finding
    try:
        parse(ddl)
    except TypeSyntaxError as error:
        return Finding("invalid-value", error.message, error.why, error.fix, place(error.offset))
    return None


def _written(ddl: str, offset: int, scalar: Location, files: ProjectFiles) -> Location:
    return locate_in_scalar(files.read_text(scalar.path), scalar, ddl, max(offset, 0))
