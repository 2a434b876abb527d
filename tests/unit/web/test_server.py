"""The server of the page, over real connections: access, errors, live updates."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks.make_history import FAILED, RESTARTED, SILENT, History, LiveRun, make_history, name_of
from sqlstream import ProjectRequest, UsageError
from sqlstream.app.request import UiRequest
from sqlstream.app.session.listening import listen
from sqlstream.web.server.http import bind
from sqlstream.web.server.page_app import Browser, LiveUpdates
from sqlstream.web.server.protocol import UiData
from tests.services.ui_page import Page, page_of

QUERIES = 20
HISTORY = History(QUERIES, 4_000, 2, time.time())


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of 20 queries with a history of two days, and a run of this process."""
    folder = tmp_path_factory.mktemp("observed")
    make_history(folder, HISTORY)
    return folder


@pytest.fixture(scope="module")
def run(project: Path) -> Iterator[LiveRun]:
    """The run, which has started."""
    run = LiveRun(project, HISTORY)
    run.begin()
    yield run
    run.end()


@pytest.fixture(scope="module")
def page(project: Path, run: LiveRun) -> Iterator[Page]:
    """The page of the project."""
    with page_of(ProjectRequest(project)) as page:
        yield page


def test_the_project_and_its_runs(page: Page) -> None:
    """The newest run is the one of this process, which is alive; the target is its target."""
    found = page.get("/api/project")
    assert (found["project"], found["target"], found["targets"]) == ("observed", "local", ["local", "prod"])
    assert [run["life"] for run in found["runs"]] == ["running", "ended"]
    assert found["problems"] == []
    assert found["has_history_since"] <= (HISTORY.now - 86_400) * 1000


def test_the_overview_has_all_nodes_and_queries(page: Page) -> None:
    """Each query has its state and small charts; a view has what flows through it."""
    found = page.get("/api/overview")
    kinds = {node["kind"] for node in found["nodes"]}
    assert kinds == {"source", "view", "query", "sink"}
    queries = found["queries"]
    assert len(queries) == QUERIES + 1  # and the quarantine of a source
    statuses = {name_of(FAILED): "error", name_of(SILENT): "running", name_of(RESTARTED): "running"}
    assert {model: queries[model]["status"] for model in statuses} == statuses
    assert queries[name_of(FAILED)]["error"]["code"] == "query-failed"
    assert queries[name_of(SILENT)]["silence"]["cause"] == "watermark"
    assert queries[name_of(RESTARTED)]["restarts"] == 3
    assert queries[name_of(0)]["version"] == 1
    assert len(queries[name_of(0)]["spark"]["duration_ms"]) == 40
    flows = {node["id"]: node["status"] for node in found["nodes"]}
    assert flows["source.observed.orders.events"] == flows["model.observed.orders_clean"] == "flowing"
    edge = found["edges"].index(["source.observed.orders.events", "model.observed.orders_clean"])
    assert found["flow"]["edges"][edge] == pytest.approx(
        found["flow"]["nodes"]["model.observed.orders_clean"], abs=0.01
    )
    assert len(found["flow"]["edges"]) == len(found["edges"])


def test_an_overview_of_another_target(page: Page) -> None:
    """A target without a run has the same graph, and queries that have not run."""
    queries = page.get("/api/overview?target=prod")["queries"]
    assert {query["status"] for query in queries.values()} == {None}
    assert queries[name_of(0)]["trigger"] == "30 seconds"


def test_the_page_of_a_query(page: Page) -> None:
    """A query has its SQL, columns with origins, emission, plan, versions and tests."""
    found = page.get(f"/api/query/{name_of(0)}")
    assert "{{ ref('orders_clean') }}" in found["raw_sql"]
    assert "WATERMARK at DELAY OF INTERVAL 10 MINUTES" in found["compiled_sql"]
    amount = next(column for column in found["columns"] if column["name"] == "amount")
    assert amount["origins"] == [
        {"unique_id": "source.observed.orders.events", "column": "amount", "name": "orders.events"}
    ]
    assert "a window is emitted once" in found["emission"]
    assert found["plan"]["verdict"] == "new"
    assert (found["versions"], found["tests"]) == ([], [])
    assert [view["unique_id"] for view in found["views"]] == ["model.observed.orders_clean"]
    assert found["checkpoint"]["started"] is False
    assert found["now"]["status"] == "running"
    assert found["problems"] == []


def test_the_pages_of_nodes(page: Page) -> None:
    """A source, a view and a sink have their columns, settings, neighbors, and the queries that use them."""
    readers = [name_of(number) for number in range(0, HISTORY.queries, 5)]
    source = page.get("/api/node/source.observed.orders.events")
    assert [column["name"] for column in source["columns"]] == ["id", "kind", "amount", "at"]
    assert (source["config"]["format"], source["queries"]) == ("json", readers)
    assert [node["name"] for node in source["read_by"]] == ["orders_clean"]
    view = page.get("/api/node/model.observed.orders_clean")
    assert "source('orders', 'events')" in view["raw_sql"]
    assert [(node["kind"], node["name"]) for node in view["reads"]] == [("source", "orders.events")]
    assert view["queries"] == readers
    sink = page.get("/api/node/sink.observed.lake")
    assert (sink["kind"], sink["columns"], len(sink["queries"])) == ("sink", None, HISTORY.queries)


def test_series_batches_and_events_of_a_query(page: Page) -> None:
    """A chart gets about as many points as it asks for, lists get the newest first."""
    base, start = f"/api/query/{name_of(RESTARTED)}", int((HISTORY.now - 3 * 86_400) * 1000)
    series = page.get(f"{base}/series?from={start}&points=50&names=rows_in,duration_max_ms")
    assert series["resolution"] == "5m"
    assert 20 < len(series["t"]) < 80
    assert set(series["series"]) == {"rows_in", "duration_max_ms"}
    batches = page.get(f"{base}/batches?limit=3")["batches"]
    assert [row["batch_id"] for row in batches] == sorted((row["batch_id"] for row in batches), reverse=True)
    slowest = page.get(f"{base}/batches?limit=2&order=slowest")["batches"]
    assert slowest[0]["duration_ms"] >= slowest[1]["duration_ms"] >= batches[0]["duration_ms"]
    kinds = [event["kind"] for event in page.get(f"{base}/events")["events"]]
    assert kinds[0] == "started"


def test_quarantined_rows_come_from_the_quarantine(page: Page) -> None:
    """Queries of a source with a quarantine have a number of quarantined rows, others have none."""
    queries = page.get("/api/overview")["queries"]
    assert queries["payments_001"]["quarantined_rows"] == 0
    assert queries["orders_000"]["quarantined_rows"] is None


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/query/nothing", 404),
        ("/api/query/nothing/series", 404),
        ("/api/node/source.observed.nothing", 404),
        ("/api/overview?target=nowhere", 404),
        ("/api/live?target=nowhere", 404),
        ("/api/query/orders_000/series?from=yesterday", 400),
        ("/api/query/orders_000/series?from=nan", 400),
        ("/api/query/orders_000/batches?order=random", 400),
        ("/api/lineage?column=orders_000.nothing", 404),
        ("/api/nothing", 404),
        ("/assets/../server/app.py", 404),
        ("/assets/%2e%2e/server/app.py", 404),
        ("/assets/..%2fserver/app.py", 404),
    ],
)
def test_errors_are_json(page: Page, path: str, status: int) -> None:
    """What does not exist is 404, what is no number 400; no file outside of the assets is served."""
    answer = page.ask(path)
    assert (answer.status, "error" in json.loads(answer.body)) == (status, True)


def test_every_answer_has_the_security_headers(page: Page) -> None:
    """Scripts and styles come only from the server; no other site can frame the page."""
    for path in ("/", "/assets/theme.css", "/api/project", "/api/nothing"):
        headers = page.ask(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("headers", [{"Host": "[::1"}, {"Host": "[x]"}, {"Origin": "http://[::1"}])
def test_a_malformed_host_is_a_bad_request(page: Page, headers: dict[str, str]) -> None:
    """A text that is no host name is the fault of the request."""
    assert page.ask("/api/project", headers).status == 400


def test_scripts_are_compressed_and_kept(page: Page) -> None:
    """A browser loads a script again only if it has changed. What it gets is compressed."""
    first = page.ask("/assets/ui/main.js", {"Accept-Encoding": "gzip"})
    assert first.headers["content-encoding"] == "gzip"
    again = page.ask("/assets/ui/main.js", {"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    assert page.ask("/assets/ui/main.js", {"If-None-Match": '"another"'}).status == 200
    assert page.ask("/api/project").headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path", ["ui/none.js", "../server/access.py", "%2e%2e/server/access.py", "ui", "", "%00", "x" * 300]
)
def test_only_assets_are_served(page: Page, path: str) -> None:
    """Nothing outside the folder, and no folder."""
    assert page.ask(f"/assets/{path}").status == 404


def test_answers_are_sent_at_once() -> None:
    """Asyncio turns off the delay of small packets only for sockets that name their protocol."""
    with bind("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8321", "127.0.0.1.evil.example", "", "[::2]"])
def test_other_host_names_are_refused(page: Page, host: str) -> None:
    """A name that an attacker made point to this machine gets nothing (DNS rebinding)."""
    assert page.ask("/api/project", {"Host": host}).status in (400, 421)


@pytest.mark.parametrize(("origin", "status"), [("http://evil.example", 403), ("null", 403), (None, 200)])
def test_other_origins_are_refused(page: Page, origin: str | None, status: int) -> None:
    """A page of another site gets nothing."""
    headers = {} if origin is None else {"Origin": origin}
    assert page.ask("/api/project", headers).status == status


def test_only_reading_is_allowed(page: Page) -> None:
    """There is no request that changes anything."""
    assert page.ask("/api/project", method="POST").status == 405


def test_a_token_becomes_a_cookie(project: Path) -> None:
    """With a token, every address needs it. The URL has it once; the browser then has a cookie without it."""
    with page_of(ProjectRequest(project), UiRequest(port=0, token="s3cret")) as page:
        for path in ("/", "/api/project", "/assets/theme.css", "/?token=wrong"):
            assert page.ask(path).status == 401
        form = page.ask("/", {"Accept": "text/html"})
        assert (form.status, b'<form method="get">' in form.body) == (401, True)
        assert "form-action 'self'" in form.headers["content-security-policy"]
        answer = page.ask("/?token=s3cret&x=1")
        assert (answer.status, answer.headers["location"]) == (303, "/?x=1")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie  # a link in a message opens the page
        assert "s3cret" not in cookie
        assert page.ask("/api/project", {"Cookie": cookie.partition(";")[0]}).status == 200
        assert page.ask("/api/project", {"Authorization": "Bearer s3cret"}).status == 200
        assert page.ask("/api/project", {"Authorization": "Bearer s3cre"}).status == 401
        assert page.ask("//evil.example/?token=s3cret").headers["location"] == "/evil.example/"


def test_another_address_needs_a_token() -> None:
    """Where other machines can connect, a token is made if none is given."""
    everywhere = listen(UiRequest("0.0.0.0", 0))
    here = listen(UiRequest(port=0))
    everywhere.socket.close()
    here.socket.close()
    assert here.token is None
    assert everywhere.token is not None
    assert len(everywhere.token) >= 32


def test_a_taken_port() -> None:
    """A port that was asked for is an error if it is taken; otherwise the next free one is used."""
    taken = bind("127.0.0.1", 0, searches=False)
    port = taken.getsockname()[1]
    try:
        with pytest.raises(UsageError, match=f"port {port} of 127.0.0.1 is in use"):
            listen(UiRequest(port=port))
        other = bind("127.0.0.1", port, searches=True)
        assert other.getsockname()[1] > port
        other.close()
    finally:
        taken.close()


@pytest.mark.parametrize("request_", [UiRequest("nowhere.invalid", 0), UiRequest(port=0, token=" ")])
def test_an_address_or_token_that_cannot_be_used(request_: UiRequest) -> None:
    """They are usage errors."""
    with pytest.raises(UsageError):
        listen(request_)


@contextmanager
def stream(page: Page, path: str) -> Iterator[Iterator[tuple[str, Any]]]:
    """Opens an event stream and yields its messages."""
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.getheader("content-type", "").startswith("text/event-stream")

    def messages() -> Iterator[tuple[str, Any]]:
        event = ""
        for line in iter(answer.readline, b""):
            name, _, value = line.decode().strip().partition(": ")
            if name == "event":
                event = value
            elif name == "data":
                yield event, json.loads(value)

    try:
        yield messages()
    finally:
        connection.close()


def test_live_updates_have_only_what_changed(page: Page, run: LiveRun) -> None:
    """After `hello`, a new batch of one query arrives as the changed fields of this query, and as a row."""
    number, model = 4, name_of(4)
    page.get("/api/overview")
    with stream(page, f"/api/live?model={model}") as messages:
        assert next(messages)[0] == "hello"
        before = page.get("/api/overview")["queries"][model]["last_batch_id"]
        run.batch(number)
        seen: dict[str, Any] = {}
        while not {"overview", "batches"} <= seen.keys():
            event, content = next(messages)
            if event == "batches" or model in content.get("queries", {}):
                seen[event] = content
    changed = seen["overview"]["queries"][model]
    assert changed["last_batch_id"] == before + 1
    assert "trigger" not in changed
    assert [row["batch_id"] for row in seen["batches"]["rows"]][-1] == before + 1
    assert set(seen["overview"]) <= {"time", "queries", "nodes", "flow", "runs"}


class _Counted:
    """A follower whose overview is `number`."""

    number = 0

    def __init__(self) -> None:
        self._last: int | None = None

    def changes(self) -> dict[str, Any] | None:
        """Returns the number if it has changed since the last call."""
        last, self._last = self._last, self.number
        return None if last in (None, self.number) else {"number": self.number}


def test_nothing_that_changes_after_hello_is_lost() -> None:
    """A page that has read the overview before a change, and `hello` before it, too, gets the change."""
    follower = _Counted()
    live = LiveUpdates(cast("UiData", SimpleNamespace(follow=lambda _: follower)))

    async def two_messages() -> list[bytes]:
        messages = live.stream(Browser(None))
        hello = await anext(messages)
        follower.number = 1
        found = [hello, await anext(messages)]
        live.close()
        return found

    # in a thread: a browser of other tests has an event loop in this one
    with ThreadPoolExecutor(1) as thread:
        hello, changed = thread.submit(asyncio.run, two_messages()).result()
    assert hello.startswith(b"event: hello\n")
    assert changed == b'event: overview\ndata: {"number":1}\n\n'


def test_the_page_ends_while_a_stream_is_open(project: Path) -> None:
    """An open browser does not keep the command from ending."""
    with page_of(ProjectRequest(project)) as page, stream(page, "/api/live") as messages:
        assert next(messages)[0] == "hello"
        page.close()
        assert list(messages) == []
