"""Whether a new version of a query can run beside its current one."""

from __future__ import annotations

from sqlstream.errors import Finding
from sqlstream.location import Place
from sqlstream.project.formats.formats import format_of
from sqlstream.state.ledger import QueryIdentity
from sqlstream.state.refusals import refresh_text
from sqlstream.state.sinks import UNSTORED


def parallel_problem(identity: QueryIdentity, place: Place, *, restartable: bool) -> Finding | None:
    """Returns why a second version of the query cannot run, None if it can: two versions need a checkpoint and an
    output each.
    """
    shared = [use.sink_format for use in identity.by_sink if not _has_versions(use)]
    if restartable and not shared:
        return None
    if restartable:
        why = f"both would write to the same {shared[0]} sink, and its readers would get all rows twice"
    else:
        why = "it starts over in every run, so there is no version that a later run could continue"
    return Finding(
        "parallel-version",
        f"a new version of `{identity.model}` cannot run beside the current one",
        why,
        f"use a copy of the model with another sink; or {refresh_text(identity.model)}",
        place.location,
        calls=place.calls,
    )


def _has_versions(use: QueryIdentity) -> bool:
    return use.sink_format in UNSTORED or format_of(use.sink_format).keeps_output
