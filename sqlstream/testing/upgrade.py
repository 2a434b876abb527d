"""Checks whether a model can resume with the state of its older version, as `run` does."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from sqlstream.errors import FindingsError
from sqlstream.location import Place
from sqlstream.spark.running.plans import is_stateful
from sqlstream.spark.running.prepare import identity_of
from sqlstream.state.ledger import Ledger, QueryIdentity
from sqlstream.state.plan import Action, CheckpointState, StartOptions, plan_query
from sqlstream.state.readers import source_uses
from sqlstream.state.refusals import StartRefusal, refusal_findings
from sqlstream.testing.cases import Case
from sqlstream.version import __version__


def check_upgrade(old: Case, old_frame: DataFrame, new: Case, new_frame: DataFrame) -> None:
    """Raises: FindingsError if `run` would refuse the new model on the checkpoint of the old one."""
    before, after = _identity(old, old_frame), _identity(new, new_frame)
    ledger = Ledger(before, 1, "", __version__, old_frame.sparkSession.version, str(Action.START))
    state = CheckpointState(1, ledger, has_batches=True, ledger_path="the ledger", last_commit=0)

    def place_of(name: str | None, offset: int | None) -> Place:
        return new.compiled.locate_in(name or new.model.name, offset)

    plan = plan_query(after, state, StartOptions(), restartable=True, place_of=place_of)
    if isinstance(plan, StartRefusal):
        findings = refusal_findings([plan])
        fix = f"undo the change, or expect the refusal with `expect: {{error: {findings[0].code}}}`"
        raise FindingsError([replace(finding, fix=fix) for finding in findings])


def _identity(case: Case, frame: DataFrame) -> QueryIdentity:
    uses = source_uses(case.compiled, case.model)
    return identity_of(case.compiled, case.model, uses, frame.schema, stateful=is_stateful(frame), settings={})
