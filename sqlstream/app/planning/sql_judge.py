"""Judges changes of a query by its SQL before and after."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.spark_versions import rules_apply
from sqlstream.state.changes import Change
from sqlstream.state.judgement import JudgeBySql, Judgement
from sqlstream.state.ledger import Ledger, QueryIdentity


def sql_judge(compiled: CompiledProject, model: CompiledModel) -> JudgeBySql:
    """Returns what judges changes of the query of `model`. It loads sqlglot when it is called."""
    return partial(_judge, compiled, model)


def _judge(
    compiled: CompiledProject, model: CompiledModel, ledger: Ledger, new: QueryIdentity, changes: Sequence[Change]
) -> Judgement | None:
    if not rules_apply(compiled.project.target):
        return None  # names and values mean something else there
    from sqlstream.state.comparison.inputs import input_columns
    from sqlstream.state.comparison.judgement import judge_by_sql

    return judge_by_sql(ledger, new, changes, input_columns(compiled, model))
