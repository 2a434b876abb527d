"""When a new version of a query runs in parallel with its current one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstream.location import Location, Place
from sqlstream.state.checkpoints import CheckpointState
from sqlstream.state.ledger import QueryIdentity
from sqlstream.state.plan import Action, QueryPlan, StartOptions, plan_query
from sqlstream.state.refusals import StartRefusal
from tests.support.identities import STATEFUL, ledger_of

MODEL = Place(Location("models/per_hour.sql"))
BESIDE = CheckpointState(0, None, has_batches=False, ledger_path="/q/v2/ledger.json", newest=1)
PARALLEL = StartOptions(parallel=True)


def plan(identity: QueryIdentity, state: CheckpointState, *, restartable: bool = True) -> QueryPlan | StartRefusal:
    """Returns the plan of a parallel version."""
    return plan_query(identity, state, PARALLEL, restartable=restartable, place_of=lambda *_: MODEL)


def test_a_parallel_version_starts_with_the_next_number() -> None:
    """It never uses the checkpoint of another version."""
    assert plan(STATEFUL, BESIDE) == QueryPlan(Action.START, 2, writes_ledger=True)


def test_a_parallel_version_resumes() -> None:
    """The next run with the option continues it."""
    used = CheckpointState(2, ledger_of(STATEFUL), has_batches=True, ledger_path="/q/v2/ledger.json", last_commit=3)
    planned = plan(STATEFUL, used)
    assert isinstance(planned, QueryPlan)
    assert (planned.action, planned.version) == (Action.RESUME, 2)


@pytest.mark.parametrize(
    ("sink", "restartable", "why"),
    [
        ("kafka", True, "both would write to the same kafka sink"),
        ("python", True, "both would write to the same python sink"),
        ("parquet", False, "it starts over in every run"),
    ],
)
def test_two_versions_need_two_outputs_and_checkpoints(sink: str, restartable: bool, why: str) -> None:
    """A sink without versions, or a query that cannot resume, is refused."""
    refused = plan(replace(STATEFUL, sink_format=sink), BESIDE, restartable=restartable)
    assert isinstance(refused, StartRefusal)
    (finding,) = refused.findings
    assert (finding.code, why in finding.why) == ("parallel-version", True)


@pytest.mark.parametrize("sink", ["parquet", "delta", "jdbc", "console", "noop"])
def test_files_and_tables_have_versions(sink: str) -> None:
    """So do sinks whose rows do not outlive a run."""
    assert isinstance(plan(replace(STATEFUL, sink_format=sink), BESIDE), QueryPlan)
