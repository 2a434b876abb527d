// Starts the page: one view at a time, by the address.

import { h, readSetting, show } from "../dom.js";
import { ConnectionNotice } from "./connection.js";
import { Overview } from "./overview.js";
import { overviewLink, rememberOverview, route } from "./router.js";
import { KEYS_SETTING, Shell } from "./shell.js";
import { problemPage } from "./states.js";
import { Store } from "./store.js";

// the pages that are not shown first: their modules are loaded after the overview, or when one of them is opened
const PAGES = {
  query: async () => (await import("./query/page.js")).QueryPage,
  node: async () => (await import("./node.js")).NodePage,
};

const container = document.getElementById("main");
const shell = new Shell(document.getElementById("bar"));
const connection = new ConnectionNotice();
container.before(connection.element);
let store = null;
let view = null;
let shown = null;
let turns = 0; // how many pages have been opened: a page whose modules come too late is not shown
let lastKey = "";
let place = null; // where the overview was left: how far it was scrolled, and the query in focus
history.scrollRestoration = "manual";

function open() {
  const now = route();
  rememberOverview();
  const target = now.parameters.target || null;
  const model = now.view === "query" ? now.model : null;
  if (!store || store.target !== target) {
    leave();
    store?.close();
    store = new Store(target);
    shell.follow(store);
    connection.follow(store);
    store.start(model);
  } else {
    store.watch(model);
  }
  const address = JSON.stringify([now.view, model, now.id, target]);
  if (shown === address) {
    view?.moved?.(now);
    return;
  }
  const isFirst = shown === null;
  turns += 1;
  leave();
  shown = address;
  if (now.view !== "overview" || isFirst || !place) scrollTo(0, 0);
  if (now.view === "overview") view = new Overview(container, store, isFirst ? null : place);
  else if (now.view in PAGES) openPage(now, isFirst);
  else {
    show(container, h("section.card.empty", null, h("h1", { tabindex: -1 }, "Not found"), h("p", null, h("a", { href: overviewLink() }, "Go to the overview"))));
    if (!isFirst) focusHeading();
  }
}

async function openPage(now, isFirst) {
  const turn = turns;
  try {
    const Page = await PAGES[now.view]();
    if (turn !== turns) return; // the user has opened another page
    view = new Page(container, store, route());
    if (!isFirst) focusHeading();
  } catch (error) {
    if (turn === turns) show(container, problemPage(error, () => location.reload()));
  }
}

/** Lets a screen reader read the heading of a new view. */
function focusHeading() {
  container.querySelector("h1")?.focus({ preventScroll: true });
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
addEventListener("load", () => setTimeout(() => Object.values(PAGES).forEach((load) => load().catch(() => {})), 1000));
