// One chart, drawn by uPlot: synchronized cursor, legend with values, drag to zoom, markers, batches as bars, and stops.

import { color, h, show } from "../../dom.js";
import { known, localTime, NONE } from "../format.js";
import { heightOf, labels, timeLabels, widthOf } from "./axes.js";
import { drawBars, drawOpen, drawStops, stopText } from "./bars.js";
import { markerOf } from "./series.js";

const HEIGHT = 154;
const SYNC = "query";
const MOST_OPEN = 3; // a batch that runs for longer than three times the slowest one does not hide the others
const NEAR = 6; // pixels from a marker to the cursor

/** `options`: `onZoom(fromSeconds, toSeconds)`, `onReset()`. */
export class Chart {
  constructor(spec, options) {
    this.spec = spec;
    this.options = options;
    this.values = spec.series.map(() => h("b", null, NONE));
    this.keys = h("span.keys", null, spec.series.map((each, index) => this.#key(each, index)));
    this.box = h("div.plot", { role: "img", "aria-label": spec.title });
    this.note = h("p.chart-note", { hidden: true }, spec.none);
    this.hover = h("div.plot-note", { hidden: true });
    this.element = h("section.card.chart", { class: spec.isWide ? "wide" : null, "aria-label": spec.title },
      h("header", null, h("h3", null, spec.title), h("span.unit", null, spec.unit), h("span.spread"), this.keys),
      this.verdict = spec.hasVerdict ? h("p.verdict", { role: "status" }) : null, h("div.plot-box", null, this.box, this.hover), this.note);
    this.markers = this.stops = [];
  }

  #key(each, index) {
    const swatch = h("i.line");
    swatch.style.borderTopColor = `var(${each.color})`;
    swatch.style.borderTopStyle = each.dash ? (each.dash[0] < 4 ? "dotted" : "dashed") : "solid";
    return h("span.key", null, swatch, each.scale ? `${each.label} (right)` : each.label, this.values[index]);
  }

  /**
   * Shows `times` (seconds) with `series` (by name) from `from` to `to` (seconds), markers of `events`, and `stops`.
   * `isRaw`: each point is a batch; `open` is the one that runs now, `{ from, to }` in seconds, or null.
   */
  draw({ times, series, from, to, events, stops, isRaw, open }) {
    this.raw = this.spec.series.map((each) => valuesOf(each, series, times));
    const isEmpty = this.spec.hidesZeros ? this.raw.every((values) => !values.some(Boolean)) : this.raw.every((values) => !values.some(known));
    this.isEmpty = isEmpty;
    this.note.hidden = !isEmpty;
    this.box.hidden = isEmpty;
    this.keys.hidden = isEmpty;
    Object.assign(this, { times, markers: events, stops });
    const hasBars = Boolean(this.spec.bars && isRaw);
    if (isEmpty || hasBars !== this.hasBars) this.#destroy();
    this.hasBars = hasBars;
    this.durations = hasBars ? series.duration_ms : null;
    this.open = hasBars ? open : null;
    if (isEmpty) return;
    const data = [times, ...(this.spec.stacked ? stack(this.raw, this.spec.series) : this.raw)];
    this.range = [from, to];
    if (!this.plot) this.plot = new uPlot(this.#options(), data, this.box);
    else this.plot.setData(data);
    this.plot.setScale("x", { min: from, max: to });
    this.#showValues(this.plot.cursor.idx);
    [...this.keys.children].forEach((key, number) => { key.hidden = !this.raw[number].some(known); });
    this.#describe();
  }

  /** Shows how long the batch that runs now has taken, and moves the end of the range to now. */
  tick(open, to) {
    if (!this.plot || !this.hasBars || (!open && !this.open)) return;
    this.open = open;
    this.range[1] = to;
    this.plot.setScale("x", { min: this.range[0], max: to });
  }

  /** Makes the chart again, with the colors and the width of now. */
  renew() {
    if (!this.plot) return;
    const { data } = this.plot;
    this.#destroy();
    this.plot = new uPlot(this.#options(), data, this.box);
  }

  /** Fits the chart to its box. */
  resize() {
    const width = this.box.clientWidth;
    if (this.plot && width && Math.abs(this.plot.width - width) > 1) this.plot.setSize({ width, height: HEIGHT });
  }

  close() {
    this.#destroy();
  }

  #destroy() {
    this.plot?.destroy();
    this.plot = null;
    this.hover.hidden = true;
  }

  #options() {
    const [ink, line] = [color("--ink-3"), color("--line")];
    const font = "11px system-ui, sans-serif";
    const axis = { stroke: ink, font, grid: { stroke: line, width: 1 }, ticks: { show: false } };
    const second = this.spec.series.find((each) => each.scale);
    const { stacked: isStacked } = this.spec;
    const bars = this.spec.series.filter((each) => !each.isTotal);
    const colors = bars.map((each) => color(each.color));
    return {
      width: this.box.clientWidth || 560, height: HEIGHT, padding: [10, second ? 0 : 26, 0, 0], legend: { show: false },
      cursor: {
        sync: { key: SYNC, setSeries: false }, drag: { x: true, y: false, setScale: false }, points: { size: 6 },
        bind: { dblclick: () => () => { this.options.onReset(); return null; } },
      },
      scales: { x: { time: true, range: () => this.range }, y: { range: (plot, low, high) => [Math.min(low ?? 0, 0), Math.max(high || 1, Math.min(this.#openHeight() || 0, (high || Infinity) * MOST_OPEN)) * 1.08] }, right: { range: (plot, low, high) => [0, (high || 1) * 1.08] } },
      axes: [
        { ...axis, size: heightOf, space: 70, values: timeLabels },
        { ...axis, size: widthOf, space: 28, ...(this.spec.steps ? { incrs: this.spec.steps } : {}), values: labels(this.spec.format) },
        ...(second ? [{ ...axis, scale: second.scale, side: 1, size: widthOf, space: 30, grid: { show: false }, values: labels(second.format || this.spec.format) }] : []),
      ],
      series: [{}, ...this.spec.series.map((each) => seriesOf(each, this.spec, this.hasBars))],
      bands: isStacked && !this.hasBars ? bands(this.spec.series) : [],
      hooks: {
        drawClear: [(plot) => drawStops(plot, this.stops)],
        drawAxes: [(plot) => this.hasBars && drawBars(plot, { times: this.times, durations: this.durations, colors, isStacked })],
        setCursor: [(plot) => this.#showValues(plot.cursor.idx), (plot) => this.#explain(plot)],
        setSelect: [(plot) => this.#selected(plot)],
        draw: [(plot) => this.open && drawOpen(plot, this.open, this.#openHeight()), (plot) => drawMarkers(plot, this.markers)],
      },
    };
  }

  /** Returns how long the batch that runs now has taken in ms, null if the chart does not show durations. */
  #openHeight() {
    return this.open && this.spec.stacked ? Math.max((this.open.to - this.open.from) * 1_000, 0) : null;
  }

  /** Says what the marker or the stop under the cursor is. */
  #explain(plot) {
    const { left, event } = plot.cursor;
    const text = event && left >= 0 ? this.#textAt(plot, left) : null;
    this.hover.hidden = !text;
    if (!text) return;
    if (this.hover.textContent !== text) this.hover.textContent = text;
    const [offset, width] = [plot.over.offsetLeft, this.box.clientWidth];
    const isLeft = left < plot.over.clientWidth / 2;
    this.hover.style.left = isLeft ? `${offset + left + 10}px` : "auto";
    this.hover.style.right = isLeft ? "auto" : `${width - offset - left + 10}px`;
  }

  #textAt(plot, left) {
    const near = this.markers.find((event) => Math.abs(plot.valToPos(event.at_ms / 1000, "x") - left) <= NEAR);
    if (near) return [markerOf(near).word, near.detail.finding?.message || near.detail.error?.message || near.detail.message, localTime(near.at_ms)].filter(Boolean).join(" · ");
    const at = plot.posToVal(left, "x") * 1000;
    const stop = this.stops.find((each) => each.from_ms <= at && at <= each.to_ms);
    return stop ? stopText(stop) : null;
  }

  #selected(plot) {
    const { left, width } = plot.select;
    if (width < 4) return;
    const [from, to] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
    plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    if (plot.cursor.event) this.options.onZoom(from, to); // not for the charts that only follow the cursor
  }

  /** Shows the values at a point, by default the last known ones. */
  #showValues(index) {
    this.spec.series.forEach((each, number) => {
      const values = this.raw[number];
      const value = known(index) ? valueAt(values, index) : values.findLast(known);
      const text = known(value) ? (each.format || this.spec.format)(value) : NONE;
      if (this.values[number].textContent !== text) this.values[number].textContent = text;
    });
  }

  #describe() {
    const parts = this.spec.series.map((each, number) => {
      const format = each.format || this.spec.format;
      const values = this.raw[number].filter(known);
      return values.length ? `${each.label}: last ${format(values.at(-1))}, highest ${format(values.reduce((top, value) => Math.max(top, value)))}` : null;
    });
    const stops = this.stops.length ? `. ${this.stops.slice(-3).map(stopText).join(". ")}` : "";
    this.box.setAttribute("aria-label", `${this.spec.title}. ${parts.filter(Boolean).join(". ")}${stops}`);
  }
}

/** Returns the values of a series: null breaks its line, undefined does not, as between two readings of a lag. */
function valuesOf(each, series, times) {
  const values = series[each.name] || times.map(() => null);
  return each.isSparse ? values.map((value, index) => value ?? (known(series.duration_ms[index]) ? undefined : null)) : values;
}

/** Returns the value at a point; of a sparse series the last one before it. */
function valueAt(values, index) {
  let at = index;
  while (at > 0 && values[at] === undefined) at -= 1;
  return values[at];
}

function seriesOf(each, spec, isBar) {
  const stroke = color(each.color);
  const isArea = spec.stacked && !each.isTotal;
  return {
    label: each.label, scale: each.scale || "y", stroke, width: isArea ? 1 : 1.5, dash: each.dash,
    fill: each.fill ? faded(stroke, isArea ? 0.75 : 0.13) : undefined, points: isBar ? { show: false } : { size: 4 },
    ...(isBar ? { paths: () => null } : {}),
  };
}

/** Returns a color with an opacity; `color()` gives the forms rgb(...) and color(...). */
function faded(text, opacity) {
  const [, red, green, blue] = /^rgb\((\d+), (\d+), (\d+)\)$/.exec(text) || [];
  return red ? `rgba(${red}, ${green}, ${blue}, ${opacity})` : text;
}

/** Returns the sums of each series with those after it, so that the first is on top. */
function stack(raw, series) {
  const found = raw.map((values) => values);
  let sums = null;
  for (let number = series.length - 1; number >= 0; number -= 1) {
    if (series[number].isTotal) continue;
    const below = sums;
    sums = raw[number].map((value, index) => (known(value) ? value + (below ? below[index] || 0 : 0) : null));
    found[number] = sums;
  }
  return found;
}

function bands(series) {
  const areas = series.filter((each) => !each.isTotal).length;
  return Array.from({ length: areas - 1 }, (_, index) => ({ series: [index + 1, index + 2] }));
}

function drawMarkers(plot, events) {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio || 1;
  ctx.save();
  for (const event of events) {
    const at = event.at_ms / 1000;
    if (at < plot.scales.x.min || at > plot.scales.x.max) continue;
    const { look, color: token } = markerOf(event);
    const x = Math.round(plot.valToPos(at, "x", true)) + 0.5;
    ctx.strokeStyle = ctx.fillStyle = markerColor(plot, token);
    ctx.lineWidth = ratio;
    ctx.setLineDash([2 * ratio, 3 * ratio]);
    ctx.globalAlpha = 0.55;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.globalAlpha = 1;
    ctx.setLineDash([]);
    drawShape(ctx, look, x, bbox.top - 3 * ratio, 4 * ratio);
  }
  ctx.restore();
}

function markerColor(plot, token) {
  plot.markerColors ||= new Map();
  if (!plot.markerColors.has(token)) plot.markerColors.set(token, color(token));
  return plot.markerColors.get(token);
}

function drawShape(ctx, look, x, y, size) {
  const line = { up: [[-1, 1], [0, -1], [1, 1]], diamond: [[0, -1.2], [1.2, 0], [0, 1.2], [-1.2, 0]], bar: [[-1, -0.5], [1, -0.5], [1, 0.5], [-1, 0.5]] }[look];
  ctx.beginPath();
  if (look === "circle") ctx.arc(x, y, size * 0.9, 0, 7);
  if (line) line.forEach(([dx, dy], index) => ctx[index ? "lineTo" : "moveTo"](x + dx * size, y + dy * size));
  if (look === "cross") {
    ctx.lineWidth *= 2;
    for (const sign of [-1, 1]) {
      ctx.moveTo(x - size, y - size * sign);
      ctx.lineTo(x + size, y + size * sign);
    }
    ctx.stroke();
  } else ctx.fill();
}

/** Shows the legend of the markers of `events`, and of `stops`. */
export function markerLegend(box, events, stops) {
  const kinds = new Map(events.map((event) => [markerOf(event).word, markerOf(event)]));
  const shapes = { up: "▲", cross: "✕", bar: "▬", circle: "●", diamond: "◆" };
  show(box, [...kinds].map(([word, { look, color: token }]) => {
    const shape = h("i.marker", { "aria-hidden": "true" }, shapes[look]);
    shape.style.color = `var(${token})`;
    return h("span", null, shape, word);
  }), stops.length ? h("span", null, h("i.hatch", { "aria-hidden": "true" }), "not running") : null);
}
