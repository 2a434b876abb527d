"""The checks of records and the texts of timestamps, which are no part of a signature."""

from __future__ import annotations

from typing import Any

import pytest

from sqlstream.state.signature.compare import state_differences
from sqlstream.state.signature.expressions import text_of
from sqlstream.state.signature.signature import InputRows, StateOperator, StateSignature
from sqlstream.state.signature.source_checks import DECLARED, declare_types
from sqlstream.state.signature.trees import read_tree

OUTSIDE = (
    "isnull(coalesce(casewhen((made.rows.ts < timestamp -62135769600000000) or (made.rows.ts > timestamp "
    "253402473599000000), concat('`ts` is the number ', cast(unixseconds(made.rows.ts) as string, timeZoneId UTC), ', "
    "which is outside the calendar as seconds since 1970: set timestamp_unit of made.rows'))))"
)
UNREAD = (
    "arrayexists(createarray(struct('id', made.rows.id, 'ts', made.rows.ts), useStringTypeWhenEmpty False), (variable_0)"
    " -> isnull(made.rows._sqlstream_corrupt), argument 0, function 1, followThreeValuedLogic True)"
)
OLD_MESSAGE = (
    "isnull(coalesce(casewhen(isnull(bus.events.value), 'the value is null'), casewhen(not(isnull(bus.events.value)), "
    "concat('the value ', casewhen(isnull(bus.events.key), 'is not a JSON object')))))"
)


def _signature(rows: InputRows) -> StateSignature:
    operator = StateOperator("aggregation", {"keys": ("made.rows.id",)}, (rows,))
    return StateSignature((operator,), "update", (), "4.3.0")


@pytest.mark.parametrize(
    ("conditions", "source"),
    [
        ((UNREAD, OUTSIDE), "made.rows(_sqlstream_corrupt string, id integer, ts timestamp)"),
        ((OLD_MESSAGE,), "made.rows(id integer, ts timestamp)"),
    ],
)
def test_checks_in_earlier_signatures_do_not_count(conditions: tuple[str, ...], source: str) -> None:
    """The state of a query whose signature has the checks of its source fits the query without them, and no other."""
    plain = InputRows("made.rows(id integer, ts timestamp)")
    checked = InputRows(source)

    def filtered(rows: InputRows, *texts: str) -> StateSignature:
        return _signature(InputRows("where " + " and ".join(texts), (rows,)) if texts else rows)

    assert not state_differences(filtered(checked, *conditions), filtered(plain), ())
    assert not state_differences(
        filtered(checked, *conditions, "made.rows.id > 0"), filtered(plain, "made.rows.id > 0"), ()
    )
    assert state_differences(
        filtered(checked, *conditions, "made.rows.id > 0"), filtered(plain, "made.rows.id > 1"), ()
    )


def _node(kind: str, count: int, **fields: Any) -> dict[str, Any]:
    return {"class": f"org.apache.spark.sql.{kind}", "num-children": count, **fields}


def test_a_time_that_is_read_as_text_is_the_column_itself() -> None:
    """The conversion of a declared timestamp counts only for columns that are texts themselves."""
    for number, text in ((1, "made.rows.ts"), (2, "cast(made.rows.name as timestamp)")):
        nodes = [
            _node("Cast", 1, dataType="timestamp"),
            _node("AttributeReference", 0, name="x", dataType="string", exprId={"id": number}),
        ]
        for each in nodes:
            declare_types(each, {1: {DECLARED: '"timestamp"'}})
        assert text_of(read_tree(nodes), {1: "made.rows.ts", 2: "made.rows.name"}) == text
