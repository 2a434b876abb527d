// The notice above every view while the page has no connection: since when, what to check, and how to go on.

import { h, show } from "../dom.js";
import { commandLine, commandText } from "./commands.js";
import { localTime, seconds } from "./format.js";

export class ConnectionNotice {
  constructor() {
    this.since = h("span");
    this.element = h("section.offline", { hidden: true, "aria-label": "Connection" });
    this.timer = setInterval(() => this.#drawSince(), 1_000);
  }

  /** Follows another store. */
  follow(store) {
    this.store = store;
    store.listen((change) => { if (change.connection) this.#draw(); });
    this.#draw();
  }

  #draw() {
    const { state } = this.store.connection;
    const content = { lost: lostContent, locked: lockedContent, refused: this.store.overview ? refusedContent : null }[state];
    this.element.hidden = !content;
    document.documentElement.classList.toggle("disconnected", Boolean(content));
    this.#drawSince();
    show(this.element, content ? content(this.store, this.since) : null);
  }

  #drawSince() {
    if (!this.store || this.element.hidden) return;
    const { since } = this.store.connection;
    const values = this.store.overview ? " All values on this page are from then." : "";
    const text = `Since ${localTime(since)} (${seconds(Math.round((Date.now() - since) / 1_000))}).${values}`;
    if (this.since.textContent !== text) this.since.textContent = text;
  }
}

/** Returns the title, which a screen reader reads at once, and not again with each second. */
function title(text) {
  return h("div", { role: "alert" }, h("h2", null, text));
}

function lostContent(store, since) {
  const { project } = store;
  const port = location.port ? ["--port", location.port] : [];
  const check = project?.served_by === "run"
    ? ["A run served this page (", h("code", null, "sqlstream run --ui"), "), which ends with the run. To see what it has left behind:"]
    : ["Check that ", h("code", null, "sqlstream ui"), " still runs, and that you can reach its machine. To start it again in the project's folder:"];
  return [h("div", null, title("The server does not answer"), h("p", null, since, " The page connects again by itself."),
    h("button.button", { type: "button", onclick: () => store.reconnect() }, "Try now")),
  h("div", null, h("p", null, check), commandLine(commandText(["ui", ...port], project)))];
}

function lockedContent(store, since) {
  const token = h("input.input", { type: "password", name: "token", required: true, autocomplete: "off" });
  const open = (event) => {
    event.preventDefault();
    location.assign(`/?token=${encodeURIComponent(token.value.trim())}${location.hash}`);
  };
  return [h("div", null, title("This page needs a new token"), h("p", null, since, " The server has started again with another token.")),
    h("form", { onsubmit: open }, h("label", null, "Token ", token), h("button.button", null, "Open")),
    h("p", null, "The token is the end of the URL that sqlstream has printed, after ", h("code", null, "token="), ".")];
}

function refusedContent(store, since) {
  return h("div", null, title("The server refuses the updates of this page"), h("p", null, since, ` It says: ${store.connection.reason}.`));
}
