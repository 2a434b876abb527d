"""Checks whether a model can resume with the state of its older version, as `run` does."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from sqlstream.errors import FindingsError
from sqlstream.location import Place
from sqlstream.spark.running.plans import is_stateful
from sqlstream.spark.running.prepare import columns_of
from sqlstream.spark.running.state_signature import state_signature
from sqlstream.state.identity import identity_of
from sqlstream.state.ledger import Ledger, QueryIdentity
from sqlstream.state.plan import Action, CheckpointState, StartOptions, plan_query
from sqlstream.state.readers import source_uses
from sqlstream.state.refusals import StartRefusal, refusal_findings
from sqlstream.state.signature.signature import StateSignature
from sqlstream.testing.cases import Case
from sqlstream.version import __version__


def check_upgrade(old: Case, old_frame: DataFrame, new: Case, new_frame: DataFrame) -> None:
    """Raises: FindingsError if `run` would refuse the new model on the checkpoint of the old one."""
    before, after = _identity(old, old_frame), _identity(new, new_frame)
    spark_version = old_frame.sparkSession.version
    signature = _signature(old, old_frame, before)
    ledger = Ledger(before, 1, "", __version__, spark_version, str(Action.START), signature=signature)
    state = CheckpointState(1, ledger, has_batches=True, ledger_path="the ledger", last_commit=0)

    def place_of(name: str | None, offset: int | None) -> Place:
        return new.compiled.locate_in(name or new.model.name, offset)

    def find_signature(_form: int) -> StateSignature | None:
        return _signature(new, new_frame, after)

    plan = plan_query(after, state, StartOptions(), restartable=True, place_of=place_of, find_signature=find_signature)
    if isinstance(plan, StartRefusal):
        findings = refusal_findings([plan])
        fix = f"undo the change, or expect the refusal with `expect: {{error: {findings[0].code}}}`"
        raise FindingsError([replace(finding, fix=fix) for finding in findings])


def _identity(case: Case, frame: DataFrame) -> QueryIdentity:
    uses = source_uses(case.compiled, case.model)
    columns = columns_of(frame)
    return identity_of(case.compiled, case.model, uses, columns, stateful=is_stateful(frame), settings={})


def _signature(case: Case, frame: DataFrame, identity: QueryIdentity) -> StateSignature | None:
    return state_signature(case.compiled, case.model, frame) if identity.stateful else None
