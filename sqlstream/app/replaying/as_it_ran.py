"""The query of a ledger, from the present project: with the SQL that ran, if that is possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.node_ids import model_id
from sqlstream.errors import FindingsError
from sqlstream.project.values import SourceTable
from sqlstream.project.wording import quoted_list
from sqlstream.state.identity import identity_of
from sqlstream.state.ledger import FUNCTION, SINK, Ledger, QueryIdentity
from sqlstream.state.readers import respelled, source_uses
from sqlstream.state.replay.findings import changed_project

_EXACT = {"failondataloss": "true"}
"""Options of sources during a replay: data that no longer exists is an error."""

_WITHOUT_SIDE_EFFECT = frozenset({"cleansource", "sourcearchivedir"})
"""Options of sources that would move or delete files that were read."""


@dataclass(frozen=True)
class QueryAsItRan:
    """A compiled project in which `model` is the query of a ledger. `changed` are the models whose SQL differs from the
    files of the project.
    """

    compiled: CompiledProject
    model: CompiledModel
    changed: tuple[str, ...]


def as_it_ran(
    compiled: CompiledProject, model: CompiledModel, ledger: Ledger, *, has_ended: bool = True
) -> QueryAsItRan:
    """Returns the query of `ledger`, the one of the present `model`; for a batch that has not ended, with the present
    SQL. Raises: FindingsError if the project does not have everything that ran.
    """
    uses = source_uses(compiled, model, ledger)
    now = identity_of(compiled, model, uses, None, stateful=False, settings={})
    then = respelled(ledger.identity, now)
    changes = list(_changes(compiled, now, then))
    if changes:
        raise FindingsError([changed_project(model.name, changes, model.file.location)])
    changed = tuple(name for name, sql in then.models.items() if sql != now.models[name] and _differs(name, now, then))
    models = dict(compiled.models)
    for name in changed if has_ended else ():
        node = model_id(compiled.project.name, name)
        models[node] = replace(models[node], sql=then.models[name])
    sources = tuple(map(_read_again, compiled.project.sources))
    stored = {node: _read_again(table) for node, table in compiled.stored.items()}
    found = replace(compiled, models=models, project=replace(compiled.project, sources=sources), stored=stored)
    return QueryAsItRan(found, found.models[model.unique_id], changed)


def _read_again(table: SourceTable) -> SourceTable:
    if table.mode != "stream":
        return table
    kept = {name: value for name, value in table.options.items() if name.lower() not in _WITHOUT_SIDE_EFFECT}
    given = {name: value for name, value in kept.items() if name.lower() not in _EXACT}
    exact = {"failOnDataLoss": "true"} if table.format in ("kafka", "delta") else {}
    return replace(table, options={**given, **exact})


def _differs(name: str, now: QueryIdentity, then: QueryIdentity) -> bool:
    return now.fingerprints.get(name) != then.fingerprints.get(name)


def _changes(compiled: CompiledProject, now: QueryIdentity, then: QueryIdentity) -> Iterator[str]:
    """Yields what the project lacks of the query that ran, beside its SQL."""
    others = [name for name in then.models if name not in now.models] or [
        name for name in now.models if name not in then.models
    ]
    if others:
        yield f"the query has other models: {quoted_list(others)}"
        return
    present, past = now.code or {}, then.code or {}
    known = {name for name in past if name in present and not name.startswith(f"{SINK} ")}
    python = [name for name in sorted(known) if present[name] != past[name]]
    if then.code is None:
        python = [name for name in then.models if _is_python(compiled, name) and _differs(name, now, then)]
    if python:
        yield f"the Python of {quoted_list(python)} has changed"
    digests = {function.reference: function.digest for function in compiled.project.functions}
    called = {name: digest for name, digest in then.fingerprints.items() if name not in then.models}
    compared = {each.reference for each in compiled.project.functions if f"{FUNCTION} {each.name}" in known}
    functions = [name for name, digest in called.items() if name not in compared and digests.get(name) != digest]
    if functions:
        yield f"functions have changed: {quoted_list(functions)}"
    if {use.via: use.table for use in now.sources} != {use.via: use.table for use in then.sources}:
        yield "the query reads other sources"
    elif {use.via: use.watermark for use in now.sources} != {use.via: use.watermark for use in then.sources}:
        yield "the watermark of a source has changed"
    if dict(now.deduplicated) != dict(then.deduplicated):
        yield "deduplicate has changed"
    for what, before, after in (
        ("the format or the options", then.contents, now.contents),
        ("the columns", then.schemas, now.schemas),
    ):
        names = _changed_keys(before, after)
        if names:
            yield f"{what} of {quoted_list(names)} have changed"


def _is_python(compiled: CompiledProject, name: str) -> bool:
    model = compiled.models.get(model_id(compiled.project.name, name))
    return model is not None and model.file.is_python


def _changed_keys(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Returns the keys of both with other values. Ledgers of an early sqlstream have none."""
    return [name for name, value in before.items() if name in after and after[name] != value]
