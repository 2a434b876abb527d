// Addresses: `#/?q=...`, `#/query/MODEL/TAB?range=6h`, `#/node/UNIQUE_ID`, each with an optional `target`.

import { h, icon } from "../dom.js";

let overviewAddress = null;

/** Returns `{ view, model, tab, id, parameters }` of the address now. */
export function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parameters = Object.fromEntries(new URLSearchParams(query));
  const [view, model, tab] = path.split("/").map(decoded);
  if (view === "query" && model) return { view, model, tab: tab || "charts", parameters };
  if (view === "node" && model) return { view, id: model, parameters };
  return { view: view ? "unknown" : "overview", parameters };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the address of a view. The target of the address now is kept unless `parameters` has another. */
export function link(path, parameters = {}) {
  const { target } = route().parameters;
  const all = { ...(target ? { target } : {}), ...parameters };
  const query = new URLSearchParams(Object.entries(all).filter(([, value]) => value)).toString();
  return `#/${path}${query ? `?${query}` : ""}`;
}

/** Returns the address of a node's page in the documentation; of its first page without a node. */
export function docsLink(target, id = null) {
  const query = target ? `?target=${encodeURIComponent(target)}` : "";
  return `docs/${query}${id ? `#/node/${encodeURIComponent(id)}` : ""}`;
}

/** Returns the address of a query's page. */
export function queryLink(model, tab = "", parameters = {}) {
  return link(`query/${encodeURIComponent(model)}${tab ? `/${tab}` : ""}`, parameters);
}

/** Returns the address of a node of the graph: a query's page, or that of a source, seed, view or sink. */
export function nodeLink({ id, kind, model }) {
  return kind === "query" ? queryLink(model) : link(`node/${encodeURIComponent(id)}`);
}

/** Remembers the address of the overview, with its filter and sorting. */
export function rememberOverview() {
  overviewAddress = location.hash;
}

/** Returns the address of the overview as it was left; of this target. */
export function overviewLink() {
  const { target } = route().parameters;
  const [, query = ""] = (overviewAddress || "").split("?");
  const before = Object.fromEntries(new URLSearchParams(query));
  return (before.target || null) === (target || null) ? link("", before) : link("");
}

/** Returns the link back to the overview. */
export function backLink() {
  return h("a.back", { href: overviewLink() }, icon("home"), "Overview");
}

/** Changes parameters of the address without a new entry in the browser's history; `adds` makes one. */
export function setParameters(changes, adds = false) {
  const [path] = location.hash.replace(/^#\/?/, "").split("?");
  const all = { ...route().parameters, ...changes };
  const query = new URLSearchParams(Object.entries(all).filter(([, value]) => value)).toString();
  const found = `#/${path}${query ? `?${query}` : ""}`;
  if (found !== location.hash) history[adds ? "pushState" : "replaceState"](null, "", found);
}
