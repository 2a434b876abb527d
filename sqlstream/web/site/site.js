// The site: its frame, and the page that the address names.

import { append, brand, h, icon, show, themeButton } from "../assets/dom.js";
import { KINDS } from "../assets/kinds.js";
import { makeSearch, searchButton, searchDialog } from "../assets/search.js";
import { sidebar } from "./nav.js";
import { findingsPage, graphPage, kindPage, overviewPage } from "./overview.js";
import { nodePage } from "./pages.js";
import { selectNodes } from "./select.js";
import { linkTo, liveHome, nodes, project } from "./store.js";

const places = new Map();
let before = null;
let search = null;

/** Returns the function that searches the site. */
function searched() {
  search ||= makeSearch([...nodes].map(([id, node]) => ({
    id, kind: node.kind, name: node.name, words: node.words, tags: node.tags, path: node.path, sql: node.raw || "",
    columns: (node.columns || []).map((column) => column.name),
    column_words: (node.columns || []).map((column) => column.words).join(" "),
  })));
  return search;
}

function start() {
  const nav = sidebar();
  const finder = searchDialog({ label: "Search the documentation", load: searched, open: ({ id }) => { location.hash = linkTo(id); } });
  const page = h("main.page", { id: "page", tabindex: -1 });
  const menu = h("button.button.quiet.narrow-only", { type: "button", "aria-label": "Open the list of nodes", "aria-expanded": "false", "aria-controls": "side" }, icon("menu"));
  const toggle = (open) => {
    nav.element.classList.toggle("open", open);
    menu.setAttribute("aria-expanded", String(open));
  };
  menu.addEventListener("click", () => toggle(!nav.element.classList.contains("open")));
  const bar = h("header.bar", null, menu,
    brand("#/", project.name), h("span.spread"), searchButton(finder, "/"),
    h("a.button.quiet", { href: "#/graph", "aria-label": "Graph" }, icon("graph"), h("span.wide-only", null, "Graph")),
    project.live ? h("a.button.quiet", { href: liveHome(), "aria-label": "Live page" }, icon("query"), h("span.wide-only", null, "Live page")) : null, themeButton());
  const skip = h("a.skip", { href: "#page" }, "Skip to the page");
  skip.addEventListener("click", (event) => { event.preventDefault(); page.focus(); });
  append(document.body, [skip, bar, h("div.frame", null, nav.element, page), finder.element]);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") toggle(false);
    const writing = event.target.closest?.("input, textarea, select, dialog");
    if (event.key === "/" && !writing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      finder.open();
    }
  });
  addEventListener("hashchange", () => { toggle(false); go(page, nav); });
  addEventListener("scroll", () => places.set(before, scrollY), { passive: true });
  go(page, nav, true);
}

/** Shows the page of the address, at the place where the reader left it. */
function go(page, nav, isFirst = false) {
  const hash = location.hash || "#/";
  const { content, title, id, wide } = pageOf(hash);
  const stays = before !== null && sameNode(before, hash);
  before = hash;
  document.title = `${title} · ${project.name}`;
  page.classList.toggle("wide", Boolean(wide));
  show(page, content);
  nav.mark(id);
  const panel = stays && document.getElementById("column-lineage");
  if (panel) panel.scrollIntoView({ block: "nearest" });
  else scrollTo(0, places.get(hash) || 0);
  if (!isFirst) page.querySelector("h1")?.focus({ preventScroll: true });
}

function sameNode(one, other) {
  return one.startsWith("#/node/") && one.split("/")[2] === other.split("/")[2];
}

function pageOf(hash) {
  const [path, query = ""] = hash.slice(1).split("?");
  const [, name, ...rest] = path.split("/").map(decoded);
  if (name === "node" && nodes.has(rest[0])) return { content: nodePage(rest[0], rest[2]), title: nodes.get(rest[0]).name, id: rest[0] };
  if (name === "kind" && KINDS[rest[0]]) return { content: kindPage(rest[0]), title: KINDS[rest[0]] };
  if (name === "findings") return { content: findingsPage(), title: "Findings" };
  if (name === "graph") {
    const words = new URLSearchParams(query);
    return { content: graphPage(words.get("select") || "", words.get("exclude") || ""), title: "Graph", wide: true };
  }
  if (!name) return { content: overviewPage(), title: "Overview" };
  const missing = h("article", null, h("header.head", null, h("h1", { tabindex: -1 }, "Not found")),
    h("p", null, "This site has no such page: the node may have another name, or the site may show only a selection. ", h("a", { href: "#/" }, "Go to the first page")));
  return { content: missing, title: "Not found" };
}

function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

if (document.readyState === "loading") addEventListener("DOMContentLoaded", start);
else start();

/** For tests: the selection and the search, without a page. */
globalThis.sqlstreamSite = { select: (select, exclude) => [...selectNodes(select, exclude)].sort(), search: (text) => searched()(text).map(({ entry }) => entry.id) };
