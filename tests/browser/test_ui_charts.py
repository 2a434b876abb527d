"""The charts of a query in a real browser: verdicts, stops, batches as bars, failures, and texts that are not cut."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.browsing import OpenPage
from tests.support.ui_story import Story, eventful, failure

SETTLED = "() => !document.querySelector('.timeline[aria-busy]') && document.querySelector('.verdict b')"
PIXELS = """([title, from, to, token]) => {
  const canvas = document.querySelector(`.chart[aria-label="${title}"] canvas`);
  const over = document.querySelector(`.chart[aria-label="${title}"] .u-over`);
  const swatch = document.body.appendChild(document.createElement('i'));
  swatch.style.color = `var(${token})`;
  const wanted = getComputedStyle(swatch).color.match(/\\d+/g).map(Number);
  swatch.remove();
  const [box, frame] = [over.getBoundingClientRect(), canvas.getBoundingClientRect()];
  const [left, width] = [box.left - frame.left + from * box.width, Math.max((to - from) * box.width, 1)];
  const ratio = devicePixelRatio;
  const { data } = canvas.getContext('2d').getImageData(left * ratio, (box.top - frame.top) * ratio, width * ratio, box.height * ratio);
  let found = 0;
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] > 200 && wanted.every((value, part) => Math.abs(value - data[at + part]) < 12)) found += 1;
  }
  return found;
}"""
EDGES = """() => [...document.querySelectorAll('.chart canvas')].map((canvas) => {
  const pen = canvas.getContext('2d');
  const inked = (x, y, width, height) => pen.getImageData(x, y, width, height).data.some((value, at) => at % 4 === 3 && value > 0);
  const name = canvas.closest('.chart').getAttribute('aria-label');
  const [width, height] = [canvas.width, canvas.height];
  return [name, inked(0, 0, 1, height) || inked(width - 1, 0, 1, height) || inked(0, height - 1, width, 1)];
})"""


Serve = Callable[[Story], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serves the page of a story, and returns the address of the charts, until all browsers are closed."""
    with ExitStack() as stack:
        yield lambda story: stack.enter_context(story.page())


def ranged(story: Story, url: str, since: float, until: float = 0.0) -> str:
    """Returns the address of a range: minutes before now."""
    from_ms, to_ms = (round((story.clock - 60 * ago) * 1000) for ago in (since, until))
    return f"{url}?from={from_ms}&to={to_ms}"


def opened(open_page: OpenPage, url: str, **options: Any) -> Page:
    """Opens the charts, and waits until they are drawn."""
    page = open_page(url, **options)
    page.wait_for_function(SETTLED)
    return page


def chart(page: Page, title: str) -> Locator:
    """Returns the chart with this title."""
    return page.get_by_role("region", name=title, exact=True)


def point_at(page: Page, title: str, part: float) -> Locator:
    """Moves the cursor to a part (0 to 1) of a chart; returns the note of the chart."""
    found = chart(page, title)
    found.scroll_into_view_if_needed()
    box = found.locator(".u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * part - 1, box["y"] + 50)
    page.mouse.move(box["x"] + box["width"] * part, box["y"] + 50)
    return found.locator(".plot-note")


def growing(story: Story, count: int, **entry: Any) -> None:
    """Writes a run of this process whose lag grows by 60,000 bytes in each batch of 30 seconds."""
    story.start("run", count / 2, is_alive=True, **entry)
    for number in range(count):
        story.batch("run", (count - number) / 2, number, entry)
        story.lag("run", (count - number) / 2 - 0.1, number, files=number, bytes=60_000 * number)


def keeps_up(story: Story) -> None:
    """A query reads all that there is."""
    story.start("run", 30, is_alive=True)
    story.batches("run", 30, 0.2)


def falls_behind(story: Story) -> None:
    """The lag of a query grows by 2,000 bytes per second."""
    growing(story, 40)


def few(story: Story) -> None:
    """A query has had three batches."""
    growing(story, 3)


def nothing(story: Story) -> None:
    """A query has had no batch."""
    story.start("run", 30, is_alive=True)


def ends(story: Story) -> None:
    """A query reads what there is."""
    growing(story, 40, trigger="available_now")


def ended(story: Story) -> None:
    """A run has ended."""
    growing(story, 40)
    story.end("run", 0.1)


def killed(story: Story) -> None:
    """A run that kept up was killed."""
    story.start("run", 30)
    story.batches("run", 30, 10)


def catches_up(story: Story) -> None:
    """A query works off what has arrived while it did not run."""
    story.start("run", 30, is_alive=True)
    for number in range(60):
        story.batch("run", (60 - number) / 2, number, rows_in=50_000)
        story.lag("run", (60 - number) / 2 - 0.1, number, versions=max(50 - number, 0))


@pytest.mark.parametrize(
    ("happens", "text"),
    [
        (keeps_up, "Keeps up"),
        (falls_behind, "Falls behind by 2.00 kB/s"),
        (few, "It is not known yet whether it keeps up"),
        (nothing, "It is not known yet whether it keeps up"),
        (ends, "Ends by itself"),
        (ended, "Fell behind by 2.00 kB/s"),
        (killed, "Kept up"),
        (catches_up, "Keeps up"),
    ],
)
def test_the_verdict(
    tmp_path: Path, serve: Serve, open_page: OpenPage, happens: Callable[[Story], None], text: str
) -> None:
    """The verdict is right about growth, few batches, a catch-up, and runs that end or have ended."""
    story = Story(tmp_path)
    happens(story)
    url = serve(story)
    page = opened(open_page, f"{url}?range=1h")
    expect(chart(page, "Rates").locator(".verdict b")).to_have_text(text)


def test_slow_growth_has_a_unit_that_can_be_read(tmp_path: Path, serve: Serve, open_page: OpenPage) -> None:
    """A rate below one in ten seconds is per minute, hour or day."""
    story = Story(tmp_path)
    keeps_up(story)
    url = serve(story)
    page = opened(open_page, url)
    found = page.evaluate(
        "async () => { const { rateText } = await import('/assets/ui/query/verdict.js');"
        "return [rateText(1234, 'rows'), rateText(0.01, 'versions'), rateText(1 / 7200, 'records'), rateText(1e-9, 'records'), rateText(5e9, 'bytes')]; }"
    )
    assert found == ["1.23k rows/s", "0.60 versions/min", "0.50 records/h", "0.00 records/day", "5.00 GB/s"]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("points", ["batch", "5 minutes"])
def test_no_line_crosses_a_stop(tmp_path: Path, serve: Serve, open_page: OpenPage, theme: str, points: str) -> None:
    """While the query did not run, the charts are hatched and have no line, in batches as in rollups; the cursor says
    why.
    """
    story = eventful(tmp_path)
    if points != "batch":
        story.start("old", 3_100)
        story.batches("old", 3_100, 3_000, seconds=2)  # more batches than points
        story.end("old", 3_000)
    since = 60 if points == "batch" else 3_120
    url = serve(story)
    page = opened(open_page, ranged(story, url, since), theme=theme, width=1440)
    expect(page.locator(".shown")).to_contain_text(f"each point is {'a batch' if points == 'batch' else points}")
    expect(page.locator(".markers")).to_contain_text("not running")
    if points == "batch":
        gaps, runs = [(46, 32), (24, 22), (16, 11)], [(57, 47), (31, 25), (21, 17), (10, 1)]
    else:
        gaps, runs = [(2_990, 70)], [(3_090, 3_010)]
    for title, token in (("Rates", "--chart-2"), ("Watermark", "--chart-4"), ("State", "--chart-3")):
        for spans, has_line in ((gaps, False), (runs, True)):
            for start, end in spans:
                parts = [1 - start / since + 0.004, 1 - end / since - 0.004]
                assert bool(page.evaluate(PIXELS, [title, *parts, token])) is has_line, (title, start, end)
    note = point_at(page, "Rates", 1 - (gaps[0][0] + gaps[0][1]) / 2 / since)
    expect(note).to_have_text(re.compile(r"Not running, from .* to .* \((14 min|4\d h.*|2 d.*)\)"))
    if points == "batch":
        expect(point_at(page, "State", 1 - 13 / since)).to_contain_text("Not running: the process was killed, from ")
        expect(point_at(page, "Rows", 1 - 23 / since)).to_contain_text("waiting to restart after a failure")
        expect(point_at(page, "Rows", 1 - 5 / since)).to_be_hidden()
        expect(page.get_by_role("img", name="Rates.")).to_have_attribute("aria-label", re.compile("process was killed"))


def test_a_failed_batch_is_in_the_charts_and_in_the_list(tmp_path: Path, serve: Serve, open_page: OpenPage) -> None:
    """A batch that failed has a marker with its message, and a row with its number, also one with odd characters."""
    odd = "For input string: \"<b>n/a</b>\" 'ünï' — 数"
    story = Story(tmp_path)
    story.start("run", 30, is_alive=True)
    story.batches("run", 30, 20)
    story.happens("run", 20, "query_restarting", attempt=1, attempts=5, delay_seconds=90.0, finding=failure(20, odd))
    story.happens("run", 18.5, "query_restarted", restarts=1)
    story.batches("run", 18, 10, 20)
    story.end("run", 10, failure(36))
    url = serve(story)
    page = opened(open_page, ranged(story, url, 40))
    expect(page.locator(".markers")).to_contain_text("failed")
    expect(point_at(page, "Batch duration", 0.5)).to_contain_text(f"failed in batch 20: {odd}")

    page.goto(url.replace("/charts", "/batches"))
    rows = page.locator(".batches tbody tr")
    expect(rows.first).to_contain_text("36")
    expect(rows.first).to_contain_text("Failed")
    failed = page.locator(".batches tr.failed")
    expect(failed).to_have_count(2)
    expect(failed.nth(1).locator("td").first).to_have_text("20")
    expect(failed.nth(1)).to_contain_text(f"failed in batch 20: {odd}, restarted after 1 min 30 s")
    expect(failed.nth(1).locator("xpath=preceding-sibling::tr[1]/td[1]")).to_have_text("20")
    page.get_by_role("button", name="Slowest").click()
    expect(failed).to_have_count(0)


def test_a_failure_appears_while_the_list_is_open(tmp_path: Path, serve: Serve, open_page: OpenPage) -> None:
    """A query that fails now gets a row at once."""
    story = Story(tmp_path)
    story.start("run", 10, is_alive=True)
    story.batches("run", 10, 0.2)
    url = serve(story)
    page = open_page(url.replace("/charts", "/batches"))
    expect(page.locator(".batches tbody tr")).to_have_count(20)
    story.end("run", 0, failure(20))
    expect(page.locator(".batches tr.failed")).to_contain_text("failed in batch 20")


def test_a_failure_appears_above_older_batches(tmp_path: Path, serve: Serve, open_page: OpenPage) -> None:
    """After "Show older batches", a query that fails now gets one row above all others; the older batches stay."""
    odd = "For input string: \"<b>n/a</b>\" 'ünï' — 数"
    story = Story(tmp_path)
    story.start("run", 60, is_alive=True)
    number = story.batches("run", 60, 0.2)
    url = serve(story)
    page = open_page(url.replace("/charts", "/batches"))
    rows = page.locator(".batches tbody tr")
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="Show older batches").click()
    expect(rows).to_have_count(100)
    waiting = failure(number, odd)
    wait = {"attempt": 1, "attempts": 5, "delay_seconds": 600.0, "finding": waiting}
    story.happens("run", 0.1, "query_restarting", {"status": "restarting", "last_failure": waiting}, **wait)
    failed = page.locator(".batches tr.failed")
    expect(failed).to_contain_text(f"failed in batch {number}: {odd}, restart planned in 10 min")
    expect(rows.first).to_have_class("failed")
    expect(rows).to_have_count(101)
    story.end("run", 0, waiting)
    page.reload()
    expect(failed).to_have_count(1)
    expect(failed).to_contain_text("restart planned in 10 min")


def test_batches_are_bars_from_their_start_to_their_end(tmp_path: Path, serve: Serve, open_page: OpenPage) -> None:
    """A batch covers the time from its start to its end, and the time without a batch is empty."""
    story = Story(tmp_path)
    story.start("run", 30, is_alive=True)
    parts = {"addBatch": 400_000, "queryPlanning": 100_000, "walCommit": 60_000, "commitOffsets": 0}
    story.batch("run", 25, 0, duration_ms=600_000, parts_ms=parts, rows_in=1_000, rows_out=400)
    story.batch("run", 10, 1, duration_ms=120_000, parts_ms={"addBatch": 120_000}, rows_in=500, rows_out=500)
    url = serve(story)
    page = opened(open_page, ranged(story, url, 30))

    def ink(title: str, token: str, start: float, end: float) -> int:
        return int(page.evaluate(PIXELS, [title, 1 - start / 30, 1 - end / 30, token]))

    assert ink("Batch duration", "--part-1", 24.9, 15.1) > 1_000
    assert ink("Batch duration", "--part-2", 24.9, 15.1) > 500
    assert ink("Batch duration", "--part-1", 14.8, 10.2) == ink("Batch duration", "--part-1", 29.8, 25.2) == 0
    assert ink("Batch duration", "--part-1", 9.9, 8.1) > 100
    assert ink("Rows", "--chart-2", 24.9, 15.1) > 100
    assert ink("Rows", "--chart-2", 14.8, 10.2) == ink("Rows", "--chart-2", 7.8, 0.2) == 0


def open_batch(story: Story, seconds: float) -> None:
    """Writes the checkpoint of a batch that runs."""
    offsets = story.folder / f".sqlstream/local/queries/{story.model}/v1/checkpoint/offsets/99"
    offsets.parent.mkdir(parents=True)
    offsets.write_text('v1\n{"batchWatermarkMs":0}\n{"logOffset":0}')
    os.utime(offsets, (time.time() - seconds,) * 2)


def test_the_batch_that_runs_is_an_open_bar(tmp_path: Path, serve: Serve, open_page: OpenPage) -> None:
    """The batch that runs now is a bar from its start to now. It gets longer, and does not hide the others."""
    story = Story(tmp_path)
    story.start("run", 14, is_alive=True)
    story.batches("run", 14, 6, duration_ms=9_000)
    open_batch(story, 300)
    url = serve(story)
    page = opened(open_page, f"{url}?range=15m")
    expect(page.get_by_role("region", name="Running batch")).to_contain_text("Batch 99 running for ")
    for title in ("Batch duration", "Rows"):
        find = f"() => ({PIXELS})(['{title}', 0.6, 1, '--accent']) > 40"
        page.wait_for_function(find)
        assert page.evaluate(PIXELS, [title, 0.3, 0.6, "--accent"]) == 0
    assert page.evaluate(PIXELS, ["Batch duration", 0.1, 0.55, "--part-1"]) > 20
    expect(chart(page, "Rates").locator(".verdict b")).to_have_text("It is not known yet whether it keeps up")


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (390, "dark"), (1280, "light"), (1440, "dark")])
def test_texts_are_not_cut(
    tmp_path: Path, serve: Serve, open_page: OpenPage, violations: Callable[[Page], list[str]], width: int, theme: str
) -> None:
    """Large numbers, long times and units fit their axes, and nothing is wider than the window."""
    story = Story(tmp_path)
    story.start("run", 60 * 30, is_alive=True)
    state = {"operators": ["x"], "rows": 1_234_567_890_123, "updated_rows": 0, "removed_rows": 0, "late_rows": 0}
    for number in range(30):
        large: dict[str, Any] = {
            "rows_in": 9_876_543_210 + number,
            "rows_out": 9_999,
            "state": {**state, "memory_bytes": 10**15},
        }
        story.batch("run", 60 * (30 - number), number, duration_ms=3_599_000, **large)
        story.lag("run", 60 * (29 - number) - 0.5, number, files=1_234_567, bytes=987_654_321_000 + number)
    url = serve(story)
    page = opened(open_page, ranged(story, url, 60 * 31), width=width, theme=theme)
    expect(chart(page, "Lag of files").locator("canvas")).to_be_visible()
    assert [name for name, is_cut in page.evaluate(EDGES) if is_cut] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []


def test_one_unit_has_one_axis(tmp_path: Path, serve: Serve, open_page: OpenPage) -> None:
    """Records, bytes and versions have a chart each, and only those that the query has are shown."""
    story = Story(tmp_path)
    story.start("run", 20, is_alive=True)
    kafka = {"name": "shop.events", "description": "KafkaV2[Subscribe[events]]", "lag": {"records": 70}}
    story.batches("run", 20, 0.4, sources=[kafka])
    url = serve(story)
    page = opened(open_page, f"{url}?range=1h")
    expect(chart(page, "Lag")).to_contain_text("Records70")
    expect(chart(page, "Lag of files")).to_be_hidden()
    expect(chart(page, "Lag of tables")).to_be_hidden()
    for ago in (19.8, 0.5):
        story.lag("run", ago, 39, versions=3, files=2, bytes=2_500)
    page.reload()
    expect(chart(page, "Lag of files")).to_contain_text("Size2.50 kB")
    expect(chart(page, "Lag of files")).to_contain_text("Files (right)2")
    expect(chart(page, "Lag of tables")).to_contain_text("Versions3")
    expect(chart(page, "Lag")).to_contain_text("Records70")


def test_a_query_without_a_known_lag_says_so(tmp_path: Path, serve: Serve, open_page: OpenPage) -> None:
    """One chart of the lag says that it is not known."""
    story = Story(tmp_path)
    keeps_up(story)
    url = serve(story)
    page = opened(open_page, f"{url}?range=1h")
    expect(chart(page, "Lag")).to_contain_text("The lag is not known")
    expect(page.locator(".chart:not([hidden]) h3", has_text="Lag")).to_have_count(1)


def test_times_are_those_of_the_browser(tmp_path: Path, serve: Serve, open_page: OpenPage) -> None:
    """In New York the range, the notes and the axes have local times, with dates if there is more than one day."""
    story = eventful(tmp_path)
    zone = ZoneInfo("America/New_York")
    local = datetime.fromtimestamp(story.clock - 60 * 46, zone)
    url = serve(story)
    page = open_page("about:blank")
    page.context.new_cdp_session(page).send("Emulation.setTimezoneOverride", {"timezoneId": str(zone)})
    page.goto(ranged(story, url, 60))
    page.wait_for_function(SETTLED)
    assert page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone") == str(zone)
    begin = datetime.fromtimestamp(story.clock - 3_600, zone)
    expect(page.locator(".shown")).to_contain_text(f"{begin:%Y-%m-%d %H:%M:%S} –")
    expect(point_at(page, "Rates", 1 - 39 / 60)).to_contain_text(f"{local:%H:%M:%S}")
    hour = 1_700_000_000 // 3_600 * 3_600
    found = page.evaluate(
        """async ([hour]) => {
          const { timeLabels } = await import('/assets/ui/query/axes.js');
          const labels = (min, max, step) => {
            const ticks = Array.from({ length: 4 }, (_, index) => hour + index * step);
            return timeLabels({ scales: { x: { min, max } } }, ticks, 0, 70, step);
          };
          return [labels(hour, hour + 7200, 1800), labels(hour, hour + 100, 20), labels(hour, hour + 172800, 43200), labels(hour, hour + 864000, 172800)];
        }""",
        [hour],
    )
    times = [
        [datetime.fromtimestamp(hour + step * each, zone) for each in range(4)] for step in (1_800, 20, 43_200, 172_800)
    ]
    assert found[0] == [f"{each:%H:%M}" for each in times[0]]
    assert found[1] == [f"{each:%H:%M:%S}" for each in times[1]]
    assert found[3] == [f"{each:%m-%d}" for each in times[3]]
    first, second, third, _ = times[2]
    assert found[2][0] == f"{first:%H:%M\n%m-%d}"
    assert found[2][1] == (f"{second:%H:%M}" if second.date() == first.date() else f"{second:%H:%M\n%m-%d}")
    assert {line.split("\n")[-1] for line in found[2]} >= {f"{first:%m-%d}", f"{third:%m-%d}"}


def test_many_bars_are_drawn_fast(tmp_path: Path, serve: Serve, open_page: OpenPage) -> None:
    """A chart draws 1,600 batches within a fraction of a second, each second while a batch runs."""
    story = Story(tmp_path)
    story.start("run", 59, is_alive=True)
    story.batches("run", 58, 4.7, seconds=2, duration_ms=1_500)
    url = serve(story)
    page = opened(open_page, f"{url}?range=1h", width=1440)
    expect(page.locator(".shown")).to_contain_text("each point is a batch")
    spent = page.evaluate(
        """async () => {
          const { Chart } = await import('/assets/ui/query/chart.js');
          const { CHARTS } = await import('/assets/ui/query/series.js');
          const chart = new Chart(CHARTS.find((each) => each.id === 'duration'), {});
          document.querySelector('.charts').append(chart.element);
          const times = Array.from({ length: 1600 }, (_, index) => 1_700_000_000 + index * 2);
          const series = Object.fromEntries(chart.spec.series.map((each) => [each.name, times.map(() => 300)]));
          series.duration_ms = times.map(() => 1_500);
          delete series.duration_max_ms;
          const shown = { times, series, from: times[0], to: times.at(-1), events: [], stops: [], isRaw: true, open: null };
          chart.draw(shown);
          const began = performance.now();
          for (let count = 0; count < 10; count += 1) chart.draw(shown);
          await new Promise(requestAnimationFrame);
          chart.close();
          return (performance.now() - began) / 10;
        }"""
    )
    assert spent < 150, json.dumps(spent)
