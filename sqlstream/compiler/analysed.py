"""The fourth stage: the columns and the operators of each model. The operators are built when they are needed: an
unchanged project is compiled without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from sqlstream.compiler.cache import CachedModel
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.flow.analysis import Analysis, ModelSummary
from sqlstream.project.values import Project

if TYPE_CHECKING:
    from sqlstream.compiler.trees import Forest


def analyse_models(
    project: Project, models: Mapping[str, CompiledModel], cached: Mapping[str, CachedModel] | None = None
) -> dict[str, Analysis]:
    """Returns the analysis of each model by unique id. `models` must be in the order of the graph."""
    known = cached or {}
    summaries: dict[str, ModelSummary] = {}
    for unique_id, model in models.items():
        summary = known[unique_id].results.summary if unique_id in known else None
        if model.file.is_python:
            summary = ModelSummary(None, (), is_read=True)  # only Spark knows its columns
        if summary is not None:
            summaries[unique_id] = summary

    @cache
    def forest() -> Forest:
        from sqlstream.compiler.trees import Forest  # loads sqlglot

        return Forest(project, models, summaries, known)

    def analysis(unique_id: str) -> Analysis:
        found = summaries.get(unique_id) or forest().found(unique_id)
        return Analysis(found, lambda: forest().tree(unique_id))

    return {unique_id: analysis(unique_id) for unique_id in models}
