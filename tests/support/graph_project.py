"""Generates projects whose graphs have the shapes of real ones: few sources with many readers, chains, fan-in, sinks."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.make_history import SILENCE, batch_line, entry, error_of, iso
from sqlstream.spark.storage.processes import process_start
from tests.support.ui_project import page_of

DOMAINS = ("orders", "payments", "shipping", "clicks", "security", "inventory", "support", "pricing", "search", "fraud")
SINKS = ("lake", "warehouse", "search_index", "alerts_of_the_fraud_team", "partners")
STATES = {3: "error", 8: "silent", 12: "restarting", 17: "stopped", 21: "skipped"}
"""The states of queries with these numbers (modulo 25); the others run."""


@dataclass
class GraphProject:
    """The models of a project, by folder, and what its queries read. `size` is about the number of nodes."""

    size: int
    name: str = "observed"
    files: dict[str, str] = field(default_factory=dict)
    queries: dict[str, str] = field(default_factory=dict)
    """A source of each query."""

    def __post_init__(self) -> None:
        """Makes the files."""
        chance = random.Random(self.size)
        domains = DOMAINS[: max(2, min(len(DOMAINS), self.size // 25))]
        sinks = SINKS[: 2 if self.size < 50 else len(SINKS)]
        sources = {domain: ["events", "changes", "clicks"][: 1 + number % 3] for number, domain in enumerate(domains)}
        views = self._views(sources)
        models = self.size - sum(map(len, sources.values())) - len(sinks) - len(views)
        names = [name for found in views.values() for name in found]
        for number in range(models):
            self._query(number, domains[number * number % len(domains)], views, names, sinks, chance)
        self.files["sinks.yml"] = "version: 2\nsinks:\n" + "".join(
            f"  - {{name: {sink}, format: parquet, path: '{sink}/{{{{ model.name }}}}'}}\n" for sink in sinks
        )
        self.files["sources.yml"] = "version: 2\nsources:\n" + "".join(
            f"  - name: {domain}\n    tables:\n" + "".join(map(_table, tables)) for domain, tables in sources.items()
        )
        self.files["project.yml"] = f"name: {self.name}\nversion: 1.0.0\ndefault_target: local\ntargets:\n" + "".join(
            f"  {target}: {{master: 'local[2]', storage: .sqlstream/{target}, max_streams: 1000}}\n"
            for target in ("local", "staging_in_europe_west", "production_in_the_united_states")
        )

    def _views(self, sources: dict[str, list[str]]) -> dict[str, list[str]]:
        """Writes a view of each table, and a chain of views of each domain; returns their names by domain."""
        found: dict[str, list[str]] = {}
        for domain, tables in sources.items():
            names = []
            for table in tables:
                names.append(f"stg_{domain}_{table}")
                source = f"select id, kind, amount, at from {{{{ source('{domain}', '{table}') }}}}\n"
                self.files[f"models/staging/{domain}/{names[-1]}.sql"] = source
            for step in ("cleaned", "enriched")[: self.size // 60]:
                before = names if step == "cleaned" else names[-1:]
                self.files[f"models/intermediate/{domain}/int_{domain}_{step}.sql"] = _union(before)
                names = [*names, f"int_{domain}_{step}"]
            found[domain] = names
        return found

    def _query(
        self,
        number: int,
        domain: str,
        views: dict[str, list[str]],
        names: list[str],
        sinks: tuple[str, ...],
        chance: random.Random,
    ) -> None:
        own = views[domain]
        reads = [own[-1 - number % len(own)]]
        if number % 7 == 0:
            reads = list(dict.fromkeys([*reads, *chance.sample(names, min(3, len(names)))]))
        words = ("per_minute", "by_country_and_device", "late", "top", "daily_totals_of_all_customers_in_all_regions")
        name = f"{domain}_{words[number % len(words)]}_{number:03}"
        config = f"{{{{ config(sink='{sinks[number % len(sinks)]}', trigger='30 seconds', tags=['{domain}']) }}}}\n"
        team = "" if self.size < 300 else f'team {number % 4}: it\'s "größe"/'
        self.files[f"models/{team}{domain}/{name}.sql"] = config + _union(reads)
        self.queries[name] = f"{domain}.events"

    def write(self, folder: Path) -> None:
        """Writes the files."""
        for path, text in self.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")

    def run(self, folder: Path, rows: int | None = None) -> None:
        """Writes the journal of a run of this process, in which queries have all states; `rows` per second of each."""
        head = {"time": iso(time.time()), "invocation_id": f"live-{os.getpid()}"}
        process = {"pid": os.getpid(), "process_start": process_start(os.getpid())}
        versions = {"sqlstream_version": "0.1.0", "spark_version": "4.3.0"}
        lines: list[tuple[str, dict[str, Any]]] = [
            ("run_began", {**process, "target": None}),
            ("run_loaded", {"target": "local"}),
            ("run_started", {"models": len(self.queries), **versions}),
        ]
        chance = random.Random(1)
        for number, (name, source) in enumerate(self.queries.items()):
            lines += self._batch(number, name, source, chance, rows)
        (folder / "logs").mkdir(exist_ok=True)
        with (folder / "logs" / "events.jsonl").open("a", encoding="utf-8") as file:
            for event, fields in lines:
                file.write(json.dumps({**head, "event": event, **fields}) + "\n")

    def _batch(
        self, number: int, name: str, source: str, chance: random.Random, rows: int | None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        state = STATES.get(number % 25, "running")
        plain = 40 * (number + 1)  # a number without the faults of make_history.py
        line = batch_line(plain, 41, time.time() - 1, chance)
        read = {**line["sources"][0], "name": source}
        if rows is not None:
            read["input_rows_per_second"] = rows
        line |= {"model": name, "sources": [read]}
        faults: dict[str, dict[str, Any]] = {
            "error": {"error": error_of(0), "last_failure": error_of(0)},
            "silent": {"silence": SILENCE},
            "restarting": {"last_failure": error_of(0), "restarts": 3},
        }
        status = "running" if state == "silent" else state
        unique_id = f"model.{self.name}.{name}"
        now = {
            **entry(plain, line, status),
            "unique_id": unique_id,
            "model": name,
            "late_rows": 1_234_567,
            **faults.get(state, {}),
        }
        yield "query_started", {"model": name, "query": {**now, "status": "running"}}
        yield "batch", {**line, "query": now}
        if status in {"error", "stopped", "skipped"}:
            yield "query_ended", {**line, "query": now}


def _table(name: str) -> str:
    return (
        f"      - name: {name}\n        format: json\n        path: data/{name}\n"
        "        schema: id string, kind string, amount string, at timestamp\n"
    )


def _union(names: list[str]) -> str:
    return "\nunion all\n".join(f"select id, kind, amount, at from {{{{ ref('{name}') }}}}" for name in names) + "\n"


@contextmanager
def served_graph(folder: Path, size: int, name: str = "observed") -> Iterator[str]:
    """Serves the page of a generated project with a run, and yields its URL."""
    project = GraphProject(size, name)
    project.write(folder)
    project.run(folder)
    with page_of(folder) as url:
        yield url
