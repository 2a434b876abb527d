"""The `functions:` of project.yml: functions of python/ that SQL can call."""

from __future__ import annotations

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.resources import SeenNames
from sqlstream.project.configuration.settings import Settings
from sqlstream.project.files.python_files import DECORATORS, PythonFunction, PythonModule, PythonName, find_name
from sqlstream.project.wording import quoted
from sqlstream.project.yaml import locate


def build_functions(
    settings: Settings, modules: tuple[PythonModule, ...], findings: list[Finding]
) -> tuple[PythonFunction, ...]:
    """Returns the declared functions, in the order of the file."""
    names = SeenNames("functions")
    functions: list[PythonFunction] = []
    for index, reference in enumerate(settings.document.functions):
        location = locate(settings.node, ("functions", index))
        found = find_name(modules, reference, location)
        if isinstance(found, PythonName) and found.kind not in (*DECORATORS, "value"):
            found = _not_decorated(reference, found, location)
        if isinstance(found, Finding):
            findings.append(found)
        elif names.add(found.name, location, findings):
            digest = next(item.digest for item in modules if item.module == reference.partition(":")[0])
            functions.append(PythonFunction(found.name, reference, location, _type_of(found), digest))
    return tuple(functions)


def _type_of(found: PythonName) -> str | None:
    """The type of a call in an expression. A table function has columns instead."""
    return None if found.kind.endswith("udtf") else found.returns


def _not_decorated(reference: str, found: PythonName, location: Location) -> Finding:
    return Finding(
        "python-name",
        f"{quoted(reference)} is a plain {found.kind}, which SQL cannot call",
        "Spark needs to know its return type",
        'decorate it with @udf("int"), @pandas_udf("int") or @udtf(returnType="a int") of pyspark.sql.functions',
        location,
    )
