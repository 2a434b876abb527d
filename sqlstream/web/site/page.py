"""The files of the site: a folder, or one file that contains everything. Both also open without a server."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from typing import Any

from sqlstream.web.bundle import bundle_modules, read_asset

LIBRARIES = ("assets/vendor/dagre/dagre.min.js", "assets/vendor/minisearch/minisearch.js")
STYLES = ("assets/theme.css", "site/site.css")
ENTRY = "site/site.js"
LICENSES = ("assets/vendor/dagre/LICENSE", "assets/vendor/minisearch/LICENSE")

_NO_OTHERS = "default-src 'none'; img-src 'self' data:; base-uri 'none'; form-action 'none'"


def site_files(catalog: Mapping[str, Any]) -> dict[str, str]:
    """Returns the files of the site by name: `index.html` and what it loads.

    `catalog` is plain data, which the module `site/store.js` describes.
    """
    scripts = {f"assets/{path.rsplit('/', 1)[1]}": read_asset(path) for path in LIBRARIES}
    scripts |= {"data.js": data_script(catalog), "assets/site.js": bundle_modules(ENTRY)}
    names = (f'<script defer src="{name}"></script>' for name in scripts)
    policy = f"{_NO_OTHERS}; style-src 'self'; script-src 'self'"
    head = '<link rel="stylesheet" href="assets/site.css">\n' + "\n".join(names)
    page = _page(catalog, policy, head, "")
    licenses = {f"assets/{path.split('/')[2]}.LICENSE": read_asset(path) for path in LICENSES}
    return {"index.html": page, **scripts, "assets/site.css": _styles(), **licenses}


def static_page(catalog: Mapping[str, Any]) -> str:
    """Returns the site as one file, which loads nothing. Its policy allows only its own scripts, by their digests."""
    notices = "\n".join(f"<!--\n{path.split('/')[2]}:\n{read_asset(path).replace('--', '- -')}-->" for path in LICENSES)
    scripts = [*map(read_asset, LIBRARIES), data_script(catalog), bundle_modules(ENTRY)]
    style = _styles()
    policy = f"{_NO_OTHERS}; style-src {_digest(style)}; script-src {' '.join(map(_digest, scripts))}"
    body = "".join(f"<script>{script}</script>\n" for script in scripts)
    return _page(catalog, policy, f"<style>{style}</style>\n{notices}", body)


def data_script(catalog: Mapping[str, Any]) -> str:
    """Returns the script that defines the data. No value in it can end the script element."""
    text = json.dumps(catalog, ensure_ascii=False, separators=(",", ":"), default=str)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f"globalThis.sqlstreamDocs = {text};\n"


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
{body}</body>
</html>
"""


def _styles() -> str:
    return "\n".join(map(read_asset, STYLES))


def _digest(text: str) -> str:
    """Returns the source expression of a Content-Security-Policy that allows an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
