"""Descriptions in Markdown as safe HTML."""

from __future__ import annotations

import pytest

from sqlstream.web.site.markdown import markdown_html, markdown_words


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("", ""),
        ("One *word* and `code`", "<p>One <em>word</em> and <code>code</code></p>"),
        ("# Title", "<h3>Title</h3>"),
        ("<b onclick=x>bold</b>", "<p>&lt;b onclick=x&gt;bold&lt;/b&gt;</p>"),
        ("<script>x</script>", "<p>&lt;script&gt;x&lt;/script&gt;</p>"),
        ("[a](https://b.c 'd')", '<p><a href="https://b.c" title="d" rel="noopener noreferrer">a</a></p>'),
        ("[a](docs/b.md)", '<p><a href="docs/b.md" rel="noopener noreferrer">a</a></p>'),
        ("[a](mailto:a@b.c)", '<p><a href="mailto:a@b.c" rel="noopener noreferrer">a</a></p>'),
        ("![a <b>](https://b.c/d.png)", '<p><a href="https://b.c/d.png" rel="noopener noreferrer">a &lt;b&gt;</a></p>'),
    ],
)
def test_markdown_becomes_html(text: str, html: str) -> None:
    """Marks become elements; HTML is text, images are links, and headings are below those of the page."""
    assert markdown_html(text) == html


@pytest.mark.parametrize(
    "link",
    [
        "javascript:x()",
        "JAVASCRIPT:x()",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "java\tscript:x",
        "&#106;avascript:x",
    ],
)
def test_other_links_are_text(link: str) -> None:
    """A link with another scheme is text, however it is written."""
    html = markdown_html(f"[a](<{link}>) ![b](<{link}>) <{link}>")

    assert "href" not in html or 'href="java%09script' in html


def test_the_words_of_a_description() -> None:
    """The words for search and for summaries have no marks."""
    assert markdown_words("One *word*, `code`\n\n- item [link](https://a.b)") == "One word, code item link"
