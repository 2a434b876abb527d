"""Descriptions in Markdown as safe HTML: no HTML of the author, no scripts, no requests to other hosts."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

_SCHEME = re.compile(r"^[\s\x00-\x20]*([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_ALLOWED = frozenset({"http", "https", "mailto"})


def markdown_html(text: str) -> str:
    """Returns `text` as HTML. HTML in it shows as text, images become links, and other links than http, https, mailto
    and relative ones show as text.
    """
    return str(_renderer().render(text)).strip() if text.strip() else ""


def markdown_words(text: str) -> str:
    """Returns the words of `text` without its marks, for search and short summaries."""
    words = " ".join(_words(token) for token in _renderer().parse(text))
    return " ".join(words.split())


def is_safe_link(link: str) -> bool:
    """Returns whether a link is relative, or has an allowed scheme."""
    scheme = _SCHEME.match(link)
    return scheme is None or scheme[1].lower() in _ALLOWED


class _Parser(MarkdownIt):
    """Markdown with links that cannot run scripts."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the name is that of the library
        """Returns whether a link may be a link."""
        return is_safe_link(url)


@cache
def _renderer() -> MarkdownIt:
    parser = _Parser("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("image", _image)
    parser.add_render_rule("link_open", _link_open)
    parser.core.ruler.push("lower_headings", _lower_headings)
    return parser


def _image(self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
    """Shows an image as a link: the site makes no requests, and a self-contained file has no files beside it."""
    token = tokens[at]
    label = self.renderInlineAsText(token.children or [], options, env) or str(token.attrs.get("src", ""))
    link = Token("link_open", "a", 1, attrs={"href": token.attrs.get("src", ""), "rel": "noopener noreferrer"})
    return f"<a{self.renderAttrs(link)}>{html.escape(label)}</a>"


def _link_open(self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
    tokens[at].attrs["rel"] = "noopener noreferrer"
    return self.renderToken(tokens, at, options, env)


def _lower_headings(state: StateCore) -> None:
    """Moves headings two levels down, below those of the page."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1:]) + 2)}"


def _words(token: Token) -> str:
    if token.children:
        return "".join(_words(child) for child in token.children)
    return " " if token.type in ("softbreak", "hardbreak") else token.content
