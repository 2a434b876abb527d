// Starts the page: one view at a time, by the address.

import { h, show } from "../dom.js";
import { Overview } from "./overview.js";
import { QueryPage } from "./query/page.js";
import { link, route } from "./router.js";
import { Shell } from "./shell.js";
import { Store } from "./store.js";

const container = document.getElementById("main");
const shell = new Shell(document.getElementById("bar"));
let store = null;
let view = null;
let shown = null;
let lastKey = "";

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
  const address = JSON.stringify([now.view, model, target]);
  if (view && shown === address) {
    view.moved?.(now);
    return;
  }
  leave();
  shown = address;
  if (now.view === "overview") view = new Overview(container, store);
  else if (now.view === "query") view = new QueryPage(container, store, now);
  else show(container, h("section.card.empty", null, h("h1", null, "Not found"), h("p", null, h("a", { href: link("") }, "Go to the overview"))));
  scrollTo(0, 0);
}

function leave() {
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
  if (event.target.closest("dialog")) return;
  const after = lastKey;
  lastKey = event.key;
  if (event.key === "/") {
    if (view?.search) search();  // at once: the next keys are its text
    else {
      addEventListener("hashchange", search, { once: true });
      location.hash = link("");
    }
  } else if (event.key === "o" && after === "g") location.hash = link("");
  else if (event.key === "?") shell.showKeys();
  else if (event.key === "t") shell.theme.click();
  else if (event.key === "[" || event.key === "]") view?.step?.(event.key === "]" ? 1 : -1);
  else if (event.key === "Escape") view?.escape?.();
  else return;
  event.preventDefault();
}

addEventListener("hashchange", open);
addEventListener("keydown", pressed);
open();
