"""What a piece of the project's Python is: the text of its module and of all modules of python/ that it reaches by
imports, and the project's files that they name. Nothing is imported or run.

What reading cannot follow is named, so that nobody takes it for unchanged.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from sqlstream.project.files.files import LARGEST_FILE_BYTES, is_inside

LONGEST_PATH = 300
"""The most characters of a text that can name a file."""

SEARCHED_FILES = 20_000
"""The most files of the project among which those are found that Python code may read."""

_CALLS = frozenset({"open", "exec", "eval", "compile", "__import__", "import_module"})
"""Functions that read a file, or run code, that is not in the text."""

_ATTRIBUTES = frozenset(
    """
    open read_text read_bytes get_data iterdir listdir scandir rglob fromfile loadtxt genfromtxt read_csv read_json
    read_excel read_parquet read_pickle read_feather read_orc import_module __import__ reload spec_from_file_location
    find_spec exec_module run_path run_module getsource getsourcelines exec eval load_source load_module
    """.split()  # noqa: SIM905 - a list of words in quotes is harder to read
)
"""Names of methods and functions of modules that do the same."""

_MODULES_OF_CODE = frozenset({"importlib", "runpy", "pkgutil", "imp", "builtins", "zipimport"})
"""Modules whose functions run code under other names."""

_LOADERS = frozenset({"load", "loads"})
"""Names of functions that read code or data, if they belong to a module such as joblib, pickle or torch."""

_SAFE_LOADERS = frozenset({"json", "yaml", "tomllib", "tomli", "orjson", "ujson", "ast"})
"""Modules whose loaders get text or an open file, whose opening counts."""

_WRITTEN = frozenset({"target", "logs"})
"""The folders of the project that sqlstream writes."""

_UNSEEN_FIELDS = frozenset({"ctx", "type_comment", "kind", "type_ignores"})
"""Fields of syntax trees without a meaning of their own: `kind` is the `u` of a string."""


@dataclass(frozen=True)
class ModuleCode:
    """The code of one module.

    `digest` ignores comments, layout and docstrings, of which `docs` is the digest: they count if code `reads_docs`.
    `imports` are the dotted names that may be modules; `texts` its string literals, of which `files` has the digests of
    those that name a file of the project. `unfollowed` says what reading cannot follow.
    """

    digest: str
    docs: str
    reads_docs: bool = False
    imports: tuple[str, ...] = ()
    texts: frozenset[str] = frozenset()
    files: tuple[tuple[str, str], ...] = ()
    unfollowed: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReachedCode:
    """A piece of Python with everything that it reaches. `packages` are the imported modules outside of the project and
    of Python's library, `texts` the string literals.
    """

    digest: str
    packages: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    unfollowed: tuple[str, ...] = ()


NO_CODE = ModuleCode("", "", unfollowed=("a module that cannot be read",))


def read_code(text: str, path: str, module: str, root: Path) -> ModuleCode:
    """Returns the code of the file `path` of the project in `root`, `NO_CODE` for invalid code. `module` is its import
    name, empty for a Python model.
    """
    try:
        return _read(ast.parse(text), path, module, root)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return NO_CODE


def _read(tree: ast.Module, path: str, module: str, root: Path) -> ModuleCode:
    package = module if path.endswith("/__init__.py") else module.rpartition(".")[0]
    nodes = list(ast.walk(tree))
    imports = tuple(sorted({name for node in nodes for name in _imported(node, package)}))
    texts = frozenset(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    names |= {node.id for node in nodes if isinstance(node, ast.Name)} | texts
    unfollowed = tuple(sorted({f"{what} in {path}" for what in _unfollowed(nodes)}))
    form, docs = _form(tree)
    return ModuleCode(
        _digest(form),
        _digest(docs),
        not names.isdisjoint({"__doc__", "getdoc", "getcomments", "pydoc", "doctest"}),
        imports,
        texts,
        tuple(_named_files(root, path, texts, search=bool(unfollowed))),
        unfollowed,
    )


def reach(
    code: ModuleCode, modules: Mapping[str, Callable[[], ModuleCode]], *, reads_data: bool = False
) -> ReachedCode:
    """Returns `code` with all that it reaches in `modules`, those of python/: what reads each, by import name.

    If it reaches something that reading cannot follow, all of python/ counts. Code that `reads_data`, such as a source,
    reads files that are no part of it: only files of python/ count.
    """
    reached: dict[str, ModuleCode] = {}
    packages: set[str] = set()
    waiting = [code]
    while waiting:
        for name in waiting.pop().imports:
            found = [prefix for prefix in _prefixes(name) if prefix in modules]
            new = {prefix: modules[prefix]() for prefix in found if prefix not in reached}
            waiting += new.values()
            reached |= new
            if not found:
                packages.add(name.partition(".")[0])
    unfollowed = tuple(sorted({what for each in (code, *reached.values()) for what in each.unfollowed}))
    if unfollowed:
        reached = {name: read() for name, read in modules.items()}
    every = {"": code, **{name: reached[name] for name in sorted(reached)}}
    reads_docs = any(each.reads_docs for each in every.values())
    texts = [f"{name} {each.digest} {each.docs if reads_docs else ''}" for name, each in every.items()]
    files = {pair for each in every.values() for pair in each.files if not reads_data or pair[0].startswith("python/")}
    return ReachedCode(
        _digest("\n".join([*texts, *(f"{name} {digest}" for name, digest in sorted(files))])),
        frozenset(packages) - sys.stdlib_module_names - {"pyspark", "sqlstream"},
        frozenset[str]().union(*(each.texts for each in every.values())),
        unfollowed,
    )


def _prefixes(name: str) -> list[str]:
    """Returns a dotted name and those of the packages around it, which Python imports before it."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]


def installed_versions(names: Collection[str]) -> dict[str, str]:
    """Returns the version of the distribution of each imported module (`names`) that is installed here."""
    found = {}
    for name in sorted(names):
        for distribution in (name, *_distributions().get(name, ())):
            try:
                found[name] = metadata.version(distribution)
                break
            except (metadata.PackageNotFoundError, ValueError):
                continue
    return found


@lru_cache(1)
def _distributions() -> Mapping[str, Sequence[str]]:
    return metadata.packages_distributions()


def _imported(node: ast.AST, package: str) -> Iterator[str]:
    """Yields the dotted names that `node` imports; names imported from a module may be modules, too."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = package.split(".") if package else []
            parents = parts[: len(parts) - node.level + 1]
            base = ".".join([*parents, *([base] if base else [])])
        if base:
            yield base
        yield from (f"{base}.{alias.name}".lstrip(".") for alias in node.names if alias.name != "*")
    elif isinstance(node, ast.Call):
        name = _literal_import(node)
        if name is not None:
            yield name


def _literal_import(call: ast.Call) -> str | None:
    """Returns the absolute name of a module that a call imports, if it is a literal."""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if function not in ("import_module", "__import__") or len(call.args) != 1 or call.keywords:
        return None
    value = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
    return value if isinstance(value, str) and not value.startswith(".") else None


def _unfollowed(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yields what the code does that its text does not show, as `name()`."""
    calls = [node for node in nodes if isinstance(node, ast.Call) and _literal_import(node) is not None]
    followed = {id(call.func) for call in calls}
    modules = {
        alias.asname or alias.name.partition(".")[0]
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    for node in nodes:
        if id(node) in followed:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in _CALLS:
            yield f"{node.id}()"
        elif isinstance(node, ast.Attribute) and (node.attr in _ATTRIBUTES or _is_loader(node, modules)):
            yield f"{node.attr}()"
        elif isinstance(node, ast.Attribute) and node.attr in ("path", "meta_path", "modules") and _is_sys(node.value):
            yield f"sys.{node.attr}"
        elif isinstance(node, ast.ImportFrom):
            yield from _imported_functions(node)


def _imported_functions(node: ast.ImportFrom) -> Iterator[str]:
    """Yields the functions that an import brings under a name of its own, with which their calls could be missed."""
    module = (node.module or "").partition(".")[0] if not node.level else ""
    for alias in node.names:
        is_called_otherwise = alias.asname not in (None, alias.name) or alias.name not in ("import_module",)
        if module in _MODULES_OF_CODE and is_called_otherwise:
            yield f"{alias.name}()"
        elif module == "sys" and alias.name in ("path", "meta_path", "modules"):
            yield f"sys.{alias.name}"
        elif (module and alias.name in _ATTRIBUTES - {"import_module"}) or (
            module in ("pickle", "joblib", "dill", "cloudpickle", "torch", "numpy", "marshal")
            and alias.name in _LOADERS
        ):
            yield f"{alias.name}()"


def _is_loader(node: ast.Attribute, modules: Collection[str]) -> bool:
    base = node.value
    return node.attr in _LOADERS and isinstance(base, ast.Name) and base.id in modules and base.id not in _SAFE_LOADERS


def _is_sys(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "sys"


def _form(tree: ast.Module) -> tuple[str, str]:
    """Returns a text of `tree` that is the same in all versions of Python, unlike that of `ast.dump` and `ast.unparse`,
    and one of its docstrings. Positions and empty fields are left out.
    """
    texts: list[str] = []
    docs: list[str] = []
    waiting: list[object] = [tree]
    while waiting:  # not recursive: a long sum is a deep tree
        item = waiting.pop()
        if isinstance(item, ast.AST):
            doc = _docstring(item)
            docs += [] if doc is None else [f"{len(texts)} {doc!a}"]
            texts.append(f"({type(item).__name__}")
            waiting.append(_END)
            for name in reversed(item._fields):
                value = getattr(item, name, None)
                if isinstance(item, ast.JoinedStr):
                    value = _joined(item.values)
                if name not in _UNSEEN_FIELDS and value is not None and value != []:
                    waiting += [value[1:] if name == "body" and doc is not None else value, _Text(f"{name}=")]
        elif isinstance(item, list):
            texts.append("[")
            waiting += [_LIST_END, *reversed(item)]
        else:
            value = hex(item) if isinstance(item, int) else ascii(item)  # a long number has no decimal text
            texts.append(item.text if isinstance(item, _Text) else f"{type(item).__name__} {value}")
    return "\n".join(texts), "\n".join(docs)


def _joined(values: Sequence[ast.expr]) -> list[object]:
    """Returns the parts of an f-string with joined texts, because versions of Python cut them differently."""
    parts: list[object] = []
    for value in values:
        text = value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
        if text is None:
            parts.append(value)
        elif parts and isinstance(parts[-1], str):
            parts[-1] += text
        elif text:
            parts.append(text)
    return parts


@dataclass(frozen=True)
class _Text:
    text: str


_END, _LIST_END = _Text(")"), _Text("]")


def _docstring(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or not node.body:
        return None
    first = node.body[0].value if isinstance(node.body[0], ast.Expr) else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def _named_files(root: Path, path: str, texts: Collection[str], *, search: bool) -> Iterator[tuple[str, str]]:
    """Yields the files of the project that string literals name, with digests of their content. With `search`, the code
    reads files whose paths it computes: a literal can then be only the last part of a path, and all other files of
    python/ count.
    """
    folders = ("", "python/", f"{path.rpartition('/')[0]}/")
    candidates = [text for text in texts if 0 < len(text) <= LONGEST_PATH and not {"\n", "\0"} & set(text)]
    found = {f"{folder}{text}" for text in candidates for folder in folders if not (folder and text.startswith("/"))}
    if search:
        names = {text.rpartition("/")[2] for text in candidates}
        found |= {each for each in _files_below(root) if each.rpartition("/")[2] in names or each.startswith("python/")}
    for name in sorted(found):
        is_code = name.endswith((".py", ".pyc")) or name.partition("/")[0] in _WRITTEN
        digest = None if is_code else _content(root / name, root)
        if digest is not None:
            yield name, digest


def _files_below(root: Path) -> Iterator[str]:
    """Yields the visible files of the project, without what sqlstream writes, up to a limit."""
    count = 0
    for folder, folders, names in os.walk(root):
        skipped = {"__pycache__", *(_WRITTEN if Path(folder) == root else ())}
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in skipped)
        for name in names:
            count += 1
            if count > SEARCHED_FILES:
                return
            yield Path(folder, name).relative_to(root).as_posix()


def _content(path: Path, root: Path) -> str | None:
    """Returns the digest of a file of the project: of a large one that of its size and time. None without a file."""
    try:
        if not path.is_file() or not is_inside(path, root):
            return None
        status = path.stat()
        if status.st_size > LARGEST_FILE_BYTES:
            return f"{status.st_size} {status.st_mtime_ns}"
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
