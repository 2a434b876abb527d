"""Docs blocks in Markdown files, and descriptions that include them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.compiler.manifest.manifest import build_manifest
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.configuration.docs_blocks import read_docs_blocks
from tests.support.loading_cases import write_project

MODEL = {
    "sinks.yml": "sinks: [{name: lake, format: parquet, path: '{{ model.name }}'}]\n",
    "sources.yml": "sources: [{name: shop, tables: [{name: orders, format: json, path: orders, schema: 'id int'}]}]\n",
    "models/orders.sql": "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}\n",
}


def texts_of(text: str) -> tuple[dict[str, str], list[tuple[str, int]]]:
    """Returns the blocks of a file by name, and the codes and lines of its findings."""
    findings: list[Finding] = []
    blocks = {block.name: block.text for block in read_docs_blocks("a.md", text, findings)}
    return blocks, [(finding.code, finding.location.line if finding.location else 0) for finding in findings]


@pytest.mark.parametrize(
    ("text", "blocks", "findings"),
    [
        ("# Title\n{% docs a %}\nOne\n\ntwo\n{% enddocs %}\nrest", {"a": "One\n\ntwo"}, []),
        ("{%- docs a -%} x {%- enddocs -%}{% docs b %}{{ y }}{% enddocs %}", {"a": "x", "b": "{{ y }}"}, []),
        ("{# {% docs a %} x {% enddocs %} #}", {}, []),
        ("{% docs a %}{# kept #}{% enddocs %}", {"a": "{# kept #}"}, []),
        ("{% docs a %} x", {"a": "x"}, [("docs-block", 1)]),
        ("\n{% docs a %} x {% docs b %} y {% enddocs %}", {"a": "x", "b": "y"}, [("docs-block", 2)]),
        ("\n\n{% enddocs %}", {}, [("docs-block", 3)]),
        ("{% docs %} x {% enddocs %}", {"": "x"}, [("docs-block", 1)]),
        ("{% set a = 1 %} {% documents %}", {}, []),
    ],
)
def test_blocks_of_a_file(text: str, blocks: dict[str, str], findings: list[tuple[str, int]]) -> None:
    """A block is the text between its tags; a tag without its other one is a finding at its line."""
    assert texts_of(text) == (blocks, findings)


def test_descriptions_include_blocks(tmp_path: Path) -> None:
    """Descriptions of models, columns, sources and sinks include blocks of any folder, also beside other text."""
    files = {
        **MODEL,
        "models/deep/texts.md": "{% docs status %}One of `a`.{% enddocs %}",
        "macros/more.md": "{% docs id %}The *id* {{ not_rendered }}{% enddocs %}",
        "models/orders.yml": (
            "models:\n  - name: orders\n    description: \"{{ doc('status') }} Also {{ doc('shop', 'status') }}\"\n"
            "    columns: [{name: id, description: \"{{ doc('id') }}\"}]\n"
        ),
    }
    compiled = load_for_reading(ProjectRequest(write_project(tmp_path, files))).compiled
    manifest = build_manifest(compiled, generated_at="", invocation_id="")

    model = manifest["nodes"]["model.shop.orders"]
    assert model["description"] == "One of `a`. Also One of `a`."
    assert model["columns"]["id"]["description"] == "The *id* {{ not_rendered }}"
    assert manifest["docs"]["doc.shop.status"] == {
        "resource_type": "doc",
        "name": "status",
        "path": "models/deep/texts.md",
        "block_contents": "One of `a`.",
        "declared_at": "models/deep/texts.md:1:1",
    }


def test_an_unknown_block_is_an_error_at_the_description(tmp_path: Path) -> None:
    """doc() with an unknown name is an error at the description, with the nearest name."""
    files = {
        **MODEL,
        "models/texts.md": "{% docs status %}x{% enddocs %}",
        "models/orders.yml": "models:\n  - name: orders\n    description: \"{{ doc('statsu') }}\"\n",
    }
    with pytest.raises(FindingsError) as raised:
        load_for_reading(ProjectRequest(write_project(tmp_path, files)))

    (finding,) = raised.value.findings
    assert (finding.code, str(finding.location)) == ("unknown-doc", "models/orders.yml:3:18")
    assert "`status`" in finding.fix
