// The page of one query: its figures, and tabs for charts, batches, SQL, columns, output, checks and history.

import { coded, h, icon, kindIcon, show } from "../../dom.js";
import { get, queryPath } from "../api.js";
import { BatchList } from "./batches.js";
import { checksTab } from "./checks.js";
import { CostCard } from "./cost.js";
import { showDescription } from "../description.js";
import { known, localTime, sentence, withLocalTimes } from "../format.js";
import { currentValue, expectedText, openAlerts, runningBatch } from "../freshness.js";
import { missingNotice, problemPage } from "../states.js";
import { historyTab } from "./history.js";
import { failureCard, failureOf, failureTexts, killedCard } from "./failure.js";
import { outputTab } from "./output.js";
import { backLink, docsLink, nodeLink, queryLink } from "../router.js";
import { columnsTab, scrollToMark, sqlTab } from "./sections.js";
import { stateOf, statusBadge } from "../status.js";
import { Tiles } from "./tiles.js";
import { Timeline } from "./timeline.js";

const TABS = [["charts", "Charts"], ["batches", "Batches"], ["sql", "SQL"], ["columns", "Columns"], ["output", "Output"], ["checks", "Plan and tests"], ["history", "History"]];
const LIVE_TABS = new Set(["charts", "batches"]);

export class QueryPage {
  constructor(container, store, { model, tab }) {
    Object.assign(this, { container, store, model, tab });
    this.title = h("h1", { tabindex: -1 }, model);
    this.badge = h("span.badge-box");
    this.meta = h("p.query-meta");
    this.description = h("div.description", { hidden: true });
    this.docs = h("a.button.quiet.docs", { hidden: true }, icon("doc"), "Docs");
    this.alarm = h("div.alarm");
    this.tiles = new Tiles();
    this.cost = new CostCard();
    this.tabs = h("nav.tabs", { "aria-label": "Parts of the query" });
    this.body = h("div.tab-body");
    this.changing = new Map();
    this.requests = new AbortController();
    this.leave = store.listen((change) => this.#changed(change));
    show(container, h("header.query-head", null, backLink(),
      h("div.query-title", null, kindIcon("query", true), this.title, this.badge, this.docs), this.meta, this.description), this.alarm, this.tiles.element, this.cost.element, this.tabs, this.body);
    this.#drawNow();
    this.#drawTabs();
    this.#load();
  }

  close() {
    this.leave();
    this.requests.abort();
    clearTimeout(this.later);
    this.part?.close?.();
    this.part = null;
  }

  /** Follows the address. */
  moved({ tab }) {
    if (tab === this.tab) {
      if (tab === "sql") this.#drawTab();
      this.part?.moved?.();
      return;
    }
    this.tab = tab;
    this.#drawTabs();
    this.#drawTab();
  }

  /** Goes to the next tab, or the one before. */
  step(by) {
    const index = TABS.findIndex(([name]) => name === this.tab) + by;
    location.hash = queryLink(this.model, TABS[(index + TABS.length) % TABS.length][0]);
  }

  get now() {
    return this.store.queries[this.model] || this.page?.now || null;
  }

  async #load() {
    const wasUnknown = !this.now;
    try {
      this.page = await get(queryPath(this.model), { target: this.store.target }, this.requests.signal);
      this.reads = (this.reads || 0) + 1;
    } catch (error) {
      if (error.name === "AbortError") return;
      show(this.container, backLink(), problemPage(error, null));
      return;
    }
    this.#describe();
    this.#drawNow();
    if (!this.part || !LIVE_TABS.has(this.tab)) this.#drawTab();
    else if (wasUnknown) this.part.moved?.(); // its default depends on what is known now
  }

  #describe() {
    const { unique_id: id, description_html: html } = this.page;
    this.docs.hidden = !id;
    if (id) this.docs.setAttribute("href", docsLink(this.page.target, id));
    if (this.shownDescription !== html) showDescription(this.description, html);
    this.shownDescription = html;
  }

  #changed(change) {
    if (change.tick) {
      this.#drawNow();
      this.part?.tick?.();
      return;
    }
    if (change.batches) {
      if (change.batches.model === this.model) this.part?.add?.(change.batches.rows);
      return;
    }
    if (change.project) this.#drawNow();
    const fields = change.queries?.get(this.model);
    if (!change.all && !fields) return;
    this.#drawNow();
    if (fields && ["status", "restarts", "silence", "alerts"].some((name) => name in fields)) {
      this.part?.changed?.();
      clearTimeout(this.later);
      this.later = setTimeout(() => this.#load(), 1_000);
    } else if (change.all) this.part?.changed?.();
  }

  #drawNow() {
    const { now, page } = this;
    document.title = `${this.model} · sqlstream`;
    if (!now) return;
    const state = stateOf(now);
    if (state !== this.state) show(this.badge, statusBadge(state));
    this.state = state;
    this.tiles.update(now);
    this.cost.update(now, this.store);
    const meta = [now.kind, now.trigger && `trigger ${now.trigger}`, now.sink && `into ${now.sink}`, known(now.version) && `version ${now.version}`, page?.path];
    const text = meta.filter(Boolean).join(" · ");
    const drawn = `${text} ${this.store.overview !== null}`;
    if (this.meta.dataset.text !== drawn) {
      this.meta.dataset.text = drawn;
      show(this.meta, meta.filter(Boolean).map((each, index) => [index ? " · " : "", each === `into ${now.sink}` ? ["into ", this.#sinkLinks(now.sink)] : each]));
    }
    this.#drawAlarm(now, state);
  }

  #sinkLinks(names) {
    const sinks = new Map((this.store.overview?.nodes || []).filter((node) => node.kind === "sink").map((node) => [node.name, node]));
    return names.split(", ").map((name, index) => [index ? ", " : "", sinks.has(name) ? h("a", { href: nodeLink(sinks.get(name)) }, name) : name]);
  }

  #drawAlarm(now, state) {
    const failure = failureOf(now, state);
    const [expected, running] = failure ? [null, null] : [expectedText(now), runningBatch(now)];
    const alerts = openAlerts(now);
    const drawn = JSON.stringify([state, failure, now.failed_at, this.reads, this.store.project?.target, now.silence, alerts.map((alert) => [alert.alert, alert.message]), Boolean(expected), Boolean(running)]);
    if (drawn !== this.drawnAlarm) this.#makeAlarm(now, state, failure, alerts, expected, running);
    this.drawnAlarm = drawn;
    const texts = { ...(failure ? failureTexts(failure, now, this.page) : {}), expected, running: running && `${sentence(running)}.` };
    for (const alert of alerts) texts[alert.alert] = alertFacts(alert, now);
    // what changes every second is changed in place, so that texts can be selected
    for (const [name, element] of this.changing) if (element.textContent !== texts[name]) element.textContent = texts[name];
  }

  #makeAlarm(now, state, failure, alerts, expected, running) {
    this.changing = new Map();
    const changing = (name, element) => {
      this.changing.set(name, element);
      return element;
    };
    const notice = (label, tone, symbol, ...content) => h(`section.card.notice${tone}`, { "aria-label": label }, icon(symbol), h("div", null, content));
    show(this.alarm,
      this.page && "is_removed" in this.page ? missingNotice(this.page) : null,
      failure ? failureCard(failure, now, this.page, this.store.project, changing) : null,
      state === "killed" ? killedCard(now, this.store.project) : null,
      !failure && state !== "killed" && now.silence && !expected ? notice("Why there is no output", ".warn", "warn", h("h2", null, "Why there is no output"), h("p", null, coded(withLocalTimes(now.silence.text))),
        h("p", null, h("a", { href: queryLink(this.model, "output") }, "When this query emits rows"))) : null,
      running ? notice("Running batch", "", "clock", changing("running", h("p"))) : null,
      expected ? notice("Next rows", "", "clock", changing("expected", h("p")), h("p.muted", null, withLocalTimes(now.silence.text))) : null,
      alerts.map((alert) => notice("Alert", ".warn", "warn", h("h2", null, `Alert: ${alert.alert || alert.kind || "raised"}`), h("p", null, alert.message || alert.text || ""),
        changing(alert.alert, h("p.muted")))));
  }

  /** Marks the tab that is shown; the focus follows it. */
  #drawTabs() {
    if (!this.tabs.childElementCount) show(this.tabs, TABS.map(([name, label]) => h("a", { href: queryLink(this.model, name), "data-tab": name }, label)));
    for (const each of this.tabs.children) {
      const isShown = each.dataset.tab === this.tab;
      if (isShown) each.setAttribute("aria-current", "page");
      else each.removeAttribute("aria-current");
      if (isShown && this.tabs.contains(document.activeElement)) each.focus();
    }
    const [tabs, chosen] = [this.tabs, this.tabs.querySelector("[aria-current]")].map((element) => element?.getBoundingClientRect());
    if (chosen) this.tabs.scrollLeft += chosen.left + chosen.width / 2 - tabs.left - tabs.width / 2;
  }

  #drawTab() {
    this.part?.close?.();
    this.part = null;
    if (LIVE_TABS.has(this.tab)) {
      this.part = this.tab === "charts" ? new Timeline(this.model, this.store, () => this.now) : new BatchList(this.model, this.store.target);
      show(this.body, this.part.element);
      return;
    }
    const make = { sql: sqlTab, columns: columnsTab, output: outputTab, checks: checksTab, history: historyTab }[this.tab];
    if (!make) show(this.body, h("p.loading", null, "This query has no such page."));
    else if (!this.page) show(this.body, h("p.loading", { role: "status" }, "Loading…"));
    else {
      show(this.body, make(this.page, this.store, this.requests.signal));
      if (this.scrolledTo !== location.hash) scrollToMark(this.body);
      this.scrolledTo = location.hash;
    }
  }
}

/** Returns since when an alert is open, and the value of now. */
function alertFacts(alert, now) {
  const value = currentValue(alert, now);
  return [alert.since && `since ${localTime(alert.since)}`, value && `now ${value}`].filter(Boolean).join("; ");
}
