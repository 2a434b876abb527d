"""The files of the pages, and their modules as one classic script, which also works on a page opened from a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

WEB = Path(__file__).parent
"""The folder with `assets/` and the modules of the pages."""

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.{1,2}/[^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
_MODULE_WORD = re.compile(r"^(?:import|export)\b", re.MULTILINE)


def read_asset(path: str, folder: Path = WEB) -> str:
    """Returns a text file below the folder of the pages, for example `assets/theme.css`."""
    return (folder / path).read_text(encoding="utf-8")


@cache
def bundle_modules(entry: str, folder: Path = WEB) -> str:
    """Returns the module `entry` (`site/site.js`) and all that it imports as one classic script.

    Each module becomes a function that runs once and returns its exports. Modules can use `import { a, b } from
    "./x.js"` and `export` in front of a function, a class or a const; there are no default exports, no renaming, and no
    cycles. Raises: ValueError for anything else.
    """
    parts = [_as_function(path, folder) for path in dict.fromkeys(_in_order(entry, folder, ()))]
    return '"use strict";\n(() => {\n' + "".join(parts) + "})();\n"


def _in_order(path: str, folder: Path, above: tuple[str, ...]) -> Iterator[str]:
    """Yields the modules that `path` needs, and `path` itself; what others import comes first, maybe repeatedly."""
    if path in above:
        raise ValueError(f"modules import each other in a cycle: {' -> '.join((*above, path))}")
    for match in _IMPORT.finditer(read_asset(path, folder)):
        yield from _in_order(_resolve(path, match[2]), folder, (*above, path))
    yield path


def _as_function(path: str, folder: Path) -> str:
    text = read_asset(path, folder)
    exports = _EXPORT.findall(text)
    body = _IMPORT.sub(lambda match: f"const {{{match[1]}}} = {_name(_resolve(path, match[2]))};\n", text)
    body = _EXPORT.sub("", body)
    if wrong := _MODULE_WORD.search(body):
        line = body.count("\n", 0, wrong.start()) + 1
        raise ValueError(f"{path}:{line}: the bundle does not know this form of `{wrong[0]}`")
    return f"// {path}\nconst {_name(path)} = (() => {{\n{body}return {{ {', '.join(exports)} }};\n}})();\n"


def _resolve(path: str, imported: str) -> str:
    """Returns the path of a module that `path` imports, relative to the folder of the pages."""
    parts: list[str] = []
    for part in (*PurePosixPath(path).parent.parts, *imported.split("/")):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _name(path: str) -> str:
    return "module_" + re.sub(r"\W", "_", path.removesuffix(".js"))
