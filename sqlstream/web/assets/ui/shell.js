// The bar at the top: project, target, runs, connection, theme, and the help for keys.

import { brand, brandName, h, icon, readSetting, show, themeButton, writeSetting } from "../dom.js";
import { searchButton } from "../search.js";
import { localTime, seconds, timeElement } from "./format.js";
import { docsLink, link, overviewLink, route } from "./router.js";
import { liveSearch } from "./search.js";
import { statusBadge } from "./status.js";

const KEYS = [
  ["/", "Filter the queries"],
  ["Ctrl K", "Search queries, views, sources, columns and SQL"],
  ["g o", "Go to the overview"],
  ["↑ ↓", "Move in the table; Enter opens a query"],
  ["[ ]", "Previous or next tab of a query"],
  ["t", "Dark or light"],
  ["Esc", "Clear the filter, close, or go back to the overview"],
  ["?", "Show these keys"],
];

/** The setting that is "off" if keys without Ctrl or Alt do nothing, for those who speak to their computers. */
export const KEYS_SETTING = "keys";
const LIVES = { running: "running", ended: "success", killed: "killed", elsewhere: "unknown" };

export class Shell {
  constructor(bar) {
    this.home = brand(overviewLink(), "");
    this.name = this.home.lastChild;
    this.docs = h("a.button.quiet", { href: docsLink(null), "aria-label": "Docs" }, icon("doc"), h("span.wide-only", null, "Docs"));
    const search = searchButton(liveSearch(() => this.store), "Ctrl K");
    this.target = h("select.input.target", { "aria-label": "Target", hidden: true, onchange: () => this.#chooseTarget() });
    this.runs = h("button.button.quiet.runs", { type: "button", "aria-haspopup": "dialog", onclick: () => this.showRuns() });
    this.connection = h("span.connection", { role: "status" });
    this.pause = h("button.button.quiet.wide-only", { type: "button", onclick: () => this.store?.pause(!this.store.isPaused) });
    this.theme = themeButton();
    const help = h("button.button.quiet.wide-only", { type: "button", "aria-label": "Keys", title: "Keys (?)", onclick: () => this.showKeys() }, h("kbd", null, "?"));
    show(bar, this.home, this.target, this.runs, h("span.spread"), this.connection, this.pause, search, this.docs, this.theme, help);
    this.timer = setInterval(() => this.#drawConnection(), 1_000);
  }

  /** Follows another store. */
  follow(store) {
    this.store = store;
    store.listen((change) => {
      if (change.connection) this.#drawConnection();
      if (change.all || change.project || change.runs) this.#draw();
    });
    this.#drawConnection();
  }

  #draw() {
    const { project, overview } = this.store;
    this.home.setAttribute("href", overviewLink());
    if (project) {
      show(this.name, brandName(project.project));
      this.docs.setAttribute("href", docsLink(project.target));
      this.target.hidden = project.targets.length < 2;
      show(this.target, project.targets.map((name) => h("option", { value: name }, name)));
      this.target.value = project.target;
    }
    const runs = overview?.runs || [];
    const running = runs.filter((run) => run.life === "running").length;
    const text = running ? `${running} running` : runs.length ? `last run ${localTime(runs[0].heard_at)}` : "no run yet";
    if (this.runs.textContent !== `Runs: ${text}`) { // what is replaced between press and release of the mouse gets no click
      show(this.runs, icon("clock"), h("span", null, h("span.visually-hidden", null, "Runs: "), text));
    }
  }

  #drawConnection() {
    if (!this.store) return;
    const { state, since } = this.store.connection;
    const lost = `Disconnected since ${localTime(since)} (${seconds(Math.round((Date.now() - since) / 1000))}), reconnecting…`;
    const text = { live: "Live", connecting: "Connecting…", lost, paused: `Paused since ${localTime(since)}` }[state];
    this.connection.dataset.state = state;
    const label = state === "paused" ? "Continue live updates" : "Pause live updates";
    if (this.pause.title !== label) {
      show(this.pause, icon(state === "paused" ? "query" : "idle"));
      this.pause.title = label;
      this.pause.setAttribute("aria-label", label);
    }
    document.documentElement.classList.toggle("disconnected", state === "lost");
    if (this.connection.textContent === text) return;
    show(this.connection, h("i", { "aria-hidden": "true" }), h("span", null, text));
    this.connection.title = state === "live" ? `Updates arrive once a second. Times are those of ${Intl.DateTimeFormat().resolvedOptions().timeZone}.` : text;
  }

  #chooseTarget() {
    const { view, model, parameters } = route();
    location.hash = link(view === "query" ? `query/${encodeURIComponent(model)}` : "", { ...parameters, target: this.target.value });
  }

  /** Shows the runs of this target. */
  showRuns() {
    const runs = this.store?.overview?.runs || [];
    const rows = runs.map((run) => h("tr", null,
      h("td", null, statusBadge(run.life === "ended" && run.succeeded === false ? "failed" : LIVES[run.life] || "unknown")),
      h("td", null, h("a", { href: link("", { q: `run:${run.id}` }), onclick: (event) => event.target.closest("dialog").close() }, run.id.slice(0, 18))),
      h("td.fixed", null, timeElement(run.began_at, true)), h("td.fixed", null, timeElement(run.heard_at, true)),
      h("td.number", null, run.pid ?? "–"), h("td", null, run.spark_version || "–")));
    const head = ["State", "Run", "Began", "Last event", "Process", "Spark"].map((text) => h("th", { scope: "col" }, text));
    this.#dialog("Runs", runs.length
      ? h("div.scroll-x", { tabindex: 0, role: "region", "aria-label": "Runs" }, h("table.table", null, h("thead", null, h("tr", null, head)), h("tbody", null, rows)))
      : h("p", null, "No run has reported to this project and target yet. Start one with ", h("code", null, "sqlstream run"), "."));
  }

  showKeys() {
    const box = h("input", { type: "checkbox", checked: readSetting(KEYS_SETTING) !== "off", onchange: () => writeSetting(KEYS_SETTING, box.checked ? "on" : "off") });
    this.#dialog("Keys", [
      h("table.table.keys", null, h("tbody", null, KEYS.map(([keys, text]) => h("tr", null,
        h("td", null, keys.split(" ").map((key) => h("kbd", null, key))), h("td", null, text))))),
      h("p", null, h("label", null, box, " Use these keys. Without them, only Esc and the keys of a focused element work."))]);
  }

  #dialog(title, content) {
    const dialog = h("dialog.card", { "aria-label": title },
      h("header", null, h("h2", null, title), h("span.spread"), h("button.button.quiet", { type: "button", "aria-label": "Close", onclick: () => dialog.close() }, icon("close"))),
      h("div.dialog-body", null, content));
    dialog.addEventListener("close", () => dialog.remove());
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    document.body.append(dialog);
    dialog.showModal();
  }
}
