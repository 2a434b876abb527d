"""Plans edits of queries with Spark and without it, and finds where the two contradict each other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from sqlstream.app.loading.load import Loaded
from sqlstream.app.session.session import spark_session
from sqlstream.errors import FindingsError
from sqlstream.spark.jvm.session import SparkRuntime
from sqlstream.spark.queries.prepare import prepare_query
from sqlstream.spark.secrets import Secrets
from sqlstream.state.ledger import Ledger
from sqlstream.state.signature.signature import FORMAT
from sqlstream.state.verdicts import QueryVerdict, Verdict
from tests.spark.changes.edits import Edit
from tests.spark.changes.matrix import SETTINGS, settings_text
from tests.spark.changes.planned_edits import TABLES, ledger_of, model_of, plan_of, written_project

UNCHANGED = frozenset({Verdict.RESUME, Verdict.UNCHANGED})


Verdicts = Mapping[str, tuple[QueryVerdict, QueryVerdict]]
"""The verdicts on edits by name, with Spark and without."""


def contradictions(edits: Sequence[Edit], verdicts: Verdicts) -> list[str]:
    """Returns the edits that `plan` decides without Spark, but not as with Spark. See `planned_twice`."""
    found = [(edit, *verdicts[edit.name]) for edit in edits if edit.name in verdicts]
    decided = [each for each in found if each[2].verdict is not Verdict.UNDECIDED]
    return [_described(*each) for each in decided if (each[1].verdict in UNCHANGED) != (each[2].verdict in UNCHANGED)]


def planned_twice(edits: Sequence[Edit], root: Path, group: str = "queries", *, form: int = FORMAT) -> Verdicts:
    """Returns the verdicts on each edit with and without Spark, but for queries that Spark cannot stream. `group`
    decides Spark's settings, and `form` is the format of the signatures in the ledgers.
    """
    for table in TABLES:
        (root / "in" / table).mkdir(parents=True, exist_ok=True)
    before, after = map(settings_text, SETTINGS[group])
    loaded = written_project(root, edits, changed=False, setting=before, env=dict(os.environ))
    with _session(loaded) as (runtime, secrets):
        ledgers = {}
        for edit in edits:
            with suppress(FindingsError):
                ledgers[edit.name] = _ledger(loaded, edit.name, runtime, secrets, form)
        changed = written_project(root, edits, changed=True, setting=after, env=dict(os.environ))
        if before == after:
            return dict(_verdicts(changed, ledgers, runtime, secrets))
    with _session(changed) as (runtime, secrets):
        return dict(_verdicts(changed, ledgers, runtime, secrets))


@contextmanager
def _session(loaded: Loaded) -> Iterator[tuple[SparkRuntime, Secrets]]:
    secrets = Secrets(dict(os.environ))
    with spark_session(loaded, secrets, nodes=[]) as runtime:
        yield runtime, secrets


def _ledger(loaded: Loaded, name: str, runtime: SparkRuntime, secrets: Secrets, form: int) -> Ledger:
    query = prepare_query(loaded.compiled, model_of(loaded.compiled, name), runtime, secrets, None)
    try:
        identity = query.identity if form == FORMAT else replace(query.identity, declared=None)
        return ledger_of(identity, query.comparable_signature(form) if identity.stateful else None)
    finally:
        query.release()


def _verdicts(
    loaded: Loaded, ledgers: Mapping[str, Ledger], runtime: SparkRuntime, secrets: Secrets
) -> Iterator[tuple[str, tuple[QueryVerdict, QueryVerdict]]]:
    compiled = loaded.compiled
    for name, ledger in ledgers.items():
        model = model_of(compiled, name)
        try:
            query = prepare_query(compiled, model, runtime, secrets, ledger)
        except FindingsError:
            continue
        try:
            found = plan_of(compiled, model, ledger, query.identity, query.comparable_signature)
            yield name, (found, plan_of(compiled, model, ledger))
        finally:
            query.release()


def _described(edit: Edit, with_spark: QueryVerdict, without: QueryVerdict) -> str:
    verdicts = [f"{each.verdict}: {each.reason}" for each in (with_spark, without)]
    return "\n".join((edit.text, *verdicts, edit.sql(changed=False), edit.sql(changed=True)))
