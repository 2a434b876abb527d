"""Which rows of its sources a changed query reads again, or never."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from sqlstream.errors import Finding
from sqlstream.location import Location, Place
from sqlstream.state.changes import describe_changes
from sqlstream.state.checkpoints import CheckpointState
from sqlstream.state.contents import earlier_names
from sqlstream.state.ledger import Ledger, QueryIdentity, SourceUse, read_ledger
from sqlstream.state.output_files import StoredFile
from sqlstream.state.plan import Action, QueryPlan, StartOptions, plan_query
from sqlstream.state.readers import continuing, respelled
from sqlstream.state.reading import ReadSoFar
from sqlstream.state.refusals import StartRefusal
from sqlstream.state.spark_settings import SOURCE_EVOLUTION
from tests.support.identities import ORDERS, STATEFUL, ledger_of

FILES = replace(ORDERS, path="/data/in", format="json", declared="sources.yml:4")
TOPIC = replace(ORDERS, format="kafka", options={"subscribe": "a", "kafka.bootstrap.servers": "one:9092"})
QUERY = replace(STATEFUL, stateful=False, sources=(FILES,))
READ = ReadSoFar({"logOffset": 0}, {"file:///data/in/1.json": 1})
UNKNOWN: Mapping[str, ReadSoFar] = {}
NOTHING: Mapping[str, Any] = {}


def planned(
    old: QueryIdentity | Ledger,
    *sources: SourceUse,
    so_far: Mapping[str, ReadSoFar] = UNKNOWN,
    accept: bool = False,
    changed: Mapping[str, Any] = NOTHING,
) -> QueryPlan | StartRefusal:
    """Returns the plan of a query that reads `sources` on the checkpoint of `old`."""
    ledger = old if isinstance(old, Ledger) else ledger_of(old)
    new = replace(ledger.identity, sources=sources, **changed)
    state = CheckpointState(1, read_ledger(ledger.to_json()), True, "ledger.json", last_commit=0)
    place = Place(Location("models/per_hour.sql"))
    options = StartOptions(accept_state_change=accept)
    return plan_query(new, state, options, restartable=True, place_of=lambda *_: place, read_so_far=so_far)


def refused(found: QueryPlan | StartRefusal) -> Finding:
    """Returns the only finding of a refusal."""
    assert isinstance(found, StartRefusal), found
    assert found.state_change is None
    (finding,) = found.findings
    assert finding.code == "source-change"
    return finding


def resumed(found: QueryPlan | StartRefusal) -> tuple[str, ...]:
    """Returns what a query that resumes without consent says of its sources."""
    assert isinstance(found, QueryPlan), found
    assert (found.action, found.accepted) == (Action.RESUME, False)
    return found.reads


def other(table: str, use: SourceUse = FILES, **changed: object) -> SourceUse:
    """Returns a reader of another table."""
    return replace(use, name=table.replace(".", "__"), table=table, **changed)  # type: ignore[arg-type]


def test_a_renamed_source_is_refused_until_its_former_name_is_known() -> None:
    """A new reader of the place of a lost one would read all of its rows again, and the fix is `previous_name`."""
    finding = refused(planned(QUERY, other("shop.sales", declared="sources.yml:9")))

    assert "`previous_name: orders` to table `sales`" in finding.fix
    assert "(sources.yml:9)" in finding.why
    assert resumed(planned(QUERY, replace(FILES, table="shop.sales"))) == ()


def test_a_source_can_be_renamed_or_moved_but_not_both_unseen() -> None:
    """A renamed source at another place is refused for its place: its former name is known."""
    finding = refused(planned(QUERY, other("shop.sales", path="/new/*", formerly="shop.orders")))

    assert ("another place" in finding.message, "previous_name" in finding.fix) == (True, False)


def test_a_renamed_group_is_refused_until_its_former_name_is_known() -> None:
    """The former name of a group belongs to the group, and that of a table in another group to both."""
    assert "`previous_name: shop` to source `store`" in refused(planned(QUERY, other("store.orders"))).fix
    both = refused(planned(QUERY, other("store.sales"))).fix
    assert "`previous_name: orders` to table `sales` and `previous_name: shop` to source `store`" in both


@pytest.mark.parametrize("stateful", [False, True])
def test_the_user_can_have_rows_read_again(stateful: bool) -> None:
    """With --accept-state-change the reader starts from the beginning, under a new name."""
    query = replace(QUERY, stateful=stateful)

    found = planned(query, other("shop.sales"), accept=True)

    assert isinstance(found, QueryPlan)
    assert (found.action, found.accepted) == (Action.RESUME, True)
    assert "`shop.sales` is read from its start" in found.reads


def test_nothing_is_read_again_of_a_reader_without_rows() -> None:
    """A source that the query has not read yet can get any name."""
    for empty in (ReadSoFar(None), ReadSoFar({"logOffset": -1}, {})):
        resumed(planned(QUERY, other("shop.sales"), so_far={"shop__orders": empty}))


@pytest.mark.parametrize(
    "path", ["/data/in/", "file:///data/in", "/data/./in", "/data/x/../in", "file:/data/in", "/data//in"]
)
@pytest.mark.parametrize("stateful", [False, True])
def test_another_spelling_of_a_path_is_no_change(path: str, stateful: bool) -> None:
    """The same folder in other words is the same place, with and without state."""
    found = planned(replace(QUERY, stateful=stateful), replace(FILES, path=path))

    assert isinstance(found, QueryPlan)
    assert (found.reads, found.changes) == ((), ())


@pytest.mark.parametrize("path", ["/data/in2/*.json", "/data/in2", "/other/*/*.json", "/data/inbox/*"])
def test_another_folder_is_refused_whatever_its_form(path: str) -> None:
    """A pattern of another folder contains only files that Spark does not know."""
    found = replace(FILES, name="shop__orders__2", path=path)

    assert "another place" in refused(planned(QUERY, found)).message
    assert isinstance(planned(QUERY, found, accept=True), QueryPlan)


def files(*names: str, modified: int = 1) -> tuple[StoredFile, ...]:
    """Returns stored files."""
    return tuple(StoredFile(name, 1, modified) for name in names)


def test_another_pattern_of_the_same_folder_resumes_if_no_file_has_moved() -> None:
    """The files themselves show whether some that were read have another path now."""
    pattern = replace(FILES, path="/data/in/*/*.json")
    new = replace(READ, before=(), now=files("/data/in/x/2.json"))
    moved = replace(READ, before=(), now=files("/data/in/x/1.json"))

    resumed(planned(QUERY, pattern, so_far={"shop__orders": new}))
    assert "1 file" in refused(planned(QUERY, pattern, so_far={"shop__orders": moved})).message


@pytest.mark.parametrize(
    ("before", "after", "is_refused"),
    [
        ("s3a://lake/in/2024", "s3a://lake/in/*", False),
        ("s3a://lake/in/*", "s3a://lake/in/2024*", False),
        ("s3a://lake/in", "s3a://lake/in/*.json", False),
        ("s3a://lake/in", "s3a://lake/{in,more}", False),
        ("s3a://lake/in/*.json", "s3a://lake/in/old/*.json", True),
        ("s3a://lake/in/2024*", "s3a://lake/in/2025*", True),
    ],
)
def test_patterns_decide_where_files_cannot_be_listed(before: str, after: str, is_refused: bool) -> None:
    """On remote storage another pattern resumes only if one of the two finds what the other finds."""
    query = replace(QUERY, sources=(replace(FILES, path=before),))
    known = {"shop__orders": ReadSoFar({"logOffset": 0}, {f"{before}/1.json": 1})}

    found = planned(query, replace(FILES, path=after), so_far=known)

    if is_refused:
        refused(found)
    else:
        assert "maxFileAge" in resumed(found)[0]


def test_files_of_the_same_name_beside_those_that_were_read_are_new() -> None:
    """Folders of days can contain the same names: a file has moved only if it is as old, too."""
    wide = replace(FILES, path="/data/*")
    found = files("/data/in/1.json") + files("/data/in2/1.json", modified=2)

    resumed(planned(QUERY, wide, so_far={"shop__orders": replace(READ, before=(), now=found)}))
    again = files("/data/in/1.json", "/data/in2/1.json")
    refused(planned(QUERY, wide, so_far={"shop__orders": replace(READ, before=(), now=again)}))


def test_files_that_a_wider_path_finds_can_be_too_old() -> None:
    """Spark ignores files that are older than `maxFileAge` before the newest file: they would never be read."""
    day = 86_400_000
    read = ReadSoFar({"logOffset": 0}, {"file:///data/in/1.json": 100 * day}, files("/data/in/1.json"))
    found = files("/data/in/1.json", modified=100 * day) + files("/data/in2/9.json", modified=day)
    wide = replace(FILES, path="/data/*")

    finding = refused(planned(QUERY, wide, so_far={"shop__orders": replace(read, now=found)}))

    assert ("never" in finding.message, "maxFileAge" in finding.fix) == (True, True)
    patient = replace(wide, options={"maxfileage": "1000d"})
    resumed(planned(QUERY, patient, so_far={"shop__orders": replace(read, now=found)}))


def test_names_of_files_are_enough_where_spark_knows_files_by_name() -> None:
    """With `fileNameOnly` a moved folder resumes; without it later, files of a known name are read again."""
    by_name = replace(FILES, path="/new/in/*", options={"filenameonly": "true"})
    so_far = {"shop__orders": replace(READ, before=(), now=files("/new/in/1.json"))}

    resumed(planned(QUERY, by_name, so_far=so_far))
    after = replace(QUERY, sources=(by_name,))
    refused(planned(after, replace(by_name, options={}), so_far=so_far))


def test_a_reader_that_returns_reads_everything_again() -> None:
    """A branch of a union that was dropped and comes back is refused, also if the ledger has only its name."""
    refunds = other("shop.refunds", path="/data/refunds")
    with_former = replace(ledger_of(QUERY), retired=("shop__refunds",), former=(refunds,))
    early = replace(ledger_of(QUERY), retired=("shop__refunds",))
    back = replace(refunds, name="shop__refunds__2")

    for ledger in (with_former, early):
        assert "again" in refused(planned(ledger, FILES, back)).message
        assert isinstance(planned(ledger, FILES, back, accept=True), QueryPlan)


def test_a_former_place_under_another_name_is_read_again() -> None:
    """A source that returns under another name is found by its place."""
    refunds = other("shop.refunds", path="/data/refunds")
    ledger = replace(ledger_of(QUERY), retired=("shop__refunds",), former=(refunds,))

    refused(planned(ledger, FILES, other("shop.returns", path="/data/refunds/*.json")))
    resumed(planned(ledger, FILES, other("shop.returns", path="/data/returns")))


def test_a_new_source_beside_the_others_resumes() -> None:
    """A new source is read from its start, and one that is dropped is never read again; the plan says so."""
    refunds = other("shop.refunds", path="/data/refunds")

    assert resumed(planned(QUERY, FILES, refunds)) == ("`shop.refunds` is read from its start",)
    both = replace(QUERY, sources=(FILES, refunds))
    assert resumed(planned(both, FILES)) == ("`shop.refunds` is no longer read: it is never read from here on",)


def test_a_source_in_the_place_of_another_is_refused_if_it_can_have_the_same_rows() -> None:
    """A source swapped for one with the same columns may be the same data; one with other columns is not."""
    schemas = {
        "shop.orders": "id int, ts timestamp",
        "shop.events": "id int, ts timestamp",
        "shop.users": "name string",
    }
    query = replace(QUERY, schemas=schemas)

    refused(planned(query, other("shop.events", path="/data/events")))
    refused(planned(QUERY, other("shop.events", path="/data/events")))
    resumed(planned(query, other("shop.users", path="/data/users")))


@pytest.mark.parametrize(
    ("options", "is_refused"),
    [
        ({"subscribe": "a,b"}, False),
        ({"subscribepattern": "a|b"}, False),
        ({"assign": '{"a": [0, 1]}'}, False),
        ({"subscribe": "a", "startingoffsets": "latest"}, False),
        ({"subscribe": "b"}, True),
        ({"subscribepattern": "b.*"}, True),
    ],
)
def test_a_kafka_reader_continues_with_the_topics_that_it_has_read(
    options: Mapping[str, str], is_refused: bool
) -> None:
    """Topics can be added; a reader of other topics only is another reader."""
    before = replace(TOPIC, options={"subscribe": "a"})
    name = "shop__orders__2" if is_refused else "shop__orders"

    found = planned(replace(QUERY, sources=(before,)), replace(before, name=name, options=options))

    assert isinstance(found, StartRefusal) == is_refused


def test_a_topic_less_stops_spark_unless_it_may_lose_data() -> None:
    """Without `failOnDataLoss: false` Spark fails, so no consent helps; with it the topic is never read again."""
    query = replace(QUERY, sources=(replace(TOPIC, options={"subscribe": "a,b"}),))
    offsets = {"shop__orders": ReadSoFar({"a": {"0": 1}, "b": {"0": 1}})}
    less = replace(TOPIC, options={"subscribe": "a"})

    assert "failOnDataLoss" in refused(planned(query, less, so_far=offsets)).fix
    refused(planned(query, less, so_far=offsets, accept=True))
    lenient = replace(less, options={**less.options, "failondataloss": "false"})
    assert "never" in resumed(planned(query, lenient, so_far=offsets))[0]


def test_a_topic_that_returns_is_read_again() -> None:
    """Spark reads an added topic from its first record, so one that was read before is refused."""
    query = replace(QUERY, sources=(replace(TOPIC, options={"subscribe": "a"}),))
    both = replace(TOPIC, options={"subscribe": "a,b"})
    ledger = replace(ledger_of(query), former=(both,))
    offsets = {"shop__orders": ReadSoFar({"a": {"0": 1}})}

    refused(planned(ledger, both, so_far=offsets))
    assert "first record" in resumed(planned(query, both, so_far=offsets))[0]


def test_the_offsets_of_one_cluster_mean_nothing_on_another() -> None:
    """Other brokers are refused unless one of them stays."""
    query = replace(QUERY, sources=(TOPIC,))
    servers = "kafka.bootstrap.servers"

    refused(planned(query, replace(TOPIC, options={**TOPIC.options, servers: "two:9092"})))
    resumed(planned(query, replace(TOPIC, options={**TOPIC.options, servers: "two:9092, one:9092"})))


def test_an_unknown_source_asks_when_its_options_change() -> None:
    """Only the author of a source in Python knows what its offsets mean with other options or another class."""
    python = replace(ORDERS, format="python", path="feed:Feed", options={"folder": "a"})
    query = replace(QUERY, sources=(python,))

    refused(planned(query, replace(python, options={"folder": "b"})))
    refused(planned(query, replace(python, path="feed:Other")))
    assert isinstance(planned(query, replace(python, path="feed:Other"), accept=True), QueryPlan)


def test_another_kind_of_source_is_another_reader() -> None:
    """Offsets of files mean nothing to Kafka; another format of files is read on."""
    refused(planned(QUERY, replace(TOPIC, name="shop__orders__2")))
    resumed(planned(QUERY, replace(FILES, format="csv")))


def test_a_ledger_of_an_earlier_version_is_not_refused_for_what_it_lacks() -> None:
    """Formats, options and former readers are unknown there: they count as they are, and the ledger is renewed."""
    for use in (FILES, TOPIC):
        early = replace(QUERY, sources=(replace(use, format="", options={}, declared=""),))
        found = planned(early, use)
        assert resumed(found) == ()
        assert isinstance(found, QueryPlan)
        assert found.writes_ledger


def test_a_rename_means_nothing_where_the_order_identifies_sources() -> None:
    """A checkpoint of an older Spark knows no names: the same places in the same order resume, other places do not."""
    query = replace(QUERY, settings={**QUERY.settings, SOURCE_EVOLUTION: "false"})

    resumed(planned(query, other("shop.sales")))
    refused(planned(query, replace(FILES, path="/other")))
    refused(planned(query, FILES, other("shop.sales", path="/data/sales")))


def test_a_static_table_has_the_same_path_in_other_words() -> None:
    """A relative path that becomes absolute is no change of an input, and another path is one."""
    static = replace(
        STATEFUL, contents={"shop.zones": "csv in/z.csv"}, static_paths={"shop.zones": ("in/z.csv", "/p/in/z.csv")}
    )
    same = {
        "contents": {"shop.zones": "csv /p/in/z.csv"},
        "static_paths": {"shop.zones": ("/p/in/z.csv", "/p/in/z.csv")},
    }
    moved = {"contents": {"shop.zones": "csv in/y.csv"}, "static_paths": {"shop.zones": ("in/y.csv", "/p/in/y.csv")}}

    found = planned(static, ORDERS, changed=same)

    assert isinstance(found, QueryPlan)
    assert found.changes == ()
    assert isinstance(planned(static, ORDERS, changed=moved), StartRefusal)


@pytest.mark.parametrize(
    ("text", "now"),
    [
        ("json ignoreMissingFiles true", "json"),
        ("json ignoreMissingFiles true, multiLine true", "json multiLine true"),
        ("json ignoreCorruptFiles true, ignoreMissingFiles true", "json"),
        ("json multiLine true, ignoreMissingFiles true", "json multiLine true"),
    ],
)
def test_options_that_an_earlier_version_took_for_contents_are_no_change(text: str, now: str) -> None:
    """A ledger with such an option is compared as if it lacked it."""
    early = replace(STATEFUL, contents={"shop.orders": text})

    found = planned(early, ORDERS, changed={"contents": {"shop.orders": now}})

    assert isinstance(found, QueryPlan)
    assert found.changes == ()


@pytest.mark.parametrize("text", ["csv header true, sep ,", "csv nullValue ", "json multiLine true"])
def test_contents_that_end_with_a_separator_are_no_change(text: str) -> None:
    """An option whose value is a comma or empty is compared as it is."""
    identity = replace(STATEFUL, contents={"shop.orders": text})

    assert describe_changes(identity, identity) == ()


def test_values_with_commas_in_an_early_ledger_are_no_change() -> None:
    """An early sqlstream wrote them without quotes."""
    old = replace(STATEFUL, contents={"shop.orders": "kafka json subscribe a, b"}, declared=None)
    new = replace(STATEFUL, contents={"shop.orders": "kafka json subscribe 'a, b'"}, declared={})

    assert describe_changes(old, new) == ()


def test_columns_that_move_in_a_renamed_table_are_a_change() -> None:
    """The columns of a table are compared with those that it had under its former name."""
    old = replace(STATEFUL, schemas={"shop.orders": "x int, y int"}, contents={"shop.orders": "csv"})
    renamed = replace(ORDERS, table="shop.sales")
    new = replace(STATEFUL, sources=(renamed,), schemas={"shop.sales": "y int, x int"}, contents={"shop.orders": "csv"})

    before = respelled(old, new)

    assert earlier_names(before, new) == {"shop.orders": {"y": "x", "x": "y"}}
    assert [str(change.text) for change in describe_changes(old, new)][-1] == "the columns of `shop.sales` changed"


def test_sources_that_change_places_are_refused_where_only_their_order_counts() -> None:
    """Without names of sources, a pattern in the place of another pattern of the same folder is another source."""
    one, other = (
        replace(FILES, name=f"shop__{name}", table=f"shop.{name}", path=f"/in/{name}-*.json", via=name) for name in "ab"
    )
    settings = {**STATEFUL.settings, SOURCE_EVOLUTION: "false"}
    old, new = (replace(STATEFUL, sources=uses, settings=settings) for uses in ((one, other), (other, one)))

    assert continuing(old, new) == []


@pytest.mark.parametrize(
    ("before", "after", "is_refused"),
    [
        (("in", ""), ("in", ""), False),
        (("in/x", ""), ("in", ""), False),
        (("in", ""), ("in", "/*"), False),
        (("in", "/*"), ("in", ""), False),
        (("in", "/2024*"), ("in", "/{2024,2025}*"), False),
        (("in", ""), ("other", ""), True),
        (("in", "/*"), ("other", "/*"), True),
        (("in", "/*"), ("in [v2]", ""), True),
        (("in [v2]", ""), ("in [v2]", "/*.json"), False),
        (("in [v2]", ""), ("in 2", ""), True),
    ],
)
@pytest.mark.parametrize("root", ["/p/depot [v2]", "/p/a{b,c}", "/p/plain"])
def test_folders_with_special_characters_are_no_patterns(
    root: str, before: tuple[str, str], after: tuple[str, str], *, is_refused: bool
) -> None:
    """The ledger says where the pattern of a reader begins, so that a name such as `depot [v2]` matches only itself."""
    old, new = (replace(FILES, path=f"{root}/{place}{end}", folder=f"{root}/{place}") for place, end in (before, after))

    found = planned(replace(QUERY, sources=(old,)), new)

    assert isinstance(found, StartRefusal) is is_refused


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("delta", "delta readChangeFeed true"),
        ("delta startingVersion 3, readchangedata TRUE", "delta startingVersion 3"),
    ],
)
def test_the_changes_of_a_table_are_other_rows(before: str, after: str) -> None:
    """A query does not go from the rows of a table to its changes, or back, unless it has read nothing or the user
    accepts it; with the same options it resumes.
    """
    table = replace(ORDERS, path="/data/in", format="delta")
    query = replace(STATEFUL, stateful=False, sources=(table,), contents={"shop.orders": before})
    changed = {"contents": {"shop.orders": after}}

    finding = refused(planned(query, table, changed=changed))
    accepted = planned(query, table, changed=changed, accept=True)

    assert "would continue to read `shop.orders` with other rows" in finding.message
    assert "--accept-state-change" in finding.fix
    assert isinstance(accepted, QueryPlan)
    assert (accepted.action, accepted.accepted) == (Action.RESUME, True)
    assert resumed(planned(query, table)) == ()
    assert resumed(planned(query, table, changed=changed, so_far={"shop__orders": ReadSoFar(None)})) == ()
