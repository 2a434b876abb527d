"""What a piece of the project's Python is: the text of its module and of all modules of python/ that it reaches by
imports, and the project's files that they name. Nothing is imported or run.

What reading cannot follow is named, so that nobody takes it for unchanged.
"""

from __future__ import annotations

import ast
import hashlib
import os
import posixpath
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from sqlstream.project.files.files import LARGEST_FILE_BYTES, is_inside
from sqlstream.python_syntax import parse_module

LONGEST_PATH = 300
"""The most characters of a text that can name a file."""

SEARCHED_FILES = 20_000
"""The most files of the project among which those are found that Python code may read."""

COMPARED_FILES, COMPARED_BYTES = 1_000, 64 * 1024**2
"""The most files, and bytes of them, of the folders that a module names whose content is compared: of the others it is
their size and time.
"""

_CALLS = frozenset({"open", "exec", "eval", "compile", "__import__", "import_module", "__builtins__", "__loader__"})
"""Functions that read a file, or run code, that is not in the text."""

_ATTRIBUTES = frozenset(
    """
    open read_text read_bytes get_data iterdir listdir scandir rglob fromfile loadtxt genfromtxt read_csv read_json
    read_excel read_parquet read_pickle read_feather read_orc import_module __import__ reload spec_from_file_location
    find_spec exec_module run_path run_module getsource getsourcelines exec eval load_source load_module resolve_name
    locate import_string import_object import_from_string LazyLoader load_entry_point entry_points __loader__
    __builtins__ __subclasses__
    """.split()  # noqa: SIM905 - a list of words in quotes is harder to read
)
"""Names of methods and functions of modules that do the same."""

_MODULES_OF_CODE = frozenset({"runpy", "pkgutil", "imp", "builtins", "zipimport", "pydoc", "marshal", "code", "codeop"})
"""Modules that exist to run code or to read files of packages."""

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
    `imports` are the dotted names that may be modules; `texts` its string literals. `files` has the digests of the
    project's files that these name, or that are in a folder that they name. `unfollowed` says what reading cannot
    follow.
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


def read_code(text: str, path: str, module: str, root: Path, data: Collection[str] = ()) -> ModuleCode:
    """Returns the code of the file `path` of the project in `root`, `NO_CODE` for invalid code. `module` is its import
    name, empty for a Python model. Folders that it names count without those of `data`, absolute paths of what streams
    read and write.
    """
    try:
        return _read(parse_module(text), path, module, root, data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return NO_CODE


def _read(tree: ast.Module, path: str, module: str, root: Path, data: Collection[str]) -> ModuleCode:
    package = module if path.endswith("/__init__.py") else module.rpartition(".")[0]
    nodes = list(ast.walk(tree))
    imports = tuple(sorted({name for node in nodes for name in _imported(node, package)}))
    texts = frozenset(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    # getattr(x, "__doc__") has the name as a text.
    names |= {node.id for node in nodes if isinstance(node, ast.Name)} | texts
    beside = [name for name in sorted({name.partition(".")[0] for name in imports}) if _is_beside(root, name)]
    unfollowed = tuple(
        sorted({f"{what} in {path}" for what in (*_unfollowed(nodes), *(f"import {name}" for name in beside))})
    )
    form, docs = _form(tree)
    return ModuleCode(
        _digest(form),
        _digest(docs),
        not names.isdisjoint({"__doc__", "getdoc", "getcomments", "pydoc", "doctest"}),
        imports,
        texts,
        (
            *_named_files(root, path, texts, search=bool(unfollowed)),
            *_in_named_folders(root, path, _starts(nodes, search=bool(unfollowed)), data),
            *(pair for name in beside for pair in _code_in(root, name)),
        ),
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
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    followed = {id(call.func) for call in calls if _literal_import(call) is not None}
    imports = [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules = {alias.asname or alias.name.partition(".")[0] for alias in imports}
    yield from (f"import {alias.name}" for alias in imports if alias.name.partition(".")[0] in _MODULES_OF_CODE)
    yield from ("getattr()" for call in calls if _gets_unnamed(call, modules))
    for node in nodes:
        if id(node) in followed:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in _CALLS:
            yield f"{node.id}()"
        elif isinstance(node, ast.Attribute) and (node.attr in _ATTRIBUTES or _is_loader(node, modules)):
            yield f"{node.attr}()"
        elif isinstance(node, ast.Attribute) and node.attr in _OF_SYS and _is_named(node.value, {"sys"}):
            yield f"sys.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (text for alias in node.names if (text := _imported_function(node.module or "", alias)))


_OF_SYS = frozenset({"path", "meta_path", "path_hooks", "modules"})
"""Names of `sys` that decide what an import finds."""


def _imported_function(module: str, alias: ast.alias) -> str | None:
    """Returns what an import brings that could be called by another name, None for anything harmless."""
    top, name = module.partition(".")[0], alias.name
    if top in _MODULES_OF_CODE:
        return f"import {module}"
    if top == "sys" and name in _OF_SYS:
        return f"sys.{name}"
    if name == "import_module":  # under its own name its calls are found
        return None if alias.asname in (None, name) else "import_module()"
    is_loader = name in _LOADERS and top not in _SAFE_LOADERS
    return f"{name}()" if name in _ATTRIBUTES or is_loader else None


def _gets_unnamed(call: ast.Call, modules: Collection[str]) -> bool:
    """Returns whether a call of getattr gets something of a module that reading cannot name, or cannot follow."""
    if not _is_named(call.func, {"getattr"}) or len(call.args) < 2 or not _is_named(call.args[0], modules):
        return False
    name = call.args[1].value if isinstance(call.args[1], ast.Constant) else None
    return not isinstance(name, str) or name in _ATTRIBUTES | _CALLS | _LOADERS | _OF_SYS


def _is_loader(node: ast.Attribute, modules: Collection[str]) -> bool:
    return node.attr in _LOADERS and _is_named(node.value, set(modules) - _SAFE_LOADERS)


def _is_named(node: ast.expr, names: Collection[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


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


_PLACEHOLDER = re.compile(r"[*?\[{%$<]")
"""Where the constant start of a path ends: patterns of glob, and texts to format."""

_OWN_FOLDERS, _OWN_FILES = ("models", "macros", "seeds", "tests"), (".sql", ".py", ".yml", ".yaml", ".md")
"""The folders of sqlstream's own files, which count as what they are."""


def _starts(nodes: Sequence[ast.AST], *, search: bool) -> Collection[str]:
    """Returns the literals that can be a folder, or the start of a path. One without a slash can be the start of a name
    only if the code computes a text with it, and reads files whose paths it computes.
    """
    joined = dict(pair for node in nodes for pair in _joined_paths(node))
    parts = {id(part) for each in joined.values() for part in each}
    constants = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in parts]
    texts = {node.value for node in constants if isinstance(node.value, str)} | joined.keys()
    found = {_PLACEHOLDER.split(text)[0] for text in texts}
    if not search:
        return found
    firsts = [node.values[0] for node in nodes if isinstance(node, ast.JoinedStr) and node.values]
    firsts += [node.left for node in nodes if isinstance(node, ast.BinOp)]
    computed = {node.value for node in firsts if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return found | {f"./{_PLACEHOLDER.split(text)[0]}" for text in {*computed, *filter(_PLACEHOLDER.search, texts)}}


def _joined_paths(node: ast.AST) -> Iterator[tuple[str, list[ast.Constant]]]:
    """Yields the path that `node` makes of literals only, as by `os.path.join("a", "b")` or `Path("a") / "b"`, with
    them. Its first parts are no folders of which any file can be read.
    """
    parts: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        left: ast.expr = node
        while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Div) and isinstance(left.right, ast.Constant):
            parts.insert(0, left.right)
            left = left.left
        is_path = isinstance(left, ast.Call) and getattr(left.func, "id", getattr(left.func, "attr", "")) == "Path"
        parts = [*(left.args if is_path and isinstance(left, ast.Call) else ()), *parts]
    elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in ("join", "Path"):
        parts = node.args
    constants = [part for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    if len(parts) > 1 and len(constants) == len(parts):
        yield posixpath.join(*(str(part.value) for part in constants)), constants


def _in_named_folders(
    root: Path, path: str, starts: Collection[str], data: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yields the files of the project, with digests, that are in a folder that one of `starts` names, or whose paths
    start with it. The project's own folder is never one.
    """
    found = set()
    for start in (each for each in starts if len(each) <= LONGEST_PATH and not {"\n", "\0"} & set(each)):
        for folder in {"", "python", path.rpartition("/")[0]}:
            whole = os.path.relpath(posixpath.join(root, folder, start), root) if start.strip("./") else "."
            parent = posixpath.dirname(whole) if "/" in start else whole
            first, *_ = parts = whole.split("/")
            if first in _WRITTEN or any(part.startswith(".") for part in parts):  # hidden, or outside of the project
                continue
            if (root / whole).is_dir():
                found |= set(_files_below(root, whole, data))
            elif (root / parent).is_dir() and not start.endswith("/"):
                inside = _files_below(root, parent, data) if parent else _files_in(root)
                found |= {each for each in inside if each.startswith(whole)}
    count = size = 0
    for name in sorted(found):
        if name.endswith(_OWN_FILES if name.partition("/")[0] in _OWN_FOLDERS else ".pyc") or _is_module(name):
            continue
        count += 1
        content = _content(root / name, root, COMPARED_BYTES - size if count <= COMPARED_FILES else 0)
        if content is not None:
            size += (root / name).stat().st_size
            yield name, content


def _files_in(root: Path) -> Iterator[str]:
    """Yields the visible files in the project's own folder that are not those of sqlstream."""
    names = (each.name for each in root.iterdir() if each.is_file())
    return (name for name in names if not name.startswith(".") and not name.endswith(_OWN_FILES))


def _is_module(name: str) -> bool:
    return name.startswith("python/") and name.endswith(".py")


def _is_beside(root: Path, module: str) -> bool:
    """Returns whether the project has a module outside of python/ that Python may find in the working directory."""
    is_own = module in {"sqlstream", "python"} or module in sys.stdlib_module_names
    return not is_own and ((root / f"{module}.py").is_file() or (root / module / "__init__.py").is_file())


def _code_in(root: Path, module: str) -> Iterator[tuple[str, str]]:
    for path in sorted([root / f"{module}.py", *(root / module).rglob("*.py")]):
        digest = _content(path, root)
        if digest is not None:
            yield path.relative_to(root).as_posix(), digest


def _files_below(root: Path, start: str = "", data: Collection[str] = ()) -> Iterator[str]:
    """Yields the visible files of the project below the folder `start`, without what sqlstream writes and without
    folders of `data`, up to a limit.
    """
    count = 0
    for folder, folders, names in os.walk(root / start):
        if any(f"{folder}/".startswith(f"{each}/") for each in data):
            folders.clear()
            continue
        if "queries" in folders and Path(folder) != root:  # the storage of a target
            folders.clear()
            continue
        skipped = {"__pycache__", *(_WRITTEN if Path(folder) == root else ())}
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in skipped)
        for name in sorted(names):
            count += 1
            if count > SEARCHED_FILES:
                return
            if f"{folder}/{name}" not in data:
                yield Path(folder, name).relative_to(root).as_posix()


def _content(path: Path, root: Path, largest: int = LARGEST_FILE_BYTES) -> str | None:
    """Returns the digest of a file of the project: of a large one that of its size and time. None without a file."""
    try:
        if not path.is_file() or not is_inside(path, root):
            return None
        status = path.stat()
        if status.st_size > min(largest, LARGEST_FILE_BYTES):
            return f"{status.st_size} {status.st_mtime_ns}"
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
