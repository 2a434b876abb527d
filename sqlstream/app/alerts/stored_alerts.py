"""The open alerts of submitted runs, beside their journals in the storage of the target: what the next submitted run
knows of them, because `logs/alerts.sqlite` ends with the driver.

Each run has one file with the queries that it answers for and their open alerts. A later run replaces what an earlier
one says about its queries, and removes a file whose queries are all its own.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlstream.app.alerts.evaluation import OpenAlert


@dataclass(frozen=True)
class EarlierAlerts:
    """The open alerts of earlier runs, and the queries of each of their files, by the names of the files."""

    alerts: tuple[OpenAlert, ...] = ()
    queries: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def replaced_by(self, queries: Collection[str]) -> Sequence[str]:
        """Returns the files that a run of `queries` replaces."""
        return [name for name, known in self.queries.items() if known <= set(queries)]


def alerts_text(queries: Iterable[str], alerts: Iterable[OpenAlert]) -> str:
    """Returns the file of a run of `queries` with these open alerts."""
    found = [{"model": each.model, "alert": str(each.kind), **each.as_json()} for each in alerts]
    return f"{json.dumps({'queries': sorted(queries), 'open': found})}\n"


def read_earlier(files: Iterable[tuple[str, str]]) -> EarlierAlerts:
    """Returns what `files` say, pairs of a name and a text, those of the newest run last. Skips files that a killed run
    has not written completely, or that another version of sqlstream has written.
    """
    alerts: dict[str, list[OpenAlert]] = {}
    queries: dict[str, frozenset[str]] = {}
    for name, text in files:
        try:
            found = json.loads(text)
            known = frozenset(map(str, found["queries"]))
            read = [OpenAlert.from_json(each["model"], each["alert"], each) for each in found["open"]]
        except (KeyError, TypeError, ValueError):
            continue
        queries[name] = known
        alerts |= {model: [alert for alert in read if alert.model == model] for model in sorted(known)}
    return EarlierAlerts(tuple(alert for found in alerts.values() for alert in found), queries)
