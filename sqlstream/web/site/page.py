"""The files of the site: a folder, or one file that contains everything. Both also open without a server. The live page
serves those of the folder from memory.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

LIBRARIES = ("assets/vendor/dagre/dagre.min.js", "assets/vendor/minisearch/minisearch.js")
STYLES = ("assets/theme.css", "assets/search.css", "site/site.css")
ENTRY = "site/site.js"
LICENSES = ("assets/vendor/dagre/LICENSE", "assets/vendor/minisearch/LICENSE")

_NO_OTHERS = "default-src 'none'; img-src 'self' data:; base-uri 'none'; form-action 'none'"


def site_files(catalog: Mapping[str, Any]) -> dict[str, str]:
    """Returns the files of the site by name: `index.html` and what it loads.

    `catalog` is plain data, which the module `site/store.js` describes.
    """
    licenses = {f"assets/{path.split('/')[2]}.LICENSE": read_asset(path) for path in LICENSES}
    return {"index.html": site_page(catalog), **site_assets(), **licenses}


def site_page(catalog: Mapping[str, Any]) -> str:
    """Returns the page of the site, which contains the data and loads `site_assets`."""
    names = (f'<script defer src="{name}"></script>' for name in site_assets() if name.endswith(".js"))
    policy = f"{_NO_OTHERS}; style-src 'self'; script-src 'self'"
    head = '<link rel="stylesheet" href="assets/site.css">\n' + "\n".join(names)
    return _page(catalog, policy, head, "")


@cache
def site_assets() -> dict[str, str]:
    """Returns the scripts and the styles of the site by name, the same for all projects; scripts in their order."""
    scripts = {f"assets/{path.rsplit('/', 1)[1]}": read_asset(path) for path in LIBRARIES}
    return {**scripts, "assets/site.js": bundle_modules(ENTRY), "assets/site.css": _styles()}


def static_page(catalog: Mapping[str, Any]) -> str:
    """Returns the site as one file, which loads nothing. Its policy allows only its own scripts, by their digests."""
    # two hyphens would end the comment
    notices = "\n".join(f"<!--\n{path.split('/')[2]}:\n{read_asset(path).replace('--', '- -')}-->" for path in LICENSES)
    scripts = [*map(read_asset, LIBRARIES), bundle_modules(ENTRY)]
    style = _styles()
    policy = f"{_NO_OTHERS}; style-src {_digest(style)}; script-src {' '.join(map(_digest, scripts))}"
    body = "".join(f"<script>{script}</script>\n" for script in scripts)
    return _page(catalog, policy, f"<style>{style}</style>\n{notices}", body)


def data_block(catalog: Mapping[str, Any]) -> str:
    """Returns the data as an element of the page. No value in it can end the element. A script with the data would be
    readable for other sites: browsers run scripts of other servers, but do not show them the text of a page.
    """
    text = json.dumps(catalog, ensure_ascii=False, separators=(",", ":"), default=str)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="sqlstream-docs">{text}</script>\n'


def _page(catalog: Mapping[str, Any], policy: str, head: str, body: str) -> str:
    title = html.escape(f"{catalog['project']['name']} · sqlstream docs")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<link rel="icon" href="data:,">
{head}
</head>
<body>
<noscript>This documentation needs JavaScript.</noscript>
{data_block(catalog)}{body}</body>
</html>
"""


def _styles() -> str:
    return "\n".join(map(read_asset, STYLES))


def _digest(text: str) -> str:
    """Returns the source expression of a Content-Security-Policy that allows an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


WEB = Path(__file__).parent.parent
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
