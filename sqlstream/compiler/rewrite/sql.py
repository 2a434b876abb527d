"""Turns rendered SQL into the text that Spark runs, with few edits: watermark hints become Spark's clause, the second
reference to a stream within one text gets a unique name, and STREAM before a stream is removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlstream.compiler.render.rendered import RenderedModel
from sqlstream.compiler.rewrite.bare_names import bare_names
from sqlstream.compiler.rewrite.watermarks import place_watermarks
from sqlstream.compiler.sql.clauses import at
from sqlstream.compiler.sql.edits import Edit, Rewriting, SqlProblem, ViewReference, spaced
from sqlstream.compiler.sql.grammar import grammar_problems
from sqlstream.compiler.sql.hints import ignored_hints
from sqlstream.compiler.sql.relations import SqlRelation
from sqlstream.compiler.sql.sql_text import SqlText, quote_identifier, read_sql
from sqlstream.compiler.sql.statement import statement_problem, swallowed_sql
from sqlstream.compiler.sql.tokens import SqlTokenError


def plan_rewriting(
    rendered: RenderedModel, views: Mapping[str, str], repeated: frozenset[str], macros: Sequence[str] = ()
) -> Rewriting:
    """Returns the changes to the SQL of a model. `views` are the nodes that it reads, by the names of their views,
    `repeated` the views that need a unique name for each reference, and `macros` the templates of macros.
    """
    try:
        # Half of a surrogate pair cannot go to Spark as UTF-8.
        rendered.sql.encode()
        text = read_sql(rendered.sql)
    except (UnicodeEncodeError, SqlTokenError) as error:
        reads = tuple(ViewReference(view, node) for view, node in views.items())
        return Rewriting((), reads, (_unreadable(error, rendered),))
    marks, problems = place_watermarks(text)
    renames, reads = _name_reads(text, views, repeated)
    statement = statement_problem(text, rendered.file.name, rendered.file.text)
    edits = (*marks, *renames, *drop_stream_words(text, repeated))
    if statement is not None:
        return Rewriting(edits, reads, (*problems, statement))
    names = bare_names(text, views)
    if problems or names:  # an open bracket hides clauses
        certain = grammar_problems(text)
        if certain:
            return Rewriting(edits, reads, tuple(certain))
    hidden = swallowed_sql(text, rendered.file.name, (rendered.file.text, *macros))
    return Rewriting(edits, reads, (*problems, *ignored_hints(text.sql, text.tokens), *hidden), names)


def _name_reads(
    text: SqlText, views: Mapping[str, str], repeated: frozenset[str]
) -> tuple[tuple[Edit, ...], tuple[ViewReference, ...]]:
    """Returns the edits that name second references, and all views that the edited text reads."""
    renames, occurrences = name_second_references(text, repeated, views)
    reads = {found.name_in_text: ViewReference(found.name_in_text, views[found.view]) for found in occurrences}
    for view, node in views.items():
        reads.setdefault(view, ViewReference(view, node))
    return renames, tuple(reads.values())


def drop_stream_words(text: SqlText, streams: Collection[str]) -> Iterator[Edit]:
    """Yields the edits that turn `STREAM x` and `STREAM(x)` into `x` for each `x` of `streams`.

    Spark's declarative pipelines need the word, but Spark cannot read a temp view with it.
    """
    if "STREAM" not in text.keys:
        return
    names = {name.lower() for name in streams}
    views = (item for item in text.relations if not (item.is_cte or item.is_qualified))
    for relation in (view for view in views if (view.name or "").lower() in names):
        index, behind = text.starts[relation.name_start], text.ends[relation.name_end] + 1
        is_called = at(text.tokens, index - 1).key == "(" and at(text.tokens, behind).key == ")"
        word = at(text.tokens, index - 2 if is_called else index - 1)
        if word.key != "STREAM" or word.start == relation.name_start:
            continue
        yield Edit(word.start, relation.name_start, "")
        if is_called:
            yield Edit(text.tokens[behind].start, text.tokens[behind].end, "")


def _unreadable(error: SqlTokenError | UnicodeEncodeError, rendered: RenderedModel) -> SqlProblem:
    message = f"the SQL of `{rendered.file.name}` cannot be parsed"
    if isinstance(error, UnicodeEncodeError):
        return SqlProblem(error.start, "sql-syntax", message, "unpaired surrogate (invalid Unicode)", "remove it")
    return SqlProblem(error.offset, "sql-syntax", message, error.message, "close what is still open")


# Gives further references to a streaming view within one text unique names.
#
# Spark's source evolution needs one reader per reference (a second reader with the same name fails with
# DUPLICATE_SOURCE_NAMES), so the second reference to `x` reads a view `x__2`.


@dataclass(frozen=True)
class Occurrence:
    """One reference to `view`; `name_in_text` is its name in the edited text, without backquotes."""

    view: str
    name_in_text: str


def name_second_references(
    text: SqlText, repeated: Collection[str], taken: Collection[str] = ()
) -> tuple[tuple[Edit, ...], tuple[Occurrence, ...]]:
    """Returns the edits that rename second references, and all references to the views `repeated` in the order of the
    text. New names are different from those in `taken`.

    Names are compared without letter case, as in Spark. The first reference keeps the view's name. A renamed relation
    without an alias gets its old name as alias, so that its columns can be qualified as before. A CTE is defined once,
    so what it reads counts once; its name hides a view with the same name.
    """
    views = {view.lower(): view for view in repeated}
    used: set[str] = set()
    count: Counter[str] = Counter()
    edits: list[Edit] = []
    occurrences: list[Occurrence] = []
    for relation in text.relations:
        view = views.get((relation.name or "").lower())
        if view is None or relation.is_cte or relation.is_qualified:
            continue
        count[view] += 1
        if count[view] == 2 and not used:
            names = (token.name for token in text.tokens if token.is_name)
            used = {name.lower() for name in (*taken, *repeated, *names)}
        name = view if count[view] == 1 else _fresh_name(view, count[view], used)
        occurrences.append(Occurrence(view, name))
        if count[view] > 1:
            edits += _rename(text.sql, relation, name)
    return tuple(edits), tuple(occurrences)


def _fresh_name(view: str, number: int, used: set[str]) -> str:
    """Returns `view__number` with the first number from `number` that is free, and adds the name to `used`."""
    while f"{view}__{number}".lower() in used:
        number += 1
    used.add(f"{view}__{number}".lower())
    return f"{view}__{number}"


def _rename(sql: str, relation: SqlRelation, name: str) -> list[Edit]:
    written = sql[relation.name_start : relation.name_end]
    text = quote_identifier(name, always=written.startswith("`"))
    renamed = Edit(relation.name_start, relation.name_end, text)
    if relation.alias is not None or not relation.takes_clauses:
        return [renamed]
    # The rest of the query still calls it by its own name, as in `x.id`.
    return [renamed, Edit(relation.alias_at, relation.alias_at, spaced(sql, relation.alias_at, f" AS {written}"))]
