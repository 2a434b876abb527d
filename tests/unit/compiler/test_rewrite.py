"""Rewriting a whole model: its edits, the unchanged tokens, and mapping offsets back."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstream.compiler.render.model import ModelRenderer
from sqlstream.compiler.render.rendered import RenderedModel, RenderOptions
from sqlstream.compiler.rewrite.sql import plan_rewriting
from sqlstream.compiler.sql.edits import Edit, EditedText, apply_edits
from sqlstream.compiler.sql.tokens import SqlTokenError, Token, TokenKind, tokenize
from sqlstream.location import Location
from sqlstream.project.configuration.target import Target
from sqlstream.project.values import ModelFile

STREAM, STATIC = "model.p.events", "model.p.lists"
OPTIONS = RenderOptions(
    variables={},
    env={},
    target=Target(name="local", master="local[*]", storage=".sqlstream", location=Location("project.yml")),
    project_name="p",
    run_started_at=datetime(2026, 1, 2, tzinfo=UTC),
    invocation_id="0",
    log=lambda _message, _info: None,
)
RENDERER = ModelRenderer([], OPTIONS)

PIECES = (
    *(
        "select a",
        "select * from events",
        "from events e",
        "join events",
        "join lists l on e.a = l.a",
        "union all",
        "where a > 1",
    ),
    *(
        "from {{ ref('events') }}",
        "join {{ ref('events') }} x",
        ", events",
        "with c as (",
        ")",
        "(",
        ",",
        "as",
        "b",
        "1",
        "|>",
    ),
    *(
        "select /*+ WATERMARK(ts, '1 day') */ a from events",
        "/*+ WATERMARK(e.ts, '1 hour'), BROADCAST(l) */",
        "\n",
        "\r\n",
    ),
    *(
        "-- from events\n",
        "/* events */",
        "'from events'",
        "`events`",
        "group by window(ts, '1 hour')",
        "😀",
        "é",
        "lateral view",
    ),
    *(
        "events.a",
        "events WATERMARK ts DELAY OF INTERVAL 1 DAY",
        "tablesample (1 rows)",
        "{{ 1 + 1 }}",
        "{# gone #}",
        ";",
    ),
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=16).map(" ".join)
CLAUSE = re.compile(r" WATERMARK \S+ DELAY OF INTERVAL [^\n]+?")
ALIAS = re.compile(r" AS `?events`? ?|`?events__\d+`?")


def rewritten(text: str) -> tuple[RenderedModel, EditedText]:
    """Returns a model that reads a stream and a static table, both rendered and rewritten."""
    rendered = RENDERER.render(ModelFile("m", "models/m.sql", text, (), "", (), ()))
    rewriting = plan_rewriting(rendered, {"events": STREAM, "lists": STATIC}, frozenset({"events"}))
    return rendered, apply_edits(rendered.sql, rewriting.edits)


def untouched(sql: str, spans: list[tuple[int, int]]) -> list[Token]:
    """Returns the tokens of `sql` that overlap none of the spans."""
    return [token for token in tokenize(sql) if not any(a < token.end and token.start < b for a, b in spans)]


def replaced_spans(edited: EditedText) -> list[tuple[int, int]]:
    """Returns the spans of the edits' texts in the new text."""
    spans, shift = [], 0
    for edit in edited.edits:
        start = edit.start + shift
        spans.append((start, start + len(edit.replacement)))
        shift += len(edit.replacement) - (edit.end - edit.start)
    return spans


def is_allowed(edit: Edit, sql: str, hints: list[Token]) -> bool:
    """Whether an edit inserts a clause, removes a hint, or renames a second reference."""
    if edit.start == edit.end:
        return bool(CLAUSE.fullmatch(edit.replacement) or ALIAS.fullmatch(edit.replacement))
    if sql[edit.start : edit.end].strip("`") == "events":
        return ALIAS.fullmatch(edit.replacement) is not None
    return not edit.replacement.strip() and any(
        not (sql[edit.start : hint.start] + sql[hint.end : edit.end]).strip() for hint in hints if hint.start < edit.end
    )


@settings(max_examples=300)
@given(TEXTS)
def test_rewriting_changes_no_other_token(text: str) -> None:
    """Tokens outside the edits keep their order and text, and each edit is of an allowed kind."""
    rendered, edited = rewritten(text)
    try:
        tokens = tokenize(rendered.sql)
    except SqlTokenError:
        assert edited.text == rendered.sql
        return
    assert edited.original == rendered.sql
    assert edited.text.count("\n") == rendered.sql.count("\n")
    hints = [token for token in tokens if token.kind is TokenKind.HINT]
    assert all(is_allowed(edit, rendered.sql, hints) for edit in edited.edits)
    before = untouched(rendered.sql, [(edit.start, edit.end) for edit in edited.edits])
    after = untouched(edited.text, replaced_spans(edited))
    assert [token.text for token in after] == [token.text for token in before]
    assert [edited.original_offset(token.start) for token in after] == [token.start for token in before]


@settings(max_examples=200)
@given(TEXTS)
def test_every_offset_of_the_compiled_sql_maps_to_its_character(text: str) -> None:
    """Each character of compiled SQL maps back to its line and column in the template."""
    rendered, edited = rewritten(text)
    source_map = RENDERER.source_map(rendered)
    lines = text.replace("\r\n", "\n").split("\n")
    spans = replaced_spans(edited)
    for offset, letter in enumerate(edited.text):
        at = source_map.locate(edited.original_offset(offset)).location
        line = lines[at.line - 1] + "\n"
        assert at.column <= len(line)
        found = line[at.column - 1 :]
        is_made = any(start <= offset < end for start, end in spans) or found.startswith(("ref(", "1 + 1"))
        assert is_made or found[0] == letter
