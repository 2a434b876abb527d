"""Formats a plan as text for a terminal, as JSON, or as Markdown for a pull request."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from itertools import islice

from sqlstream.numbers import plural
from sqlstream.project.wording import excerpt
from sqlstream.report.findings import finding_text, findings_json
from sqlstream.state.changed_columns import Break
from sqlstream.state.verdicts import ProjectPlan, QueryVerdict, Verdict

_QUIET = (Verdict.UNCHANGED, Verdict.NEW, Verdict.REMOVED)
"""Verdicts of which the text has one line for all queries."""

MOST_LINES = 400
"""The most lines of changed SQL to print for a model."""

_CONTEXT = 1
"""Lines around each difference in SQL."""


_GAP = "..."
"""Marks the lines between two differences in SQL."""


def plan_text(plan: ProjectPlan) -> str:
    """Returns the plan as text: first what is refused, then what resumes, then the rest."""
    order = list(Verdict)
    loud = [query for query in plan.queries if query.verdict not in _QUIET]
    loud.sort(key=lambda query: order.index(query.verdict), reverse=True)
    blocks = ["\n".join(_lines(query)) for query in loud]
    for verdict in _QUIET:
        names = [query.model for query in plan.queries if query.verdict is verdict]
        if names:
            blocks.append("\n".join([f"{verdict}: {', '.join(names)}", *_settings(plan, verdict)]))
    return "\n\n".join([*blocks, *map(finding_text, plan.warnings), _summary(plan)])


def _settings(plan: ProjectPlan, verdict: Verdict) -> Iterator[str]:
    """Yields a line for each setting without effect of the queries with a verdict."""
    for query in plan.queries:
        if query.verdict is verdict:
            yield from (f"  setting of {query.model}: {text}" for text in query.frozen)
            yield from (f"  source of {query.model}: {text}" for text in query.reads)


def _lines(query: QueryVerdict) -> Iterator[str]:
    batches = f", {plural(query.batches, 'batch', 'batches')}" if query.batches else ""
    version = f" (v{query.version}{batches})" if query.version else ""
    yield f"{query.verdict}: {query.model}{version}"
    if query.findings:
        for finding in query.findings:
            yield from (f"  {line}" for line in finding_text(finding).splitlines())
    else:
        yield f"  {query.reason}"
        yield from (f"  {change.text}" for change in query.changes)
    for name, before, after in query.sql:
        yield f"  SQL of {name}:"
        yield from (f"    {line}" for line in _difference(before, after))
    yield from (f"  output: {text}" for text in query.columns)
    yield from (f"  setting: {text}" for text in query.frozen)
    yield from (f"  source: {text}" for text in query.reads)
    yield from (f"  a full refresh would read {text}" for text in query.reads_again)
    for view, queries in query.shared_with:
        yield f"  {view} is also read by {', '.join(queries)}"
    yield from (f"  breaks {_break_text(each)}" for each in query.breaks)


def _break_text(each: Break) -> str:
    owner = f" (owner: {each.owner})" if each.owner else ""
    return f"{each.kind} {each.name}{owner}: {each.reason}"


def _difference(before: str, after: str) -> list[str]:
    """Returns the changed lines and those around them, with `_GAP` between distant ones."""
    old, new = before.strip().splitlines(), after.strip().splitlines()
    lines = difflib.unified_diff(old, new, n=_CONTEXT, lineterm="")
    shown = [_GAP if line.startswith("@@") else line for line in islice(lines, 2, None)]  # after the names of the files
    printed = [excerpt(line) for line in shown[1 : MOST_LINES + 1]]
    return [*printed, f"... ({len(shown) - 1 - MOST_LINES:,} more lines)"] if len(shown) > MOST_LINES + 1 else printed


def _summary(plan: ProjectPlan) -> str:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in plan.counts.items()) or "no queries"
    asked = f"Spark {plan.spark_version} compared the plans" if plan.spark_version else "without Spark"
    more = "; add --check to decide the rest" if plan.is_undecided and not plan.spark_version else ""
    return f"Plan for target {plan.target} ({asked}): {counts}{more}"


def plan_json(plan: ProjectPlan) -> str:
    """Returns the plan as one JSON object."""
    found = {
        "target": plan.target,
        "spark_version": plan.spark_version,
        "refused": plan.is_refused,
        "undecided": plan.is_undecided,
        "queries": [verdict_json(query) for query in plan.queries],
        "findings": findings_json(plan.warnings),
    }
    return json.dumps(found, indent=2)


def verdict_json(query: QueryVerdict) -> dict[str, object]:
    """Returns the plan of one query as plain data."""
    return {
        "model": query.model,
        "verdict": str(query.verdict),
        "reason": query.reason,
        "version": query.version,
        "batches": query.batches,
        "changes": [change.text for change in query.changes],
        "sql": [{"model": name, "before": before, "after": after} for name, before, after in query.sql],
        "columns": list(query.columns),
        "frozen_settings": list(query.frozen),
        "reads": list(query.reads),
        "reads_again": list(query.reads_again),
        "shared_with": {view: list(queries) for view, queries in query.shared_with},
        "breaks": [
            {"kind": str(each.kind), "name": each.name, "owner": each.owner, "reason": each.reason}
            for each in query.breaks
        ],
        "findings": findings_json(query.findings),
    }


def plan_markdown(plan: ProjectPlan) -> str:
    """Returns the plan as Markdown: a table of all queries that changed, and their SQL."""
    shown = [query for query in plan.queries if query.verdict is not Verdict.UNCHANGED]
    parts = [f"### {_summary(plan)}", *(excerpt(each.head) for each in plan.warnings)]
    if shown:
        reasons = [query.reason.replace("|", "\\|") for query in shown]
        rows = [f"| `{each.model}` | **{each.verdict}** | {why} |" for each, why in zip(shown, reasons, strict=True)]
        parts.append("\n".join(["| query | verdict | why |", "| --- | --- | --- |", *rows]))
    parts += [text for query in plan.queries for text in _details_markdown(query)]
    parts += [text for query in shown for text in _sql_markdown(query)]
    return "\n\n".join(parts)


def _details_markdown(query: QueryVerdict) -> Iterator[str]:
    """Yields a list of what the text shows of a query, besides its reason and its SQL. Of an unchanged query these are
    only settings without effect.
    """
    facts = [f"output: {text}" for text in query.columns]
    facts += [f"setting: {text}" for text in query.frozen]
    facts += [f"source: {text}" for text in query.reads]
    facts += [f"a full refresh would read {text}" for text in query.reads_again if query.verdict is not Verdict.NEW]
    facts += [f"`{view}` is also read by {', '.join(queries)}" for view, queries in query.shared_with]
    facts += [f"breaks **{_break_text(each)}**" for each in query.breaks]
    if facts:
        yield "\n".join([f"`{query.model}`:", "", *(f"- {fact}" for fact in facts)])


def _sql_markdown(query: QueryVerdict) -> Iterator[str]:
    if query.sql:
        lines: Sequence[str] = [
            line for name, before, after in query.sql for line in (f"# {name}", *_difference(before, after))
        ]
        body = "\n".join(lines)
        yield f"<details><summary>SQL of <code>{query.model}</code></summary>\n\n```diff\n{body}\n```\n\n</details>"
