// The graph of the overview: what flows now. Many nodes are shown by folder until somebody wants them all.

import { h, icon, readSetting, show, writeSetting } from "../dom.js";
import { createGraph } from "../graph.js";
import { count, rate } from "./format.js";
import { graphStatus, rankOf, stateOf, wordOf } from "./status.js";

const SETTING = "graph";
const MANY = 12;
const SMALLEST_TEXT = 0.72;
const RESERVED = "0,000.00 rows/s";

export class Flow {
  /** `options`: `onOpen(model)`, `onFolder(folder)`, `onSelect(id)`. */
  constructor(options) {
    this.options = options;
    this.box = h("div.flow-graph");
    this.toggle = h("button.button.quiet", { type: "button", hidden: true, onclick: () => this.#toggled() });
    this.opener = h("button.button.quiet", { type: "button", "aria-expanded": "false", onclick: () => this.#opened() }, "Show the graph");
    this.legend = h("span.legend.flow-legend.wide-only", null,
      ["source", "view", "query", "sink"].map((kind) => h(`span.kind-${kind}`, null, h("i.dot"), kind)));
    this.element = h("section.card.flow", { "aria-labelledby": "flow-title" },
      h("header", null, icon("graph"), h("h2", { id: "flow-title" }, "What flows now"), this.legend, h("span.spread"), this.toggle, this.opener), this.box);
    this.#mark(readSetting(SETTING) === "open");
    this.isGrouped = null;
  }

  /** Shows an overview; `isNew` makes a new layout. */
  update(overview, isNew) {
    this.overview = overview;
    if (this.box.hidden) return;
    if (isNew || !this.graph) this.#build();
    else this.#refresh();
  }

  close() {
    this.graph = null;
    this.box.replaceChildren();
  }

  #build() {
    const { nodes, edges } = this.overview;
    const hasMany = tallest(nodes) > MANY;
    this.toggle.hidden = !hasMany;
    this.isGrouped = hasMany && this.isGrouped !== false;
    show(this.toggle, icon(this.isGrouped ? "plus" : "folder"), this.isGrouped ? `Show all ${nodes.length} nodes` : "Group by folder");
    const inSome = this.isGrouped ? new Map(nodes.map((node) => [node.id, groupOf(node)])) : new Map(nodes.map((node) => [node.id, node.id]));
    this.groups = new Map();
    for (const node of nodes) {
      const id = inSome.get(node.id);
      if (!this.groups.has(id)) this.groups.set(id, []);
      this.groups.get(id).push(node);
    }
    this.links = new Map();
    edges.forEach(([from, to], index) => {
      const key = `${inSome.get(from)} ${inSome.get(to)}`;
      if (!this.links.has(key)) this.links.set(key, []);
      this.links.get(key).push(index);
    });
    this.shown = new Map();
    const drawn = [...this.groups].map(([id, members]) => this.#node(id, members, overviewOf(this.overview)));
    for (const node of drawn) this.shown.set(node.id, key(node));
    const pairs = [...this.links.keys()].map((pair) => pair.split(" "));
    const options = { label: "Graph of sources, views, queries and sinks", onOpen: (id) => this.#open(id) };
    this.#setHeight(drawn, pairs);
    this.graph = createGraph(this.box, drawn.map((node) => ({ ...node, sub: node.sub.length < RESERVED.length ? RESERVED : node.sub })), pairs, options);
    for (const node of drawn) this.graph.update(node.id, { sub: node.sub });
    const marker = this.graph.svg.querySelector("marker");
    for (const [name, value] of [["markerUnits", "userSpaceOnUse"], ["markerWidth", 9], ["markerHeight", 9]]) marker.setAttribute(name, value);
    this.#drawLines();
    this.#fit();
  }

  #setHeight(nodes) {
    const isNarrow = innerWidth < 861;
    this.box.style.height = `${Math.min(Math.max(tallest(nodes) * 54 + 48, 150), isNarrow ? 280 : 560)}px`;
  }

  /** Shows the whole graph, or, if its texts would be too small, its left and top. */
  #fit() {
    this.graph.fit(true);
    if (this.graph.view.scale < SMALLEST_TEXT) this.graph.place(SMALLEST_TEXT);
  }

  #refresh() {
    const now = overviewOf(this.overview);
    for (const [id, members] of this.groups) {
      const node = this.#node(id, members, now);
      if (this.shown.get(id) === key(node)) continue;
      this.shown.set(id, key(node));
      this.graph.update(id, { sub: node.sub, status: node.status, title: node.title });
    }
    this.#drawLines();
  }

  #node(id, members, now) {
    const flowing = members.reduce((sum, node) => sum + (now.rates[node.id] || 0), 0);
    const states = members.map((node) => stateOfNode(node, now.queries));
    const worst = states.reduce((one, other) => (rankOf(other) < rankOf(one) ? other : one));
    const [first] = members;
    if (members.length === 1) {
      const sub = flowing ? `${rate(flowing)} rows/s` : states[0] === "none" ? "not run" : wordOf(states[0]).toLowerCase();
      return { id, kind: first.kind, name: first.name, sub, status: graphStatus(states[0]), title: states[0] === "none" ? null : wordOf(states[0]) };
    }
    const bad = states.filter((state) => rankOf(state) < 5).length;
    const noun = first.kind === "query" ? ["query", "queries"] : [first.kind, `${first.kind}s`];
    const name = `${first.folder || "models"} · ${count(members.length, ...noun)}`;
    const sub = `${rate(flowing)} rows/s${bad ? ` · ${count(bad, "problem")}` : ""}`;
    return { id, kind: first.kind, name, sub, status: graphStatus(worst), title: bad ? `${count(bad, "problem")}: ${wordOf(worst)}` : wordOf(worst) };
  }

  /** Draws each line by its rate: thicker for more rows, gray without any. */
  #drawLines() {
    const rates = this.overview.flow.edges;
    for (const line of this.graph.lines) {
      const total = (this.links.get(`${line.from} ${line.to}`) || []).reduce((sum, index) => sum + (rates[index] || 0), 0);
      const width = total > 0 ? Math.min(1.4 + Math.log10(1 + total) * 0.8, 5) : 1.2;
      const shown = `${width.toFixed(1)}px`;
      if (line.shown === shown) continue;
      line.shown = shown;
      line.element.style.strokeWidth = shown;
      line.element.classList.toggle("flows", total > 0);
    }
  }

  /** Shows or hides the graph, which takes the space and the work of a layout. */
  #opened() {
    const isOpen = this.box.hidden;
    writeSetting(SETTING, isOpen ? "open" : "closed");
    this.#mark(isOpen);
    if (!isOpen) this.close();
    else if (this.overview) this.#build();
  }

  #mark(isOpen) {
    this.box.hidden = this.legend.hidden = !isOpen;
    this.toggle.hidden ||= !isOpen;
    this.opener.setAttribute("aria-expanded", String(isOpen));
    this.opener.textContent = isOpen ? "Hide the graph" : "Show the graph";
  }

  #toggled() {
    this.isGrouped = !this.isGrouped;
    this.#build();
  }

  #open(id) {
    const members = this.groups.get(id);
    if (members.length > 1) this.options.onFolder(members[0].folder);
    else if (members[0].kind === "query") this.options.onOpen(members[0].model);
    else this.options.onSelect(members[0]);
  }
}

/** Returns the number of nodes of the most common kind, which is about the number of rows in the graph. */
function tallest(nodes) {
  const counts = new Map();
  for (const { kind } of nodes) counts.set(kind, (counts.get(kind) || 0) + 1);
  return Math.max(...counts.values(), 1);
}

function overviewOf(overview) {
  return { rates: overview.flow.nodes, queries: overview.queries };
}

function stateOfNode(node, queries) {
  const query = node.kind === "query" && queries[node.model];
  return query ? stateOf(query) : node.status || "none";
}

function groupOf(node) {
  return node.kind === "query" || node.kind === "view" ? `${node.kind}:${node.folder}` : node.id;
}

function key(node) {
  return `${node.sub}|${node.status}|${node.title}`;
}
