// The columns of the table of queries.

import { h } from "../dom.js";
import { ago, lag, lagTitle, bytes, exact, known, localTime, millis, NONE, rate, seconds, short, utcTime, withLocalTimes } from "./format.js";
import { freshness, freshnessTitle, openAlerts, runningBatch, watermarkBehind } from "./freshness.js";
import { drawParts, partsBar, partsOf, partsTitle } from "./parts.js";
import { queryLink } from "./router.js";
import { drawSpark, sparkline } from "./spark.js";
import { lookOf, rankOf, stateOf, statusIcon, wordOf } from "./status.js";

/**
 * Each column: `name`, `title` (in the head), `hint` (on hover), `width` (px), `value(query)` (sorts; null is last),
 * `text(query)`, `tip(query)`, `isTimed` (changes with the clock), `descends` (the first click sorts downwards),
 * `short` (shown on phones, with that label).
 * Cells with more than text have `make()` and `draw(cell, query, now)` instead of `text`.
 */
export const COLUMNS = [
  { name: "model", title: "Query", width: 156, value: (query) => query.model, make: makeName, draw: drawName },
  {
    name: "status", title: "Status", width: 92, value: (query) => rankOf(stateOf(query)),
    make: () => [h("span.shape"), h("span.word")], draw: drawStatus,
    tip: (query) => query.error?.message || (query.silence && withLocalTimes(query.silence.text)) || runningBatch(query) || alertText(query) || null,
  },
  {
    ...number("fresh", "Fresh", "Age of the newest event, or of the last batch if rows have no time", 70, freshness, seconds, freshnessTitle), isTimed: true, short: "fresh",
  },
  {
    name: "input", title: "In /s", hint: "Input rate, rows per second", width: 104, descends: true, short: "in/s",
    value: (query) => query.input_rows_per_second, ...withSpark((query) => rate(query.input_rows_per_second), "input_rows_per_second"),
    tip: (query) => known(query.input_rows_per_second) ? `${exact(query.input_rows_per_second)} rows per second; ${exact(query.rows_in)} rows in this run` : null,
  },
  number("processed", "Proc. /s", "Processing rate, rows per second", 58, (query) => query.processed_rows_per_second, rate),
  number("output", "Out /s", "Output rate, rows per second", 52, (query) => query.output_rows_per_second, rate,
    (query) => known(query.rows_out) ? `${exact(query.rows_out)} rows out in this run` : null),
  {
    name: "batch", title: "Batch", hint: "Duration of the last batch, by its parts", width: 106, descends: true, short: "batch",
    value: (query) => query.duration_ms, make: () => [partsBar(), h("span.text")], draw: drawBatch,
    tip: (query) => partsTitle(partsOf(query)) || null,
  },
  { ...number("lag", "Lag", "What the query has not read yet", 58, lagNumber, null, (query) => lagTitle(query.lag)), text: (query) => lag(query.lag), short: "lag" },
  {
    ...number("behind", "Behind", "How far the watermark is behind the clock", 78, watermarkBehind, seconds), isTimed: true,
    tip: (query) => query.watermark ? `watermark ${localTime(query.watermark, true)} (${utcTime(query.watermark)})` : null,
  },
  {
    name: "state", title: "State rows", hint: "Rows that the query keeps", width: 100, descends: true,
    value: (query) => query.state_rows, ...withSpark((query) => short(query.state_rows), "state_rows"),
    tip: (query) => known(query.state_rows) ? `${exact(query.state_rows)} rows` : null,
  },
  number("bytes", "State size", "Memory of the state", 66, (query) => query.state_bytes, bytes),
  number("late", "Late", "Rows that came too late and were dropped", 46, (query) => query.late_rows, short, null, "warn"),
  number("violations", "Violat.", "Violations of data tests, in this run", 48, (query) => query.violations, short, null, "warn"),
  number("quarantined", "Quarant.", "Rows that violate data tests, and corrupt records of its sources, in quarantine in this run", 56, (query) => query.quarantined_rows, short, null, "warn"),
  {
    ...number("restarts", "Restarts", "Restarts after failures, in this run", 58, (query) => query.restarts, short, null, "warn"),
    tip: (query) => query.last_failure ? `last failure: ${query.last_failure.message}` : null,
  },
  {
    ...number("last", "Last batch", "When the last batch began, or since when one runs", 80, (query) => query.last_batch_at, null), isTimed: true,
    text: (query) => runningBatch(query) ? "running" : query.last_batch_at ? ago(query.last_batch_at) : NONE,
    tip: (query) => [runningBatch(query), query.last_batch_at && `batch ${exact(query.last_batch_id)} began at ${localTime(query.last_batch_at, true)} (${utcTime(query.last_batch_at)})`].filter(Boolean).join("; ") || null,
  },
];

function number(name, title, hint, width, value, format, tip = null, tone = null) {
  const text = format && ((query) => format(value(query)));
  return {
    name, title, hint, width, value, text, descends: true, isNumber: true, tone: tone && ((query) => value(query) ? tone : ""),
    tip: tip || ((query) => typeof value(query) === "number" ? exact(value(query)) : null),
  };
}

function lagNumber({ lag: left }) {
  return left ? left.records ?? left.files ?? left.versions ?? left.bytes ?? null : null;
}

function alertText(query) {
  return openAlerts(query).map((alert) => alert.message || alert.alert || alert.kind).join("; ") || null;
}

function makeName() {
  return [h("a.name", { href: "#/", tabindex: -1 })];
}

function drawName(cell, query) {
  const anchor = cell.firstChild;
  anchor.textContent = query.model;
  anchor.title = [query.model, query.kind, query.trigger, query.sink && `into ${query.sink}`].filter(Boolean).join(" · ");
  anchor.setAttribute("href", queryLink(query.model));
}

function drawStatus(cell, query) {
  const state = stateOf(query);
  cell.firstChild.replaceChildren(statusIcon(state));
  cell.lastChild.textContent = wordOf(state);
  cell.dataset.look = lookOf(state);
}

function withSpark(text, series) {
  return {
    isNumber: true,
    make: () => [sparkline(), h("span.text")],
    draw(cell, query) {
      drawSpark(cell.firstChild, query.spark?.[series]);
      cell.lastChild.textContent = text(query);
    },
  };
}

function drawBatch(cell, query) {
  const duration = query.duration_ms;
  const share = duration ? Math.min(1, Math.max(0.08, Math.log10(1 + duration / 50) / Math.log10(1 + 60_000 / 50))) : 0;
  drawParts(cell.firstChild, partsOf(query), share);
  cell.lastChild.textContent = millis(duration);
}

/** The fields of a query from which each column is made; a column without its fields changed is not drawn again. */
export const FIELDS = {
  model: ["kind", "trigger", "sink"],
  status: ["status", "error", "silence", "alerts"],
  input: ["input_rows_per_second", "spark", "rows_in"],
  processed: ["processed_rows_per_second"],
  output: ["output_rows_per_second", "rows_out"],
  batch: ["duration_ms", "input_ms", "add_batch_ms", "planning_ms", "wal_ms", "other_ms"],
  lag: ["lag"],
  fresh: ["newest_event", "last_batch_at", "open_batch", "status"],
  behind: ["watermark", "status"],
  state: ["state_rows", "spark"],
  bytes: ["state_bytes"],
  late: ["late_rows"],
  violations: ["violations"],
  quarantined: ["quarantined_rows"],
  restarts: ["restarts", "last_failure"],
  last: ["last_batch_at", "last_batch_id", "open_batch", "lag"],
};
