"""Why nothing comes out of the rows of a case."""

from __future__ import annotations

from sqlstream.compiler.emission.query import emission_of_query
from sqlstream.state.results.unit_tests import Observed
from sqlstream.state.runs.silence import why_ended_silent
from sqlstream.testing.cases import Case


def why_nothing(case: Case, observed: Observed) -> str | None:
    """Returns why no rows came out, as a sentence without a full stop; None where some did, or a batch failed."""
    if observed.final or observed.error is not None:
        return None
    if observed.figures is None:
        return "conditions or joins in the query removed all of the given rows"
    silence = why_ended_silent(observed.figures, emission_of_query(case.compiled, case.model))
    return "it has no input rows" if silence is None else silence.text
