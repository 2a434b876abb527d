"""Python models read without running them: what they reference and configure, found in their syntax tree.

`def model(sqlstream, spark)` calls `sqlstream.ref()`, `source()`, `var()` and `config()` with literals, so that graph,
selection and configuration are known without Spark. Whatever else is done with `sqlstream` is a finding.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlstream.compiler.render.values import Reference, RenderedModel
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.nearest import did_you_mean
from sqlstream.project.values import Located, ModelFile

FUNCTION = "model"
CALLS = ("ref", "source", "var", "config")
"""What a model may call of its first parameter."""

ARGUMENTS = {"ref": (1, "the name of a model or seed"), "source": (2, "the names of a source and of one of its tables")}
FORM = "def model(sqlstream, spark): ... return a DataFrame"


def read_python_model(file: ModelFile, variables: Mapping[str, object]) -> RenderedModel:
    """Returns what a Python model references and configures; `sql` is its text.

    Raises: FindingsError with all findings.
    """
    tree = _parsed(file)
    function = find_function(tree)
    if function is None:
        raise FindingsError([_finding(file, None, f"`{file.name}` has no function `{FUNCTION}` of two parameters")])
    reader = _Reader(file, variables)
    config: dict[str, Located] = {}
    for call in _calls(function, function.args.args[0].arg):
        config |= reader.configured(call)
        reader.check_variable(call)
    references = [reader.reference(call) for call in reference_calls(function)]
    reader.findings += _other_uses(file, function)
    if reader.findings:
        raise FindingsError(sorted(reader.findings, key=_by_place))
    return RenderedModel(file, file.text, tuple(item for item in references if item is not None), config)


def find_function(tree: ast.Module) -> ast.FunctionDef | None:
    """Returns the function `model` of a module, None where there is none of two parameters."""
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == FUNCTION]
    return next((node for node in reversed(found) if len(node.args.args) == len(_parameters(node)) == 2), None)


def _parameters(node: ast.FunctionDef) -> list[ast.arg]:
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [*every, *(item for item in (node.args.vararg, node.args.kwarg) if item is not None)]


def reference_calls(function: ast.FunctionDef) -> list[ast.Call]:
    """Returns the calls of ref() and source() in the order of their places: each gets a reader of its own."""
    name = function.args.args[0].arg
    return [call for call in _calls(function, name) if _called(call) in ARGUMENTS]


def _calls(function: ast.FunctionDef, name: str) -> list[ast.Call]:
    found = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == name
    ]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset))


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _other_uses(file: ModelFile, function: ast.FunctionDef) -> Iterator[Finding]:
    """The places where the first parameter is not called as `CALLS` are: nobody could tell what is done with it."""
    name = function.args.args[0].arg
    called = {id(call.func.value) for call in _calls(function, name) if isinstance(call.func, ast.Attribute)}
    for call in _calls(function, name):
        if _called(call) not in CALLS:
            what = f"a model cannot call `{name}.{_called(call)}()`"
            yield _finding(file, call, what, f"a model can call {', '.join(CALLS)}", did_you_mean(_called(call), CALLS))
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == name and id(node) not in called:
            what = f"`{name}` is used for something other than ref, source, var or config"
            yield _finding(file, node, what, fix="pass on the DataFrame that it returns, not the object itself")


@dataclass
class _Reader:
    """Reads calls, and collects what is wrong with them."""

    file: ModelFile
    variables: Mapping[str, object]
    findings: list[Finding] = field(default_factory=list)

    def reference(self, call: ast.Call) -> Reference | None:
        """Returns what a call of ref() or source() names."""
        kind = _called(call)
        count, what = ARGUMENTS[kind]
        parts = tuple(_text(argument) for argument in call.args)
        if call.keywords or len(parts) != count or None in parts:
            self.findings.append(_not_literal(self.file, call, f"{kind}() needs {what} as literal text"))
            return None
        names = tuple(part for part in parts if part is not None)
        return Reference("ref" if kind == "ref" else "source", names, _place(self.file, call))

    def configured(self, call: ast.Call) -> dict[str, Located]:
        """Returns what a call of config() sets."""
        if _called(call) != "config":
            return {}
        settings = {keyword.arg: keyword for keyword in call.keywords if keyword.arg is not None}
        try:
            found = {
                name: Located(ast.literal_eval(keyword.value), _place(self.file, keyword))
                for name, keyword in settings.items()
            }
        except (ValueError, TypeError):
            found = {}
        if call.args or len(found) != len(call.keywords):
            self.findings.append(_not_literal(self.file, call, "config() needs keyword arguments with literal values"))
        return found

    def check_variable(self, call: ast.Call) -> None:
        """Finds a variable that is not set and has no default."""
        if _called(call) != "var":
            return
        name = _text(call.args[0]) if call.args else None
        if name is None or len(call.args) + len(call.keywords) > 2:
            self.findings.append(_not_literal(self.file, call, "var() needs the name of a variable as literal text"))
        elif name not in self.variables and len(call.args) + len(call.keywords) == 1:
            self.findings.append(
                Finding(
                    "missing-var",
                    f"the variable `{name}` is not set, and var() has no default here",
                    "set variables in vars: in project.yml, in the target or with --vars",
                    did_you_mean(name, self.variables),
                    _place(self.file, call),
                )
            )


def _parsed(file: ModelFile) -> ast.Module:
    try:
        return ast.parse(file.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line, column = (error.lineno or 1, error.offset or 1) if isinstance(error, SyntaxError) else (1, 1)
        words = error.msg if isinstance(error, SyntaxError) else str(error) or "it is nested too deeply"
        problem = Finding(
            "python-model",
            f"the Python code of `{file.name}` cannot be parsed",
            f"Python reports: {words}",
            "fix the Python code",
            Location(file.path, max(line, 1), max(column, 1)),
        )
        raise FindingsError([problem]) from error


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _not_literal(file: ModelFile, call: ast.Call, message: str) -> Finding:
    why = "sqlstream determines the inputs and the configuration of a model without running it"
    return _finding(file, call, message, why, "use literal values in the call")


def _finding(
    file: ModelFile, node: ast.AST | None, message: str, why: str | None = None, fix: str | None = None
) -> Finding:
    place = file.location if node is None else _place(file, node)
    return Finding("python-model", message, why or f"a Python model has the form {FORM}", fix or f"write {FORM}", place)


def _place(file: ModelFile, node: ast.AST) -> Location:
    """The place of `node`: Python counts columns in bytes of UTF-8."""
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    text = file.text.splitlines()[line - 1] if line <= len(file.text.splitlines()) else ""
    return Location(file.path, line, len(text.encode()[:column].decode(errors="ignore")) + 1)


def _by_place(finding: Finding) -> tuple[int, int]:
    return (finding.location.line, finding.location.column) if finding.location else (0, 0)


def views_of(views: Sequence[str]) -> tuple[str, ...]:
    """Returns a name for each reference: that of the view, with a number from the second one to the same view on."""
    return tuple(
        view if views[:index].count(view) == 0 else f"{view}#{views[:index].count(view) + 1}"
        for index, view in enumerate(views)
    )
