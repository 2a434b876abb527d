"""Judges a change of a stateful query without Spark, where the SQL before and after leaves no doubt."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.compiler.comparison.expressions import NotComparableError
from sqlstream.compiler.comparison.filters import is_exact, select_other_rows
from sqlstream.compiler.comparison.forms import FormRows, QueryForm, form_of
from sqlstream.compiler.comparison.queries import QueryReader
from sqlstream.compiler.sql.sql_text import PYTHON
from sqlstream.project.formats.formats import format_of
from sqlstream.state.changes import Change
from sqlstream.state.comparison.inputs import InputColumns, Inputs
from sqlstream.state.judgement import Judgement, other_differences
from sqlstream.state.ledger import Ledger, QueryIdentity
from sqlstream.state.settings import TIME_ZONE, changed_settings
from sqlstream.state.signature.compare import state_differences
from sqlstream.state.signature.signature import InputRows, StateOperator, StateSignature, shown_source


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
    signatures = _signature(before, old), _signature(after, new)
    known = {shown_source(name) for name in (*(use.name for use in old.sources), *ledger.retired)}
    differences = (*state_differences(*signatures, known), *other_differences(old, new, signatures[1]))
    if differences:
        return Judgement(is_safe=False, differences=differences)
    return Judgement(is_safe=True, by_sql=True) if is_same and not changed_settings(old, new) else None


def _select_other_rows(before: QueryForm, after: QueryForm, new: QueryIdentity) -> bool:
    kinds = {each.kind for each in after.operators}
    keeps_groups = not after.watermarks and (new.output_mode == "update" or "deduplication" in kinds)
    formats = [text.partition(" ")[0] for text in new.contents.values()]
    has_nulls = all(format_of(name).is_file for name in formats)
    return select_other_rows(before, after, keeps_groups=keeps_groups, has_nulls=has_nulls)


def _calls_python(identity: QueryIdentity) -> bool:
    return any(":" in name or text.startswith(PYTHON) for name, text in identity.fingerprints.items())


def _form(identity: QueryIdentity, new: QueryIdentity, columns: InputColumns) -> QueryForm:
    inputs = Inputs(identity, new, columns)
    return form_of(QueryReader(identity.models, identity.deduplicated, inputs.find).read(identity.model))


def _signature(form: QueryForm, identity: QueryIdentity) -> StateSignature:
    operators = tuple(StateOperator(each.kind, each.parts, tuple(map(_rows, each.inputs))) for each in form.operators)
    return StateSignature(operators, identity.output_mode, form.watermarks if operators else (), "")


def _rows(rows: FormRows) -> InputRows:
    return InputRows(rows.text, tuple(map(_rows, rows.inputs)))
