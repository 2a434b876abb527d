// The charts of a query: which series, and how they read.

import { bytes, exact, millis, rate, seconds, short } from "../format.js";
import { PARTS } from "../parts.js";
import { MILLISECONDS, SECONDS } from "./axes.js";

/**
 * Each chart: `title`, `unit` (words), `series` of `{ name, label, color (a token), dash, fill, scale, format,
 * isSparse (only some batches have a value) }`, `scale: "right"` has its own axis. `stacked`: the values add up; `bars`:
 * batches are bars from their start to their end; `steps`: of the axis; `none`: what to say if no batch has any of the
 * values. Of the charts of a `group`, only those with values are shown, the first one if there are none.
 */
export const CHARTS = [
  {
    id: "rates", title: "Rates", unit: "rows per second", format: rate, hasVerdict: true,
    series: [
      { name: "input_rows_per_second", label: "Input", color: "--chart-1", fill: true },
      { name: "processed_rows_per_second", label: "Processing", color: "--chart-2" },
    ],
    none: "Spark has not reported rates for this query.",
  },
  {
    id: "rows", title: "Rows", unit: "per batch or interval", format: short, bars: true,
    series: [
      { name: "rows_in", label: "In", color: "--chart-1", fill: true },
      { name: "rows_out", label: "Out", color: "--chart-2" },
    ],
    none: "No batch has read rows.",
  },
  {
    id: "duration", title: "Batch duration", unit: "by its parts", format: millis, stacked: true, bars: true, isWide: true, steps: MILLISECONDS,
    series: [
      ...PARTS.map(({ name, label, color }) => ({ name, label, color, fill: true })),
      { name: "duration_max_ms", label: "Slowest", color: "--chart-5", dash: [2, 3], isTotal: true },
    ],
    none: "No batch has run in this range.",
  },
  {
    id: "watermark", title: "Watermark", unit: "behind the newest event", format: seconds, steps: SECONDS,
    series: [{ name: "watermark_lag_seconds", label: "Behind", color: "--chart-4", fill: true }],
    none: "This query has no watermark.",
  },
  {
    id: "lag", group: "lag", title: "Lag", unit: "records not read yet", format: short,
    series: [{ name: "lag", label: "Records", color: "--chart-2", fill: true, isSparse: true }],
    none: "The lag is not known: the sources of this query do not report it, or it has not been read yet.",
  },
  {
    id: "lag_files", group: "lag", title: "Lag of files", unit: "not read yet", format: bytes,
    series: [
      { name: "lag_bytes", label: "Size", color: "--chart-2", fill: true, isSparse: true },
      { name: "lag_files", label: "Files", color: "--chart-5", dash: [5, 3], isSparse: true, scale: "right", format: short },
    ],
  },
  {
    id: "lag_versions", group: "lag", title: "Lag of tables", unit: "versions not read yet", format: short,
    series: [{ name: "lag_versions", label: "Versions", color: "--chart-2", fill: true, isSparse: true }],
  },
  {
    id: "state", title: "State", unit: "rows and memory", format: short,
    series: [
      { name: "state_rows", label: "Rows", color: "--chart-3", fill: true },
      { name: "state_bytes", label: "Memory", color: "--chart-5", dash: [5, 3], scale: "right", format: bytes },
    ],
    none: "This query keeps no state.",
  },
  {
    id: "lost", title: "Rows left out, and violations", unit: "rows per batch or interval", format: exact,
    series: [
      { name: "late_rows", label: "Late", color: "--chart-2", fill: true },
      { name: "quarantined_rows", label: "Quarantined", color: "--chart-3", dash: [5, 3] },
      { name: "dropped_records", label: "Dropped", color: "--chart-5", dash: [2, 3] },
      { name: "violations", label: "Violations", color: "--chart-4", dash: [8, 3] },
    ],
    none: "No rows were late, quarantined or dropped, or violated a data test.", hidesZeros: true,
  },
];

/** The names of all series. */
export const NAMES = [...new Set(["duration_ms", ...CHARTS.flatMap((chart) => chart.series.map((each) => each.name))])];

const MINUTE = 60_000;

/** The range of the newest run of a query. */
export const RUN = "run";

/** The ranges of time: a name, a label, and the length in ms, null for that of a run. */
export const RANGES = [
  [RUN, "Last run", null],
  ["15m", "15 min", 15 * MINUTE],
  ["1h", "1 h", 60 * MINUTE],
  ["6h", "6 h", 360 * MINUTE],
  ["24h", "24 h", 1_440 * MINUTE],
  ["7d", "7 d", 7 * 1_440 * MINUTE],
  ["30d", "30 d", 30 * 1_440 * MINUTE],
];

/** What happened to a query, drawn as markers: a word, a shape, and the token of its color. */
export const EVENTS = {
  started: { word: "started", look: "up", color: "--ok" },
  restarted: { word: "restarted", look: "up", color: "--warn" },
  failed: { word: "failed", look: "cross", color: "--bad" },
  ended: { word: "ended", look: "bar", color: "--idle" },
  silent: { word: "no output", look: "circle", color: "--warn" },
  alert: { word: "alert", look: "diamond", color: "--bad" },
  resolved: { word: "alert resolved", look: "diamond", color: "--ok" },
};

/** Returns the kind of an event as a marker: an `ended` one with an error is a failure, a resolved alert is none. */
export function markerOf(event) {
  if (event.kind === "alert" && event.detail.state === "resolved") return EVENTS.resolved;
  const isFailure = event.kind === "ended" && (event.detail.error || event.detail.status === "error");
  return EVENTS[isFailure ? "failed" : event.kind] || EVENTS.ended;
}
