"""Judges a change of a stateful query without Spark, where the SQL before and after leaves no doubt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlstream.compiler.comparison.queries import QueryReader
from sqlstream.compiler.comparison.terms import NotComparableError
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.nodes import Node, Scan
from sqlstream.compiler.flow.operators.leaves import watermarked
from sqlstream.compiler.graph import SOURCE, seed_id, source_id
from sqlstream.compiler.rewrite.data_tests import rows_where
from sqlstream.compiler.sql.edits import Where
from sqlstream.compiler.sql.sql_text import PYTHON
from sqlstream.project.formats.formats import format_of
from sqlstream.project.types.data_types import Field, type_ddl
from sqlstream.project.types.ddl import known_schema
from sqlstream.state.changes import Change
from sqlstream.state.comparison.filters import is_exact, select_other_rows
from sqlstream.state.comparison.forms import QueryForm, form_of
from sqlstream.state.contents import reads_by_position, same_seed
from sqlstream.state.judgement import Judgement, other_differences
from sqlstream.state.ledger import Ledger, QueryIdentity
from sqlstream.state.signature.compare import state_differences
from sqlstream.state.signature.signature import StateSignature, shown_source
from sqlstream.state.signature.wider_types import is_wider
from sqlstream.state.spark_settings import TIME_ZONE, changed_settings

InputColumns = Mapping[str, tuple[Field, ...]]
"""The columns of inputs, by the full name of a source table or the name of a seed."""


def judge_by_sql(
    ledger: Ledger, new: QueryIdentity, changes: Sequence[Change], columns: InputColumns
) -> Judgement | None:
    """Returns the judgement of `changes` of the query in `ledger`, whose inputs have `columns`. None if only Spark can
    tell. It is the one that Spark's plans would lead to.
    """
    old = ledger.identity
    if any(None in (change.before, change.after) for change in changed_settings(old, new)):
        return None  # the value can be Spark's default
    if old.substituted or new.substituted:
        return None  # only Spark knows its SQL
    if any(change.is_python for change in changes) or _calls_python(old) or _calls_python(new):
        return None
    if any(" " in name and old.schemas.get(name, text) != text for name, text in new.schemas.items()):
        return None  # a schema of Avro, whose values only Spark's expressions tell
    if old.output_mode != new.output_mode == "complete":
        return None  # whether old groups stay depends on the filters that Spark sees
    try:
        before, after = _form(old, new, columns), _form(new, new, columns)
    except (NotComparableError, RecursionError):
        return None
    is_same = before.has_state_of(after)
    are_exact = (is_exact(before) and is_exact(after)) or _select_other_rows(before, after, new)
    other_zone = old.settings.get(TIME_ZONE) != new.settings.get(TIME_ZONE)  # no exact expression depends on it
    if not are_exact and (other_zone or not is_same):
        return None
    if not is_same and _has_wider_columns(old, new):
        return None  # only Spark's plan shows whether the type decides what is in the state
    signatures = _signature(before, old), _signature(after, new)
    known = {shown_source(name) for name in (*(use.name for use in old.sources), *ledger.retired)}
    differences = (*state_differences(*signatures, known), *other_differences(old, new, signatures[1]))
    if differences:
        return Judgement(is_safe=False, differences=differences)
    return Judgement(is_safe=True, by_sql=True) if is_same and not changed_settings(old, new) else None


def _select_other_rows(before: QueryForm, after: QueryForm, new: QueryIdentity) -> bool:
    kinds = {each.state.kind for each in after.operators}
    keeps_groups = not after.watermarks and (new.output_mode == "update" or "deduplication" in kinds)
    formats = [text.partition(" ")[0] for text in new.contents.values()]
    has_nulls = all(format_of(name).is_file for name in formats)
    return select_other_rows(before, after, keeps_groups=keeps_groups, has_nulls=has_nulls)


def _has_wider_columns(old: QueryIdentity, new: QueryIdentity) -> bool:
    """Returns whether an input declares a column with a wider type than before."""
    for name, then in old.schemas.items():
        schemas = [known_schema(text) for text in (then, new.schemas.get(name, then))]
        after = {field.name.lower(): field.type for field in schemas[1]}
        pairs = ((field.type, after.get(field.name.lower(), field.type)) for field in schemas[0])
        if any(type_ddl(before) != type_ddl(now) and is_wider(before, now) for before, now in pairs):
            return True
    return False


def _calls_python(identity: QueryIdentity) -> bool:
    return any(":" in name or text.startswith(PYTHON) for name, text in identity.fingerprints.items())


def _form(identity: QueryIdentity, new: QueryIdentity, columns: InputColumns) -> QueryForm:
    inputs = _Inputs(identity, new, columns)
    return form_of(QueryReader(_models(identity), identity.deduplicated, inputs.find).read(identity.model))


def _models(identity: QueryIdentity) -> dict[str, str]:
    """Returns the SQL of each model, with the filter of its data tests."""
    return {
        name: rows_where(f"(\n{sql}\n)", " and ".join(identity.kept[name])) if name in identity.kept else sql
        for name, sql in identity.models.items()
    }


def _signature(form: QueryForm, identity: QueryIdentity) -> StateSignature:
    operators = tuple(each.state for each in form.operators)
    return StateSignature(operators, identity.output_mode, form.watermarks if operators else (), "")


def input_columns(compiled: CompiledProject, model: CompiledModel) -> InputColumns:
    """Returns the columns of all inputs of the query of `model` that the compiler knows, without stored outputs, whose
    columns another query decides.
    """
    nodes = {
        table.full_name: source_id(compiled.project.name, table)
        for table in compiled.tables_of(model.unique_id)
        if table.stored is None
    }
    seeds = {seed.name: seed_id(compiled.project.name, seed.name) for seed in compiled.project.seeds}
    upstream = compiled.upstream(model.unique_id)
    nodes |= {name: node for name, node in seeds.items() if node in upstream}
    found = ((name, compiled.known_columns(node)) for name, node in nodes.items())
    return {name: columns for name, columns in found if columns is not None}


@dataclass(frozen=True)
class _Inputs:
    """The inputs of one version of a query. `new` is the current version, with the columns that `columns` has."""

    identity: QueryIdentity
    new: QueryIdentity
    columns: InputColumns

    def find(self, path: tuple[str, ...]) -> Node:
        """Returns the table at the end of a path of views. Raises: NotComparableError if its columns are unknown."""
        via = "/".join(path)
        for use in self.identity.sources:
            if use.via == via and not use.stored:
                scan = _scan(shown_source(use.name), self._columns(use.table), stream=True)
                time, _, delay = (use.watermark or "").partition(" ")
                return watermarked(scan, time.strip("`"), delay) if use.watermark else scan
        for name in self.columns:
            if name.replace(".", "__", 1) == path[-1] and name not in {use.table for use in self.identity.sources}:
                return _scan(name, self._columns(name), stream=False)
        raise NotComparableError(f"`{path[-1]}` is unknown")

    def _columns(self, name: str) -> tuple[Field, ...]:
        then, now = self.identity.schemas.get(name), self.new.schemas.get(name)
        if then != now and reads_by_position(self.new, name):
            raise NotComparableError(f"the columns of `{name}` are read by their position")
        contents = [each.contents.get(name) for each in (self.identity, self.new)]
        is_same = contents[0] == contents[1] is not None or same_seed(self.identity, self.new, name)
        if name in self.columns and then == now and (then is not None or is_same):
            return self.columns[name]
        if then is None:
            raise NotComparableError(f"the columns of `{name}` are unknown")
        fields = known_schema(then)
        if not fields:
            raise NotComparableError(f"the columns of `{name}` are unknown")
        return fields


def _scan(name: str, fields: Sequence[Field], *, stream: bool) -> Scan:
    columns = tuple(Column(each.name, each.type, origins=frozenset({(name, each.name)})) for each in fields)
    return Scan(where=Where(f"{SOURCE}..{name}", 0), columns=columns, node_id=name, stream=stream)
