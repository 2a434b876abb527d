// The tab about the output of a query: why there are no rows, when rows are emitted, and rows.

import { h, show } from "../../dom.js";
import { get, queryPath } from "../api.js";
import { runningBatch } from "../freshness.js";
import { card, table } from "./sections.js";

const SHOWN_ROWS = 20;

/** Returns the tab. The rows are read when it opens. */
export function outputTab(page, store, signal) {
  const now = store.queries[page.model] || page.now || {};
  const rows = h("div.sample", null, h("p.loading", { role: "status" }, "Reading rows…"));
  const text = silenceText(now);
  const why = text ? card("Why is there no output?", h("div.body", null, h("p", null, text))) : null;
  const tab = h("div.stack", null, why,
    card("When it emits rows", page.emission ? h("pre.prose", { tabindex: 0, role: "region", "aria-label": "When it emits rows, text" }, page.emission) : h("p.note-text", null, "Not known: the project does not compile.")),
    card("Newest rows", rows));
  loadRows(page.model, store.target, rows, signal).then((hasRows) => { if (hasRows && why) tab.append(why); }); // it is not about these rows
  return tab;
}

/** Returns why there are no rows, null if there are some, or if the page of the query says it above its tabs. */
function silenceText(now) {
  if (now.rows_out > 0 || now.error || now.status === "restarting" || now.silence) return null;
  if (!now.status) return "The query has not run yet. Start it with `sqlstream run`.";
  if (runningBatch(now)) return "A batch runs. Its rows appear when it ends.";
  return "The query has not written rows in its newest run, and has not been silent for long enough to know why. When it emits rows is below.";
}

/** Shows the rows, and resolves to whether there are any. */
async function loadRows(model, target, box, signal) {
  try {
    const { columns, rows, note } = await get(queryPath(model, "sample"), { target, limit: SHOWN_ROWS }, signal);
    if (rows?.length) show(box, table("Newest rows", columns.map((name, index) => [name, isNumeric(rows, index) ? "number" : null]), rows.map((row) => h("tr", null, row.map(cellOf)))), note ? h("p.note-text", null, note) : null);
    else show(box, h("p.note-text", null, note || "The output has no rows yet."));
    return Boolean(rows?.length);
  } catch (error) {
    if (error.name !== "AbortError") show(box, h("p.note-text", null, error.message));
    return false;
  }
}

function isNumeric(rows, index) {
  return rows.some((row) => typeof row[index] === "number");
}

function cellOf(value) {
  if (value === null) return h("td.muted", null, "null");
  if (typeof value === "number") return h("td.number", null, String(value));
  return h("td.mono", null, typeof value === "object" ? JSON.stringify(value) : String(value));
}
