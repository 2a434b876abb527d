"""Decides whether a query can start on its checkpoint: compares the project with the ledger.

`plan_model` is the only planner: `run`, `plan`, `plan --check` and unit tests with `upgrade_from` call it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.spark_versions import rules_apply
from sqlstream.errors import Finding
from sqlstream.project.formats.formats import format_of
from sqlstream.state import refusals
from sqlstream.state.changes import Change, describe_changes
from sqlstream.state.checkpoints import CheckpointState, unrestartable
from sqlstream.state.judgement import SAFE, FindSignature, JudgeBySql, Judgement, judge_changes
from sqlstream.state.ledger import InputIds, Ledger, QueryIdentity
from sqlstream.state.output_columns import ColumnChange, column_changes, layout_changes
from sqlstream.state.query_versions import parallel_problem
from sqlstream.state.readers import continuing, names_sources, respelled, unsure_tables
from sqlstream.state.reading import ReadingChange, ReadSoFar, reading_changes, reading_refused
from sqlstream.state.refusals import PlaceOf, StartRefusal, StateChange, replaced_inputs
from sqlstream.state.signature.signature import FORMAT
from sqlstream.state.sinks import UNSTORED, has_other_sink, is_same_sink, key_change, sink_text

FindIds = Callable[[], InputIds]
"""Returns the ids of what a query reads now, as far as they are known."""


class Action(StrEnum):
    """What `run` does with a query's checkpoint."""

    START = "start"
    RESUME = "resume"
    RESET = "reset"
    """Starts in the same version, and archives a checkpoint in which no batch was committed."""
    REFRESH = "refresh"
    FRESH_EACH_RUN = "fresh each run"
    WRITE = "write"


@dataclass(frozen=True)
class QueryPlan:
    """How a query starts: the version, whether it writes a new ledger, the changes, and whether the user had to accept
    them. `new_columns` are the changes of its output columns that the sink can store beside the existing rows, or of
    which only its table shows whether it can (`is_up_to_table`). `judgement` says what the changes do to its state, and
    `reads` what it reads again or never.
    """

    action: Action
    version: int
    writes_ledger: bool
    changes: tuple[str, ...] = ()
    accepted: bool = False
    new_columns: tuple[str, ...] = ()
    is_up_to_table: bool = False
    judgement: Judgement = field(default=SAFE, compare=False)
    reads: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class StartOptions:
    """The options of the command line for one query. With `parallel`, it runs in parallel with its current version."""

    accept_state_change: bool = False
    full_refresh: bool = False
    parallel: bool = False


def plan_model(
    compiled: CompiledProject,
    model: CompiledModel,
    identity: QueryIdentity,
    state: CheckpointState,
    options: StartOptions,
    *,
    find_signature: FindSignature = lambda _: None,
    find_ids: FindIds = dict,
    read_so_far: Mapping[str, ReadSoFar] | None = None,
    in_memory: bool = False,
) -> QueryPlan | StartRefusal:
    """Returns how the query of `model` starts, or why it cannot. `compiled` has the stored outputs that it reads.

    Only with Spark can `find_signature` and `find_ids` return something. Without a signature, the SQL decides. See
    `plan_query`. `in_memory`: it is a unit test, in which all sources and sinks can restart.
    """
    return plan_query(
        identity,
        state,
        options,
        restartable=in_memory or unrestartable(compiled, model) is None,
        place_of=lambda name, offset: compiled.locate_in(name or model.name, offset),
        find_signature=find_signature,
        judge_by_sql=partial(sql_judgement, compiled, model),
        find_ids=find_ids,
        read_so_far=read_so_far,
    )


def sql_judgement(
    compiled: CompiledProject, model: CompiledModel, ledger: Ledger, new: QueryIdentity, changes: Sequence[Change]
) -> Judgement | None:
    """Returns the judgement of changes of the query of `model` by its SQL before and after, None if that does not show
    enough.
    """
    if not rules_apply(compiled.project.target):
        return None  # names and values mean something else there
    from sqlstream.state.comparison.judgement import input_columns, judge_by_sql  # loads sqlglot

    return judge_by_sql(ledger, new, changes, input_columns(compiled, model))


def plan_query(
    identity: QueryIdentity,
    state: CheckpointState,
    options: StartOptions,
    *,
    restartable: bool,
    place_of: PlaceOf,
    find_signature: FindSignature = lambda _: None,
    judge_by_sql: JudgeBySql = lambda *_: None,
    find_ids: FindIds = dict,
    read_so_far: Mapping[str, ReadSoFar] | None = None,
) -> QueryPlan | StartRefusal:
    """Returns how the query starts, or why it cannot. `find_signature` is called only if a stateful query changed, and
    `judge_by_sql` if signatures do not decide. `find_ids` is called if the query would resume. `read_so_far` is about
    the readers in the ledger, by their names.
    """
    if options.parallel:
        problem = parallel_problem(identity, place_of(None, None), restartable=restartable)
        if problem is not None:
            return _refused(problem)
    if options.full_refresh and state.version:
        # No batch has reached the sink, so the same version can start over, instead of leaving an empty one behind.
        if restartable and _has_nothing_to_keep(identity, state):
            return QueryPlan(Action.RESET, state.version, writes_ledger=True)
        return QueryPlan(Action.REFRESH, state.next_version, writes_ledger=True)
    if identity.batch:
        return _plan_batch_model(identity, state, place_of)
    if not restartable:
        return QueryPlan(Action.FRESH_EACH_RUN, state.next_version, writes_ledger=True)
    # A version that a batch model has written has no batches either, so this comes before START.
    if state.ledger is not None and _shares_output_with_batch(state.ledger.identity, identity):
        return _refused(refusals.kind_changed(identity, state.ledger_path, place_of(None, None)))
    if not state.has_batches:
        return QueryPlan(Action.START, state.version or state.next_version, writes_ledger=True)
    # If the query is the same, it finishes the batch that has begun.
    if not state.is_used and (state.ledger is None or state.ledger.identity != identity):
        return QueryPlan(Action.RESET, state.version, writes_ledger=True)
    judge = partial(judge_changes, find_signature=find_signature, judge_by_sql=judge_by_sql)
    plan = _plan_used(identity, state, options, place_of, judge, read_so_far or {})
    return _with_inputs(plan, identity, state, options, place_of, find_ids) if isinstance(plan, QueryPlan) else plan


def _with_inputs(
    plan: QueryPlan,
    identity: QueryIdentity,
    state: CheckpointState,
    options: StartOptions,
    place_of: PlaceOf,
    find_ids: FindIds,
) -> QueryPlan | StartRefusal:
    """Returns the plan to resume, also with the ids of the inputs; a refusal if one is another than before."""
    if state.ledger is None:
        return plan
    after = find_ids()
    # A renamed source keeps the ids that it had under its earlier name.
    names = {was.table: now.table for was, now in continuing(state.ledger.identity, identity)}
    before = {names.get(table, table): ids for table, ids in state.ledger.input_ids.items()}
    replaced = replaced_inputs(before, after)
    if replaced and not options.accept_state_change:
        model, place = state.ledger.identity.model, place_of(None, None)
        return _refused(*(refusals.input_replaced(model, each, state.ledger_path, place) for each in replaced))
    is_new = any(ids.keys() - before.get(table, {}).keys() for table, ids in after.items())
    return replace(
        plan,
        writes_ledger=plan.writes_ledger or bool(replaced) or is_new,
        changes=(*plan.changes, *(each.text for each in replaced)),
        accepted=plan.accepted or bool(replaced),
    )


def _shares_output_with_batch(old: QueryIdentity, new: QueryIdentity) -> bool:
    """Returns whether a stream follows a batch model, and would write files beside those of the batch, or add its rows
    to those in the same table.
    """
    if not old.batch:
        return False
    facts, adds_rows = format_of(new.sink_format), new.output_mode != "complete" and not new.unique_key
    is_table = facts.keeps_output or facts.keeps_columns
    return facts.writes_files or (is_table and adds_rows and is_same_sink(old, new))


_Judge = Callable[[Ledger, QueryIdentity, Sequence[Change]], Judgement]


def _has_nothing_to_keep(identity: QueryIdentity, state: CheckpointState) -> bool:
    """Returns whether a stream with the same sink has begun its first batch and committed none."""
    if state.ledger is None or state.is_used or not state.has_batches:
        return False
    old = state.ledger.identity
    return not (identity.batch or old.batch) and is_same_sink(old, identity)


def _refused(*findings: Finding) -> StartRefusal:
    return StartRefusal(findings)


def _plan_batch_model(identity: QueryIdentity, state: CheckpointState, place_of: PlaceOf) -> QueryPlan | StartRefusal:
    """Returns the plan of a batch model, which writes its whole output each time, so any change is safe."""
    if state.has_batches:
        return _refused(refusals.kind_changed(identity, state.ledger_path, place_of(None, None)))
    changed = state.ledger is None or state.ledger.identity != identity
    return QueryPlan(Action.WRITE, state.version or state.next_version, writes_ledger=changed)


def _plan_used(
    identity: QueryIdentity,
    state: CheckpointState,
    options: StartOptions,
    place_of: PlaceOf,
    judge: _Judge,
    read_so_far: Mapping[str, ReadSoFar],
) -> QueryPlan | StartRefusal:
    """Returns the plan for a checkpoint in which a batch has begun."""
    if state.ledger is None:
        return _plan_without_ledger(identity, state, options, place_of)
    ledger = replace(state.ledger, identity=respelled(state.ledger.identity, identity))
    reads = reading_changes(ledger, identity, read_so_far)
    plan = _plan_checkpoint(identity, replace(state, ledger=ledger), options, place_of, judge, reads)
    # The ledger gets the new spelling of paths and options, even if nothing else changed.
    if isinstance(plan, QueryPlan) and state.ledger.identity != identity:
        plan = replace(plan, writes_ledger=True)
    return replace(plan, reads=tuple(change.text for change in reads))


def _plan_without_ledger(
    identity: QueryIdentity, state: CheckpointState, options: StartOptions, place_of: PlaceOf
) -> QueryPlan | StartRefusal:
    """Returns the plan for a checkpoint whose query is unknown."""
    problem = f"cannot be read: {state.unreadable}" if state.unreadable else "is missing"
    if not options.accept_state_change:
        return _refused(refusals.ledger_missing(identity, state.ledger_path, problem, place_of(None, None)))
    return QueryPlan(
        Action.RESUME, state.version, writes_ledger=True, changes=(f"its ledger {problem}",), accepted=True
    )


def _plan_checkpoint(
    identity: QueryIdentity,
    state: CheckpointState,
    options: StartOptions,
    place_of: PlaceOf,
    judge: _Judge,
    reads: Sequence[ReadingChange],
) -> QueryPlan | StartRefusal:
    """Returns the plan for a checkpoint in which a batch has begun, and whose query is in a ledger."""
    place, ledger = place_of(None, None), state.ledger
    if ledger is None:
        raise ValueError("the checkpoint has no ledger")
    old = ledger.identity
    # First what concerns outputs and offsets. Equal state does not help there.
    if has_other_sink(old, identity):
        before, after = (sink_text(each) for each in (old, identity))
        return _refused(refusals.sink_changed(identity, state.ledger_path, before, after, place))
    fan_out = _changed_fan_out(old, identity)
    if fan_out is not None:
        return _refused(refusals.fan_out_changed(identity, state.ledger_path, *fan_out, place))
    switched = _switched_models(old, identity)
    if switched and not options.accept_state_change:
        return _refused(refusals.reading_switched(identity, state.ledger_path, switched[0], place))
    risks = [change for change in reads if change.risk]
    refused = [change for change in risks if change.accepting is None or not options.accept_state_change]
    if refused:
        return _refused(*(reading_refused(identity, state.ledger_path, change, place) for change in refused))
    if not names_sources(old) and len(continuing(old, identity)) < max(len(old.sources), len(identity.sources)):
        return _refused(refusals.sources_reordered(identity, state.ledger_path, old, place))
    plan = _plan_resume(identity, state, ledger, options, place_of, judge)
    if not risks or isinstance(plan, StartRefusal):
        return plan
    return replace(plan, changes=(*plan.changes, *(change.text for change in risks)), accepted=True)


def _plan_resume(
    identity: QueryIdentity,
    state: CheckpointState,
    ledger: Ledger,
    options: StartOptions,
    place_of: PlaceOf,
    judge: _Judge,
) -> QueryPlan | StartRefusal:
    """Returns the plan for the checkpoint of the query in `ledger`, with the same sources and sink."""
    old = ledger.identity
    changes = describe_changes(old, identity)
    columns = _column_changes(old, identity)
    unsure = unsure_tables(old.sources, identity.sources)
    # As long as it is unknown which reader continues where, signatures of the readers cannot be matched.
    judgement = judge(ledger, identity, changes) if not unsure else SAFE
    risky = bool(unsure) or not judgement.is_safe
    findings = _column_findings(identity, state, columns, options, place_of)
    state_change = None
    if risky and not options.accept_state_change:
        if unsure:
            place = place_of(None, None)
            findings.append(refusals.unsure_readers(identity, state.ledger_path, old, unsure, place))
        else:
            first = next((change for change in changes if not change.is_note), changes[0])
            place = place_of(first.model, first.offset)
            can_run_parallel = parallel_problem(identity, place, restartable=True) is None
            path, alone = state.ledger_path, not findings
            version = state.version if options.parallel else None
            state_change = StateChange(
                identity.model, changes, path, place, alone, judgement, can_run_parallel, version
            )
    if findings or state_change:
        return StartRefusal(tuple(findings), state_change)
    return QueryPlan(
        Action.RESUME,
        state.version,
        writes_ledger=old != identity or state.abandoned is not None or _lacks_signature(ledger),
        changes=tuple(change.text for change in changes),
        accepted=risky,
        new_columns=tuple(change.text for change in columns),
        is_up_to_table=any(change.is_up_to_table for change in columns),
        judgement=judgement,
    )


def _lacks_signature(ledger: Ledger) -> bool:
    """Returns whether an earlier sqlstream wrote the ledger, without what the state depends on, or in its form."""
    if ledger.signature is not None:
        return ledger.signature.format < FORMAT
    return ledger.identity.stateful and not ledger.written


def _column_findings(
    identity: QueryIdentity,
    state: CheckpointState,
    columns: tuple[ColumnChange, ...],
    options: StartOptions,
    place_of: PlaceOf,
) -> list[Finding]:
    """Returns the findings for changes that the sink's format cannot store."""
    path, accepted = state.ledger_path, options.accept_state_change
    problems = [(change, place_of(identity.model, change.offset)) for change in columns if change.undo is not None]
    return [
        refusals.columns_changed(
            identity,
            path,
            change,
            place,
            accepted=accepted,
            can_run_parallel=not options.parallel and parallel_problem(identity, place, restartable=True) is None,
        )
        for change, place in problems
    ]


def _column_changes(old: QueryIdentity, new: QueryIdentity) -> tuple[ColumnChange, ...]:
    """Returns the changes of the columns in all sinks, those that a sink cannot store first."""
    before = {each.sink_path: each for each in old.by_sink}
    pairs = ((before[each.sink_path], each) for each in new.by_sink if each.sink_path in before)
    changes = dict.fromkeys(
        change for pair in pairs for change in (*key_change(*pair), *column_changes(*pair), *layout_changes(*pair))
    )
    return tuple(sorted(changes, key=lambda change: change.undo is None))


def _changed_fan_out(old: QueryIdentity, new: QueryIdentity) -> tuple[str, str] | None:
    """Returns a further sink whose output would lack rows of the earlier batches or have them twice, and what changed.
    None without one.
    """
    before, after = (dict(zip((use.sink for use in each.also), each.by_sink[1:], strict=True)) for each in (old, new))
    for sink, use in after.items():
        if sink not in before and use.sink_format not in UNSTORED:
            return sink, "the query did not write to this sink before"
        if sink in before and has_other_sink(before[sink], use):
            return sink, f"the sink changed from {sink_text(before[sink])} to {sink_text(use)}"
    left = next((sink for sink in before if sink in new.separate), None)
    return None if left is None else (left, "a separate query would write to this sink, and start from the beginning")


def _switched_models(old: QueryIdentity, new: QueryIdentity) -> list[str]:
    """Returns the models that the query has computed so far and would now read as stored outputs, or the reverse."""
    before, after = ({use.table for use in each.sources if use.stored} for each in (old, new))
    return sorted((after & old.models.keys()) | (before & new.models.keys()))
