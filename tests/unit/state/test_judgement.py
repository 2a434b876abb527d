"""Whether the state of a query is right for its changed version, from the signatures of both."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstream.state.changes import Change, describe_changes
from sqlstream.state.judgement import Judgement, judge_changes
from sqlstream.state.ledger import Ledger, QueryIdentity, read_ledger
from sqlstream.state.refusals import difference_text
from sqlstream.state.signature.compare import StateDifference
from sqlstream.state.signature.signature import InputRows, StateOperator, StateSignature
from sqlstream.state.spark_settings import ANSI
from tests.support.identities import ORDERS as ORDERS_USE
from tests.support.identities import STATEFUL, ledger_of

ORDERS = InputRows("shop.orders(amount integer)")
REFUNDS = InputRows("shop.refunds(amount integer)")
COUNT = StateOperator("aggregation", {"keys": ("shop.orders.kind",), "aggregates": ("count(1)",)}, (ORDERS,))
JOIN = StateOperator(
    "join",
    {
        "type": ("Inner",),
        "keys": ("shop.orders.id = shop.refunds.id",),
        "condition": ("shop.refunds.ts <= timestampaddinterval(shop.orders.ts, interval minute 600)",),
        "left columns": ("shop.orders.id",),
        "right columns": ("shop.refunds.id",),
    },
    (ORDERS, REFUNDS),
)
SIGNATURE = StateSignature((COUNT,), "update", (), "4.3.0")
CHANGED = replace(STATEFUL, fingerprints={"clean": "c1", "per_hour": "p2"}, output_mode="update")
OLD = replace(STATEFUL, output_mode="update")


def judge(
    before: StateSignature | None,
    after: StateSignature | None,
    old: QueryIdentity = OLD,
    new: QueryIdentity = CHANGED,
) -> Judgement:
    """Returns the judgement of a changed query with these signatures."""
    ledger = replace(ledger_of(old), signature=before)
    return judge_changes(ledger, new, describe_changes(old, new), lambda _: after)


def with_operator(operator: StateOperator, **changes: object) -> StateSignature:
    """Returns a signature with one operator."""
    return replace(SIGNATURE, operators=(operator,), **changes)  # type: ignore[arg-type]


def with_part(operator: StateOperator, **parts: tuple[str, ...]) -> StateOperator:
    """Returns an operator with some parts changed."""
    named = {name.replace("_", " "): texts for name, texts in parts.items()}
    return replace(operator, parts={**operator.parts, **named})


def test_the_same_signature_is_safe() -> None:
    """A change of the SQL that leaves the signature as it was resumes."""
    assert judge(SIGNATURE, SIGNATURE).is_safe


def test_another_aggregate_says_what_changed() -> None:
    """A difference names the part of the operator, before and after."""
    other = with_operator(with_part(COUNT, aggregates=("sum(shop.orders.amount)",)))

    (difference,) = judge(SIGNATURE, other).differences

    assert str(difference) == ("the aggregates of the aggregation changed from `count(1)` to `sum(shop.orders.amount)`")
    assert difference.effect == "new rows would be added to results of the old expressions"


def test_keys_in_another_order() -> None:
    """The order of keys decides where Spark finds them."""
    two, swapped = (with_operator(with_part(COUNT, keys=keys)) for keys in (("a.x", "a.y"), ("a.y", "a.x")))

    (difference,) = judge(two, swapped).differences

    assert str(difference) == "the order of keys of the aggregation changed from `a.x, a.y` to `a.y, a.x`"


def test_another_filter_names_only_its_condition() -> None:
    """Conditions that stay are not in the message."""
    before = with_operator(replace(COUNT, inputs=(InputRows("where a.x = 1 and a.y > 2", (ORDERS,)),)))
    after = with_operator(replace(COUNT, inputs=(InputRows("where a.x = 1 and a.y > 3", (ORDERS,)),)))

    (difference,) = judge(before, after).differences

    assert str(difference) == "the input of the aggregation changed from `where a.y > 2` to `where a.y > 3`"


def test_another_operator_is_refused() -> None:
    """Spark numbers the operators, so a new one would get the state of another."""
    (difference,) = judge(SIGNATURE, with_operator(JOIN)).differences

    assert str(difference) == "the list of operators with state changed from `aggregation` to `join`"


def test_a_query_that_gets_state_is_refused() -> None:
    """The checkpoint of a stateless query has no state for the new operator."""
    stateless = replace(OLD, stateful=False)

    (difference,) = judge(None, SIGNATURE, stateless).differences

    assert str(difference) == "the list of operators with state changed from `none` to `aggregation`"


@pytest.mark.parametrize(("before", "after", "is_safe"), [("update", "complete", True), ("append", "update", False)])
def test_output_modes(before: str, after: str, *, is_safe: bool) -> None:
    """Without a watermark, update and complete mode keep the same groups."""
    old, new = (replace(STATEFUL, output_mode=mode) for mode in (before, after))

    found = judge(replace(SIGNATURE, output_mode=before), replace(SIGNATURE, output_mode=after), old, new)

    assert found.is_safe is is_safe


def test_update_to_complete_mode_with_a_watermark() -> None:
    """With a watermark, update mode has removed old groups."""
    watermarks = ("watermark shop.orders.ts, 10 minutes",)
    before, after = (replace(SIGNATURE, output_mode=mode, watermarks=watermarks) for mode in ("update", "complete"))

    assert not judge(before, after, OLD, replace(OLD, output_mode="complete")).is_safe


def test_another_watermark_is_refused() -> None:
    """The watermark of a query concerns all of its operators."""
    windowed = with_part(COUNT, keys=("window(shop.orders.ts, 5 minutes)",))
    before, after = (
        with_operator(windowed, watermarks=(f"watermark shop.orders.ts, {delay} minutes",)) for delay in (10, 30)
    )

    (difference,) = judge(before, after).differences

    assert str(difference) == (
        "the watermark changed from `shop.orders.ts, 10 minutes` to `shop.orders.ts, 30 minutes`"
    )


def test_a_watermark_that_no_key_has_is_safe() -> None:
    """An aggregation drops rows and groups only by a key with the time of the watermark; other operators by any column."""
    watermark = "watermark shop.orders.ts, 10 minutes"
    marked = replace(COUNT, inputs=(InputRows(watermark, (ORDERS,)),))
    after = with_operator(marked, watermarks=(watermark,))

    assert judge(SIGNATURE, after).is_safe
    assert judge(after, SIGNATURE).is_safe
    deduplicated = [with_operator(replace(each.operators[0], kind="deduplication")) for each in (SIGNATURE, after)]
    assert not judge(deduplicated[0], replace(deduplicated[1], watermarks=(watermark,))).is_safe


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("sum(shop.orders.v)", "sum(shop.orders.w)", "changed from `sum(shop.orders.v)` to `sum(shop.orders.w)`"),
        (
            "shop.orders.v > double 2.0",
            "shop.orders.v > double 3.0",
            "from `shop.orders.v > 2.0` to `shop.orders.v > 3.0`",
        ),
        ("long 1", "1", "from `long 1` to `1`"),
        ("ARRAY('a,b') [value 01ab]", "ARRAY('a', 'b') [value 23cd]", "from `ARRAY('a,b')` to `ARRAY('a', 'b')`"),
        ("x [value 01ab]", "x [value 23cd]", "from `x [value 01ab]` to `x [value 23cd]`"),
        ("sum(casewhen(shop.orders.v > 1, 2))", "sum(casewhen(shop.orders.v > 3, 2))", "changed: `a` is now `b`"),
        ("expand 1[3]", "expand 1[4]", "changed: `a` is now `b`"),
        (
            "splitpart(shop.orders.v, ';', 1, value 0, delimiter 1)",
            "splitpart(shop.orders.v, ',', 1, value 0, delimiter 1)",
            "changed: `a` is now `b`",
        ),
        (
            "in(shop.orders.v, 1, 2, value 0, list [1, 2])",
            "in(shop.orders.v, 1, value 0, list [1])",
            "changed from `in(shop.orders.v, 1, 2)` to `in(shop.orders.v, 1)`",
        ),
        (
            "concat(shop.orders.v, 'a, list [1]')",
            "concat(shop.orders.v, 'a, list [2]')",
            "changed from `concat(shop.orders.v, 'a, list [1]')` to `concat(shop.orders.v, 'a, list [2]')`",
        ),
        (
            "invoke(StructsToJsonEvaluator(None, UTC))",
            "invoke(StructsToJsonEvaluator(None))",
            "changed: `a` is now `b`",
        ),
        (
            "sum(shop.orders.v, list [1, 2, 3])",
            "sum(shop.orders.w, list [1, 2])",
            "from `sum(shop.orders.v)` to `sum(shop.orders.w)`",
        ),
        ("expand 1: projections [[1]]", "expand 1: projections [[2]]", "changed: `a` is now `b`"),
        (f"upper({'x' * 200})", "upper(x)", "changed: `a` is now `b`"),
    ],
)
def test_reasons_are_in_the_users_words(before: str, after: str, text: str) -> None:
    """What Spark makes of an expression is shown only if it looks like SQL; otherwise the changed SQL is."""
    difference = StateDifference("the keys of the aggregation", before, after, "")

    assert difference_text(difference, [Change("", difference="`a` is now `b`")]).endswith(text)


def test_reasons_without_sql_have_no_inner_forms() -> None:
    """Where no SQL changed, such as a schema, there is nothing to quote instead."""
    difference = StateDifference("the keys of the aggregation", "expand 1[3]", "expand 1[4]", "")

    assert difference_text(difference, [Change("")]) == "the keys of the aggregation changed"


def test_a_limit_in_complete_mode_keeps_nothing() -> None:
    """In complete mode Spark takes the first rows again in each batch; in append mode it counts what it has let through."""
    limits = [StateOperator("limit", {"number of rows": (number,)}, (ORDERS,)) for number in ("2", "3")]
    for mode, is_safe in (("complete", True), ("append", False)):
        old, new = (replace(each, output_mode=mode) for each in (OLD, CHANGED))
        before, after = (replace(SIGNATURE, operators=(COUNT, each), output_mode=mode) for each in limits)

        assert judge(before, after, old, new).is_safe is is_safe


def test_one_more_source_is_safe_without_a_watermark() -> None:
    """An aggregation over a union with a source that it has not read before gets the same state."""
    union = InputRows("union", (InputRows("select a", (ORDERS,)), InputRows("select b", (REFUNDS,))))
    after = with_operator(replace(COUNT, inputs=(union,)))
    watermarks = ("watermark shop.orders.ts, 10 minutes",)

    assert judge(SIGNATURE, after).is_safe
    assert not judge(after, SIGNATURE).is_safe
    assert not judge(replace(SIGNATURE, watermarks=watermarks), replace(after, watermarks=watermarks)).is_safe


def test_the_same_source_again_is_not_safe() -> None:
    """A second branch over a source that the checkpoint has read would lack its earlier rows."""
    union = InputRows("union", (InputRows("select a", (ORDERS,)), InputRows("select b", (ORDERS,))))

    assert not judge(SIGNATURE, with_operator(replace(COUNT, inputs=(union,)))).is_safe


@pytest.mark.parametrize(
    ("minutes", "more", "is_safe"), [(300, (), True), (900, (), False), (600, ("a.x < b.y",), True)]
)
def test_conditions_of_an_inner_join(minutes: int, more: tuple[str, ...], *, is_safe: bool) -> None:
    """A tighter bound and further conditions only leave out rows of the state; a wider bound needs removed ones."""
    bound = f"shop.refunds.ts <= timestampaddinterval(shop.orders.ts, interval minute {minutes})"

    found = judge(with_operator(JOIN), with_operator(with_part(JOIN, condition=(bound, *more))))

    assert found.is_safe is is_safe


def test_a_bound_within_another_expression_is_not_compared() -> None:
    """A smaller interval within a negation lets more rows through."""
    before, after = (f"not(a.x <= timestampaddinterval(b.x, interval minute {minutes}))" for minutes in (9, 5))
    old, new = (with_operator(with_part(JOIN, condition=(text,))) for text in (before, after))

    assert not judge(old, new).is_safe


def test_other_static_tables() -> None:
    """A table in the place of another one has other rows."""
    static = with_operator(replace(COUNT, inputs=(InputRows("static table 1 (string): relation names.csv"),)))
    old, new = replace(OLD, contents={"names": "seed"}), replace(CHANGED, contents={"titles": "seed"})

    found = judge(static, static, old, new).differences

    assert [each.part for each in found] == ["the input names", "the input titles"]
    assert judge(SIGNATURE, SIGNATURE, old, new).is_safe


def test_conditions_of_an_outer_join_are_fixed() -> None:
    """An outer join has returned rows without a match by the old condition."""
    outer = with_part(JOIN, type=("LeftOuter",))

    found = judge(with_operator(outer), with_operator(with_part(outer, condition=(*outer.parts["condition"], "a < b"))))

    assert not found.is_safe


def test_a_test_for_null_that_follows_from_the_join() -> None:
    """Spark reads a column as never null behind such a test, so null in the state would become 0."""
    tested = replace(JOIN, inputs=(InputRows("where isnotnull(shop.orders.id)", (ORDERS,)), REFUNDS))

    assert not judge(with_operator(JOIN), with_operator(tested)).is_safe


@pytest.mark.parametrize(("before", "after"), [("false", "true"), ("true", "false")])
@pytest.mark.parametrize(("functions", "is_safe"), [(("count", "attributereference"), True), (("count", "add"), False)])
def test_ansi_mode(before: str, after: str, functions: tuple[str, ...], *, is_safe: bool) -> None:
    """ANSI mode counts in both directions, unless no expression of the state can depend on it."""
    old, new = (replace(OLD, settings={**OLD.settings, ANSI: value}) for value in (before, after))
    signature = replace(SIGNATURE, functions=functions)

    assert judge(signature, signature, old, new).is_safe is is_safe


@pytest.mark.parametrize(("name", "is_safe"), [("shop.orders", False), ("shop.unread", True)])
def test_the_content_of_an_input(name: str, *, is_safe: bool) -> None:
    """An option that changes what a source contains matters only to operators that read it."""
    old, new = (replace(OLD, contents={name: text}) for text in ("json", "json multiLine true"))

    assert judge(SIGNATURE, SIGNATURE, old, new).is_safe is is_safe


@pytest.mark.parametrize(("watermarks", "is_safe"), [((), True), (("watermark shop.orders.ts, 1 hours",), False)])
def test_a_wider_path(watermarks: tuple[str, ...], *, is_safe: bool) -> None:
    """Rows of files that the query has not read before can be late, if there is a watermark."""
    old, new = (replace(OLD, sources=(replace(ORDERS_USE, path=path),)) for path in ("/in/a", "/in/*"))
    signature = replace(SIGNATURE, watermarks=watermarks)

    assert judge(signature, signature, old, new).is_safe is is_safe


def test_another_type_of_a_column_that_is_read() -> None:
    """The columns of a source are compared by what the operators use of them."""
    old, new = (replace(OLD, schemas={"shop.orders": text}) for text in ("amount int", "amount bigint"))
    other = with_operator(replace(COUNT, inputs=(InputRows("shop.orders(amount long)"),)))

    (difference,) = judge(SIGNATURE, other, old, new).differences

    assert str(difference) == (
        "the input of the aggregation changed from `shop.orders(amount integer)` to `shop.orders(amount long)`"
    )
    assert judge(SIGNATURE, SIGNATURE, old, new).is_safe


def test_python_code_is_unknown() -> None:
    """Nobody can compare Python code on which the state depends."""
    new = replace(OLD, fingerprints={**OLD.fingerprints, "code:scale": "2"})
    old = replace(OLD, fingerprints={**OLD.fingerprints, "code:scale": "1"})
    signature = replace(SIGNATURE, calls_python=True)

    assert judge(signature, signature, old, new).unknown == (
        "sqlstream cannot tell what a change of Python code means for the state"
    )
    assert judge(SIGNATURE, SIGNATURE, old, new).is_safe


def test_plans_of_two_releases_of_spark() -> None:
    """Equal signatures are equal in any release; different ones of two releases cannot be compared."""
    other = replace(with_operator(with_part(COUNT, keys=("other",))), spark_version="4.4.0")

    assert judge(SIGNATURE, replace(SIGNATURE, spark_version="4.4.0")).is_safe
    assert judge(SIGNATURE, other).unknown == "the ledger has the plan of Spark 4.3.0, and this is 4.4.0"


def test_a_ledger_without_a_signature() -> None:
    """An earlier sqlstream wrote no signature, so nobody can tell."""
    assert not judge(None, SIGNATURE).is_safe


def test_a_ledger_keeps_its_signature() -> None:
    """A signature is the same after it was written and read."""
    ledger: Ledger = replace(ledger_of(OLD), signature=with_operator(JOIN, watermarks=("watermark a.ts, 1 hours",)))

    assert read_ledger(ledger.to_json()) == ledger
