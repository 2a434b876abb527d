// The charts of a query over a range of time, renewed by new batches.

import { h, icon, show } from "../../dom.js";
import { get, queryPath } from "../api.js";
import { Chart, markerLegend } from "./chart.js";
import { localTime, utcTime } from "../format.js";
import { route, setParameters } from "../router.js";
import { isAlive } from "../status.js";
import { CHARTS, NAMES, RANGES, RUN } from "./series.js";
import { showVerdict } from "./verdict.js";

const POINTS = 800;
const RENEW_MS = 30_000;
const DEFAULT_RANGE = "1h";
const DAY_MS = 86_400_000;
const RESOLUTIONS = { batch: "each point is a batch", "5m": "each point is 5 minutes or more", "2h": "each point is 2 hours or more" };

export class Timeline {
  /** `now()` returns what is known of the query, null if nothing is. */
  constructor(model, store, now) {
    Object.assign(this, { model, store, target: store.target, now });
    this.charts = CHARTS.map((spec) => new Chart(spec, {
      onZoom: (from, to) => this.setRange({ range: null, from: Math.floor(from * 1000), to: Math.ceil(to * 1000) }),
      onReset: () => this.setRange({ range: null }),
    }));
    this.buttons = h("div.ranges", { role: "group", "aria-label": "Range of time" }, RANGES.map(([name, label]) =>
      h("button.button", { type: "button", "data-range": name, onclick: () => this.setRange({ range: name }) }, label)));
    this.shown = h("span.shown", { role: "status" });
    this.markers = h("span.legend.markers");
    this.grid = h("div.charts", null, this.charts.map((chart) => chart.element));
    this.element = h("div.timeline", null,
      h("div.timeline-bar", null, this.buttons, this.reset = h("button.button.quiet", { type: "button", hidden: true, onclick: () => this.setRange({ range: null }) }, icon("close"), "End the zoom"), this.shown, h("span.spread"), this.markers),
      this.grid);
    this.observer = new ResizeObserver(() => this.charts.forEach((chart) => chart.resize()));
    this.observer.observe(this.grid);
    this.renew = () => this.charts.forEach((chart) => chart.renew());
    document.addEventListener("themechange", this.renew);
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.dark.addEventListener("change", this.renew);
    this.timer = setInterval(() => this.#tick(), RENEW_MS);
    this.#readRange();
    this.load();
  }

  close() {
    this.closed = true;
    this.request?.abort();
    clearInterval(this.timer);
    clearTimeout(this.later);
    this.observer.disconnect();
    document.removeEventListener("themechange", this.renew);
    this.dark.removeEventListener("change", this.renew);
    for (const chart of this.charts) chart.close();
  }

  /** Follows the address. */
  moved() {
    const before = `${this.name} ${this.from} ${this.to}`;
    this.#readRange();
    if (before !== `${this.name} ${this.from} ${this.to}`) this.load();
  }

  /** Shows another range: `{ range }`, or `{ from, to }` in ms. */
  setRange({ range, from = null, to = null }) {
    setParameters({ range, from, to }, true);
    this.moved();
  }

  #readRange() {
    const { range, from, to } = route().parameters;
    const isFixed = Number(from) > 0 && Number(to) > Number(from);
    this.name = isFixed ? null : RANGES.some(([name]) => name === range) ? range : this.#defaultRange();
    this.from = isFixed ? Number(from) : null;
    this.to = isFixed ? Number(to) : null;
    for (const button of this.buttons.children) button.setAttribute("aria-pressed", String(button.dataset.range === this.name));
    this.reset.hidden = !isFixed;
  }

  /** Returns the range without one in the address: a run that has ended is shown as a whole. */
  #defaultRange() {
    const run = runSpan(this.now());
    return run && !run.isLive ? RUN : DEFAULT_RANGE;
  }

  #span() {
    if (this.to !== null) return [this.from, this.to];
    const run = this.name === RUN ? runSpan(this.now()) : null;
    if (run) return [run.from, run.to];
    const length = RANGES.find(([name]) => name === (this.name === RUN ? DEFAULT_RANGE : this.name))[2];
    return [Date.now() - length, Date.now()];
  }

  /** Reads the range. `isRenewal`: it is shown already, so the charts stay as they are until the answer. */
  async load(isRenewal = false) {
    this.request?.abort();
    const request = (this.request = new AbortController());
    const [from, to] = this.#span();
    const range = { target: this.target, from, to };
    if (!isRenewal) this.element.setAttribute("aria-busy", "true");
    try {
      const [found, { events }] = await Promise.all([
        get(queryPath(this.model, "series"), { ...range, points: POINTS, names: NAMES.join(",") }, request.signal),
        get(queryPath(this.model, "events"), { ...range, limit: 300 }, request.signal),
      ]);
      const { t: times, series, resolution, stops, verdict } = found;
      Object.assign(this, { times, series, resolution, stops, verdict, events });
      this.error = null;
      this.#draw();
    } catch (error) {
      if (error.name === "AbortError") return;
      show(this.shown, h("span.error", { role: "alert" }, error.message));
    } finally {
      if (request === this.request) this.element.removeAttribute("aria-busy");
    }
  }

  /** Adds new batches if each point is a batch. */
  add(rows) {
    if (this.to !== null || this.resolution !== "batch") return;
    const last = this.times.at(-1) || 0;
    for (const row of rows) {
      const at = row.at_ms / 1000;
      if (at <= last) continue;
      this.times.push(at);
      for (const name of NAMES) this.series[name]?.push(valueOf(row, name));
    }
    const [from] = this.#span();
    let gone = this.times.findIndex((at) => at * 1000 >= from);
    gone = gone < 0 ? this.times.length : gone;
    if (gone) {
      this.times.splice(0, gone);
      for (const values of Object.values(this.series)) values.splice(0, gone);
    }
    this.#draw();
  }

  /** Reads the events again soon: the state of the query has changed. */
  changed() {
    clearTimeout(this.later);
    this.later = setTimeout(() => this.load(Boolean(this.times)), 1_500);
  }

  /** Follows the clock: the batch that runs now gets longer. */
  tick() {
    if (!this.times || this.to !== null || this.resolution !== "batch") return;
    const [open, to] = [this.#open(), this.#span()[1] / 1000];
    for (const chart of this.charts) chart.tick(open, to);
  }

  /** Returns the batch that runs now, null if there is none. */
  #open() {
    const now = this.now();
    const since = now && isAlive(now) && this.to === null ? new Date(now.open_batch?.since).getTime() : Number.NaN;
    return Number.isNaN(since) ? null : { from: since / 1000, to: Date.now() / 1000 };
  }

  #tick() {
    const isOver = this.name === RUN && runSpan(this.now())?.isLive === false;
    if (this.to === null && !isOver && !document.hidden && !this.store.isPaused) this.load(Boolean(this.times));
  }

  #draw() {
    if (this.closed) return;
    const isRaw = this.resolution === "batch";
    if (isRaw) delete this.series.duration_max_ms; // it is the duration
    const [from, to] = this.#span();
    const { times, series, events, stops } = this;
    for (const chart of this.charts) {
      chart.draw({ times, series, from: from / 1000, to: to / 1000, events, stops, isRaw, open: isRaw ? this.#open() : null });
      if (chart.verdict) showVerdict(chart.verdict, this.verdict);
    }
    this.#showGroups();
    markerLegend(this.markers, events, stops);
    const withDate = to - from >= DAY_MS || this.to !== null;
    const text = `${localTime(from, withDate)} – ${localTime(to, withDate)} · ${RESOLUTIONS[this.resolution]}`;
    if (this.shown.textContent !== text) this.shown.textContent = text;
    this.shown.title = `${utcTime(from)} – ${utcTime(to)}`;
  }

  /** Hides the charts of a group that have no values, but not all of them. */
  #showGroups() {
    for (const chart of this.charts) {
      const group = this.charts.filter((each) => each.spec.group && each.spec.group === chart.spec.group);
      const hasValues = group.some((each) => !each.isEmpty);
      chart.element.hidden = group.length > 0 && chart.isEmpty && (hasValues || chart !== group[0]);
    }
  }
}

/** Returns the span of the newest run of a query in ms, with a small margin. `isLive`: it has not ended. */
function runSpan(now) {
  const from = now?.started_at ? new Date(now.started_at).getTime() : Number.NaN;
  if (Number.isNaN(from)) return null;
  const isLive = isAlive(now);
  const to = isLive ? Date.now() : from + (now.duration_seconds || 0) * 1_000;
  const margin = Math.max((to - from) * 0.02, 500);
  return { from: Math.floor(from - margin), to: Math.ceil(to + margin), isLive };
}

function valueOf(row, name) {
  if (name === "duration_max_ms") return row.duration_ms;
  return row[name] ?? null;
}
