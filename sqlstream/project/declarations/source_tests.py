"""Data tests of source tables: for each such table a view, which all models read instead of the table. So the tests
apply in every query that reads the source, as those of a view do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.generic_tests import GenericTest
from sqlstream.project.configuration.resources import Resources
from sqlstream.project.configuration.validate import Path
from sqlstream.project.values import ModelFile, SourceTable
from sqlstream.project.yaml import locate


def tested_names(sources: Sequence[SourceTable]) -> Mapping[str, Location]:
    """Returns the names of all views that test sources, with the locations of the sources."""
    return {_name(table): table.location for table in sources if _has_tests(table)}


def tested_sources(
    resources: Resources,
    sources: Sequence[SourceTable],
    findings: list[Finding],
    generic: Mapping[str, GenericTest],
) -> tuple[ModelFile, ...]:
    """Returns a view for each source table with data tests. `generic` are the tests that the project defines."""
    tables = {table.location: table for table in sources if _has_tests(table)}
    if not tables:
        return ()
    from sqlstream.project.configuration.data_tests import read_data_tests  # few projects need its documents

    found = []
    for document, node in resources.documents.values():
        for at, source in enumerate(document.sources):
            for index, entry in enumerate(source.tables):
                path: Path = ("sources", at, "tables", index)
                table = tables.get(locate(node, (*path, "name")))
                if table is None:
                    continue
                columns = [column.name for column in entry.columns]
                tests = read_data_tests(f"{table.source}_{table.name}", columns, node, path, findings, generic)
                found.append(
                    ModelFile(
                        name=_name(table),
                        path=f"{table.location.path}/{_name(table)}.sql",  # as in dbt for nodes that YAML declares
                        text=f"select *\nfrom {{{{ source('{table.source}', '{table.name}') }}}}\n",
                        folders=(),
                        description=f"The rows of {table.full_name} that its data tests do not leave out.",
                        columns=(),
                        configs=(),
                        declared_at=table.location,
                        data_tests=tests,
                        tests=table.full_name,
                    )
                )
    return tuple(found)


def _has_tests(table: SourceTable) -> bool:
    return table.corrupt_of is None and bool(table.data_tests or any(each.data_tests for each in table.columns))


def _name(table: SourceTable) -> str:
    return f"{table.source}__{table.name}"  # as in the compiled SQL of the models that read it
