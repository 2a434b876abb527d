"""Judges a change of a stateful query: whether the state in its checkpoint is right for the changed query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlstream.state.changes import Change
from sqlstream.state.contents import reads_by_position, same_seed, seed_difference
from sqlstream.state.ledger import Ledger, QueryIdentity
from sqlstream.state.signature.compare import KEPT_ROWS, StateDifference, state_differences
from sqlstream.state.signature.operators import STATIC
from sqlstream.state.signature.signature import FORMAT, StateSignature, shown_source
from sqlstream.state.spark_settings import TIME_ZONE, changed_settings, changes_state, reads_times_as_text

FindSignature = Callable[[int], StateSignature | None]
"""Returns the signature of the changed query in a format, None if it is stateless or Spark does not show its plan."""


@dataclass(frozen=True)
class Judgement:
    """Whether a changed query can use the state. If not, `differences` say why, or `unknown` why nobody can tell.
    `by_sql`: the SQL decided it, not Spark's plan.
    """

    is_safe: bool
    differences: tuple[StateDifference, ...] = ()
    unknown: str | None = None
    keeps_state: bool = True
    by_sql: bool = False


SAFE, UNSAFE, STATELESS = Judgement(is_safe=True), Judgement(is_safe=False), Judgement(is_safe=True, keeps_state=False)


JudgeBySql = Callable[[Ledger, QueryIdentity, Sequence[Change]], Judgement | None]
"""Judges changes of the query in a ledger by the SQL before and after. Returns None if the SQL does not show enough."""


def judge_changes(
    ledger: Ledger,
    new: QueryIdentity,
    changes: Sequence[Change],
    find_signature: FindSignature,
    judge_by_sql: JudgeBySql = lambda *_: None,
) -> Judgement:
    """Returns the judgement of `changes` of the query in `ledger`, by its SQL only if Spark's plans do not decide."""
    changes = [change for change in changes if not change.is_note]
    judgement = _judge_by_plan(ledger, new, changes, find_signature)
    if judgement.unknown is None:
        return judgement
    return judge_by_sql(ledger, new, changes) or judgement


def _judge_by_plan(
    ledger: Ledger, new: QueryIdentity, changes: Sequence[Change], find_signature: FindSignature
) -> Judgement:
    old = ledger.identity
    # This comes before the question of state: a query without state has offsets, too.
    if any(change.is_other_source for change in changes):
        return _unknown("the checkpoint has the offsets of another class, which only its author can compare")
    if not (old.stateful or new.stateful):
        return STATELESS
    if not changes:
        return SAFE
    before = _signature(old, ledger.signature)
    # A ledger with `written` is from a sqlstream that writes signatures, so Spark had none to show.
    if before is None and ledger.signature is None and ledger.written:
        return _unknown("Spark did not show what the state depends on when the ledger was written")
    if before is None or before.format > FORMAT:
        return _unknown("the ledger does not describe the state, because another sqlstream wrote it")
    after = _signature(new, find_signature(before.format))
    if after is None:
        return _unknown("Spark does not show what the state of the query depends on")
    known = {shown_source(name) for name in (*(use.name for use in old.sources), *ledger.retired)}
    differences = (*state_differences(before, after, known), *other_differences(old, new, after))
    # Another release of Spark can optimize the same query in another way, so the difference may be only in the plans.
    if differences and before.spark_version and after.spark_version not in ("", before.spark_version):
        return _unknown(f"the ledger has the plan of Spark {before.spark_version}, and this is {after.spark_version}")
    if differences:
        return Judgement(is_safe=False, differences=differences)
    zones = old.settings.get(TIME_ZONE), new.settings.get(TIME_ZONE)
    source = reads_times_as_text(after, new) if zones[0] != zones[1] else None
    if source is not None:
        return _unknown(
            f"sqlstream cannot tell whether the times in `{source}` have a zone; without one, Spark now reads them in "
            f"{zones[1]}"
        )
    problem = _python_problem(new, changes, calls_python=before.calls_python or after.calls_python)
    return SAFE if problem is None else _unknown(problem)


def _python_problem(new: QueryIdentity, changes: Sequence[Change], *, calls_python: bool) -> str | None:
    """Returns why Python code keeps a state from being judged, None if it does not.

    `calls_python`: the state depends on functions of Python.
    """
    if any(change.is_source for change in changes):
        return "sqlstream cannot tell what a change of a source's Python code means for the state"
    if calls_python and any(change.is_python for change in changes):
        return "sqlstream cannot tell what a change of Python code means for the state"
    if calls_python and new.unfollowed:
        return f"sqlstream cannot follow {', '.join(new.unfollowed)}, which the state may depend on"
    return None


def other_differences(old: QueryIdentity, new: QueryIdentity, after: StateSignature) -> Iterator[StateDifference]:
    """Yields the changes of settings and inputs of which the plan does not tell."""
    for change in changed_settings(old, new):
        if changes_state(change, after, new):
            effect = "the state has results that Spark computed with the old setting"
            default = "Spark's default"
            before, now = change.before or default, change.after or default
            yield StateDifference(f"the setting {change.name}", before, now, effect)
    paths = {use.name: use.path for use in old.sources}
    for use in new.sources:
        path = paths.get(use.name, use.path)
        if path != use.path and after.watermarks:
            effect = "rows of files that were not read before can be late, so the query would drop them"
            yield StateDifference(f"the path of {use.table}", str(path), str(use.path), effect)
    # A static table is an input of an operator, or in a subquery within its keys or conditions.
    lines = after.input_lines
    texts = (text for each in after.operators for part in each.parts.values() for text in part)
    reads_tables = any(STATIC in text for text in (*lines, *texts))
    streams = {shown_source(use.name) for use in (*old.sources, *new.sources)}
    tables = {use.table for use in (*old.sources, *new.sources)}
    for name, then in old.schemas.items():
        now = new.schemas.get(name, then)
        if then != now and reads_tables and name not in tables and reads_by_position(new, name):
            yield StateDifference(f"the columns of {name}", then, now, KEPT_ROWS)
    # An early ledger has no contents at all: then nothing is compared.
    for name in sorted(old.contents.keys() | new.contents.keys() if old.contents else ()):
        before, now = old.contents.get(name, ""), new.contents.get(name, "")
        is_read = name in streams and after.reads(name) and before and now
        if before == now or same_seed(old, new, name):
            continue
        if is_read or (reads_tables and name not in streams):
            rows = seed_difference(old, new, name)
            part, values = (f"the input {name}", (before, now)) if rows is None else (f"the rows of seed {name}", rows)
            yield StateDifference(part, *values, KEPT_ROWS)


def _unknown(reason: str) -> Judgement:
    return Judgement(is_safe=False, unknown=reason)


def _signature(identity: QueryIdentity, found: StateSignature | None) -> StateSignature | None:
    """Returns the signature of a query: without operators if it keeps no state."""
    return found if identity.stateful else StateSignature((), identity.output_mode, (), "")
