"""The graph of the overview in a real browser, on projects of 20, 150 and 600 nodes with the shapes of real ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from tests.support.browsing import OpenPage
from tests.support.graph_project import GraphProject, served_graph

LONG = "payments_daily_totals_of_all_customers_in_all_regions_079"

OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll('.graph .node:not(.frame-title) .box')].map(box => [box.closest('.node').dataset.id, box.getBoundingClientRect()]);
  return boxes.flatMap(([one, a], index) => boxes.slice(index + 1).filter(([, b]) =>
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom).map(([other]) => `${one} and ${other}`));
}"""
"""Returns the nodes that cover each other."""

CROSSED = """() => {
  const boxes = [...document.querySelectorAll('.graph .node .box, .graph .area')].map(box => box.getBoundingClientRect());
  const matrix = document.querySelector('.graph .edge').getScreenCTM();
  const within = (point, box, by) => point.x > box.left - by && point.x < box.right + by && point.y > box.top - by && point.y < box.bottom + by;
  return [...document.querySelectorAll('.graph .edge:not(.parts-of-lines *)')].filter(edge => {
    const length = edge.getTotalLength();
    const points = Array.from({length: 101}, (_, step) => edge.getPointAtLength(length * step / 100).matrixTransform(matrix));
    const others = boxes.filter(box => !within(points[0], box, 2) && !within(points[100], box, 2));
    return points.some(point => others.some(box => within(point, box, -3)));
  }).length;
}"""
"""Returns the number of lines that pass behind a node or a frame that is not at one of their ends."""

SMALLEST_TEXT = """() => Math.min(...[...document.querySelectorAll('.graph text')].filter(text => text.textContent && text.checkVisibility()).map(text =>
  parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a))"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page of a project with 150 nodes."""
    with served_graph(tmp_path_factory.mktemp("graph"), 150) as found:
        yield found


def show_graph(page: Page) -> None:
    """Opens the graph."""
    page.get_by_role("button", name="Show the graph").click()
    expect(page.locator(".graph .node").first).to_be_visible()


def node(page: Page, text: str) -> Locator:
    """Returns a locator of a node, a closed group or the title of an open one."""
    return page.locator(".graph .node", has_text=text)


def placed(page: Page, text: str) -> FloatRect:
    """Returns the box of a node on the screen."""
    found = node(page, text).first.bounding_box()
    assert found
    return found


def check_readable(page: Page) -> None:
    """Checks that the texts are large enough, that nodes do not cover each other, and that the page is not too wide."""
    assert page.evaluate(SMALLEST_TEXT) >= 11
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("size", [20, 150, 600])
def test_graphs_are_readable(tmp_path: Path, open_page: OpenPage, size: int) -> None:
    """At first, a graph has few nodes, no text below 11 pixels, and no line behind a node; all nodes can be shown."""
    with served_graph(tmp_path, size) as served:
        page = open_page(served)
        show_graph(page)
        assert page.locator(".graph .node").count() < 45
        check_readable(page)
        assert page.evaluate(CROSSED) == 0

        button = page.get_by_role("button", name="Show all")
        number = int(re.sub(r"\D", "", button.inner_text()))
        assert number > size - 5
        button.click()
        expect(page.locator(".graph .node:not(.frame-title)")).to_have_count(number)
        check_readable(page)
        page.get_by_role("button", name="Group by folder").click()
        assert page.locator(".graph .node").count() < 45
        page.goto("about:blank")


def test_groups_open_and_close_one_by_one(url: str, open_page: OpenPage) -> None:
    """A closed group has the number and the worst state of its members; it opens as a frame at its place, and closes."""
    page = open_page(url)
    show_graph(page)
    group = node(page, "payments · 42 queries")
    expect(group).to_contain_text("2 failed · 1 restarting · 1 no output")
    expect(group.locator(".status")).to_have_class(re.compile("bad"))
    expect(group).to_have_attribute("aria-expanded", "false")
    before = placed(page, "payments · 42 queries")

    group.click()

    title = page.locator(".frame-title", has_text="payments · 42 queries")
    expect(title).to_have_attribute("aria-expanded", "true")
    expect(title).to_be_focused()
    box = page.locator(".flow-graph").bounding_box()
    assert box
    now = placed(page, "payments · 42 queries")
    assert box["x"] + 10 < now["x"] < before["x"]  # it is wide, and its left is visible
    assert box["y"] + 10 < now["y"] < before["y"] + 2
    expect(page.locator(".graph .node.kind-query[role=link]")).to_have_count(42)
    expect(node(page, "security · 42 queries")).to_have_attribute("aria-expanded", "false")
    outside = """() => {
      const area = document.querySelector('.graph .area').getBoundingClientRect();
      return [...document.querySelectorAll('.graph .node.kind-query[role=link] .box')].map(box => box.getBoundingClientRect())
        .filter(box => box.left < area.left || box.right > area.right || box.top < area.top || box.bottom > area.bottom).length;
    }"""
    assert page.evaluate(outside) == 0
    check_readable(page)
    assert page.evaluate(CROSSED) == 0

    page.goto(f"{url}#/query/{LONG}")
    expect(page.locator("h1")).to_have_text(LONG)
    page.goto(f"{url}#/")
    expect(title).to_be_visible()
    title.press("Enter")
    expect(page.locator(".frame-title")).to_have_count(0)
    expect(group).to_be_focused()
    group.press("Enter")
    page.get_by_role("button", name="Close the group").click()
    expect(page.locator(".graph .node.kind-query[role=link]")).to_have_count(0)


def test_one_node_and_what_is_near(url: str, open_page: OpenPage) -> None:
    """F shows a node with what is within some steps of it. The address has it; Escape, Back and a button end it."""
    page = open_page(url)
    show_graph(page)
    page.get_by_role("button", name="Show all").click()
    node(page, "stg_clicks_events").focus()
    page.keyboard.press("f")

    expect(node(page, "stg_clicks_events")).to_be_focused()
    around = page.get_by_role("group", name="What the graph shows")
    expect(around).to_contain_text("Only stg_clicks_events and the nodes near it")
    near = page.locator(".graph .node:not(.frame-title)").count()
    expect(node(page, "clicks.events")).to_have_count(1)
    expect(node(page, "payments.events")).to_have_count(0)
    expect(page.locator(".graph .node.kind-sink")).to_have_count(0)
    check_readable(page)
    page.get_by_role("button", name="2 steps").click()
    expect(page.locator(".graph .node.kind-sink")).not_to_have_count(0)
    assert page.locator(".graph .node:not(.frame-title)").count() > near
    expect(page.get_by_role("button", name="2 steps")).to_be_focused()
    assert "focus=model.observed.stg_clicks_events&steps=2" in page.url

    page.reload()
    expect(around).to_contain_text("stg_clicks_events")
    expect(page.get_by_role("button", name="2 steps")).to_have_attribute("aria-pressed", "true")
    node(page, "stg_clicks_events").focus()
    page.keyboard.press("Escape")
    expect(around).to_be_hidden()
    expect(node(page, "payments · 42 queries")).to_be_visible()
    assert "focus=" not in page.url
    page.go_back()
    expect(around).to_be_visible()
    page.get_by_role("button", name="Show everything").click()
    expect(around).to_be_hidden()


def test_a_group_and_what_is_near(url: str, open_page: OpenPage) -> None:
    """A group can be shown with its neighbors, and an address with an unknown node shows the whole graph."""
    page = open_page(url)
    show_graph(page)
    node(page, "clicks · 21 queries").focus()
    page.keyboard.press("f")
    expect(page.get_by_role("group", name="What the graph shows")).to_contain_text("clicks · 21 queries")
    expect(node(page, "payments · 42 queries")).to_have_count(0)
    expect(node(page, "clicks · 21 queries")).to_be_visible()

    page.goto(f"{url}#/?focus=model.observed.%22gone%3Cb%3E&steps=-7")
    expect(node(page, "payments · 42 queries")).to_be_visible()
    expect(page.get_by_role("group", name="What the graph shows")).to_be_hidden()


def test_long_names_are_complete_on_focus(url: str, open_page: OpenPage) -> None:
    """A name that is too long lacks its middle; it is complete on focus, under the pointer and in the bar."""
    page = open_page(url)
    show_graph(page)
    page.get_by_role("button", name="Show all").click()
    found = page.locator(f".graph .node[data-id='model.observed.{LONG}']")
    assert re.fullmatch(r"payments_.+….+_079", found.locator(".name").text_content() or "")
    expect(found.locator("title")).to_have_text(re.compile(f"^{LONG}, "))

    found.focus()
    expect(page.locator(".graph .full .name")).to_have_text(LONG)
    bar = page.get_by_role("group", name="Chosen node")
    expect(bar).to_contain_text(LONG)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(LONG)


def test_a_click_opens_the_page_of_a_node(url: str, open_page: OpenPage) -> None:
    """A click on a source or a query opens its page, without a filter in between; a click on a group opens the group."""
    page = open_page(url, width=1440)
    show_graph(page)
    node(page, "clicks.events").scroll_into_view_if_needed()
    top = placed(page, "clicks.events")["y"]
    node(page, "clicks.events").hover()
    assert placed(page, "clicks.events")["y"] == pytest.approx(top, abs=2)
    node(page, "clicks.events").click()
    expect(page.locator("h1")).to_have_text("clicks.events")
    page.go_back()
    node(page, "payments · 42 queries").click()
    first = page.locator(".graph .node.kind-query[role=link]").first
    name = (first.locator(".name").text_content() or "").split("…")[0]
    first.focus()
    bar = page.get_by_role("group", name="Chosen node")
    expect(bar.get_by_role("link")).to_contain_text(name)
    expect(bar).to_contain_text("rows/s")
    first.click()
    expect(page.locator("h1")).to_contain_text(name)


def test_lines_have_rates_that_follow_the_run(tmp_path: Path, open_page: OpenPage) -> None:
    """The lines of flowing rows have their rates, apart from each other and from the nodes; a batch changes them."""
    project = GraphProject(20)
    project.write(tmp_path)
    project.run(tmp_path)
    with served_graph(tmp_path, 20) as served:
        page = open_page(served)
        show_graph(page)
        rates = page.locator(".graph .rate.always")
        expect(rates.first).to_be_attached()
        shown = [text for text in rates.all_text_contents() if text]
        assert shown
        assert all(re.fullmatch(r"[\d.]+[kM]?/s", text) for text in shown)
        covered = """() => {
          const boxes = [...document.querySelectorAll('.graph .node .box, .graph .rate.always')].filter(each => each.tagName === 'rect' || each.textContent);
          const places = boxes.map(each => each.getBoundingClientRect());
          return boxes.filter((each, index) => each.tagName === 'text' && places.some((b, other) => { const a = places[index];
            return other !== index && a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom; })).length;
        }"""
        assert page.evaluate(covered) == 0
        place = placed(page, "orders.events")
        page.evaluate("document.querySelector('.graph .node').isTheSame = true")
        expect(page.locator(".graph .edge.flows").first).to_be_attached()
        project.run(tmp_path, rows=9_000)
        expect(node(page, "orders.events")).to_contain_text(re.compile("k rows/s"))
        assert placed(page, "orders.events") == place
        assert page.evaluate("document.querySelector('.graph .node').isTheSame")
        page.goto("about:blank")


def test_the_wheel_scrolls_the_page_and_zooms_with_ctrl(url: str, open_page: OpenPage) -> None:
    """The wheel over the graph scrolls the page, with Ctrl it zooms, and a drag moves the graph within its box."""
    page = open_page(url, height=500)
    show_graph(page)
    page.evaluate("scrollTo(0, 0)")
    page.locator(".flow-graph").scroll_into_view_if_needed()
    box = page.locator(".flow-graph").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    scale = "() => document.querySelector('.graph .edge').getScreenCTM().a"
    before = page.evaluate("scrollY")
    page.mouse.wheel(0, -120)
    page.wait_for_function("before => scrollY < before", arg=before)
    assert page.evaluate(scale) == pytest.approx(0.96)
    page.locator(".flow-graph").scroll_into_view_if_needed()
    box = page.locator(".flow-graph").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -240)
    page.keyboard.up("Control")
    page.wait_for_function("() => document.querySelector('.graph .edge').getScreenCTM().a > 1")

    left = placed(page, "clicks.events")["x"]
    box = page.locator(".flow-graph").bounding_box()
    assert box
    page.mouse.move(box["x"] + 12, box["y"] + 12)
    page.mouse.down()
    page.mouse.move(box["x"] + 112, box["y"] + 12, steps=4)
    page.mouse.up()
    assert placed(page, "clicks.events")["x"] == pytest.approx(left + 100, abs=5)


def test_arrow_keys_move_along_lines_and_into_groups(url: str, open_page: OpenPage) -> None:
    """Right and left go along the lines, also at the ends of the graph, and down goes from the title of a frame into it."""
    page = open_page(url)
    show_graph(page)
    node(page, "clicks.events").focus()
    page.keyboard.press("ArrowLeft")
    expect(node(page, "clicks.events")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(node(page, "staging · 12 views")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".frame-title:focus")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(page.locator(".graph .node.kind-view[aria-expanded]:focus")).to_have_count(0)
    expect(page.locator(".graph .node.kind-view:focus")).to_have_count(1)
    page.keyboard.press("ArrowUp")
    expect(page.locator(".frame-title:focus")).to_have_count(1)


def test_a_layout_with_cycles_of_groups_and_odd_ids(url: str, open_page: OpenPage) -> None:
    """Frames whose members depend on each other, nodes without lines, and ids with spaces and quotes are laid out."""
    page = open_page(url)
    found = page.evaluate("""async () => {
      const { layout } = await import('/assets/layout.js');
      const node = (id, frame) => ({ id, frame });
      const nodes = [node('a 1', 'f "x"'), node('a\\n2', 'f "x"'), node('b 1', 'g'), node('alone'), node('日本')];
      const edges = [['a 1', 'b 1'], ['b 1', 'a\\n2'], ['b 1', 'a\\n2'], ['日本', '日本'], ['日本', 'gone'], ['日本', 'a 1']];
      const placed = layout(nodes, edges, () => ({ width: 100, height: 40 }), [{ id: 'f "x"', width: 150 }, { id: 'g', width: 20 }], 60);
      const numbers = [...placed.nodes.values(), ...placed.frames.values()].flatMap(({ x, y, width, height }) => [x, y, width, height]);
      return { lines: placed.lines.length, ids: [...placed.nodes.keys()].length, isFinite: numbers.every(Number.isFinite), empty: layout([], [], () => ({})).lines.length };
    }""")
    assert found == {"lines": 3, "ids": 5, "isFinite": True, "empty": 0}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_graph_is_accessible(
    url: str, open_page: OpenPage, violations: Callable[[Page], list[str]], theme: str
) -> None:
    """Open groups, the chosen node and the neighbors of a node violate no rule of WCAG A and AA."""
    page = open_page(url, theme=theme)
    show_graph(page)
    node(page, "payments · 42 queries").click()
    assert violations(page) == []
    page.keyboard.press("f")
    expect(page.get_by_role("group", name="What the graph shows")).to_be_visible()
    assert violations(page) == []
