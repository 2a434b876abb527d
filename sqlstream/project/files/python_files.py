"""The project's Python files below python/: what they define, read without importing them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.files.files import ProjectFiles, checksum
from sqlstream.project.files.python_code import ModuleCode, read_code
from sqlstream.project.wording import did_you_mean, quoted, quoted_list
from sqlstream.python_syntax import parse_module

PYTHON = "python"
"""The folder of Python, which is on the driver's path and is shipped to executors."""

DECORATORS = frozenset({"udf", "pandas_udf", "arrow_udf", "udtf", "arrow_udtf"})
"""The decorators that turn a function or class into a SQL function (pyspark.sql.functions)."""

REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
"""The form of a reference to a name in a module: `module:name`, `package.module:name`."""


@dataclass(frozen=True)
class PythonName:
    """A name that a module defines. `kind` is function, class, one of `DECORATORS`, or value for an assigned or
    imported name. `returns` is the literal type in its decorator, as Spark DDL. `bases` are the last parts of the names
    of a class's bases.
    """

    name: str
    kind: str
    returns: str | None = None
    bases: tuple[str, ...] = ()

    @property
    def is_data_source(self) -> bool:
        """Whether it is known to be a data source of PySpark."""
        return self.kind == "class" and "DataSource" in self.bases

    @property
    def is_foreach(self) -> bool:
        """Whether a sink is known to call it with rows: a function, or a class without a base."""
        return self.kind == "function" or (self.kind == "class" and not self.bases)


@dataclass(frozen=True)
class PythonModule:
    """A module below python/ with its import name. `whole`: it has no other names, unlike after `from x import *`.
    `digest` is the digest of its code without comments and layout, as ledgers of an earlier sqlstream have it. `data`
    is as in `Project`.
    """

    module: str
    path: str
    names: tuple[PythonName, ...]
    whole: bool
    digest: str
    text: str
    root: Path
    data: frozenset[str] = frozenset()

    @cached_property
    def code(self) -> ModuleCode:
        """What the module is for the queries that reach it."""
        return read_code(self.text, self.path, self.module, self.root, self.data)


@dataclass(frozen=True)
class PythonFunction:
    """A function of the project that SQL can call by `name`. `reference` is its `module:name`, `returns` its type as
    Spark DDL if known. `digest` is the digest of its module.
    """

    name: str
    reference: str
    location: Location
    returns: str | None = None
    digest: str = ""


def load_python(files: ProjectFiles, findings: list[Finding]) -> tuple[PythonModule, ...]:
    """Returns the modules below python/, sorted by path. An unreadable one is a finding, and may define any name."""
    listing = files.list_files(PYTHON, ".py")
    findings.extend(listing.findings)
    return tuple(_read_module(files, path, findings) for path in listing.paths)


def _read_module(files: ProjectFiles, path: str, findings: list[Finding]) -> PythonModule:
    try:
        text = files.read_text(path)
        return _module(files.root, path, text, parse_module(text))
    except FindingsError as error:
        findings.extend(error.findings)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        findings.append(_unparsed(path, error))
    return PythonModule(_module_name(path), path, (), whole=False, digest="", text="", root=files.root)


def find_name(modules: tuple[PythonModule, ...], reference: str, location: Location) -> PythonName | Finding:
    """Returns the definition of `reference`, a `module:name`, or a finding if the module or name does not exist."""
    if not REFERENCE.fullmatch(reference):
        return Finding(
            "python-name",
            f"{quoted(reference)} does not name anything in python/",
            "the form is module:name, with the name of a function or class",
            "for example, use `alerts:send` for `def send` in python/alerts.py",
            location,
        )
    module_name, _, name = reference.partition(":")
    module = next((module for module in modules if module.module == module_name), None)
    if module is None:
        path = f"{PYTHON}/{module_name.replace('.', '/')}.py"
        known = [module.module for module in modules]
        why = f"there is no {path} in the project"
        fix = did_you_mean(module_name, known) if known else f"write it, with {quoted(name)} in it"
        return Finding("python-name", f"there is no module {quoted(module_name)}", why, fix, location)
    # Python keeps the last definition of a name.
    found = next((item for item in reversed(module.names) if item.name == name), None)
    if found is None and module.whole:
        names = [item.name for item in module.names if item.name != "annotations"]
        why = f"it defines {quoted_list(names)}" if names else "it defines nothing"
        fix = did_you_mean(name, names) if names else "define it there"
        return Finding("python-name", f"{module.path} does not define {quoted(name)}", why, fix, location)
    return found or PythonName(name, "value")


def _module_name(path: str) -> str:
    parts = path.removeprefix(f"{PYTHON}/").removesuffix(".py").split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _module(root: Path, path: str, text: str, tree: ast.Module) -> PythonModule:
    statements = list(_statements(tree.body))
    names = tuple(name for statement in statements for name in _names(statement))
    stars = any(
        isinstance(statement, ast.ImportFrom) and any(alias.name == "*" for alias in statement.names)
        for statement in statements
    )
    whole = not stars and all(name.name != "__getattr__" for name in names)
    try:
        digest = checksum(ast.dump(tree))
    except (ValueError, RecursionError):  # a long number, or a deep tree, that Python can run
        digest = checksum(text)
    return PythonModule(_module_name(path), path, names, whole, digest, text, root)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, including those in `if`, `try` and `with`."""
    for statement in body:
        yield statement
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = (getattr(statement, name, []) for name in ("body", "orelse", "finalbody"))
            handlers = (handler.body for handler in getattr(statement, "handlers", []))
            yield from _statements(list(chain(*inner, *handlers)))


def _names(statement: ast.stmt) -> Iterator[PythonName]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        plain = "class" if isinstance(statement, ast.ClassDef) else "function"
        made = next((found for found in map(_decorated, statement.decorator_list) if found is not None), None)
        # A decorator can return anything.
        unknown = plain if not statement.decorator_list else "value"
        bases = tuple(map(_last_part, statement.bases)) if isinstance(statement, ast.ClassDef) else ()
        yield PythonName(statement.name, *(made or (unknown, None)), bases=bases)
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from (PythonName(alias.asname or alias.name.split(".")[0], "value") for alias in statement.names)
    else:
        names = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
        yield from (PythonName(node.id, "value") for node in names if isinstance(node.ctx, ast.Store))


def _last_part(node: ast.expr) -> str:
    """The last part of a dotted name, also with an index: `Series` for `pd.Series` and `Series[int]`."""
    node = node.value if isinstance(node, ast.Subscript) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _decorated(node: ast.expr) -> tuple[str, str | None] | None:
    """The decorator of SQL functions in `node`, with its literal type."""
    call = node if isinstance(node, ast.Call) else None
    named = call.func if call else node
    name = named.attr if isinstance(named, ast.Attribute) else named.id if isinstance(named, ast.Name) else ""
    if name not in DECORATORS:
        return None
    given = [keyword.value for keyword in call.keywords if keyword.arg == "returnType"] if call else []
    first = (given or (call.args[:1] if call else []))[:1]
    literal = first[0].value if first and isinstance(first[0], ast.Constant) else None
    return name, literal if isinstance(literal, str) else None


def _unparsed(path: str, error: Exception) -> Finding:
    line = error.lineno if isinstance(error, SyntaxError) and error.lineno else 1
    reported = error.msg if isinstance(error, SyntaxError) else str(error)
    return Finding(
        "python-import",
        f"{path} is not valid Python",
        f"Python reports: {reported or type(error).__name__}",
        "fix the file",
        Location(path, line),
    )
