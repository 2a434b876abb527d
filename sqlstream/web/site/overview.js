// The first page, the list of one kind, the findings, and the graph with its selection.

import { h, icon, kindIcon, markup, show } from "../assets/dom.js";
import { createGraph } from "../assets/graph.js";
import { card, finding, later, nodeLink } from "./pages.js";
import { selectNodes } from "./select.js";
import { IN_GRAPH, KINDS, MEANINGS, edges, graphNode, groupBy, kindWord, linkTo, nodes, project, selectable } from "./store.js";

const SELECTORS = ["+name", "name+", "2+name+1", "@name", "tag:x", "source:x", "sink:x", "exposure:x", "path:models/x", "config.x:y", "resource_type:source"];

const SHOWN_QUERIES = 60;

/** Returns the first page. */
export function overviewPage() {
  const groups = groupBy([...nodes], ([, node]) => node.kind);
  const tiles = Object.keys(KINDS).filter((kind) => groups.has(kind)).map((kind) => h("a.tile", { href: `#/kind/${kind}` }, kindIcon(kind, true),
    h("span", null, h("strong", null, groups.get(kind).length), " ", kindWord(kind, groups.get(kind).length), h("span.muted", null, MEANINGS[kind]))));
  const all = groups.get("query") || [];
  const queries = all.slice(0, SHOWN_QUERIES);
  const more = all.length > queries.length ? h("p.body", null, h("a", { href: "#/kind/query" }, `All ${all.length} queries`)) : null;
  return h("article", null,
    h("header.head", null, h("h1", { tabindex: -1 }, project.name),
      h("p.muted", null, `target ${project.target} · generated ${project.generated_at.replace("T", " ").replace("Z", " UTC")} by sqlstream ${project.sqlstream_version}`)),
    h("div.tiles", null, tiles),
    h("div.cards", null,
      project.overview ? h("section.card", { "aria-label": "About this project" }, markup("div.body.prose", project.overview)) : null,
      project.findings.length ? card("Findings", h("p", null, h("a", { href: "#/findings" }, summary(project.findings)))) : null,
      queries.length ? h("section.card", { "aria-label": "Queries" }, h("header", null, h("h2", null, "Queries")), h("div.scroll-x", { tabindex: 0, role: "region", "aria-label": "Table of queries" }, h("table.table", null,
        h("thead", null, h("tr", null, ["Query", "Writes to", "Mode", "Trigger", "Description"].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", null, queries.map(([id, node]) => h("tr", null, h("td.fixed", null, nodeLink(id)),
          h("td.fixed", null, node.outputs.map((output) => h("div", null, nodeLink(output.sink, output.name)))), h("td", null, node.mode), h("td.fixed", null, node.trigger || "once per run"),
          h("td.text", null, node.words)))))), more) : null));
}

function summary(findings) {
  const groups = groupBy(findings, (each) => each.severity);
  return [...groups].map(([severity, items]) => `${items.length} ${severity}${items.length === 1 || severity === "info" ? "" : "s"}`).join(", ");
}

/** Returns the list of all nodes of a kind. */
export function kindPage(kind) {
  const items = [...nodes].filter(([, node]) => node.kind === kind).sort((a, b) => a[1].name.localeCompare(b[1].name));
  return h("article", null, h("header.head", null, h("div.title", null, kindIcon(kind, true), h("div", null, h("h1", { tabindex: -1 }, KINDS[kind]),
    h("p.muted.place", null, `${items.length} · ${MEANINGS[kind]}`)))),
  h("section.card", { "aria-label": KINDS[kind] }, h("div.scroll-x", { tabindex: 0, role: "region", "aria-label": `Table of ${KINDS[kind].toLowerCase()}` }, h("table.table", null,
    h("thead", null, h("tr", null, ["Name", "Description", "File"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", null, items.map(([id, node]) => h("tr", null, h("td.fixed", null, nodeLink(id)), h("td.text", null, node.words), h("td.mono", null, node.path)))))))); 
}

/** Returns all findings of the project. */
export function findingsPage() {
  return h("article", null, h("header.head", null, h("h1", { tabindex: -1 }, "Findings"), h("p.muted", null, summary(project.findings) || "none")),
    h("div.cards", null, card("All findings", project.findings.map(finding))));
}

/** Returns the graph of the nodes that `select` and `exclude` choose, with the sinks that they write to. */
export function graphPage(select, exclude) {
  const input = h("input.input.selector", { value: select, placeholder: "all nodes", "aria-label": "Select nodes", spellcheck: "false", autocomplete: "off", "aria-describedby": "selected" });
  const without = h("input.input.selector", { value: exclude, placeholder: "none", "aria-label": "Exclude nodes", spellcheck: "false", autocomplete: "off" });
  const said = h("p.muted.said", { id: "selected", "aria-live": "polite" });
  const place = h("div.big-graph");
  const form = h("form.selection", null,
    h("label", null, h("span", null, "--select"), input), h("label", null, h("span", null, "--exclude"), without),
    h("button.button", { type: "submit" }, icon("search"), "Select"),
    h("details.help", null, h("summary", null, "Syntax"), h("p", null, "As on the command line: ", SELECTORS.map((text) => [h("code", null, text), " "]), "A space means or, a comma means and, ", h("code", null, "*"), " is any text.")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const words = new URLSearchParams();
    if (input.value.trim()) words.set("select", input.value.trim());
    if (without.value.trim()) words.set("exclude", without.value.trim());
    const query = words.toString();
    location.hash = query ? `#/graph?${query}` : "#/graph";
  });
  later(place, () => drawGraph(place, said, select, exclude));
  return h("article.graph-page", null, h("h1.visually-hidden", { tabindex: -1 }, "Graph"), form, said,
    h("section.card.fill", { "aria-label": "Graph" }, place), legend());
}

function drawGraph(place, said, select, exclude) {
  let chosen;
  try {
    chosen = selectNodes(select, exclude);
  } catch (error) {
    said.replaceChildren(h("span.badge.bad", null, icon("bad"), "invalid selector"), " ", error.message.replaceAll("`", ""));
    return;
  }
  const ids = [...chosen].filter((id) => nodes.has(id) && IN_GRAPH.has(nodes.get(id).kind));
  const shown = new Set(ids);
  for (const id of ids) for (const output of nodes.get(id).outputs || []) if (nodes.has(output.sink)) shown.add(output.sink);
  if (!select && !exclude) for (const [id, node] of nodes) if (node.kind === "sink") shown.add(id);
  said.textContent = ids.length ? `${ids.length} of ${Object.keys(selectable).length} nodes` : "No node matches.";
  if (!ids.length) { show(place); return; }
  const lines = edges.filter(([from, to]) => shown.has(from) && shown.has(to));
  createGraph(place, [...shown].map(graphNode), lines, { label: "Graph of the project", wheel: "zoom", onOpen: (id) => { location.hash = linkTo(id); } });
}

function legend() {
  return h("div.legend", null, [...IN_GRAPH].map((kind) => h("span", null, kindIcon(kind), kind)),
    h("span.wide-only", null, "drag to move · wheel to zoom · arrow keys walk along the lines · Enter opens"));
}
