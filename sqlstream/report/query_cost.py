"""What a query costs, where the time of its recent batches goes, and the one change that would help most.

A rule gives advice only where the figures leave no doubt: no advice is better than a wrong one. docs/ui.md has a table
of the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlstream.project.configuration.trigger import MAPPED, WORDS
from sqlstream.project.formats.formats import format_of

PARTS = ("input_ms", "planning_ms", "add_batch_ms", "wal_ms", "other_ms")
"""The figures that add up to the duration of a batch."""

TIME_COLUMNS = ("at_ms", "duration_ms", *PARTS, "core_ms", "tasks", "cores", "state_commit_ms")
"""The figures of a batch that the rules use; `at_ms` is its start in ms since 1970."""

FEWEST_BATCHES = 5
"""With fewer batches there is no advice."""

WAITS = 0.5
"""A query that waits for at least this part of the time keeps up."""

LARGE = 0.5
"""The part of the time of batches, or of tasks, that is worth a change."""

LISTS = 0.4
"""The part of the time of batches for finding input that is worth a change."""

FULL = 0.8
"""Cores, or partitions, of which at least this part is in use on average are the limit."""

SHORT_TASK_MS = 100
"""Spark's own work for a task is a large part of a shorter one."""

BACKLOG_BATCHES = 3
"""A query with so many batches left to read falls behind."""

LIMITS = {
    "maxfilespertrigger": ("maxFilesPerTrigger", "files"),
    "maxoffsetspertrigger": ("maxOffsetsPerTrigger", "records"),
}
"""The options of a source that limit a batch, in lower case: as users write them, and the unit of the lag."""


_LIMIT = re.compile(r"max\w+per(trigger|batch)\Z", re.IGNORECASE)


def costs(entry: Mapping[str, Any], run: Iterable[Mapping[str, Any]] | None) -> dict[str, float | None]:
    """Returns what a query costs in its run: core seconds per hour and per million rows, and its share of the core time
    of the run (0 to 1). Takes its entry of run_results.json, and those of all queries of the run, None if they are not
    all known. Unknown values are None.
    """
    core_ms = entry.get("core_ms")
    seconds, rows = entry.get("duration_seconds"), entry.get("rows_in")
    times = [each.get("core_ms") for each in run or ()]
    total = None if None in times else sum(time for time in times if time is not None)
    return {
        "core_seconds_per_hour": None if core_ms is None or not seconds else round(core_ms * 3.6 / seconds, 3),
        "core_seconds_per_million_rows": None if core_ms is None or not rows else round(core_ms * 1_000 / rows, 3),
        "share_of_run": None if core_ms is None or not total else round(core_ms / total, 4),
    }


@dataclass(frozen=True)
class QueryFacts:
    """What the rules know of a query besides its batches. `trigger` is as users write it. `sources` are the entries of
    its streams in the manifest, and `lag` is what it has not read yet, by unit. `partitions` are those of its state,
    whose number can change if it `can_repartition`. `cores_of_run` are the cores that all queries of the run use
    together on average, None if unknown.
    """

    model: str
    trigger: str
    sources: Sequence[Mapping[str, Any]] = ()
    lag: Mapping[str, int] | None = None
    partitions: int | None = None
    can_repartition: bool = False
    cores_of_run: float | None = None

    @property
    def longer_trigger(self) -> str | None:
        """What makes fewer and larger batches; None if it does not, or if a limit of a source could then be too low."""
        kind = next((kind for word, kind in {**WORDS, **MAPPED}.items() if self.trigger.split(" ")[0] == word), None)
        if kind not in (None, "default") or not self.sources or any(map(_is_limited, self.sources)):
            return None
        what = "A longer `trigger`" if kind is None else "A `trigger` with an interval"
        return f"{what}, if later results are fine"

    @property
    def reached_limit(self) -> str | None:
        """The option that limits the batches of the only source, if several batches are left to read; else None."""
        if len(self.sources) != 1:
            return None
        for name, value in (self.sources[0].get("options") or {}).items():
            option, unit = LIMITS.get(name.lower(), (None, ""))
            if option is not None and str(value).isdigit() and int(value) > 0:
                left = (self.lag or {}).get(unit)
                return option if left is not None and left >= BACKLOG_BATCHES * int(value) else None
        return None


def has_batch_limit(options: Iterable[str]) -> bool:
    """Returns whether an option of a source, such as `maxFilesPerTrigger`, limits what a batch reads."""
    return any(map(_LIMIT.match, options))


def _is_limited(source: Mapping[str, Any]) -> bool:
    """Returns whether the batches of a source have a limit, or may have one: tables have limits by default, and files
    whose path looks like a pattern may have one.
    """
    is_known = source.get("format") == "kafka" or format_of(str(source.get("format"))).is_file
    return (
        not is_known
        or has_batch_limit(source.get("options") or {})
        or any(sign in str(source.get("path")) for sign in "*?[]{}\\")
    )


@dataclass(frozen=True)
class TimeUse:
    """Where the time of recent batches of a query goes, in ms: the `span` from the start of the first to the end of the
    last, and the `parts` of `PARTS`. `began_ms` is the start of the first, in ms since 1970. `tasks` and `task_ms` are
    the number and the time of tasks, `commit_ms` is the time of these for writing state, and `cores` what Spark has;
    None if unknown.
    """

    batches: int
    began_ms: int
    span_ms: int
    parts: Mapping[str, int]
    cores: int | None = None
    tasks: int | None = None
    task_ms: int | None = None
    commit_ms: int | None = None

    @property
    def busy_ms(self) -> int:
        """The time in batches."""
        return sum(self.parts.values())

    @property
    def waiting_ms(self) -> int:
        """The time between batches."""
        return max(self.span_ms - self.busy_ms, 0)

    @property
    def waits(self) -> float:
        """The part of the time between batches, 0 to 1."""
        return self.waiting_ms / max(self.span_ms, 1)

    @property
    def cores_used(self) -> float | None:
        """The cores in use on average while Spark reads, computes and writes."""
        processing = self.parts["add_batch_ms"]
        return None if self.task_ms is None or not processing else self.task_ms / processing

    @property
    def cores_over_time(self) -> float | None:
        """The cores in use on average."""
        return None if self.task_ms is None or not self.span_ms else self.task_ms / self.span_ms

    @property
    def state_share(self) -> float | None:
        """The part of the time of tasks in which they wrote state, 0 to 1."""
        return None if self.commit_ms is None or not self.task_ms else min(self.commit_ms / self.task_ms, 1.0)

    def until(self, at_ms: int) -> TimeUse:
        """Returns the same batches with the time without a batch until `at_ms` (ms since 1970), if that is later."""
        return replace(self, span_ms=max(self.span_ms, at_ms - self.began_ms))

    def part(self, *names: str) -> float:
        """Returns the part of the time of batches that `names` take, 0 to 1."""
        return sum(self.parts[name] for name in names) / max(self.busy_ms, 1)


def time_use(batches: Iterable[Mapping[str, Any]]) -> TimeUse | None:
    """Returns where the time of `batches`, the oldest first, goes; each has the figures of `TIME_COLUMNS`. None if no
    batch has all parts: those of earlier versions, and batch models.
    """
    known = [
        each
        for each in batches
        if all(each[name] is not None for name in ("duration_ms", *PARTS)) and each["add_batch_ms"]
    ]
    if not known:
        return None

    def added(name: str) -> int | None:
        values = [each[name] for each in known]
        return None if None in values else sum(values)

    return TimeUse(
        batches=len(known),
        began_ms=known[0]["at_ms"],
        span_ms=known[-1]["at_ms"] + known[-1]["duration_ms"] - known[0]["at_ms"],
        parts={name: sum(each[name] for each in known) for name in PARTS},
        cores=known[-1]["cores"],
        tasks=added("tasks"),
        task_ms=added("core_ms"),
        commit_ms=added("state_commit_ms"),
    )


@dataclass(frozen=True)
class Advice:
    """The change that would help most. `rule` is one of `RULES`; `text` is a sentence with Markdown's backticks."""

    rule: str
    text: str


def advice(use: TimeUse, query: QueryFacts) -> Advice | None:
    """Returns the advice of the first rule that applies, None if none does."""
    if use.batches < FEWEST_BATCHES:
        return None
    return next((Advice(rule, text) for rule, apply in RULES.items() if (text := apply(use, query))), None)


def _larger_batches(use: TimeUse, query: QueryFacts) -> str | None:
    option = query.reached_limit
    if option is None:
        return None
    if use.waits >= WAITS:
        return (
            f"A larger `{option}`, or a shorter trigger: it waits {_percent(use.waits)} of the time, and falls behind."
        )
    if use.part(*_FIXED) >= LARGE:
        return f"A larger `{option}`: {_fixed_text(use)}."
    return None


def _nothing(use: TimeUse, _query: QueryFacts) -> str | None:
    if use.waits < WAITS:
        return None
    return f"No change is needed: it waits for its trigger or for input {_percent(use.waits)} of the time."


def _more_partitions(use: TimeUse, query: QueryFacts) -> str | None:
    count = query.partitions
    if count is None or not query.can_repartition or use.cores is None:
        return None
    if count >= use.cores or not _computes_on(use, count):
        return None
    has_idle_cores = query.cores_of_run is not None and query.cores_of_run < FULL * use.cores
    # on more cores than it has partitions, other stages are the limit, too
    if not has_idle_cores or use.cores_used is None or use.cores_used > count:
        return None
    return (
        f"More shuffle partitions (`sqlstream state repartition {query.model} {use.cores}`): "
        f"its state has {count}, so it uses at most {count} of {use.cores} cores at a time."
    )


def _more_cores(use: TimeUse, query: QueryFacts) -> str | None:
    if use.cores is None or use.part("add_batch_ms") < LARGE:
        return None
    count = query.partitions
    is_limited = count is not None and count <= use.cores
    then = f", and then more shuffle partitions than {count}" if is_limited and query.can_repartition else ""
    if query.cores_of_run is not None and query.cores_of_run >= FULL * use.cores:
        return (
            f"More cores{then}: the queries of the run use {query.cores_of_run:.1f} of {_cores(use.cores)} on average."
        )
    if _computes_on(use, use.cores) and (then or not is_limited):
        return f"More cores{then}: its tasks use {use.cores_used:.1f} of {_cores(use.cores)} while a batch computes."
    return None


def _fewer_partitions(use: TimeUse, query: QueryFacts) -> str | None:
    count = query.partitions
    if count is None or not query.can_repartition or not use.cores or not use.tasks or use.task_ms is None:
        return None
    if count < 2 * use.cores:
        return None
    task_ms = use.task_ms / use.tasks
    if task_ms >= SHORT_TASK_MS or use.part("add_batch_ms") < LARGE:
        return None
    return (
        f"Fewer shuffle partitions (`sqlstream state repartition {query.model} {use.cores}`): its state has {count} "
        f"for {_cores(use.cores)}, and a task takes only {task_ms:.0f} ms."
    )


def _list_less_often(use: TimeUse, query: QueryFacts) -> str | None:
    if query.longer_trigger is None or use.part("input_ms") < LISTS:
        return None
    return f"{query.longer_trigger}: finding input takes {_percent(use.part('input_ms'))} of each batch."


def _fewer_batches(use: TimeUse, query: QueryFacts) -> str | None:
    if query.longer_trigger is None or use.part(*_FIXED) < LARGE:
        return None
    return f"{query.longer_trigger}: {_fixed_text(use)}."


def _write_state_less_often(use: TimeUse, query: QueryFacts) -> str | None:
    if query.longer_trigger is None or use.state_share is None or use.part("add_batch_ms") < LARGE:
        return None
    if use.state_share < LARGE:
        return None
    return f"{query.longer_trigger}: tasks write state for {_percent(use.state_share)} of their time, in each batch."


RULES = {
    "larger-batches": _larger_batches,
    "nothing": _nothing,
    "more-partitions": _more_partitions,
    "more-cores": _more_cores,
    "fewer-partitions": _fewer_partitions,
    "list-less-often": _list_less_often,
    "fewer-batches": _fewer_batches,
    "write-state-less-often": _write_state_less_often,
}
"""The rules in their order. Each returns a sentence, None if it does not apply."""

_FIXED = ("input_ms", "planning_ms", "wal_ms")
"""The parts that hardly depend on the number of rows."""


def _fixed_text(use: TimeUse) -> str:
    share = _percent(use.part(*_FIXED))
    return f"{share} of each batch is finding input, planning and committing, however few rows it has"


def _computes_on(use: TimeUse, count: int) -> bool:
    """Returns whether tasks keep `count` cores in use while the query computes, which is most of its time."""
    return use.cores_used is not None and use.cores_used >= FULL * count and use.part("add_batch_ms") >= LARGE


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def _cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"


def time_json(use: TimeUse, query: QueryFacts) -> dict[str, Any]:
    """Returns where the time goes, and the advice, as plain values."""
    found = advice(use, query)
    return {
        "batches": use.batches,
        "span_ms": max(use.span_ms, use.busy_ms),
        "waiting_ms": use.waiting_ms,
        **use.parts,
        "cores": use.cores,
        "cores_used": None if use.cores_used is None else round(use.cores_used, 2),
        "state_share": None if use.state_share is None else round(use.state_share, 3),
        "advice": None if found is None else {"rule": found.rule, "text": found.text},
    }
