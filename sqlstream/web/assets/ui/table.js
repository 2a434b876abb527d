// The table of queries: sorted, filtered, walked through with the arrow keys, and drawn cell by cell.

import { h, icon } from "../dom.js";
import { COLUMNS, FIELDS } from "./columns.js";
import { rankOf, stateOf, wordOf } from "./status.js";

// Rows far from the screen have only their names and states; the browser tells when they come near.
const KNOWS_NEARNESS = "oncontentvisibilityautostatechange" in document.documentElement;
const FIRST_ROWS = 30;
const ALWAYS = new Set(["model", "status"]);
const SORT_PAUSE_MS = 5_000;
const STATUS = COLUMNS.findIndex((column) => column.name === "status");
const BY_NAME = new Map(COLUMNS.map((column) => [column.name, column]));

export class QueryTable {
  /** `options`: `sort` (a column, with `-` for downwards), `filter`, `onSort(sort)`, `details(model)` (its node). */
  constructor(options) {
    this.options = options;
    this.rows = new Map();
    this.order = [];
    this.sort = BY_NAME.has((options.sort || "").replace("-", "")) ? options.sort : "status";
    this.words = words(options.filter);
    this.sortedAt = 0;
    this.head = h("div.row.head", { role: "row" }, COLUMNS.map((column) => this.#headCell(column)));
    this.body = h("div.rows", { role: "rowgroup" });
    this.none = h("p.note-text", { hidden: true }, "No query matches the filter. ",
      h("button.button", { type: "button", onclick: () => dispatchEvent(new CustomEvent("opensearch", { detail: this.words.map(([, word]) => word).join(" ") })) }, icon("search"), "Search views, sources and columns"));
    this.table = h("div.queries", { role: "table", "aria-label": "Queries" }, h("div", { role: "rowgroup" }, this.head), this.body);
    this.table.style.setProperty("--columns", COLUMNS.map((column) => `minmax(${column.width}px, ${column.width}fr)`).join(" "));
    this.table.style.minWidth = `${COLUMNS.reduce((sum, column) => sum + column.width, 16)}px`;
    this.element = h("div.queries-frame", { tabindex: 0, role: "region", "aria-label": "Table of queries" }, this.table, this.none);
    this.body.addEventListener("keydown", (event) => this.#pressed(event));
    this.body.addEventListener("click", (event) => this.#clicked(event));
    this.body.addEventListener("focusin", (event) => this.#focused(event));
    this.#markSort();
  }

  /** Shows `queries` (by model); `changed` is a Map from models to their changed fields, null for everything. */
  update(queries, changed) {
    this.queries = queries;
    const isNew = !changed || [...changed.keys()].some((model) => !this.rows.has(model));
    if (isNew) {
      for (const model of this.rows.keys()) if (!(model in queries)) this.rows.delete(model);
      for (const query of Object.values(queries).sort(this.#comparison())) this.#draw(query.model, null);
      this.arrange();
      return;
    }
    for (const [model, fields] of changed) this.#draw(model, fields);
    if (performance.now() - this.sortedAt > SORT_PAUSE_MS && !this.#isUsed()) this.arrange();
  }

  /** Draws what changes with the clock, and sorts what has changed since it was sorted. */
  tick() {
    if (performance.now() - this.sortedAt > SORT_PAUSE_MS && !this.#isUsed()) this.arrange();
    for (const model of this.order) {
      const row = this.rows.get(model);
      this.#drawState(row, this.queries[model]);
      if (row.isNear) for (const [index, column] of COLUMNS.entries()) if (column.isTimed) drawCell(row.cells[index], column, this.queries[model]);
    }
  }

  /** Filters by words; returns the number of queries shown. */
  filter(text) {
    this.words = words(text);
    return this.arrange();
  }

  /** Sorts and filters now; returns the number of queries shown. */
  arrange() {
    this.sortedAt = performance.now();
    const shown = Object.values(this.queries || {}).filter((query) => this.#matches(query)).sort(this.#comparison());
    const order = shown.map((query) => query.model);
    if (order.length !== this.order.length || order.some((model, index) => model !== this.order[index]) || !this.body.childElementCount) {
      const focused = this.body.contains(document.activeElement) ? document.activeElement : null;
      this.order = order;
      this.body.replaceChildren(...order.map((model) => this.rows.get(model).element));
      if (focused?.isConnected) focused.focus({ preventScroll: true });
    }
    if (!order.includes(this.current)) this.#setCurrent(order[0]);
    this.table.setAttribute("aria-rowcount", order.length + 1);
    const count = Object.keys(this.queries || {}).length;
    this.none.hidden = order.length > 0 || count === 0;
    return order.length;
  }

  /** Moves the focus to a query, by default the current one; returns whether it is shown. */
  focus(model = this.current) {
    if (!this.order.includes(model)) return false;
    this.#setCurrent(model);
    this.rows.get(model).element.querySelector("a").focus();
    return true;
  }

  /** The query in focus, null if there is none. */
  get focused() {
    return this.body.contains(document.activeElement) ? this.current : null;
  }

  /** Sorts by a column. */
  setSort(sort) {
    this.sort = sort;
    this.#markSort();
    this.arrange();
    this.options.onSort?.(sort);
  }

  #isUsed() {
    return this.body.matches(":hover") || this.body.contains(document.activeElement);
  }

  #headCell(column) {
    const button = h("button", { type: "button", title: column.hint || null, onclick: () => this.#toggle(column) },
      h("span", null, column.title), h("span.arrow", { "aria-hidden": "true" }));
    return h(`div.cell.c-${column.name}`, { role: "columnheader", class: column.isNumber ? "number" : null, "data-column": column.name }, button);
  }

  #toggle(column) {
    const first = column.descends ? `-${column.name}` : column.name;
    const other = column.descends ? column.name : `-${column.name}`;
    this.setSort(this.sort === first ? other : first);
  }

  #markSort() {
    const [name, descends] = [this.sort.replace("-", ""), this.sort.startsWith("-")];
    for (const cell of this.head.children) {
      const isSorted = cell.dataset.column === name;
      if (isSorted) cell.setAttribute("aria-sort", descends ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
      cell.querySelector(".arrow").textContent = isSorted ? (descends ? "↓" : "↑") : "";
    }
  }

  #comparison() {
    const column = BY_NAME.get(this.sort.replace("-", ""));
    const sign = this.sort.startsWith("-") ? -1 : 1;
    return (one, other) => {
      const [a, b] = [column.value(one), column.value(other)];
      const [hasA, hasB] = [a !== null && a !== undefined, b !== null && b !== undefined];
      if (hasA !== hasB) return hasA ? -1 : 1;
      if (hasA && a !== b) return (a < b ? -1 : 1) * sign;
      return one.model < other.model ? -1 : 1;
    };
  }

  #matches(query) {
    if (!this.words.length) return true;
    const { folder = "", tags = [] } = this.options.details(query.model) || {};
    const state = stateOf(query);
    const text = [query.model, wordOf(state), query.sink, folder, query.kind, ...tags].join(" ").toLowerCase();
    const fields = {
      status: `${state} ${query.status} ${wordOf(state)}`, sink: query.sink, folder, tag: tags.join(" "), run: query.run,
      is: rankOf(state) < 5 ? "attention" : "",
    };
    return this.words.every(([field, word]) => (field in fields ? String(fields[field]).toLowerCase() : text).includes(word));
  }

  #draw(model, fields) {
    const query = this.queries[model];
    let row = this.rows.get(model);
    if (!row) this.rows.set(model, (row = this.#makeRow(model)));
    const isNew = !row.isDrawn;
    const changed = isNew ? null : fields;
    if (!row.isNear) row.later = isNew || !fields || row.later === "all" ? "all" : { ...row.later, ...fields };
    drawCells(row, query, changed, row.isNear ? null : ALWAYS);
    row.isDrawn = true;
    this.#drawState(row, query);
  }

  /** Draws the state of a query if it has changed, by an update or with the clock. */
  #drawState(row, query) {
    const state = stateOf(query);
    if (state === row.state) return;
    row.state = state;
    row.element.dataset.rank = rankOf(state) < 5 ? "high" : "";
    drawCell(row.cells[STATUS], COLUMNS[STATUS], query);
  }

  #makeRow(model) {
    const row = makeRow(model);
    row.isNear = !KNOWS_NEARNESS || this.rows.size < FIRST_ROWS;
    row.element.addEventListener("contentvisibilityautostatechange", (event) => {
      row.isNear = !event.skipped;
      const { later } = row;
      if (!row.isNear || !later || !this.queries[model]) return;
      row.later = null;
      drawCells(row, this.queries[model], later === "all" ? null : later, null);
    });
    return row;
  }

  #setCurrent(model) {
    this.rows.get(this.current)?.element.querySelector("a").setAttribute("tabindex", "-1");
    this.current = model;
    this.rows.get(model)?.element.querySelector("a").setAttribute("tabindex", "0");
  }

  #focused(event) {
    const row = event.target.closest(".row");
    if (row) this.#setCurrent(row.dataset.model);
  }

  #pressed(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: 12, PageUp: -12, Home: -1e9, End: 1e9 };
    const step = steps[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const index = Math.min(Math.max(this.order.indexOf(this.current) + step, 0), this.order.length - 1);
    this.#setCurrent(this.order[index]);
    this.rows.get(this.current).element.scrollIntoView({ block: "nearest" });
    this.focus();
  }

  #clicked(event) {
    const row = event.target.closest(".row");
    if (row && !event.target.closest("a") && !String(getSelection())) open(row.querySelector("a"));
  }
}

function open(opened) {
  opened.focus({ preventScroll: true }); // it is where somebody comes back to
  opened.click();
}

function makeRow(model) {
  const cells = COLUMNS.map((column) => {
    const content = column.make ? column.make() : [document.createTextNode("")];
    const role = column.name === "model" ? "rowheader" : "cell";
    return h(`div.cell.c-${column.name}`, { role, class: column.isNumber ? "number" : null, "data-short": column.short || null }, content);
  });
  return { element: h("div.row", { role: "row", "data-model": model }, cells), cells };
}

/** Draws the cells that depend on `fields` (null: all), of the columns `names` (null: all). */
function drawCells(row, query, fields, names) {
  for (const [index, column] of COLUMNS.entries()) {
    if (names && !names.has(column.name)) continue;
    if (!fields || FIELDS[column.name].some((field) => field in fields)) drawCell(row.cells[index], column, query);
  }
}

function drawCell(cell, column, query) {
  if (column.draw) {
    column.draw(cell, query);
  } else {
    const text = column.text(query);
    if (cell.firstChild.data !== text) cell.firstChild.data = text;
  }
  if (column.tone) cell.dataset.tone = column.tone(query);
  const tip = column.tip?.(query) || "";
  if (cell.title !== tip) cell.title = tip;
}

function words(text) {
  return (text || "").toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
    const [, field, value] = /^(status|sink|folder|tag|run|is):(.*)$/.exec(word) || [];
    return field ? [field, value] : ["", word];
  });
}

/** Returns the control that sorts the table on phones. */
export function sortSelect(table) {
  const options = COLUMNS.flatMap((column) => {
    const value = column.descends ? `-${column.name}` : column.name;
    return h("option", { value, selected: table.sort === value }, column.hint || column.title);
  });
  const select = h("select.input", { "aria-label": "Sort by", onchange: () => table.setSort(select.value) }, options);
  return h("label.sort-select.narrow-only", null, icon("down"), select);
}
