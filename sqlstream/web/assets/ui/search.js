// The search of the live page. The library and the words are loaded when somebody searches.

import { h } from "../dom.js";
import { makeSearch, searchDialog } from "../search.js";
import { get } from "./api.js";
import { docsLink, link, queryLink } from "./router.js";
import { stateOf, statusBadge } from "./status.js";

const LIBRARY = "/assets/vendor/minisearch/minisearch.js";

/** Returns the search of the project of `store()`, which is another one after a change of the target. */
export function liveSearch(store) {
  let library = null;
  let made = null; // the search, and the state of the project for which it was made

  async function load() {
    library ||= loadScript(LIBRARY);
    const { target, project } = store();
    if (made?.project !== project || made.target !== target) {
      const [{ entries }] = await Promise.all([get("search", { target }), library.catch((error) => { library = null; throw error; })]);
      made = { project, target, search: makeSearch(entries) };
    }
    return made.search;
  }

  const finder = searchDialog({
    label: "Search the project", load,
    open: (entry, fields) => { location.href = addressOf(entry, fields, store().project?.target); },
    sign: (entry) => {
      const query = entry.kind === "query" && store().queries[entry.name];
      return query ? statusBadge(stateOf(query)) : null;
    },
  });
  addEventListener("opensearch", (event) => finder.open(event.detail));
  document.body.append(finder.element);
  return finder;
}

/** Returns the address of a result: its page, or what the live page has no page for in the docs. */
function addressOf({ id, kind, name }, fields, target) {
  if (kind === "query") return queryLink(name, fields.includes("columns") && !fields.includes("name") ? "columns" : "");
  return kind === "exposure" ? docsLink(target, id) : link(`node/${encodeURIComponent(id)}`);
}

function loadScript(src) {
  return new Promise((resolve, reject) => {
    const failed = () => reject(new Error("The search could not be loaded. Is `sqlstream ui` still running?"));
    document.head.append(h("script", { src, onload: resolve, onerror: failed }));
  });
}
