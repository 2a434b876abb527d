"""Whether a query can start on its checkpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sqlstream.compiler.render.rendered import TemplateInputs
from sqlstream.errors import Finding
from sqlstream.location import Location, Place
from sqlstream.state.changes import describe_changes
from sqlstream.state.checkpoints import CheckpointState
from sqlstream.state.ledger import InputIds, OutputColumn, QueryIdentity, SourceUse
from sqlstream.state.plan import Action, QueryPlan, StartOptions, plan_query
from sqlstream.state.refusals import StartRefusal, refusal_findings
from sqlstream.state.sinks import UNSTORED
from sqlstream.state.spark_settings import SOURCE_EVOLUTION
from tests.support.identities import ORDERS, STATEFUL, ZONE, ledger_of

MODEL = Location("models/per_hour.sql")
MODEL_START = Location("models/per_hour.sql", 1, 1)
LEDGER_PATH = "/data/queries/per_hour/v1/ledger.json"

STATELESS = replace(STATEFUL, stateful=False)
CHANGED = replace(STATEFUL, fingerprints={"clean": "c1", "per_hour": "p2"})
CHANGE = ("the SQL of `per_hour` changed",)

NOTHING = CheckpointState(0, None, has_batches=False, ledger_path=LEDGER_PATH)
USED = CheckpointState(1, ledger_of(STATEFUL), has_batches=True, ledger_path=LEDGER_PATH, last_commit=0)
BEGUN = replace(USED, last_commit=-1)
WITHOUT_LEDGER = replace(USED, ledger=None)
TORN = replace(WITHOUT_LEDGER, unreadable="it is not valid JSON: Expecting value")

NONE = StartOptions()
ACCEPT = StartOptions(accept_state_change=True)
REFRESH = StartOptions(full_refresh=True)


def plan(
    identity: QueryIdentity, state: CheckpointState, options: StartOptions = NONE, *, restartable: bool = True
) -> QueryPlan:
    """Returns the plan of a query that is not refused."""
    planned = plan_query(identity, state, options, restartable=restartable, place_of=place_of)
    assert isinstance(planned, QueryPlan)
    return planned


def place_of(model: str | None, offset: int | None) -> Place:
    """Returns a location that contains its arguments: the column is the offset."""
    return Place(Location(f"models/{model or 'per_hour'}.sql", 1, (offset or 0) + 1))


def refusal(identity: QueryIdentity, state: CheckpointState) -> Finding:
    """Returns the finding of a refused query."""
    (finding,) = findings(identity, state)
    return finding


def findings(identity: QueryIdentity, state: CheckpointState, options: StartOptions = NONE) -> list[Finding]:
    """Returns all findings of a refused query."""
    refused = plan_query(identity, state, options, restartable=True, place_of=place_of)
    assert isinstance(refused, StartRefusal)
    return refusal_findings([refused])


def texts(old: QueryIdentity, new: QueryIdentity) -> tuple[str, ...]:
    """Returns the changes between two queries, in words."""
    return tuple(change.text for change in describe_changes(old, new))


def test_a_query_without_a_checkpoint_starts() -> None:
    """A query without a checkpoint starts with the ledger of version 1."""
    assert plan(STATEFUL, NOTHING) == QueryPlan(Action.START, 1, writes_ledger=True)


@pytest.mark.parametrize("version", [1, 3])
def test_a_checkpoint_without_a_batch_can_be_used(version: int) -> None:
    """A changed query can use a checkpoint in which no batch has begun."""
    state = replace(USED, version=version, has_batches=False)

    assert plan(CHANGED, state) == QueryPlan(Action.START, version, writes_ledger=True)
    assert plan(CHANGED, replace(state, ledger=None, unreadable="torn")).action is Action.START


@pytest.mark.parametrize("identity", [STATEFUL, STATELESS])
def test_a_query_that_has_not_changed_resumes(identity: QueryIdentity) -> None:
    """An unchanged query resumes, and its ledger does not change."""
    state = replace(USED, version=2, ledger=ledger_of(identity))

    assert plan(identity, state) == QueryPlan(Action.RESUME, 2, writes_ledger=False)


def test_a_stateless_query_may_change() -> None:
    """A changed stateless query resumes, and the ledger describes the new query."""
    state = replace(USED, ledger=ledger_of(STATELESS))

    assert plan(replace(CHANGED, stateful=False), state) == QueryPlan(
        Action.RESUME, 1, writes_ledger=True, changes=CHANGE
    )


@pytest.mark.parametrize("before", [True, False])
def test_a_changed_query_that_keeps_or_kept_state_is_refused(before: bool) -> None:
    """A changed query is refused if it had state before, or has state now."""
    state = replace(USED, ledger=ledger_of(replace(STATEFUL, stateful=before)))

    finding = refusal(replace(CHANGED, stateful=not before), state)

    assert (finding.code, finding.location) == ("state-change", MODEL)
    assert CHANGE[0] in finding.message
    assert "--full-refresh --select per_hour" in finding.fix
    assert "--accept-state-change per_hour" in finding.fix


def test_an_accepted_change_resumes_on_the_old_state() -> None:
    """An accepted change resumes on the old state, and a new ledger records it."""
    assert plan(CHANGED, USED, ACCEPT) == QueryPlan(Action.RESUME, 1, writes_ledger=True, changes=CHANGE, accepted=True)


def test_accepting_without_a_change_has_no_effect() -> None:
    """Without a change, `--accept-state-change` has no effect, so it can stay in a script."""
    assert plan(STATEFUL, USED, ACCEPT) == plan(STATEFUL, USED)


@pytest.mark.parametrize("options", [NONE, ACCEPT])
@pytest.mark.parametrize("stateful", [True, False])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("parquet", "per_hour"), ("parquet", "hourly")),
        (("parquet", "per_hour"), ("json", "per_hour")),
        (("noop", None), ("parquet", "per_hour")),
        (("jdbc", "per_hour"), ("jdbc", "hourly")),
        (("parquet", "per_hour"), ("sqlite", "per_hour.sqlite")),
        (("parquet", "per_hour"), ("console", None)),
        (("parquet", "per_hour"), ("noop", None)),
        (("jdbc", "per_hour"), ("kafka", None)),
        (("console", None), ("kafka", None)),
        (("kafka", None), ("memory", None)),
        (("kafka", None), ("python", "probe:write")),
        (("python", "probe:write"), ("python", "probe:other")),
        (("delta", "per_hour"), ("delta", "hourly")),
    ],
)
def test_a_sink_cannot_change(
    before: tuple[str, str | None], after: tuple[str, str | None], stateful: bool, options: StartOptions
) -> None:
    """Another sink would lack the rows of the earlier batches; no option accepts it."""
    old = replace(STATEFUL, stateful=stateful, sink_format=before[0], sink_path=before[1])
    new = replace(STATEFUL, stateful=stateful, sink_format=after[0], sink_path=after[1])

    (finding,) = findings(new, replace(USED, ledger=ledger_of(old)), options)

    assert (finding.code, finding.location) == ("sink-change", MODEL)
    assert "--full-refresh --select per_hour" in finding.fix
    assert ("did not store" in finding.why) == (before[0] in UNSTORED)
    assert ("stores nothing" in finding.why) == (after[0] in UNSTORED)


def test_a_full_refresh_may_change_the_sink() -> None:
    """A full refresh can change the sink, because a new checkpoint starts its output."""
    assert plan(replace(STATEFUL, sink_path="hourly"), USED, REFRESH).action is Action.REFRESH


def test_sinks_that_keep_no_rows_can_replace_each_other() -> None:
    """No row is missing where none is kept, and the ledger records the new sink."""
    old = ledger_of(replace(STATEFUL, sink_format="noop", sink_path=None))
    console = replace(STATEFUL, sink_format="console", sink_path=None)

    assert plan(console, replace(USED, ledger=old)) == QueryPlan(Action.RESUME, 1, writes_ledger=True)


def test_a_ledger_without_the_topic_matches_any_topic() -> None:
    """A ledger of an early sqlstream does not have the topic of a Kafka sink."""
    old, new = (replace(STATEFUL, sink_format="kafka", sink_path=None, sink_address=each) for each in (None, "totals"))

    assert plan(new, replace(USED, ledger=ledger_of(old))).action is Action.RESUME


TABLE = replace(
    STATEFUL,
    sink_format="jdbc",
    sink_path="totals",
    columns=(OutputColumn("kind", "string"), OutputColumn("n", "bigint")),
    unique_key=("kind",),
)
"""A query that replaces rows of a table."""
RENAMED = replace(TABLE, columns=(OutputColumn("category", "string"), OutputColumn("n", "bigint")))


@pytest.mark.parametrize("options", [NONE, ACCEPT])
@pytest.mark.parametrize("sink", ["jdbc", "sqlite", "delta", "iceberg"])
@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        (TABLE, replace(RENAMED, unique_key=("category",)), "set unique_key back to [kind], and select kind again"),
        (TABLE, replace(TABLE, unique_key=("kind", "n")), "set unique_key back to [kind]; or "),
        (TABLE, replace(TABLE, unique_key=()), "set unique_key back to [kind]; or "),
        (
            replace(TABLE, unique_key=None),
            replace(RENAMED, unique_key=("category",)),
            "restore the old unique_key; or ",
        ),
    ],
)
def test_rows_of_a_table_keep_their_key(
    old: QueryIdentity, new: QueryIdentity, fix: str, sink: str, options: StartOptions
) -> None:
    """With another unique_key, the rows of the earlier batches would not be replaced; no option accepts it."""
    old, new = (replace(each, sink_format=sink) for each in (old, new))

    (finding,) = findings(new, replace(USED, ledger=ledger_of(old)), options)

    assert finding.code == "output-columns"
    assert finding.fix.startswith(fix)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (replace(TABLE, unique_key=("kind", "n")), replace(TABLE, unique_key=("N", "kind"))),
        (replace(TABLE, unique_key=None), TABLE),
        (replace(TABLE, sink_format="parquet"), replace(TABLE, sink_format="parquet", unique_key=())),
    ],
)
def test_the_same_key_resumes(old: QueryIdentity, new: QueryIdentity) -> None:
    """The order and letter case of a key, and a key that the sink ignores, make no difference."""
    assert plan(new, replace(USED, ledger=ledger_of(old))).action is Action.RESUME


def test_another_spelling_of_a_path_is_no_change() -> None:
    """A slash at the end and `./` do not change a path."""
    planned = plan(replace(STATEFUL, sink_path="./per_hour/"), USED)

    assert (planned.action, planned.changes) == (Action.RESUME, ())


@pytest.mark.parametrize("state", [USED, WITHOUT_LEDGER, TORN, replace(USED, has_batches=False)])
def test_a_full_refresh_starts_the_next_version(state: CheckpointState) -> None:
    """A full refresh starts the next version in any case, and keeps the old one."""
    assert plan(CHANGED, state, REFRESH) == QueryPlan(Action.REFRESH, 2, writes_ledger=True)


@pytest.mark.parametrize("identity", [STATEFUL, CHANGED])
def test_a_full_refresh_without_a_commit_keeps_the_version(identity: QueryIdentity) -> None:
    """A full refresh keeps the version if no batch was committed, so readers find the output at its planned path."""
    assert plan(identity, BEGUN, REFRESH) == QueryPlan(Action.RESET, 1, writes_ledger=True)


@pytest.mark.parametrize("state", [replace(BEGUN, output_committed=True), replace(BEGUN, ledger=None)])
def test_a_full_refresh_keeps_an_output_that_may_have_a_batch(state: CheckpointState) -> None:
    """A full refresh starts the next version if a ledger is missing, because the earlier output is unknown."""
    assert plan(CHANGED, state, REFRESH) == QueryPlan(Action.REFRESH, 2, writes_ledger=True)
    moved = replace(STATEFUL, sink_path="hourly")
    assert plan(moved, BEGUN, REFRESH).action is Action.REFRESH


def test_a_full_refresh_of_nothing_is_a_start() -> None:
    """A full refresh without a checkpoint is a normal start."""
    assert plan(STATEFUL, NOTHING, REFRESH) == QueryPlan(Action.START, 1, writes_ledger=True)


@pytest.mark.parametrize(("state", "version"), [(NOTHING, 1), (USED, 2), (TORN, 2)])
def test_a_query_that_spark_cannot_restart_has_a_new_version_each_run(state: CheckpointState, version: int) -> None:
    """A query that Spark cannot restart has a new version in each run, so a change is never refused."""
    expected = QueryPlan(Action.FRESH_EACH_RUN, version, writes_ledger=True)

    assert plan(CHANGED, state, restartable=False) == expected


@pytest.mark.parametrize("identity", [STATEFUL, STATELESS])
@pytest.mark.parametrize("state", [WITHOUT_LEDGER, TORN])
def test_a_used_checkpoint_whose_ledger_cannot_be_read_is_refused(
    state: CheckpointState, identity: QueryIdentity
) -> None:
    """A used checkpoint with an unreadable ledger is refused, and the finding describes the error in the file."""
    finding = refusal(identity, state)

    assert (finding.code, finding.location) == ("ledger-unreadable", MODEL)
    assert (state.unreadable or "is missing") in finding.message
    assert LEDGER_PATH in finding.why


@pytest.mark.parametrize(
    ("state", "change"),
    [(WITHOUT_LEDGER, "its ledger is missing"), (TORN, f"its ledger cannot be read: {TORN.unreadable}")],
)
def test_an_unreadable_ledger_may_be_accepted(state: CheckpointState, change: str) -> None:
    """The user can accept an unreadable ledger; a new one is written, with the reason."""
    assert plan(STATEFUL, state, ACCEPT) == QueryPlan(
        Action.RESUME, 1, writes_ledger=True, changes=(change,), accepted=True
    )


def test_a_changed_python_function_is_named() -> None:
    """A change names a function in python/ with its module and a colon."""
    old = replace(STATEFUL, fingerprints={**STATEFUL.fingerprints, "texts:cleaned": "t1"})
    new = replace(STATEFUL, fingerprints={**STATEFUL.fingerprints, "texts:cleaned": "t2"})

    assert texts(old, new) == ("the code of `texts:cleaned` changed",)


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (STATEFUL, ()),
        (replace(STATEFUL, models={"clean": "select  1", "per_hour": "SELECT"}), ()),
        (CHANGED, CHANGE),
        (replace(STATEFUL, fingerprints={"clean": "c2", "per_hour": "p1"}), ("the SQL of `clean` changed",)),
        (
            replace(STATEFUL, fingerprints={"clean": "c1", "per_hour": "p1", "texts:cleaned": "t1"}),
            ("`texts:cleaned` was added",),
        ),
        (replace(STATEFUL, fingerprints={"clean": "c1", "more": "m1", "per_hour": "p1"}), ("`more` was added",)),
        (replace(STATEFUL, fingerprints={"per_hour": "p1"}), ("`clean` was removed",)),
        (replace(STATEFUL, output_mode="update"), ("the output mode changed from append to update",)),
        (
            replace(STATEFUL, sources=(ORDERS, replace(ORDERS, name="shop__orders__2"))),
            ("the sources changed from shop.orders to shop.orders, shop.orders",),
        ),
        (
            replace(STATEFUL, sources=(SourceUse("shop__orders", "shop.orders", "ts 10 minutes"),)),
            ("the sources changed from shop.orders to shop.orders (watermark ts 10 minutes)",),
        ),
        (replace(STATEFUL, sources=(replace(ORDERS, path="/in/new"),)), ()),  # of an early ledger the path is unknown
        (replace(STATEFUL, sources=()), ("the sources changed from shop.orders to none",)),
        (replace(STATEFUL, settings={ZONE: "Europe/Berlin"}), ("the time zone changed from UTC to Europe/Berlin",)),
        (replace(STATEFUL, settings={ZONE: "UTC", "spark.sql.shuffle.partitions": "9"}), ()),
    ],
)
def test_each_change_of_meaning_is_named(new: QueryIdentity, expected: tuple[str, ...]) -> None:
    """Formatting, and settings that the checkpoint stores, do not count."""
    assert texts(STATEFUL, new) == expected


def test_changes_are_reported_together() -> None:
    """One refusal names all changes."""
    new = replace(
        STATEFUL,
        fingerprints={"other": "o1", "per_hour": "p2"},
        output_mode="complete",
        sources=(replace(ORDERS, table="shop.returns"),),
        settings={ZONE: "Asia/Tokyo"},
    )

    assert len(describe_changes(STATEFUL, new)) == 6


def test_another_watermark_delay_of_a_source_is_a_change() -> None:
    """Another watermark delay of a source is a change, because Spark would silently mix both delays."""
    hour, minutes = (replace(ORDERS, watermark=f"ts {delay}") for delay in ("1 hour", "10 minutes"))

    changes = texts(replace(STATEFUL, sources=(hour,)), replace(STATEFUL, sources=(minutes,)))

    assert changes == (
        "the sources changed from shop.orders (watermark ts 1 hour) to shop.orders (watermark ts 10 minutes)",
    )


def test_a_rename_with_previous_name_is_no_change() -> None:
    """A query renamed with `previous_name` keeps its id, and its SQL is compared under the new name."""
    renamed = replace(STATEFUL, model="hourly", fingerprints={"clean": "c1", "hourly": "p1"})

    assert texts(STATEFUL, renamed) == ()
    assert texts(STATEFUL, replace(renamed, fingerprints={"clean": "c1", "hourly": "p2"})) == (
        "the SQL of `hourly` changed",
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/in/orders", "/in2/orders"),
        ("/in/orders", "/in/orders/new"),
        ("/in/*/a.json", "/in2"),
        ("/in/orders", "/in/order"),
    ],
)
@pytest.mark.parametrize("identity", [STATEFUL, STATELESS], ids=["stateful", "stateless"])
def test_a_source_that_has_moved_is_refused(identity: QueryIdentity, before: str, after: str) -> None:
    """A source at another path is refused, because Spark looks for the files of the last batch there."""
    old = replace(identity, sources=(replace(ORDERS, path=before),))
    new = replace(identity, sources=(replace(ORDERS, path=after),))
    state = replace(USED, ledger=ledger_of(old))

    assert refusal(new, state).code == "source-change"
    assert plan(new, state, REFRESH).action is Action.REFRESH


@pytest.mark.parametrize(("before", "after"), [("/out/orders", "/out/orders.v2"), ("gold.orders", "gold.orders_v2")])
def test_a_stored_output_that_has_started_over_is_refused(before: str, after: str) -> None:
    """Another version of a stored output is refused, also if it is a table: it contains the same rows again."""
    old = replace(STATELESS, sources=(replace(ORDERS, path=before, stored=True),))
    new = replace(STATELESS, sources=(replace(ORDERS, path=after, stored=True),))
    state = replace(USED, ledger=ledger_of(old))

    assert "started over" in refusal(new, state).why
    assert plan(new, state, REFRESH).action is Action.REFRESH
    assert plan(old, state).action is Action.RESUME


def test_a_model_that_becomes_stored_is_refused() -> None:
    """A query that has computed a model is refused if it would read its stored output from the start, and the reverse."""
    computed = STATELESS
    stored = replace(
        STATELESS, models={"per_hour": "..."}, sources=(replace(ORDERS, name="clean", table="clean", stored=True),)
    )
    for old, new in ((computed, stored), (stored, computed)):
        state = replace(USED, ledger=ledger_of(old))
        assert refusal(new, state).code == "source-change"
        assert plan(new, state, ACCEPT).action is Action.RESUME


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("in/2024", "in"),
        ("in/2024", "./in/"),
        ("in/2024", "in/*"),
        ("in/*.json", "in"),
        ("file:///in", "/in/"),
        (None, "in"),
        ("in", None),
    ],
)
def test_a_source_path_can_widen(before: str | None, after: str | None) -> None:
    """A parent folder or a pattern finds the files of the last batch."""
    old = replace(STATELESS, sources=(replace(ORDERS, path=before),))
    new = replace(STATELESS, sources=(replace(ORDERS, path=after),))

    assert plan(new, replace(USED, ledger=ledger_of(old))).action is Action.RESUME


def test_ambiguous_references_are_refused() -> None:
    """Ambiguous references are refused, even in a stateless query; the user can accept them."""
    second = replace(ORDERS, name="shop__orders__2", via="shop__orders__2")
    old = replace(STATELESS, sources=(replace(ORDERS, via="shop__orders"),))
    new = replace(old, sources=(*old.sources, second))
    state = replace(USED, ledger=ledger_of(old))

    assert refusal(new, state).code == "state-change"
    assert plan(new, state, ACCEPT).action is Action.RESUME


def test_without_names_the_order_of_sources_counts() -> None:
    """A checkpoint of an older Spark identifies sources by position, so another order is refused."""
    unnamed = replace(STATELESS, settings={**STATELESS.settings, SOURCE_EVOLUTION: "false"})
    refunds = SourceUse("shop__refunds", "shop.refunds", None)
    old, new = replace(unnamed, sources=(ORDERS, refunds)), replace(unnamed, sources=(refunds, ORDERS))

    assert refusal(new, replace(USED, ledger=ledger_of(old))).code == "source-change"
    assert plan(old, replace(USED, ledger=ledger_of(old))).action is Action.RESUME


@pytest.mark.parametrize("state", [BEGUN, replace(BEGUN, ledger=None, unreadable="torn"), replace(BEGUN, ledger=None)])
@pytest.mark.parametrize("options", [NONE, ACCEPT])
def test_a_changed_query_starts_over_without_a_commit(state: CheckpointState, options: StartOptions) -> None:
    """If no batch was committed, a changed query starts over, and nothing is refused."""
    assert plan(CHANGED, state, options) == QueryPlan(Action.RESET, 1, writes_ledger=True)


def test_an_unchanged_query_repeats_its_uncommitted_batch() -> None:
    """An unchanged query repeats its uncommitted batch with the same rows and number."""
    assert plan(STATEFUL, BEGUN) == QueryPlan(Action.RESUME, 1, writes_ledger=False)


def test_a_batch_in_the_log_of_the_output_counts_as_committed() -> None:
    """A batch in the output's log counts as committed, because a new checkpoint would skip it."""
    assert refusal(CHANGED, replace(BEGUN, output_committed=True)).code == "state-change"


def test_an_abandoned_change_is_removed_from_the_ledger() -> None:
    """A change that never committed is removed from the ledger when the original query resumes."""
    state = replace(USED, abandoned=ledger_of(CHANGED))

    assert plan(STATEFUL, state) == QueryPlan(Action.RESUME, 1, writes_ledger=True)


INT, TEXT = (replace(STATELESS, columns=(OutputColumn("id", kind),)) for kind in ("int", "string"))


@pytest.mark.parametrize("options", [NONE, ACCEPT])
def test_unsupported_columns_are_always_refused(options: StartOptions) -> None:
    """Columns that the output cannot store are refused, even for a stateless query and with an accepted change."""
    state = replace(USED, ledger=ledger_of(INT))

    (finding,) = findings(TEXT, state, options)
    assert finding.code == "output-columns"
    assert ("--accept-state-change" in finding.why) == options.accept_state_change
    assert plan(TEXT, state, REFRESH).action is Action.REFRESH


def test_state_and_columns_are_refused_together() -> None:
    """Changes of state and of columns are reported together, each at its location."""
    old, new = (replace(identity, stateful=True) for identity in (INT, TEXT))
    changed = replace(new, fingerprints=CHANGED.fingerprints)

    state, columns = findings(changed, replace(USED, ledger=ledger_of(old)))

    assert (state.code, columns.code) == ("state-change", "output-columns")
    assert "--accept-state-change" not in state.fix  # it would not be enough to start the query


def test_new_columns_are_accepted_and_named() -> None:
    """New columns are accepted, and the plan has what readers will see."""
    more = replace(INT, columns=(OutputColumn("id", "int"), OutputColumn("city", "string")))

    planned = plan(more, replace(USED, ledger=ledger_of(INT)))

    assert (planned.action, planned.writes_ledger) == (Action.RESUME, True)
    assert planned.new_columns == ("column `city` is new, and null in existing rows",)


def test_an_upstream_change_has_one_finding_for_all_queries() -> None:
    """Queries with the same upstream change share a finding; a query with another change has its own."""
    view = replace(STATEFUL, fingerprints={"clean": "c2", "per_hour": "p1"})
    names = ("per_hour", "per_day", "per_week")
    refused = []
    for name in names:
        old = replace(STATEFUL, model=name, fingerprints={"clean": "c1", name: "p1"})
        digest = "p2" if name == "per_week" else "p1"
        new = replace(view, model=name, fingerprints={"clean": "c2", name: digest})
        refused.append(plan_query(new, replace(USED, ledger=ledger_of(old)), NONE, restartable=True, place_of=place_of))

    shared, own = refusal_findings([item for item in refused if isinstance(item, StartRefusal)])

    assert ("per_hour" in shared.message, "per_day" in shared.message, "per_week" in shared.message) == (
        True,
        True,
        False,
    )
    assert str(shared.location) == "models/clean.sql:1:1"
    assert "--select per_hour per_day`" in shared.fix
    assert "per_week" in own.message


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        (TemplateInputs({"n": "3"}), TemplateInputs({"n": "5"}), "the variable `n` changed from 3 to 5"),
        (TemplateInputs(), TemplateInputs({"n": "5"}), "the variable `n` changed from unset to 5"),
        (
            TemplateInputs({}, {"HOME": "1"}),
            TemplateInputs({}, {"HOME": "2"}),
            "the environment variable `HOME` changed",
        ),
        (TemplateInputs(), TemplateInputs(), "a macro, a reference or the target changed"),
    ],
)
def test_the_cause_of_a_change_without_an_edit_is_named(
    before: TemplateInputs, after: TemplateInputs, cause: str
) -> None:
    """If the SQL changed but not the file, the refusal names the variable or other cause."""
    old = replace(STATEFUL, files={"per_hour": "f1"}, inputs={"per_hour": before})
    new = replace(CHANGED, files={"per_hour": "f1"}, inputs={"per_hour": after})

    assert texts(old, new) == (f"{cause}, which changed the SQL of `per_hour`",)
    assert texts(old, replace(new, files={"per_hour": "f2"})) == CHANGE


OLD_IDS = {"shop.orders": {"orders": "a1", "refunds": "b1"}}
WITH_IDS = replace(USED, ledger=replace(ledger_of(STATEFUL), input_ids=OLD_IDS))


@pytest.mark.parametrize(
    ("state", "found", "writes"),
    [
        (WITH_IDS, OLD_IDS, False),
        (WITH_IDS, {}, False),
        (WITH_IDS, {"shop.orders": {"orders": "a1"}}, False),
        (WITH_IDS, {"shop.orders": {"orders": "a1", "new": "c1"}}, True),
        (WITH_IDS, {"shop.other": {"orders": "a2"}}, True),
        (USED, OLD_IDS, True),
        (USED, {}, False),
    ],
)
def test_known_inputs_resume(state: CheckpointState, found: InputIds, *, writes: bool) -> None:
    """A query resumes if no known id differs: ids can be unknown, and new ones are added to the ledger."""
    planned = plan_query(STATEFUL, state, NONE, restartable=True, place_of=place_of, find_ids=lambda: found)

    assert planned == QueryPlan(Action.RESUME, 1, writes_ledger=writes)


def test_a_replaced_input_is_refused() -> None:
    """A topic that was created again is refused by name, each one alone, and can be accepted or read from the start."""
    found = {"shop.orders": {"orders": "a1", "refunds": "b2"}}

    def planned(options: StartOptions) -> QueryPlan | StartRefusal:
        return plan_query(STATEFUL, WITH_IDS, options, restartable=True, place_of=place_of, find_ids=lambda: found)

    refused = planned(NONE)
    assert isinstance(refused, StartRefusal)
    assert [(finding.code, finding.location) for finding in refused.findings] == [("source-replaced", MODEL_START)]
    assert "`refunds`" in refused.findings[0].message
    accepted = planned(ACCEPT)
    assert isinstance(accepted, QueryPlan)
    assert (accepted.action, accepted.writes_ledger, accepted.accepted) == (Action.RESUME, True, True)
    refreshed = planned(REFRESH)
    assert isinstance(refreshed, QueryPlan)
    assert (refreshed.action, refreshed.version) == (Action.REFRESH, 2)


@pytest.mark.parametrize(
    ("sink_format", "change", "is_refused"),
    [
        ("parquet", {}, True),
        ("delta", {}, True),
        ("table", {}, True),
        ("jdbc", {}, True),
        ("kafka", {}, False),
        ("delta", {"unique_key": ("id",)}, False),
        ("delta", {"output_mode": "complete"}, False),
        ("delta", {"sink_path": "elsewhere"}, False),
    ],
)
def test_a_stream_does_not_add_rows_to_those_of_a_batch_model(
    sink_format: str, change: dict[str, Any], *, is_refused: bool
) -> None:
    """A batch model that becomes a stream would write all rows again, unless it replaces rows or writes elsewhere."""
    before = replace(STATEFUL, batch=True, sink_format=sink_format, output_mode="append")
    state = CheckpointState(1, ledger_of(before), has_batches=False, ledger_path=LEDGER_PATH)
    now = replace(before, batch=False, **change)
    if is_refused:
        assert refusal(now, state).code == "sink-change"
    else:
        assert plan(now, state).action is Action.START
