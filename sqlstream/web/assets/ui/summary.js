// The figures of all queries together, and what needs somebody.

import { coded, h, icon, show } from "../dom.js";
import { ago, bytes, count, known, localTime, millis, rate, seconds, short, withLocalTimes } from "./format.js";
import { currentValue, openAlerts, watermarkBehind } from "./freshness.js";
import { queryLink } from "./router.js";
import { isAlive, lookOf, rankOf, since, stateOf, statusIcon, wordOf } from "./status.js";

const SHOWN_PROBLEMS = 6;

/** The line of figures; a click on a state filters the table by it. */
export class Figures {
  constructor(onFilter) {
    this.onFilter = onFilter;
    this.states = h("div.states", { role: "group", "aria-label": "Filter by status" });
    this.values = new Map(FIGURES.map(([name]) => [name, h("dd")]));
    this.element = h("section.figures", { "aria-label": "All queries together" }, this.states,
      h("dl", null, FIGURES.map(([name, label, hint]) => h("div", { title: hint }, h("dt", null, label), this.values.get(name)))));
  }

  update(queries) {
    const all = Object.values(queries);
    const counts = new Map();
    for (const query of all) {
      const state = stateOf(query);
      counts.set(state, (counts.get(state) || 0) + 1);
    }
    const drawn = JSON.stringify([...counts].sort());
    if (drawn !== this.drawn) this.#drawStates(counts);
    this.drawn = drawn;
    for (const [name, , , value] of FIGURES) {
      const text = value(all);
      const cell = this.values.get(name);
      if (cell.textContent !== text) cell.textContent = text;
    }
  }

  #drawStates(counts) {
    const states = [...counts].sort(([one], [other]) => rankOf(one) - rankOf(other));
    show(this.states, states.map(([state, number]) => h(`button.state-count.${lookOf(state)}`, {
      type: "button", onclick: () => this.onFilter(`status:${state}`), title: `Show only these: ${wordOf(state)}`,
    }, statusIcon(state), h("b", null, short(number)), h("span", null, wordOf(state).toLowerCase()))));
  }
}

const sum = (name) => (all) => all.reduce((total, query) => total + (query[name] || 0), 0);
const quarantined = (all) => {
  const names = new Set(all.flatMap((query) => query.quarantines || [])); // several queries can read the same source
  return sum("rows_in_quarantine")(all) + all.reduce((total, query) => total + (names.has(query.model) ? query.rows_out || 0 : 0), 0);
};
const top = (all, value) => all.map(value).filter(known).reduce((most, each) => (most === null || each > most ? each : most), null);

/** Returns the duration of the last batch of a query in ms, or of the one that runs if that is longer already. */
const longestBatch = (query) => Math.max(query.duration_ms || 0, isAlive(query) && query.open_batch ? 1_000 * (since(query.open_batch.since) || 0) : 0) || null;

const FIGURES = [
  ["input", "Rows in /s", "Rows per second that all queries read", (all) => rate(sum("input_rows_per_second")(all))],
  ["output", "Rows out /s", "Rows per second that all queries write", (all) => rate(sum("output_rows_per_second")(all))],
  ["slowest", "Slowest batch", "The longest of the last batches, and of those that run", (all) => millis(top(all, longestBatch))],
  ["behind", "Most behind", "The watermark of a running query that is furthest behind the clock", (all) => seconds(top(all, watermarkBehind))],
  ["state", "State", "Rows and memory that all queries keep", (all) => `${short(sum("state_rows")(all))} rows · ${bytes(sum("state_bytes")(all))}`],
  ["late", "Late rows", "Rows that came too late, in the newest runs", (all) => short(sum("late_rows")(all))],
  ["quarantined", "Quarantined", "Rows that violate data tests, and corrupt records, in quarantines", (all) => short(quarantined(all))],
  ["restarts", "Restarts", "Restarts after failures, in the newest runs", (all) => short(sum("restarts")(all))],
];

/** The list of what needs somebody: problems of the project, failures, alerts, and queries without output. */
export class Problems {
  constructor(onFilter) {
    this.onFilter = onFilter;
    this.items = [];
    this.list = h("ul");
    this.title = h("h2", { id: "problems-title" });
    this.element = h("section.card.problems", { "aria-labelledby": "problems-title", hidden: true },
      h("header", null, icon("warn"), this.title), this.list);
  }

  update(queries, texts) {
    const all = Object.values(queries).filter((query) => rankOf(stateOf(query)) < 5);
    const killed = [...byRun(all.filter((query) => stateOf(query) === "killed"))].map(killedProblem);
    const found = [...killed, ...all.filter((query) => stateOf(query) !== "killed").map(queryProblem)];
    found.sort((one, other) => one.rank - other.rank || order(one.since, other.since) || order(one.key, other.key));
    const drawn = JSON.stringify([texts, found.map((problem) => problem.key)]);
    // what changes every second is changed in place: a link keeps its focus, and a text its selection
    if (drawn !== this.drawn) this.#draw(texts, found);
    this.drawn = drawn;
    this.items.forEach((item, index) => item(found[index]));
  }

  #draw(texts, found) {
    const total = found.length + texts.length;
    this.element.hidden = total === 0;
    this.title.textContent = count(total, "problem");
    const rest = found.length - SHOWN_PROBLEMS;
    const shown = found.slice(0, SHOWN_PROBLEMS).map(problemItem);
    this.items = shown.map(([, change]) => change);
    show(this.list, texts.map((text) => h("li", null, statusIcon("error"), h("span.what", null, h("pre", null, text)))),
      shown.map(([element]) => element),
      rest > 0 ? h("li.more", null, h("button.button.quiet", { type: "button", onclick: () => this.onFilter("is:attention") }, `Show ${rest} more in the table`)) : null);
  }
}

/** Returns the element of a problem, and a function that shows what has changed about it. */
function problemItem({ state, model }) {
  const [when, what] = [h("span.when"), h("span.what")];
  const change = (problem) => {
    if (when.textContent !== problem.when) when.textContent = problem.when;
    if (what.title === problem.text) return;
    what.title = problem.text;
    show(what, coded(problem.text));
  };
  const head = model ? [h("a", { href: queryLink(model) }, model), h("span.word", null, wordOf(state))] : [];
  return [h(model ? `li.${state}` : "li.killed", null, statusIcon(state), head, when, what), change];
}

function queryProblem(query) {
  const state = stateOf(query);
  const since = sinceOf(query);
  return { key: `${query.model} ${state}`, state, model: query.model, rank: rankOf(state), since, when: since ? ago(since) : "", text: problemText(query) };
}

/** Returns the problem of a run that was killed with its queries: which ones, when, and what to do. */
function killedProblem([run, queries]) {
  const names = queries.map((query) => query.model).sort();
  const what = names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");
  const since = queries.map((query) => query.heard_at).filter(Boolean).sort().at(-1) || null;
  const text = `Run ${(run || "").slice(0, 8)} was killed with ${what}; \`sqlstream run\` continues them${since ? `. Its last event was at ${localTime(since, true)}` : ""}`;
  return { key: `run ${run} ${what}`, state: "killed", model: null, rank: rankOf("killed"), since, when: since ? ago(since) : "", text };
}

function byRun(queries) {
  const runs = new Map();
  for (const query of queries) runs.set(query.run, [...(runs.get(query.run) || []), query]);
  return runs;
}

function problemText(query) {
  if (stateOf(query) === "alert") return openAlerts(query).map((alert) => alertText(alert, query)).join("; ");
  const failure = query.error || (query.status === "restarting" || !query.silence ? query.last_failure : null);
  if (failure) return [failure.message, failure.why].filter(Boolean).join("; ");
  return query.silence ? withLocalTimes(query.silence.text) : "";
}

function alertText(alert, query) {
  const value = currentValue(alert, query);
  return (alert.message || alert.text || alert.alert || alert.kind) + (value ? ` (now ${value})` : "");
}

/** Returns since when a query has its problem (ISO 8601), null if that is unknown. */
function sinceOf(query) {
  const state = stateOf(query);
  if (state === "alert") return openAlerts(query).map((alert) => alert.since).filter(Boolean).sort()[0] || null;
  return state === "error" || state === "restarting" ? query.failed_at || query.heard_at : null;
}

/** Compares two values for sorting; null is last. */
function order(one, other) {
  if (one === other) return 0;
  if (one === null || other === null) return one === null ? 1 : -1;
  return one < other ? -1 : 1;
}
