// The page of a source, seed, view or sink: what flows through it, the queries that use it, its columns and settings.

import { h, icon, kindIcon, show } from "../dom.js";
import { kindWord } from "../kinds.js";
import { get } from "./api.js";
import { showDescription } from "./description.js";
import { exact, known, lag, lagTitle, NONE, rate, seconds } from "./format.js";
import { batchText, freshness, freshnessTitle } from "./freshness.js";
import { backLink, docsLink, nodeLink, queryLink } from "./router.js";
import { card, columnsTable, scrollToMark, sqlTab, table } from "./query/sections.js";
import { problemPage } from "./states.js";
import { isAlive, stateOf, statusBadge } from "./status.js";

export class NodePage {
  constructor(container, store, { id }) {
    Object.assign(this, { container, store, id });
    this.title = h("h1", { tabindex: -1 }, id.split(".").slice(2).join("."));
    this.badge = h("span.badge-box");
    this.meta = h("p.query-meta");
    this.description = h("div.description", { hidden: true });
    this.docs = h("a.button.quiet.docs", { href: docsLink(store.target, id) }, icon("doc"), "Docs");
    this.mark = h("span");
    this.facts = h("dl.tiles.node-tiles");
    this.body = h("div.stack", null, h("p.loading", { role: "status" }, "Loading…"));
    this.requests = new AbortController();
    this.leave = store.listen((change) => this.#changed(change));
    show(container, h("header.query-head", null, backLink(), h("div.query-title", null, this.mark, this.title, this.badge, this.docs), this.meta, this.description), this.facts, this.body);
    document.title = `${this.title.textContent} · sqlstream`;
    this.#load();
  }

  close() {
    this.leave();
    this.requests.abort();
  }

  async #load() {
    let page;
    try {
      page = await get(`node/${encodeURIComponent(this.id)}`, { target: this.store.target }, this.requests.signal);
    } catch (error) {
      if (error.name !== "AbortError") show(this.container, backLink(), problemPage(error, null));
      return;
    }
    if (page.kind === "query") {
      location.replace(nodeLink(page));
      return;
    }
    this.page = page;
    this.title.textContent = page.name;
    document.title = `${page.name} · sqlstream`;
    show(this.mark, kindIcon(page.kind, true));
    const place = page.line === null ? page.path : `${page.path}:${page.line}`;
    show(this.meta, [kindWord(page.kind, 1), place, ...page.tags.map((tag) => `#${tag}`)].filter(Boolean).join(" · "));
    showDescription(this.description, page.description_html);
    this.rows = page.queries.map((model) => new QueryRow(model, page));
    this.#drawBody();
    this.#drawNow();
    scrollToMark(this.body);
  }

  #drawBody() {
    const { page } = this;
    const title = page.kind === "sink" ? "Queries that write it" : "Queries that read it";
    show(this.body,
      page.problem ? h("section.card.notice.warn", null, icon("warn"), h("div", null, h("p", null, page.problem))) : null,
      card(title, this.rows.length ? table(title, QueryRow.head(page), this.rows.map((row) => row.element))
        : h("p.note-text", null, page.kind === "sink" ? "No query writes to this sink." : `No query reads this ${page.kind}.`)),
      page.kind === "sink" ? null : card("Columns", columnsTable(page.columns, page.kind === "view")),
      page.raw_sql ? sqlTab(page) : null,
      neighborsCard("Reads", page.kind === "sink" ? [] : page.reads),
      neighborsCard("Read by", page.read_by.filter((node) => node.kind === "view")),
      page.guarantees.length ? card("Guarantees", table("Guarantees", ["Mode", "Rows", "What it means"], page.guarantees.map((each) => h("tr", null,
        h("td", null, each.mode), h("td", null, each.rows), h("td.text", null, each.means))))) : null,
      Object.keys(page.config).length ? card("Settings", settingsTable(page.config)) : null);
  }

  #changed(change) {
    if (this.page && !change.batches) this.#drawNow();
  }

  #drawNow() {
    const { overview, queries } = this.store;
    if (!overview) return;
    const node = overview.nodes.find((each) => each.id === this.id);
    const state = node?.status || "none";
    if (state !== this.state) show(this.badge, statusBadge(state));
    this.state = state;
    for (const row of this.rows) row.update(queries[row.model], overview);
    const used = this.page.queries.map((model) => queries[model]).filter(Boolean);
    const running = used.filter(isAlive);
    const [verb, word] = this.page.kind === "sink" ? ["write", "writing"] : ["read", "reading"];
    const tiles = [
      ["Rows /s", rate(node ? overview.flow.nodes[this.id] || 0 : null), `in the last batches of all queries that ${verb} it`],
      ["Queries", `${running.length} of ${this.page.queries.length}`, `${word} it now`],
      ["Oldest data", seconds(most(running.map(freshness))), running.length ? "freshness of the query that is furthest behind" : "no query runs"],
    ];
    if (this.page.kind === "seed") tiles.shift(); // a query reads it once
    if (this.page.kind === "source") tiles.push(["Largest lag", mostLag(this.rows), "of the query that has most left to read here"]);
    const drawn = JSON.stringify(tiles);
    if (drawn !== this.drawn) show(this.facts, tiles.map(([name, value, text]) => h("div.tile", null, h("dt", null, name), h("dd", null, value), h("dd.sub", null, text))));
    this.drawn = drawn;
  }
}

/** A row of the table of queries, whose cells follow the store. */
class QueryRow {
  static head({ kind }) {
    const rows = kind === "sink" ? [["Rows out /s", "number"], ["Rows out in this run", "number"]] : [["Rows /s", "number"]];
    return ["Query", "Status", ["Fresh", "number"], ...rows, ...(kind === "source" ? [["Lag", "number"]] : []), "Last batch", kind === "sink" ? "Output" : "Through"];
  }

  constructor(model, page) {
    this.model = model;
    this.kind = page.kind;
    this.name = page.name;
    this.id = page.id;
    this.status = h("td");
    const number = () => h("td.number");
    this.cells = { fresh: number(), rate: number(), ...(page.kind === "sink" ? { rows: number() } : {}), ...(page.kind === "source" ? { lag: number() } : {}), batch: h("td"), place: h("td.text.mono") };
    this.element = h("tr", null, h("td", null, h("a", { href: queryLink(model) }, model)), this.status, Object.values(this.cells));
  }

  update(query, overview) {
    if (!query) return;
    const state = stateOf(query);
    if (state !== this.state) show(this.status, statusBadge(state));
    this.state = state;
    const here = query.sources?.[this.name];
    this.lag = here?.lag || null;
    const flows = this.kind === "sink" ? query.output_rows_per_second : here ? here.rows_per_second : this.kind === "view" ? query.input_rows_per_second : null;
    const texts = {
      fresh: [seconds(freshness(query)), freshnessTitle(query)], rate: [isAlive(query) ? rate(flows) : NONE, ""],
      rows: [known(query.rows_out) ? exact(query.rows_out) : NONE, ""], lag: [lag(this.lag), lagTitle(this.lag)],
      batch: [query.status ? batchText(query) : "not run", ""],
      place: [this.kind === "sink" ? query.output || NONE : through(this.id, query, overview), ""],
    };
    for (const [name, cell] of Object.entries(this.cells)) {
      const [text, title] = texts[name];
      if (cell.textContent !== text) cell.textContent = text;
      if (cell.title !== (title || "")) cell.title = title || "";
    }
  }
}

/** Returns the names of the views between a node and a query that reads it. */
function through(id, query, { edges, nodes }) {
  const names = new Map(nodes.map((node) => [node.id, node]));
  const reaches = new Map(); // whether a node leads to the query
  const leads = (node) => {
    if (node === query.unique_id) return true;
    if (!reaches.has(node)) {
      reaches.set(node, false);
      if (names.get(node)?.kind === "view" || node === id) reaches.set(node, edges.filter(([from]) => from === node).some(([, to]) => leads(to)));
    }
    return reaches.get(node);
  };
  leads(id);
  const views = [...reaches].filter(([node, isOnTheWay]) => isOnTheWay && node !== id).map(([node]) => names.get(node).name);
  return views.length ? views.join(", ") : "directly";
}

function mostLag(rows) {
  const found = rows.filter((row) => row.lag).sort((one, other) => amount(other.lag) - amount(one.lag));
  return found.length ? lag(found[0].lag) : NONE;
}

function amount(left) {
  return left.records ?? left.files ?? left.versions ?? left.bytes ?? 0;
}

function most(values) {
  const found = values.filter(known);
  return found.length ? Math.max(...found) : null;
}

function neighborsCard(title, nodes) {
  if (!nodes.length) return null;
  return card(title, h("ul.neighbors", null, nodes.map((node) => h("li", null, kindIcon(node.kind), h("a", { href: nodeLink(node) }, node.name)))));
}

function settingsTable(config) {
  const text = (value) => (typeof value === "object" ? Object.entries(value).map(([name, each]) => h("div", null, Array.isArray(value) ? String(each) : `${name}: ${each}`)) : String(value));
  return h("table.table.settings", null, h("tbody", null, Object.entries(config).map(([name, value]) => h("tr", null, h("th", { scope: "row" }, name), h("td.text.mono", null, text(value))))));
}
