"""Whether a model may go on with the state of an older form of it, as `run` decides it."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.spark.plans import is_stateful
from sqlstream.spark.prepare import identity_of
from sqlstream.state.ledger import Ledger, QueryIdentity
from sqlstream.state.plan import Action, CheckpointState, Wishes, plan_query
from sqlstream.state.readers import source_uses
from sqlstream.testing.cases import Case
from sqlstream.version import __version__


def check_upgrade(old: Case, old_frame: DataFrame, new: Case, new_frame: DataFrame) -> None:
    """Raises: FindingsError where `run` would refuse the new model on the checkpoint of the old one."""
    before, after = _identity(old, old_frame), _identity(new, new_frame)
    ledger = Ledger(before, 1, "", __version__, old_frame.sparkSession.version, str(Action.START))
    state = CheckpointState(1, ledger, has_batches=True, ledger_path="the ledger")
    location: Location = new.model.file.location
    plan = plan_query(after, state, Wishes(), restartable=True, location=location)
    if isinstance(plan, Finding):
        fix = f"undo the change, or state that it is refused with `expect: {{error: {plan.code}}}`"
        raise FindingsError([replace(plan, fix=fix)])


def _identity(case: Case, frame: DataFrame) -> QueryIdentity:
    uses = source_uses(case.compiled, case.model)
    return identity_of(case.compiled, case.model, uses, stateful=is_stateful(frame), settings={})
