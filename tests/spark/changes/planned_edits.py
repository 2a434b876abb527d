"""Plans edits of queries from the projects before and after, without a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlstream.app.loading.load import Loaded, load
from sqlstream.app.plan.compiled_identity import identity_without_spark
from sqlstream.app.plan.details import describe
from sqlstream.app.request import ProjectRequest
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.trees import keeps_state
from sqlstream.project.types.data_types import type_name
from sqlstream.state.checkpoints import CheckpointState
from sqlstream.state.identity import identity_of
from sqlstream.state.judgement import FindSignature
from sqlstream.state.ledger import Ledger, OutputColumn, QueryIdentity
from sqlstream.state.plan import StartOptions, plan_model
from sqlstream.state.readers import source_uses
from sqlstream.state.signature.signature import StateSignature
from sqlstream.state.spark_settings import RESULT_DEFAULTS, SOURCE_EVOLUTION, TIME_ZONE
from sqlstream.state.verdicts import QueryVerdict
from tests.spark.changes.edits import Edit, declared_tables
from tests.spark.changes.matrix import SETTINGS, settings_text
from tests.spark.changes.world_sinks import sinks_text

COLUMNS = "id int, ts timestamp, k string, g string, v int, d double"
TABLES = ("orders", "refunds", "notes", "slow", "typed", "wider", "cased", "cased2", "sheet", "sheet2")
_DEFAULTS = {**RESULT_DEFAULTS, TIME_ZONE: "UTC", SOURCE_EVOLUTION: "true"}


def planned(edits: Sequence[Edit], root: Path, *, group: str = "queries") -> dict[str, QueryVerdict]:
    """Returns the verdict on each edit, by its name. `group` decides the settings."""
    before, after = SETTINGS[group]
    old = written_project(root, edits, changed=False, setting=settings_text(before)).compiled
    settings = {**_DEFAULTS, **{name: value for name, value in before.items() if name in _DEFAULTS}}
    ledgers = {edit.name: ledger_of(_identity(old, model_of(old, edit.name), settings)) for edit in edits}
    new = written_project(root, edits, changed=True, setting=settings_text(after)).compiled
    return {name: plan_of(new, model_of(new, name), ledger) for name, ledger in ledgers.items()}


def ledger_of(identity: QueryIdentity, signature: StateSignature | None = None) -> Ledger:
    """Returns the ledger of a query that has just started."""
    return Ledger(identity, 1, "2024-01-01T00:00:00+00:00", "0.1.0", "4.3.0", "start", signature=signature)


def plan_of(
    compiled: CompiledProject,
    model: CompiledModel,
    ledger: Ledger,
    identity: QueryIdentity | None = None,
    find_signature: FindSignature | None = None,
) -> QueryVerdict:
    """Returns the verdict on the query of `model`. `identity` and `find_signature` are those that Spark shows, if it was
    asked.
    """
    state = CheckpointState(1, ledger, True, "ledger.json", last_commit=0)
    found = identity or identity_without_spark(compiled, model, state)
    find_signature = find_signature or (lambda _: None)
    plan = plan_model(compiled, model, found, state, StartOptions(), find_signature=find_signature, in_memory=True)
    return describe(compiled, model, found, state, plan, has_spark=identity is not None)


def model_of(compiled: CompiledProject, name: str) -> CompiledModel:
    """Returns the model with a name."""
    return next(model for model in compiled.models.values() if model.name == name)


def _identity(compiled: CompiledProject, model: CompiledModel, settings: Mapping[str, str]) -> QueryIdentity:
    known = compiled.known_columns(model.unique_id) or ()
    columns = tuple(OutputColumn(column.name, type_name(column.type)) for column in known)
    uses = source_uses(compiled, model)
    return identity_of(compiled, model, uses, columns, stateful=keeps_state(compiled, model), settings=settings)


def written_project(
    root: Path,
    edits: Sequence[Edit],
    *,
    changed: bool,
    setting: str = "",
    env: Mapping[str, str] | None = None,
) -> Loaded:
    """Writes the project with all queries before or after their edits, and loads it."""
    options = {name: text for edit in edits for name, text in edit.files[changed].items() if "/" not in name}
    tables = [
        f"      - name: {name}\n        format: {'csv' if name.startswith('sheet') else 'json'}\n        path: in/{name}\n"
        f"        schema: {options.get(f'{name} columns', COLUMNS)}\n        options: {options.get(name) or '{}'}\n"
        for name in dict.fromkeys((*TABLES, *declared_tables(options)))
    ]
    files = {
        "project.yml": f"name: shop\nvars: {{least: {options.get('least', '1')}}}\ntargets: {{local: {{master: 'local[2]', storage: store, spark: {{{setting}}}}}}}\n",
        "sources.yml": "sources:\n  - name: shop\n    tables:\n" + "".join(tables),
        "sinks.yml": sinks_text(root, options),
        "python/probe.py": "def write(rows, batch):\n    rows.collect()\n",
        "seeds/names.csv": "k,name\na,alpha\nb,beta\nc,gamma\n",
    }
    for edit in edits:
        kept = edit.files[False] if any(name.startswith("models/") for name in edit.files[False]) else {}
        files |= {name: text for each in (kept, edit.files[changed]) for name, text in each.items() if "/" in name}
        files[edit.path] = edit.sql(changed=changed)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return load(ProjectRequest(root, env=env or {}))
