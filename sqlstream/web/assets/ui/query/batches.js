// The batches of a query: the newest, or the slowest of the history.

import { h, show } from "../../dom.js";
import { get, queryPath } from "../api.js";
import { exact, known, millis, NONE, seconds, short, timeElement } from "../format.js";
import { drawParts, partsBar, partsLegend, PARTS, partsTitle } from "../parts.js";
import { route, setParameters } from "../router.js";
import { statusBadge } from "../status.js";

const PAGE = 50;
const MOST = 500;
const RENEW_MS = 1_500;
const ORDERS = [["newest", "Newest"], ["slowest", "Slowest"]];
const HEAD = [["Batch", "number"], ["Began"], ["Duration", "number"], ["Parts"], ["Rows in", "number"], ["Rows out", "number"], ["Late", "number"], ["State rows", "number"], ["Behind", "number"], ["Offsets read"]];

export class BatchList {
  constructor(model, target) {
    Object.assign(this, { model, target, requests: new AbortController() });
    this.order = route().parameters.order === "slowest" ? "slowest" : "newest";
    this.buttons = h("div.ranges", { role: "group", "aria-label": "Order" }, ORDERS.map(([name, label]) =>
      h("button.button", { type: "button", "data-order": name, onclick: () => this.#choose(name) }, label)));
    this.body = h("tbody");
    this.note = h("p.note-text", { role: "status" });
    this.more = h("button.button", { type: "button", hidden: true, onclick: () => this.#load(this.oldest) }, "Show older batches");
    this.element = h("section.card", { "aria-label": "Batches" },
      h("header", null, this.buttons, h("span.spread"), partsLegend()),
      h("div.scroll-x", { tabindex: 0, role: "region", "aria-label": "Table of batches" },
        h("table.table.batches", null, h("thead", null, h("tr", null, HEAD.map(([text, kind]) => h("th", { scope: "col", class: kind }, text)))), this.body)),
      this.note, h("div.more", null, this.more));
    this.#load();
  }

  close() {
    this.requests.abort();
    clearTimeout(this.later);
  }

  /** Adds new batches at the top. */
  add(rows) {
    if (this.order !== "newest" || !this.longest) return;
    for (const row of rows) {
      if (row.at_ms <= this.newest) continue;
      this.newest = row.at_ms;
      this.body.prepend(batchRow(row, this.longest));
    }
    while (this.body.childElementCount > MOST) this.body.lastChild.remove();
    this.note.textContent = "";
  }

  /** Reads the first page again soon, because the query may have failed. With older pages only its failures change. */
  changed() {
    clearTimeout(this.later);
    if (this.order === "newest") this.later = setTimeout(() => (this.hasOlder ? this.#renewFailures() : this.#load()), RENEW_MS);
  }

  #choose(order) {
    this.order = order;
    setParameters({ order: order === "newest" ? null : order });
    this.#load();
  }

  async #load(before = null) {
    for (const button of this.buttons.children) button.setAttribute("aria-pressed", String(button.dataset.order === this.order));
    const page = await this.#page(before);
    if (!page) return;
    const { batches, failures } = page;
    if (!before) {
      this.longest = batches.reduce((top, row) => Math.max(top, row.duration_ms), 1);
      this.newest = batches[0]?.at_ms || 0;
      show(this.body);
    }
    this.hasOlder = Boolean(before);
    const rows = [...batches, ...failures].sort((one, other) => (this.order === "newest" ? other.at_ms - one.at_ms : 0));
    for (const row of rows) this.body.append(row.message === undefined ? batchRow(row, this.longest) : failureRow(row));
    this.oldest = batches.at(-1)?.at_ms;
    this.more.hidden = this.order !== "newest" || batches.length < PAGE || this.body.childElementCount >= MOST;
    this.note.textContent = this.body.childElementCount ? "" : "The history has no batch of this query yet.";
  }

  async #renewFailures() {
    const page = await this.#page(null);
    if (!page || this.order !== "newest") return;
    for (const failure of page.failures) {
      this.body.querySelector(`tr.failed[data-at="${failure.at_ms}"]`)?.remove();
      const older = [...this.body.children].find((row) => Number(row.dataset.at) < failure.at_ms);
      this.body.insertBefore(failureRow(failure), older || null);
    }
  }

  /** Returns a page of batches and the failures between them, or nothing after an error. */
  async #page(before) {
    try {
      return await get(queryPath(this.model, "batches"), { target: this.target, order: this.order, limit: PAGE, before }, this.requests.signal);
    } catch (error) {
      if (error.name !== "AbortError") show(this.note, error.message);
      return null;
    }
  }
}

function batchRow(row, longest) {
  const bar = partsBar();
  const parts = Object.fromEntries(PARTS.map(({ name }) => [name, row[name] || 0]));
  drawParts(bar, parts, Math.min(1, row.duration_ms / longest));
  const cell = (value) => h("td.number", null, value);
  return h("tr", { "data-at": row.at_ms }, cell(exact(row.batch_id)), h("td.fixed", null, timeElement(row.at_ms)), cell(millis(row.duration_ms)),
    h("td.bar-cell", { title: partsTitle(parts) }, bar, h("span.visually-hidden", null, partsTitle(parts))), cell(exact(row.rows_in)), cell(exact(row.rows_out)),
    cell(row.late_rows ? exact(row.late_rows) : "0"), cell(known(row.state_rows) ? short(row.state_rows) : NONE), cell(seconds(row.watermark_lag_seconds)),
    h("td.offsets", null, row.sources.map(sourceLine)));
}

/** Returns the row of a batch that failed, or of a query that failed outside a batch. */
function failureRow(row) {
  const next = known(row.restarts_in) ? `, ${row.restarted ? "restarted after" : "restart planned in"} ${seconds(row.restarts_in)}` : "";
  return h("tr.failed", { "data-at": row.at_ms }, h("td.number", null, exact(row.batch_id)), h("td.fixed", null, timeElement(row.at_ms)),
    h("td", { colspan: HEAD.length - 2 }, statusBadge("failed"), h("span.message", { title: row.why }, `${row.message}${next}`)));
}

function sourceLine(source) {
  const [from, to] = [compact(source.start_offset), compact(source.end_offset)];
  return h("div", { title: `${source.name}: ${from} → ${to}` }, h("span.source-name", null, source.name), h("code", null, `${from} → ${to}`));
}

/** Returns an offset as short text: `{"logOffset": 41}` is 41. */
function compact(offset) {
  if (!known(offset)) return NONE;
  const text = typeof offset === "string" ? offset : JSON.stringify(offset);
  try {
    const value = JSON.parse(text);
    const entries = value && typeof value === "object" ? Object.entries(value) : [];
    return entries.length === 1 && typeof entries[0][1] !== "object" ? String(entries[0][1]) : JSON.stringify(value).replace(/"/g, "");
  } catch {
    return text;
  }
}
