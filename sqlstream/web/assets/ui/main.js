// Starts the page: one view at a time, by the address.

import { h, readSetting, show } from "../dom.js";
import { NodePage } from "./node.js";
import { Overview } from "./overview.js";
import { QueryPage } from "./query/page.js";
import { overviewLink, rememberOverview, route } from "./router.js";
import { KEYS_SETTING, Shell } from "./shell.js";
import { Store } from "./store.js";

const container = document.getElementById("main");
const shell = new Shell(document.getElementById("bar"));
let store = null;
let view = null;
let shown = null;
let lastKey = "";
let place = null; // where the overview was left: how far it was scrolled, and the query in focus
history.scrollRestoration = "manual";

function open() {
  const now = route();
  const target = now.parameters.target || null;
  const model = now.view === "query" ? now.model : null;
  if (!store || store.target !== target) {
    leave();
    store?.close();
    store = new Store(target);
    shell.follow(store);
    store.start(model);
  } else {
    store.watch(model);
  }
  const address = JSON.stringify([now.view, model, now.id, target]);
  if (view && shown === address) {
    view.moved?.(now);
    return;
  }
  const isFirst = shown === null;
  leave();
  shown = address;
  if (now.view === "overview") view = new Overview(container, store, isFirst ? null : place);
  else if (now.view === "query") view = new QueryPage(container, store, now);
  else if (now.view === "node") view = new NodePage(container, store, now);
  else show(container, h("section.card.empty", null, h("h1", { tabindex: -1 }, "Not found"), h("p", null, h("a", { href: overviewLink() }, "Go to the overview"))));
  if (now.view !== "overview" || isFirst || !place) scrollTo(0, 0);
  if (!isFirst && now.view !== "overview") container.querySelector("h1")?.focus({ preventScroll: true }); // a screen reader reads it
}

function leave() {
  if (view instanceof Overview) place = view.place;
  view?.close();
  view = null;
  shown = null;
  show(container, h("p.loading", { role: "status" }, "Loading…"));
}

function search() {
  view?.search?.focus();
  view?.search?.select();
}

function pressed(event) {
  const isTyping = event.target.closest("input, select, textarea, dialog");
  if (event.ctrlKey || event.metaKey || event.altKey || (isTyping && event.key !== "Escape")) return;
  if (event.target.closest("dialog") || (event.key !== "Escape" && readSetting(KEYS_SETTING) === "off")) return;
  const after = lastKey;
  lastKey = event.key;
  if (event.key === "/") {
    if (view?.search) search();  // at once: the next keys are its text
    else {
      addEventListener("hashchange", search, { once: true });
      location.hash = overviewLink();
    }
  } else if (event.key === "o" && after === "g") location.hash = overviewLink();
  else if (event.key === "?") shell.showKeys();
  else if (event.key === "t") shell.theme.click();
  else if (event.key === "[" || event.key === "]") view?.step?.(event.key === "]" ? 1 : -1);
  else if (event.key === "Escape") escape();
  else return;
  event.preventDefault();
}

function escape() {
  if (view instanceof Overview) view.setFilter("");
  else location.hash = overviewLink();
}

addEventListener("hashchange", open);
addEventListener("keydown", pressed);
open();
