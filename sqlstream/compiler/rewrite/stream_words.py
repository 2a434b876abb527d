"""STREAM before a relation: Spark's declarative pipelines write it, and Spark reads no view that is made from a batch.

What the project declares says whether a relation is a stream, so the word is dropped from what runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlstream.compiler.sql.clauses import at
from sqlstream.compiler.sql.edits import Edit
from sqlstream.compiler.sql.sql_text import SqlText


def drop_stream_words(text: SqlText, streams: Collection[str]) -> Iterator[Edit]:
    """Gives the edits that make `STREAM x` and `STREAM(x)` a plain `x`, for each `x` that is one of `streams`."""
    if "STREAM" not in text.keys:
        return
    names = {name.lower() for name in streams}
    for relation in text.relations:
        if relation.is_cte or relation.is_qualified or (relation.name or "").lower() not in names:
            continue
        index, behind = text.starts[relation.name_start], text.ends[relation.name_end] + 1
        is_called = at(text.tokens, index - 1).key == "(" and at(text.tokens, behind).key == ")"
        word = at(text.tokens, index - 2 if is_called else index - 1)
        if word.key == "STREAM" and word.start != relation.name_start:
            yield Edit(word.start, relation.name_start, "")
            if is_called:
                yield Edit(text.tokens[behind].start, text.tokens[behind].end, "")
