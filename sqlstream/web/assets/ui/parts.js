// The parts of a batch's duration, and the small bar that shows them.

import { h } from "../dom.js";
import { known, millis } from "./format.js";

/** The parts in their order, with the names of series, the classes of their colors, and what they are. */
export const PARTS = [
  { name: "input_ms", label: "Finding input", color: "--part-5", title: "latestOffset and getBatch: Spark lists files, or asks Kafka for its newest offsets" },
  { name: "add_batch_ms", label: "Processing", color: "--part-1", title: "addBatch: Spark reads, computes and writes the rows" },
  { name: "planning_ms", label: "Planning", color: "--part-2", title: "queryPlanning: Spark plans the batch" },
  { name: "wal_ms", label: "Commit", color: "--part-3", title: "walCommit and commitOffsets: Spark writes its checkpoint" },
  { name: "other_ms", label: "Other", color: "--part-4", title: "what Spark does not report" },
];

/** Returns the query, whose fields are the parts of its last batch; null before that, or if Spark reports no parts. */
export function partsOf(query) {
  return query.duration_ms && query.other_ms < query.duration_ms ? query : null;
}

/** Returns the parts as text. */
export function partsTitle(parts) {
  return parts ? PARTS.filter((part) => known(parts[part.name])).map((part) => `${part.label} ${millis(parts[part.name])}`).join(", ") : "";
}

/** Returns a bar without parts. */
export function partsBar() {
  return h("span.parts", { "aria-hidden": "true" });
}

/** Shows parts in a bar; `share` (0 to 1) is its length. */
export function drawParts(bar, parts, share = 1) {
  const total = parts ? PARTS.reduce((sum, part) => sum + (parts[part.name] || 0), 0) : 0;
  if (!total) {
    bar.style.background = "none";
    return;
  }
  let at = 0;
  const stops = PARTS.map((part) => {
    const from = at;
    at += ((parts[part.name] || 0) / total) * share * 100;
    return `var(${part.color}) ${from.toFixed(1)}% ${at.toFixed(1)}%`;
  });
  bar.style.background = `linear-gradient(90deg, ${stops.join(", ")}, var(--part-rest) ${at.toFixed(1)}% 100%)`;
}

/** Returns the legend of the parts. */
export function partsLegend() {
  return h("span.legend.parts-legend", null, PARTS.map((part) => {
    const swatch = h("i.swatch");
    swatch.style.background = `var(${part.color})`;
    return h("span", { title: part.title }, swatch, part.label);
  }));
}
