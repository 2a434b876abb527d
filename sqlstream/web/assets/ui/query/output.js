// The tab about the output of a query: why there are no rows, when rows are emitted, and rows.

import { h, icon, show } from "../../dom.js";
import { get, queryPath } from "../api.js";
import { runningBatch } from "../freshness.js";
import { withLocalTimes } from "../format.js";
import { card, table } from "./sections.js";

const SHOWN_ROWS = 20;

/** Returns an error or a warning in its three lines: what, why, how to fix. */
export function findingBox(finding, title, tone) {
  const { location: place } = finding;
  const where = place && [place.path, place.line, place.column].filter((each) => each !== null && each !== undefined).join(":");
  return h("section.card.notice", { class: tone, "aria-label": title }, icon(tone === "bad" ? "bad" : "warn"),
    h("div", null, h("h2", null, title, finding.code ? h("code.code-name", null, finding.code) : null),
      h("p.message", null, finding.message),
      h("dl.finding", null,
        where ? [h("dt", null, "where"), h("dd.mono", null, where)] : null,
        finding.why ? [h("dt", null, "why"), h("dd", null, finding.why)] : null,
        finding.fix ? [h("dt", null, "fix"), h("dd", null, finding.fix)] : null)));
}

/** Returns the tab. The rows are read when it opens. */
export function outputTab(page, store, signal) {
  const now = store.queries[page.model] || page.now || {};
  const rows = h("div.sample", null, h("p.loading", { role: "status" }, "Reading rows…"));
  loadRows(page.model, store.target, rows, signal);
  const isSilent = now.error || now.silence || !(now.rows_out > 0);
  return h("div.stack", null,
    isSilent ? card("Why is there no output?", h("div.body", null, h("p", null, silenceText(now)))) : null,
    card("When it emits rows", page.emission ? h("pre.prose", { tabindex: 0, role: "region", "aria-label": "When it emits rows, text" }, page.emission) : h("p.note-text", null, "Not known: the project does not compile.")),
    card("Newest rows", rows));
}

function silenceText(now) {
  if (now.error) return "The query has failed, so it writes nothing. The error is at the top of this page.";
  if (now.silence) return withLocalTimes(now.silence.text);
  if (!now.status) return "The query has not run yet. Start it with `sqlstream run`.";
  if (runningBatch(now)) return "A batch runs. Its rows appear when it ends.";
  return "The query has not written rows in its newest run, and has not been silent for long enough to know why. When it emits rows is below.";
}

async function loadRows(model, target, box, signal) {
  try {
    const { columns, rows, note } = await get(queryPath(model, "sample"), { target, limit: SHOWN_ROWS }, signal);
    if (rows?.length) show(box, table("Newest rows", columns.map((name, index) => [name, isNumeric(rows, index) ? "number" : null]), rows.map((row) => h("tr", null, row.map(cellOf)))), note ? h("p.note-text", null, note) : null);
    else show(box, h("p.note-text", null, note || "The output has no rows yet."));
  } catch (error) {
    if (error.name !== "AbortError") show(box, h("p.note-text", null, error.message));
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
