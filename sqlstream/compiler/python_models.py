"""Reads the references and the configuration of Python models from their syntax tree, without running them.

`def model(sqlstream, spark)` calls `sqlstream.ref()`, `source()`, `var()` and `config()` with literals. Any other use
of `sqlstream` is a finding.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sqlstream.compiler.render.rendered import (
    NoVersionError,
    Reference,
    RenderedModel,
    RenderOptions,
    TemplateReads,
    find_version,
)
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.values import ModelFile, ModelVersions
from sqlstream.project.wording import did_you_mean
from sqlstream.project.yaml import Located
from sqlstream.python_syntax import parse_module

FUNCTION = "model"
FORM = "def model(sqlstream, spark): ... return a DataFrame"
HAS_FORM, WRITE_FORM = f"a Python model has the form {FORM}", f"write {FORM}"

ARGUMENTS: Mapping[str, tuple[Literal["ref", "source"], int, str]] = {
    "ref": ("ref", 1, "the name of a model or seed"),
    "source": ("source", 2, "the names of a source and of one of its tables"),
}
CALLS = (*ARGUMENTS, "var", "config")
"""The methods of its first parameter that a model can call."""


def read_python_model(file: ModelFile, options: RenderOptions) -> RenderedModel:
    """Returns the references and the configuration of a Python model. `sql` is its text.

    Raises: FindingsError with all findings.
    """
    reader = _Reader(file, options.variables, options.versions)
    function = find_function(_parse(file))
    if function is None:
        reader.report(None, f"`{file.name}` has no function `{FUNCTION}` of two parameters")
    else:
        reader.read(function)
    if reader.findings:
        raise FindingsError(sorted(reader.findings, key=lambda finding: finding.location or file.location))
    reads = TemplateReads(variables=tuple(sorted(reader.used_variables)))
    return RenderedModel(file, file.text, tuple(reader.references), reader.config, reads=reads)


def find_function(tree: ast.Module) -> ast.FunctionDef | None:
    """Returns the function `model` with two parameters, None if the module has none."""
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == FUNCTION]
    # Python keeps the last definition of a name.
    return next((node for node in reversed(found) if _has_two_parameters(node.args)), None)


def _has_two_parameters(args: ast.arguments) -> bool:
    return len(args.args) == 2 and not (args.posonlyargs or args.kwonlyargs or args.vararg or args.kwarg)


def reference_calls(function: ast.FunctionDef) -> list[ast.Call]:
    """Returns the calls of ref() and source() in the order of the text. Each gets its own reader."""
    return [call for method, call in _calls(function) if method.attr in ARGUMENTS]


def _calls(function: ast.FunctionDef) -> list[tuple[ast.Attribute, ast.Call]]:
    """Returns the calls of methods of the first parameter, in the order of the text."""
    found = [
        (node.func, node)
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == function.args.args[0].arg
    ]
    return sorted(
        found, key=lambda pair: (pair[1].lineno, pair[1].col_offset, pair[1].end_lineno, pair[1].end_col_offset)
    )


@dataclass
class _Reader:
    """Collects what a model references, reads and configures, and its errors."""

    file: ModelFile
    variables: Mapping[str, object]
    versions: Mapping[str, ModelVersions] = field(default_factory=dict)
    references: list[Reference] = field(default_factory=list)
    config: dict[str, Located] = field(default_factory=dict)
    used_variables: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)

    def read(self, function: ast.FunctionDef) -> None:
        name = function.args.args[0].arg
        calls = _calls(function)
        for method, call in calls:
            if method.attr in ARGUMENTS:
                self._read_reference(method.attr, call)
            elif method.attr == "config":
                self._read_config(call)
            elif method.attr == "var":
                self._read_variable(call)
            else:
                message, fix = f"a model cannot call `{name}.{method.attr}()`", did_you_mean(method.attr, CALLS)
                self.report(call, message, f"a model can call {', '.join(CALLS)}", fix)
        called = {id(method.value) for method, _ in calls}
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id == name and id(node) not in called:
                message = f"`{name}` is used for something other than ref, source, var or config"
                self.report(node, message, fix="pass on the DataFrame that it returns, not the object itself")

    def report(self, node: ast.AST | None, message: str, why: str = HAS_FORM, fix: str = WRITE_FORM) -> None:
        """Adds a finding at `node`, or at the file."""
        location = self.file.location if node is None else self._location(node)
        self.findings.append(Finding("python-model", message, why, fix, location))

    def _report_computed(self, call: ast.Call, message: str) -> None:
        why = "sqlstream determines the inputs and the configuration of a model without running it"
        self.report(call, message, why, "use literal values in the call")

    def _location(self, node: ast.AST) -> Location:
        """Returns the location of `node`. Python counts columns in bytes of UTF-8."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        text = "".join(self.file.text.splitlines()[line - 1 : line])
        return Location(self.file.path, line, len(text.encode()[:column].decode(errors="ignore")) + 1)

    def _read_reference(self, name: str, call: ast.Call) -> None:
        kind, count, what = ARGUMENTS[name]
        parts = tuple(part for part in map(_text, call.args) if part is not None)
        named = {keyword.arg: keyword.value for keyword in call.keywords}
        version = named.get("v", named.get("version"))
        is_literal = version is None or (kind == "ref" and isinstance(version, ast.Constant))
        if len(named) > (version is not None) or not is_literal or not len(call.args) == len(parts) == count:
            self._report_computed(call, f"{kind}() needs {what} as literal text")
            return
        if kind == "ref":
            try:
                parts = (find_version(self.versions, parts[0], version and ast.literal_eval(version)),)
            except NoVersionError as error:
                finding = Finding("unknown-ref", str(error), error.why, "use one of its versions", self._location(call))
                self.findings.append(finding)
                return
        self.references.append(Reference(kind, parts, self._location(call)))

    def _read_config(self, call: ast.Call) -> None:
        named = {keyword.arg: keyword for keyword in call.keywords if keyword.arg is not None}
        try:
            values = {name: ast.literal_eval(keyword.value) for name, keyword in named.items()}
        except (ValueError, TypeError):
            values = {}
        if call.args or len(values) != len(call.keywords):
            self._report_computed(call, "config() needs keyword arguments with literal values")
        self.config |= {name: Located(value, self._location(named[name])) for name, value in values.items()}

    def _read_variable(self, call: ast.Call) -> None:
        """Adds a variable, and reports one that is not set and has no default."""
        name = _text(call.args[0]) if call.args else None
        count = len(call.args) + len(call.keywords)
        if name is None or count > 2:
            self._report_computed(call, "var() needs the name of a variable as literal text")
            return
        self.used_variables.add(name)
        if name not in self.variables and count == 1:
            message = f"the variable `{name}` is not set, and var() has no default here"
            why = "set variables in vars: in project.yml, in the target or with --vars"
            fix = did_you_mean(name, self.variables)
            self.findings.append(Finding("missing-var", message, why, fix, self._location(call)))


def _parse(file: ModelFile) -> ast.Module:
    try:
        return parse_module(file.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line, column = (error.lineno or 1, error.offset or 1) if isinstance(error, SyntaxError) else (1, 1)
        words = error.msg if isinstance(error, SyntaxError) else str(error) or "it is nested too deeply"
        message = f"the Python code of `{file.name}` cannot be parsed"
        location = Location(file.path, max(line, 1), max(column, 1))
        finding = Finding("python-model", message, f"Python reports: {words}", "fix the Python code", location)
        raise FindingsError([finding]) from error


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def views_of(views: Sequence[str]) -> tuple[str, ...]:
    """Returns a unique name for each reference: its view, with a number from the second reference to it on."""
    counts = [views[: index + 1].count(view) for index, view in enumerate(views)]
    return tuple(view if count == 1 else f"{view}#{count}" for view, count in zip(views, counts, strict=True))
