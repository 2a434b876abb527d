// Addresses: `#/?q=...`, `#/query/MODEL/TAB?range=6h`, each with an optional `target`.

/** Returns `{ view, model, tab, parameters }` of the address now. */
export function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parameters = Object.fromEntries(new URLSearchParams(query));
  const [view, model, tab] = path.split("/").map(decoded);
  if (view === "query" && model) return { view, model, tab: tab || "charts", parameters };
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

/** Changes parameters of the address without a new entry in the browser's history; `adds` makes one. */
export function setParameters(changes, adds = false) {
  const [path] = location.hash.replace(/^#\/?/, "").split("?");
  const all = { ...route().parameters, ...changes };
  const query = new URLSearchParams(Object.entries(all).filter(([, value]) => value)).toString();
  const found = `#/${path}${query ? `?${query}` : ""}`;
  if (found !== location.hash) history[adds ? "pushState" : "replaceState"](null, "", found);
}
