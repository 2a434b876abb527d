// The figures of one query now.

import { h } from "../../dom.js";
import { lag, lagTitle, bytes, exact, known, localTime, millis, NONE, rate, seconds, short, utcTime } from "../format.js";
import { batchText, freshness, freshnessTitle, watermarkBehind } from "../freshness.js";
import { drawParts, partsBar, partsOf, partsTitle } from "../parts.js";
import { drawSpark, sparkline } from "../spark.js";

// name, label, text, second line, title, series of the small chart
const TILES = [
  ["fresh", "Freshness", (now) => seconds(freshness(now)), (now) => batchText(now).split(",")[0], freshnessTitle],
  ["input", "Rows in /s", (now) => rate(now.input_rows_per_second), (now) => `${short(now.rows_in)} in this run`, (now) => exact(now.input_rows_per_second), "input_rows_per_second"],
  ["processed", "Processed /s", (now) => rate(now.processed_rows_per_second), headroom, (now) => exact(now.processed_rows_per_second)],
  ["output", "Rows out /s", (now) => rate(now.output_rows_per_second), (now) => `${short(now.rows_out)} in this run`, (now) => exact(now.output_rows_per_second)],
  ["batch", "Last batch", (now) => millis(now.duration_ms), null, (now) => partsTitle(partsOf(now))],
  ["lag", "Lag", (now) => lag(now.lag), (now) => lagTitle(now.lag) || "not reported", (now) => lagTitle(now.lag)],
  ["behind", "Watermark behind", (now) => seconds(watermarkBehind(now)), (now) => (now.watermark ? localTime(now.watermark) : noneOr(now, "no watermark")), (now) => now.watermark && `behind the clock: ${localTime(now.watermark, true)} (${utcTime(now.watermark)})`],
  ["state", "State", (now) => (known(now.state_rows) ? `${short(now.state_rows)} rows` : NONE), (now) => (known(now.state_bytes) ? bytes(now.state_bytes) : noneOr(now, "keeps no state")), (now) => exact(now.state_rows), "state_rows"],
  ["late", "Late rows", (now) => short(now.late_rows), (now) => (now.dropped_records ? `${short(now.dropped_records)} dropped` : "in this run"), (now) => exact(now.late_rows)],
  ["violations", "Violations", (now) => short(now.violations), (now) => testsText(now.data_tests), (now) => exact(now.violations)],
  ["quarantined", "Quarantined", (now) => short(now.quarantined_rows), quarantinedText, (now) => exact(now.quarantined_rows)],
  ["restarts", "Restarts", (now) => short(now.restarts), (now) => (known(now.batches) ? `${short(now.batches)} batches` : "in this run"), (now) => now.last_failure && `last failure: ${now.last_failure.message}`],
];

/** Returns what no value means, which only a batch shows. */
function noneOr(now, text) {
  return now.batches ? text : "no batch in this run";
}

function testsText(tests) {
  const count = Object.keys(tests || {}).length;
  return count ? `of ${count} data test${count === 1 ? "" : "s"}` : "no data tests";
}

function quarantinedText(now) {
  if (!known(now.quarantined_rows)) return "no quarantine";
  if (!now.quarantines.length) return "rows of data tests";
  return known(now.rows_in_quarantine) ? `${short(now.quarantined_rows - now.rows_in_quarantine)} corrupt records` : "corrupt records";
}

function headroom(now) {
  const [arrives, done] = [now.input_rows_per_second, now.processed_rows_per_second];
  if (!(arrives > 0 && done > 0)) return "rows per second";
  return `${(done / arrives).toFixed(done < 10 * arrives ? 1 : 0)} × input`;
}

export class Tiles {
  constructor() {
    this.cells = TILES.map(([name, label, , , , series]) => {
      const cell = { value: h("dd"), sub: h("dd.sub"), spark: series ? sparkline() : null, bar: name === "batch" ? partsBar() : null };
      cell.box = h("div.tile", { class: `tile-${name}` }, h("dt", null, label), cell.value, cell.bar ? h("dd.bar-box", null, cell.bar) : cell.sub, cell.spark ? h("dd.spark-box", null, cell.spark) : null);
      return cell;
    });
    this.element = h("dl.tiles", null, this.cells.map((cell) => cell.box));
  }

  /** Shows a query as it is now. */
  update(now) {
    TILES.forEach(([name, , value, sub, title, series], index) => {
      const cell = this.cells[index];
      setText(cell.value, value(now));
      if (sub) setText(cell.sub, sub(now));
      if (cell.bar) drawParts(cell.bar, partsOf(now));
      if (cell.spark) drawSpark(cell.spark, now.spark?.[series]);
      cell.box.title = title(now) || "";
      if (["late", "violations", "quarantined", "restarts"].includes(name)) cell.box.dataset.tone = parseFloat(value(now)) > 0 ? "warn" : "";
    });
  }
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
