"""The coverage of unit tests as a table or JSON."""

from __future__ import annotations

from sqlstream.report.rows import json_text
from sqlstream.report.table import fit_table
from sqlstream.state.results.unit_tests import Coverage, ModelCoverage

MOST_NAMED = 6
"""The number of columns to name for each model."""


def coverage_text(coverage: Coverage, width: int | None) -> str:
    """Returns a table with a row for each model, and the total in percent."""
    header = ["model", "tests", "columns", "not covered"]
    cells = [[model.model, str(model.tests), _count(model), _left(model)] for model in coverage.models]
    table, _ = fit_table(header, cells, [1, 2], width)
    untested = [model for model in coverage.models if not model.tests]
    rest = f"; {len(untested)} of {len(coverage.models)} models have no test" if untested else ""
    return f"{table}\n\ntests cover {coverage.percent:.0f} % of the columns{rest}"


def _count(model: ModelCoverage) -> str:
    return f"{len(model.columns) - len(model.left)}/{len(model.columns)}" if model.columns else "?"


def _left(model: ModelCoverage) -> str:
    if not model.tests:
        return "no test"
    named = ", ".join(model.left[:MOST_NAMED])
    more = len(model.left) - MOST_NAMED
    return f"{named} and {more} more" if more > 0 else named


def coverage_json(coverage: Coverage) -> str:
    """Returns the coverage as one JSON object."""
    models = [
        {"name": model.model, "tests": model.tests, "columns": list(model.columns), "not_stated": list(model.left)}
        for model in coverage.models
    ]
    return json_text({"percent": round(coverage.percent, 1), "models": models}, indent=2)
