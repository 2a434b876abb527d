"""The verdicts of `sqlstream plan`: what the next run does with each query, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from sqlstream.errors import Finding
from sqlstream.state.changed_columns import Break, ColumnDifference
from sqlstream.state.changes import Change, describe_changes
from sqlstream.state.judgement import Judgement
from sqlstream.state.ledger import QueryIdentity
from sqlstream.state.output_columns import stores_columns
from sqlstream.state.plan import Action, QueryPlan
from sqlstream.state.refusals import StartRefusal, difference_text, refusal_findings
from sqlstream.state.spark_settings import changed_columns


class Verdict(StrEnum):
    """What the next run does with a query."""

    NEW = "new"
    UNCHANGED = "unchanged"
    RESUME = "resume"
    REFUSE = "refuse"
    REBUILD = "rebuild"
    """The query keeps no state, but its output changes its columns or its place: it must start over."""
    REMOVED = "removed"
    UNKNOWN = "unknown"
    """Python code of the project changed, so only its author can tell."""
    UNDECIDED = "undecided"
    """Only Spark can tell, and it was not asked."""


@dataclass(frozen=True)
class QueryVerdict:
    """The verdict on one query. `reason` is one line. `findings` are those with which a run would refuse it
    (none if that is undecided), and `changes` all differences from the query of its checkpoint.

    `columns` are changes of the output columns, `frozen` the settings that its checkpoint fixes at another value, and
    `sql` the SQL of each changed model before and after. `batches` counts the committed batches of `version`.
    `differences` are those of the columns that it writes, and `breaks` what they, or a new start, break downstream.
    `is_parallel`: it runs in parallel with its current version. `reads` says what it reads again or never.
    `contract_breaks` are the changes of its contract on which readers may rely.
    """

    model: str
    verdict: Verdict
    reason: str
    version: int = 0
    batches: int = 0
    findings: tuple[Finding, ...] = ()
    changes: tuple[Change, ...] = ()
    columns: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    sql: tuple[tuple[str, str, str], ...] = ()
    reads_again: tuple[str, ...] = ()
    shared_with: tuple[tuple[str, tuple[str, ...]], ...] = ()
    differences: tuple[ColumnDifference, ...] = ()
    breaks: tuple[Break, ...] = ()
    is_parallel: bool = False
    reads: tuple[str, ...] = ()
    contract_breaks: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProjectPlan:
    """The verdicts on all selected queries, and the ids of queries that are in the storage but not in the project.
    `spark_version` is the version of the Spark that was asked, None if none was; `warnings` say what was not checked
    then.
    """

    target: str
    queries: tuple[QueryVerdict, ...]
    spark_version: str | None = None
    warnings: tuple[Finding, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Whether a run would refuse a query."""
        return any(query.verdict in _REFUSED for query in self.queries)

    @property
    def is_undecided(self) -> bool:
        """Whether a run could refuse a query of which the plan does not tell."""
        return any(query.verdict is Verdict.UNDECIDED for query in self.queries)

    @property
    def counts(self) -> dict[Verdict, int]:
        """The number of queries for each verdict that occurs."""
        found = Counter(query.verdict for query in self.queries)
        return {verdict: found[verdict] for verdict in Verdict if found[verdict]}


_REFUSED = (Verdict.REFUSE, Verdict.REBUILD, Verdict.UNKNOWN)


def verdict_of(
    plan: QueryPlan | StartRefusal, new: QueryIdentity, old: QueryIdentity | None, *, has_spark: bool
) -> tuple[Verdict, str]:
    """Returns the verdict on a planned query and its reason. `old` is the query of its checkpoint. `has_spark`: Spark
    has shown the plan of the query.
    """
    if isinstance(plan, QueryPlan):
        if plan.action is Action.FRESH_EACH_RUN and old is not None and not describe_changes(old, new):
            return Verdict.UNCHANGED, "it starts over in each run"
        if plan.action is Action.WRITE and old is not None and describe_changes(old, new):
            return Verdict.RESUME, "a batch model writes its whole output in each run, from now on with the new results"
        if plan.is_up_to_table and not has_spark:
            return Verdict.UNDECIDED, "only the table in the sink shows whether it fits the new columns: add --check"
        if plan.action is Action.RESUME and old is not None and not has_spark:
            change = changed_columns(old, new, is_stored=any(map(stores_columns, new.by_sink)))
            if change is not None and not (new.stateful or old.stateful):
                return Verdict.UNDECIDED, f"{change}; only Spark knows the columns now: add --check"
        return _verdict_of_plan(plan)
    keeps_state = new.stateful or (old is not None and old.stateful)
    return _verdict_of_refusal(plan, keeps_state=keeps_state, has_spark=has_spark)


def _verdict_of_plan(plan: QueryPlan) -> tuple[Verdict, str]:
    if plan.action is Action.START:
        return Verdict.NEW, "it has no checkpoint yet"
    if plan.action is Action.RESET:
        return Verdict.NEW, "its checkpoint has no committed batch, so it starts over"
    if plan.action is Action.FRESH_EACH_RUN:
        return Verdict.NEW, "it starts over in each run"
    if plan.action is Action.WRITE:
        return Verdict.UNCHANGED, "a batch model writes its whole output in each run"
    if not plan.changes and not plan.new_columns:
        return Verdict.UNCHANGED, "nothing that its checkpoint depends on has changed"
    return Verdict.RESUME, resume_reason(plan.judgement)


def resume_reason(judgement: Judgement) -> str:
    """Returns why a changed query can resume."""
    if judgement.by_sql:
        return "what its state contains stays the same, as its SQL shows; later rows get the new results"
    if judgement.keeps_state:
        return "what its state contains stays the same; later rows get the new results"
    return "it keeps no state; rows from now on get the new results"


def _verdict_of_refusal(refusal: StartRefusal, *, keeps_state: bool, has_spark: bool) -> tuple[Verdict, str]:
    change = refusal.state_change
    if change is not None and not refusal.findings:
        if change.judgement.differences:
            return Verdict.REFUSE, difference_text(change.judgement.differences[0], change.changes)
        if not has_spark:
            return Verdict.UNDECIDED, "only Spark can tell what the change does to the state: add --check"
        return Verdict.UNKNOWN, change.judgement.unknown or "the state may have another meaning"
    findings = refusal_findings([refusal])
    codes = {finding.code for finding in findings}
    if codes <= _OUTPUT and not keeps_state:
        return Verdict.REBUILD, findings[0].message
    return Verdict.REFUSE, findings[0].message


_OUTPUT = frozenset({"output-columns", "sink-change"})
"""The codes of refusals that concern only the output."""
