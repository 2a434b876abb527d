// What a chart draws itself: batches from their start to their end, and the times at which the query did not run.

import { color } from "../../dom.js";
import { localTime, seconds } from "../format.js";

const HATCH = 8;
const OPEN_HEIGHT = 8;
const LEAST_WIDTH = 1.5;

/** Why a query did not run, as the words of a stop. */
const WHY = {
  ended: "Not running",
  killed: "Not running: the process was killed",
  failed: "Not running: the query failed",
  restarting: "Not running: waiting to restart after a failure",
};
const BAD = new Set(["killed", "failed"]);

/** Returns what a stop was, with its times. */
export function stopText(stop) {
  const long = seconds((stop.to_ms - stop.from_ms) / 1_000);
  const span = stop.is_over ? `from ${localTime(stop.from_ms)} to ${localTime(stop.to_ms)} (${long})` : `since ${localTime(stop.from_ms)}`;
  return `${WHY[stop.why] || WHY.ended}, ${span}`;
}

/** Draws the hatch of each stop behind the chart. */
export function drawStops(plot, stops) {
  const { ctx, bbox } = plot;
  ctx.save();
  clip(plot);
  for (const stop of stops) {
    const [from, to] = [stop.from_ms, stop.to_ms].map((at) => plot.valToPos(at / 1000, "x", true));
    ctx.fillStyle = hatch(plot, BAD.has(stop.why) ? "--bad" : "--ink-3");
    ctx.fillRect(from, bbox.top, Math.max(to - from, 1), bbox.height);
  }
  ctx.restore();
}

/**
 * Draws the batches that began at `times` and took `durations` (ms), with one color for each series. Stacked values are
 * parts of one bar; otherwise the first series is the bar, and each other one a mark at its height.
 */
export function drawBars(plot, { times, durations, colors, isStacked }) {
  const { ctx } = plot;
  const ratio = devicePixelRatio || 1;
  const bottom = plot.valToPos(0, "y", true);
  const starts = times.map((at) => plot.valToPos(at, "x", true));
  const widths = times.map((at, index) => {
    const width = plot.valToPos(at + durations[index] / 1000, "x", true) - starts[index];
    return Math.max(width > 4 * ratio ? width - ratio : width, LEAST_WIDTH * ratio); // a gap shows where one follows another
  });
  ctx.save();
  clip(plot);
  colors.forEach((fill, number) => {
    const isBar = isStacked || number === 0;
    ctx.fillStyle = fill;
    ctx.globalAlpha = isBar && !isStacked ? 0.6 : 1;
    plot.data[number + 1].forEach((value, index) => {
      if (value === null || value === undefined) return;
      const top = plot.valToPos(value, "y", true);
      if (isBar) ctx.fillRect(starts[index], top, widths[index], bottom - top);
      else ctx.fillRect(starts[index], Math.min(top, bottom - 2 * ratio) - ratio, Math.max(widths[index], 2 * ratio), 2 * ratio);
    });
  });
  ctx.restore();
}

/** Draws the batch that runs now: `{ from, to }` in seconds. Its height is its time in ms, or unknown. */
export function drawOpen(plot, { from, to }, height) {
  const { ctx } = plot;
  const ratio = devicePixelRatio || 1;
  const [left, right] = [from, to].map((at) => Math.round(plot.valToPos(at, "x", true))); // sharp edges
  const bottom = Math.round(plot.valToPos(0, "y", true));
  const top = height === null ? bottom - OPEN_HEIGHT * ratio : Math.round(plot.valToPos(height, "y", true));
  const width = Math.max(right - left, 2 * ratio);
  ctx.save();
  clip(plot);
  ctx.fillStyle = hatch(plot, "--accent");
  ctx.fillRect(left, top, width, bottom - top);
  ctx.strokeStyle = color("--accent");
  ctx.lineWidth = ratio;
  ctx.setLineDash([3 * ratio, 2 * ratio]);
  ctx.strokeRect(left + ratio / 2, top + ratio / 2, width - ratio, bottom - top);
  ctx.restore();
}

function clip({ ctx, bbox }) {
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
}

/** Returns a pattern of diagonal lines; a plot keeps its patterns until the theme changes. */
function hatch(plot, token) {
  plot.hatches ||= new Map();
  if (!plot.hatches.has(token)) plot.hatches.set(token, pattern(plot.ctx, color(token)));
  return plot.hatches.get(token);
}

function pattern(ctx, stroke) {
  const size = HATCH * (devicePixelRatio || 1);
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const pen = tile.getContext("2d");
  pen.strokeStyle = stroke;
  pen.globalAlpha = 0.4;
  pen.lineWidth = size / 8;
  for (const shift of [-size, 0, size]) {
    pen.moveTo(shift, size);
    pen.lineTo(shift + size, 0);
  }
  pen.stroke();
  return ctx.createPattern(tile, "repeat");
}
