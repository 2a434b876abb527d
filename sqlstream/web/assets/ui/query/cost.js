// Where the time of a query's recent batches goes, what would help most, and what the query costs.

import { coded, h, show } from "../../dom.js";
import { count, exact, known, millis, NONE, rate, short } from "../format.js";
import { drawParts, PARTS, partsBar } from "../parts.js";

const WAITING = { name: "waiting_ms", label: "Waiting", color: "--part-rest", title: "between batches: the query waits for its trigger, or for input" };

// the names of parts in full: a legend has more room than a chart
const LABELS = { add_batch_ms: "Reading, computing and writing", wal_ms: "Committing" };

/** Returns the share of a query in the core time of its run (0 to 1), null if unknown. `queries` are all, `runs` the known runs. */
function shareOf(now, queries, runs) {
  const run = (runs || []).findIndex((each) => each.id === now.run);
  // later runs may have queries of an earlier one
  const isComplete = run === 0 || runs?.[run]?.life === "running";
  const times = isComplete ? Object.values(queries).filter((each) => each.run === now.run).map((each) => each.core_ms) : [];
  const total = times.every(known) ? times.reduce((sum, each) => sum + each, 0) : 0;
  return known(now.core_ms) && total > 0 ? now.core_ms / total : null;
}

/** Returns a part of a whole in percent, in digits that can be told apart from 0 and 100. */
function percent(part) {
  const value = 100 * part;
  if (value > 0 && value < 1) return "<1 %";
  return value > 99 && value < 100 ? ">99 %" : `${Math.round(value)} %`;
}

export class CostCard {
  constructor() {
    this.bar = partsBar();
    this.parts = h("ul.legend.time-parts");
    this.advice = h("p.advice");
    this.time = h("div.time-use", null, h("h2", null, "Where the time goes"), this.bar, this.parts, this.advice);
    this.figures = ["per hour", "per million rows", "of the run"].map((label) => ({ label: h("dt", null, label), value: h("dd") }));
    this.cost = h("div.cost", null, h("h2", null, "Cost"), h("dl", null, this.figures.map((each) => h("div", null, each.value, each.label))));
    this.element = h("section.card.cost-card", { "aria-label": "Where the time goes, and what it costs" }, this.time, this.cost);
  }

  /** Shows a query as it is now. */
  update(now, store) {
    const share = shareOf(now, store.queries, store.overview?.runs);
    this.element.hidden = !now.time && !known(now.core_ms);
    const drawn = JSON.stringify([now.time, now.cost, share]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.#drawCost(now, share);
    this.#drawTime(now.time);
  }

  #drawCost(now, share) {
    this.cost.hidden = !known(now.core_ms);
    const seconds = (value) => (known(value) ? `${value < 100 ? rate(value) : short(Math.round(value))} core s` : NONE);
    const texts = [seconds(now.cost.core_seconds_per_hour), seconds(now.cost.core_seconds_per_million_rows), known(share) ? percent(share) : NONE];
    this.figures.forEach((each, index) => { each.value.textContent = texts[index]; });
    this.cost.title = known(now.core_ms) ? `${exact(now.core_ms / 1_000)} core seconds in ${count(now.tasks, "task")} since the query started in its run; a core second is a core that a task occupies for a second` : "";
  }

  #drawTime(time) {
    this.time.hidden = !time;
    if (!time) return;
    drawParts(this.bar, time, 1 - time.waiting_ms / time.span_ms);
    this.time.title = `of the last ${count(time.batches, "batch", "batches")}, which took ${millis(time.span_ms)} together with the time between them`;
    show(this.parts, [...PARTS, WAITING].filter(({ name }) => time[name] > 0).map((part) => {
      const swatch = h("i.swatch", { class: part === WAITING ? "rest" : null });
      swatch.style.background = `var(${part.color})`;
      return h("li", { title: `${millis(time[part.name])}: ${part.title}` }, swatch, LABELS[part.name] || part.label, h("b", null, percent(time[part.name] / time.span_ms)), details(part.name, time));
    }));
    const { advice } = time;
    this.advice.hidden = !advice;
    show(this.advice, h("b", null, "What would help most: "), advice ? coded(advice.text) : null);
  }
}

/** Returns what is known about the largest part: the cores in use, and how much of the tasks' time is for state. */
function details(name, { cores, cores_used: used, state_share: state }) {
  if (name !== "add_batch_ms") return null;
  const texts = [known(used) && known(cores) && `${used.toFixed(1)} of ${count(cores, "core")}`, known(state) && `${percent(state)} of its tasks' time writes state`];
  const text = texts.filter(Boolean).join(", ");
  return text ? h("span.muted", null, ` (${text})`) : null;
}
