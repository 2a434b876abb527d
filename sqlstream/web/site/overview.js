// The first page, the list of one kind, the findings, and the graph with its selection.

import { h, icon, kindIcon, markup, show } from "../assets/dom.js";
import { createGraph } from "../assets/graph.js";
import { card, finding, later, nodeLink } from "./pages.js";
import { selectNodes } from "./select.js";
import { KINDS, MEANINGS, kindWord } from "../assets/kinds.js";
import { IN_GRAPH, edges, graphNode, groupBy, linkTo, nodes, project, selectable } from "./store.js";

const SELECTORS = ["+name", "name+", "2+name+1", "@name", "tag:x", "source:x", "sink:x", "exposure:x", "path:models/x", "config.x:y", "resource_type:source"];

const SHOWN = 60;
const SHOWN_FLOWS = 12;

/** Returns the first page: what the project is, what flows through it, then its queries, views and sources. */
export function overviewPage() {
  const groups = groupBy([...nodes], ([, node]) => node.kind);
  const tiles = Object.keys(KINDS).filter((kind) => groups.has(kind)).map((kind) => h("a.tile", { href: `#/kind/${kind}` }, kindIcon(kind, true),
    h("span", null, h("strong", null, groups.get(kind).length), " ", kindWord(kind, groups.get(kind).length), h("span.muted", null, MEANINGS[kind]))));
  return h("article", null,
    h("header.head", null, h("h1", { tabindex: -1 }, project.name),
      h("p.muted", null, `target ${project.target} · generated ${project.generated_at.replace("T", " ").replace("Z", " UTC")} by sqlstream ${project.sqlstream_version}`)),
    h("div.cards", null,
      aboutCard(groups), h("div.tiles", null, tiles),
      project.findings.length ? card("Findings", h("p", null, h("a", { href: "#/findings" }, summary(project.findings)))) : null,
      flowsCard(groups.get("query") || []),
      listCard("query", ["Query", "Writes to", "Mode", "Trigger", "Description"], (id, node) => [
        h("td.fixed", null, nodeLink(id)), h("td.fixed", null, node.outputs.map((output) => h("div", null, nodeLink(output.sink, output.name)))),
        h("td", null, node.mode), h("td.fixed", null, node.trigger || "once per run"), h("td.text", null, node.words)]),
      listCard("view", ["View", "Read by", "Description"], described),
      listCard("source", ["Source", "Read by", "Description"], described)));
}

function described(id, node) {
  const count = node.read_by?.length || 0;
  return [h("td.fixed", null, nodeLink(id)), h("td.fixed", null, count ? `${count} ${count === 1 ? "model" : "models"}` : "no model"), h("td.text", null, node.words)];
}

/** The text of the project's author; without one, what the project does in numbers. */
function aboutCard(groups) {
  if (project.overview) return h("section.card", { "aria-label": "About this project" }, markup("div.body.markdown", project.overview));
  const counted = (kind) => {
    const count = groups.get(kind)?.length || 0;
    return count ? `${count} ${kindWord(kind, count).toLowerCase()}` : null;
  };
  const [inputs, views, queries, sinks] = [[counted("source"), counted("seed")].filter(Boolean).join(" and "), counted("view"), counted("query"), counted("sink")];
  const read = `${queries || "No query"} ${groups.get("query")?.length > 1 ? "read" : "reads"} ${inputs || "no sources"}${views ? ` through ${views}` : ""}`;
  return h("section.card", { "aria-label": "About this project" }, h("div.body", null,
    h("p", null, `${read}${sinks ? `, and ${groups.get("query")?.length > 1 ? "write" : "writes"} to ${sinks}` : ""}.`),
    h("p.muted", null, "Describe the project here with a docs block ", h("code", null, "__overview__"), ".")));
}

/** What each folder reads and writes. */
function flowsCard(queries) {
  const folders = [...groupBy(queries, ([, node]) => node.folders[0] || "")].sort(([a], [b]) => byFolder(a, b));
  if (folders.length < 2) return null;
  const links = (ids) => h("td", null, h("div.links", null, ids.map((id) => nodeLink(id))));
  return tableCard("What flows", ["Folder", "Reads", ["Queries", "number"], "Writes to"], folders.slice(0, SHOWN_FLOWS).map(([folder, members]) => {
    const inputs = new Set(members.flatMap(([id]) => [...inputsOf(id)]));
    const sinks = new Set(members.flatMap(([, node]) => node.outputs.map((output) => output.sink)).filter((id) => nodes.has(id)));
    const selector = folder ? `+path:models/${folder}` : `+path:models/*.*`;
    return h("tr", null, h("td.fixed", null, h("a", { href: `#/graph?select=${encodeURIComponent(selector)}` }, icon("folder"), " ", folder || "no folder")),
      links([...inputs]), h("td.number", null, members.length), links([...sinks]));
  }), folders.length > SHOWN_FLOWS ? h("p.body.muted", null, `and ${folders.length - SHOWN_FLOWS} more folders`) : null);
}

/** Returns the sources, seeds and stored outputs that a query reads, also through views. */
function inputsOf(id, found = new Set(), seen = new Set()) {
  for (const parent of nodes.get(id).depends_on || []) {
    if (seen.has(parent)) continue;
    seen.add(parent);
    if (nodes.get(parent).kind === "view") inputsOf(parent, found, seen);
    else found.add(parent);
  }
  return found;
}

/** The nodes of a kind, by folder and name. */
function listCard(kind, head, cells) {
  const items = sorted(kind);
  const hasFolders = items.some(([, node]) => folderOf(node));
  const rows = items.slice(0, SHOWN).flatMap(([id, node], at) => {
    const isNew = hasFolders && (at === 0 || folderOf(items[at - 1][1]) !== folderOf(node));
    const folder = isNew ? h("tr.folder", null, h("th", { colspan: head.length, scope: "rowgroup" }, icon("folder"), folderOf(node) || "no folder")) : null;
    return [folder, h("tr", null, cells(id, node))];
  });
  return items.length ? tableCard(KINDS[kind], head, rows, items.length > SHOWN ? h("p.body", null, h("a", { href: `#/kind/${kind}` }, `All ${items.length} ${kindWord(kind, 2).toLowerCase()}`)) : null) : null;
}

function sorted(kind) {
  return [...nodes].filter(([, node]) => node.kind === kind)
    .sort(([, one], [, other]) => byFolder(folderOf(one), folderOf(other)) || one.name.localeCompare(other.name));
}

/** Nodes outside of a folder come last. */
function byFolder(one, other) {
  return !one - !other || one.localeCompare(other);
}

function folderOf(node) {
  return (node.folders || []).join("/");
}

function tableCard(title, head, rows, more = null) {
  return h("section.card", { "aria-label": title }, h("header", null, h("h2", null, title)),
    h("div.scroll-x", { tabindex: 0, role: "region", "aria-label": `Table of ${title.toLowerCase()}` }, h("table.table", null,
      h("thead", null, h("tr", null, head.map((name) => (Array.isArray(name) ? h("th", { scope: "col", class: name[1] }, name[0]) : h("th", { scope: "col" }, name))))), h("tbody", null, rows))), more);
}

function summary(findings) {
  const groups = groupBy(findings, (each) => each.severity);
  return [...groups].map(([severity, items]) => `${items.length} ${severity}${items.length === 1 || severity === "info" ? "" : "s"}`).join(", ");
}

/** Returns the list of all nodes of a kind, by folder and name. */
export function kindPage(kind) {
  const items = sorted(kind);
  return h("article", null, h("header.head", null, h("div.title", null, kindIcon(kind, true), h("div", null, h("h1", { tabindex: -1 }, KINDS[kind]),
    h("p.muted.place", null, `${items.length} · ${MEANINGS[kind]}`)))),
  tableCard(KINDS[kind], ["Name", "Description", "File"], items.map(([id, node]) => h("tr", null,
    h("td.fixed", null, nodeLink(id)), h("td.text", null, node.words), h("td.mono", null, node.path)))));
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
