"""How a query reads each model, and what the other way would cost, as text or JSON."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.compiler.emission.model_reads import ModelRead
from sqlstream.report.numbers import plural

_STORED = "with materialized: view, this query would compute it, without the delay of another query"
_VIEW = (
    "with materialized: stored and a sink, one query would compute it; its rows would arrive here a batch later, "
    "without its watermark"
)


def reads_lines(reads: Sequence[ModelRead]) -> list[str]:
    """Returns a heading and two lines for each model, parents first."""
    return ["reads", *(line for read in reads for line in (f"  {_how(read)}", f"    {_other_way(read)}"))]


def _how(read: ModelRead) -> str:
    others = plural(read.queries - 1, "more query", "more queries")
    reads = "reads" if read.queries == 2 else "read"
    if read.is_stored:
        return f"{read.model}: its stored output{f'; {others} {reads} it' if read.queries > 1 else ''}"
    if read.queries == 1:
        return f"{read.model}: this query computes it"
    state = f", each with its own state of {' and '.join(read.state)}" if read.state else ""
    return f"{read.model}: this query and {others} compute it{state}"


def _other_way(read: ModelRead) -> str:
    return _STORED if read.is_stored else _VIEW


def reads_json(reads: Sequence[ModelRead]) -> list[dict[str, object]]:
    """Returns the same as the content of a JSON array."""
    return [
        {
            "model": read.model,
            "materialized": "stored" if read.is_stored else "view",
            "queries": read.queries,
            "state": list(read.state),
        }
        for read in reads
    ]
