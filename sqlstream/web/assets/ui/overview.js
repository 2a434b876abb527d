// The overview: figures, problems, the graph, and the table of queries.

import { h, icon, show } from "../dom.js";
import { Flow } from "./flow.js";
import { partsLegend } from "./parts.js";
import { nodeLink, queryLink, rememberOverview, route, setParameters } from "./router.js";
import { Figures, Problems } from "./summary.js";
import { QueryTable, sortSelect } from "./table.js";

export class Overview {
  /** `place` is where the overview was left, null if it opens for the first time. */
  constructor(container, store, place = null) {
    this.container = container;
    this.store = store;
    this.wanted = place;
    rememberOverview();
    const { q = "", sort = "" } = route().parameters;
    this.figures = new Figures((text) => this.setFilter(text));
    this.problems = new Problems((text) => this.setFilter(text));
    this.flow = new Flow({
      onOpen: (model) => { location.hash = queryLink(model); },
      onFolder: (folder) => this.setFilter(`folder:${folder}`),
      onSelect: (node) => { location.hash = nodeLink(node); },
    });
    this.table = new QueryTable({ sort, filter: q, onSort: (value) => this.#keep({ sort: value }), details: (model) => this.nodes?.get(model) });
    this.input = h("input.input", { type: "search", id: "filter", placeholder: "Filter: name, status:failed, sink:lake …", "aria-label": "Filter queries", autocomplete: "off", spellcheck: "false" });
    this.input.value = q;
    this.input.addEventListener("input", () => this.setFilter(this.input.value, true));
    this.input.addEventListener("keydown", (event) => this.#pressed(event));
    this.shown = h("span.muted", { role: "status" });
    this.queries = h("section.card.queries-card", { "aria-labelledby": "queries-title" },
      h("header", null, icon("query"), h("h2", { id: "queries-title" }, "Queries"), this.shown, h("span.spread"),
        h("span.wide-only", null, partsLegend()), sortSelect(this.table), h("label.filter", null, icon("search"), this.input, h("kbd.wide-only", null, "/"))),
      this.table.element);
    this.leave = store.listen((change) => this.update(change));
    document.title = "sqlstream";
    this.update({ all: true });
  }

  close() {
    this.leave();
    this.flow.close();
    clearTimeout(this.later);
  }

  /** Where the overview is left: how far it is scrolled, and the query that had the focus. */
  get place() {
    return { scroll: scrollY, model: this.table.focused };
  }

  /** The element that the key `/` focuses. */
  get search() {
    return this.input;
  }

  setFilter(text, isTyped = false) {
    if (!isTyped) this.input.value = text;
    this.#keep({ q: text });
    this.table.filter(text);
    this.#drawCount();
    if (!isTyped) this.queries.scrollIntoView({ block: "nearest" });
  }

  update(change) {
    const { overview, error } = this.store;
    if (!overview) {
      if (error) show(this.container, problemPage(error.message, () => this.store.load()));
      return;
    }
    if (change.batches || change.connection) return;
    if (change.tick) {
      if (!this.figures.element.isConnected) return;
      this.figures.update(this.store.queries);
      this.problems.update(this.store.queries, this.store.project?.problems || []);
      this.table.tick();
      this.#drawCount();
      this.flow.update(overview, false);
      return;
    }
    if (change.all) this.nodes = new Map(overview.nodes.filter((node) => node.model).map((node) => [node.model, node]));
    if (!this.figures.element.isConnected) this.#build();
    const { queries } = this.store;
    if (change.project && this.store.project) document.title = `${this.store.project.project} · sqlstream`;
    this.figures.update(queries);
    this.problems.update(queries, this.store.project?.problems || []);
    if (change.project) return;
    this.empty.hidden = Object.values(queries).some((query) => query.status);
    this.table.update(queries, change.queries || null);
    this.#drawCount();
    this.flow.overview = overview;
    if (change.all) this.#layLater();
    else this.flow.update(overview, false);
    if (this.wanted) this.#return();
  }

  /** Goes back to where the overview was left. */
  #return() {
    const { scroll, model } = this.wanted;
    this.wanted = null;
    scrollTo(0, scroll);
    if (!model || !this.table.focus(model)) this.container.querySelector("h1").focus({ preventScroll: true });
  }

  #keep(parameters) {
    setParameters(parameters);
    rememberOverview();
  }

  #build() {
    this.empty = h("section.card.empty", { hidden: true }, h("h2", null, "Nothing has run yet"),
      h("p", null, "Start the queries of this project in another terminal. This page updates by itself."),
      h("pre.code", null, "sqlstream run"));
    show(this.container, h("h1.visually-hidden", { tabindex: -1 }, "Overview"), this.figures.element, this.empty, this.problems.element, this.queries, this.flow.element);
  }

  /** Lays out the graph after the table is painted. */
  #layLater() {
    clearTimeout(this.later);
    this.later = setTimeout(() => this.flow.update(this.store.overview, true), this.flow.graph ? 0 : 80);
  }

  #drawCount() {
    const total = Object.keys(this.store.queries).length;
    const shown = this.table.order.length;
    const text = shown === total ? String(total) : `${shown} of ${total}`;
    if (this.shown.textContent !== text) this.shown.textContent = text;
  }

  #pressed(event) {
    if (event.key === "Escape") {
      if (this.input.value) this.setFilter("", false);
      else this.input.blur();
    } else if (event.key === "ArrowDown" || event.key === "Enter") {
      this.table.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/** Returns a page that says what went wrong. */
export function problemPage(text, retry) {
  return h("section.card.empty", { role: "alert" }, h("h1", null, "This cannot be shown"), h("p", null, text),
    retry ? h("button.button", { type: "button", onclick: retry }, "Try again") : null);
}
