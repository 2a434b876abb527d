// Full-text search over names, columns, descriptions, tags and SQL, in a dialog that `/` opens.

import { h, icon, kindIcon, show } from "../assets/dom.js";
import { KINDS, linkTo, nodes } from "./store.js";

const SHOWN = 30;
const BOOST = { name: 8, columns: 3, words: 2, tags: 2, column_words: 1.5, path: 1, sql: 0.6 };
const FOUND_IN = { columns: "column", words: "description", column_words: "description of a column", tags: "tag", path: "path", sql: "SQL" };

let index = null;

function made() {
  if (index) return index;
  index = new MiniSearch({
    fields: Object.keys(BOOST),
    tokenize: (text) => text.split(/[^\p{L}\p{N}_]+|_(?=[\p{L}\p{N}])/u).concat(text.match(/[\p{L}\p{N}]+(?:_[\p{L}\p{N}]+)+/gu) || []).filter(Boolean),
    searchOptions: { boost: BOOST, prefix: true, fuzzy: (term) => (term.length > 4 ? 0.2 : false), combineWith: "AND" },
  });
  index.addAll([...nodes].map(([id, node]) => ({
    id, name: node.name, words: node.words, tags: (node.tags || []).join(" "), path: node.path,
    columns: (node.columns || []).map((column) => column.name).join(" "),
    column_words: (node.columns || []).map((column) => column.words).join(" "),
    sql: node.raw || "",
  })));
  return index;
}

/** Returns the ids that match `text`, best first, each with the fields in which it was found. */
export function search(text) {
  return made().search(text).map((found) => ({ id: found.id, fields: [...new Set(Object.values(found.match).flat())] }));
}

/** Returns the dialog and a function that opens it. */
export function searchDialog() {
  const input = h("input.input", {
    type: "search", role: "combobox", placeholder: "Search names, columns, descriptions, SQL", "aria-label": "Search the documentation",
    "aria-controls": "results", "aria-expanded": "false", "aria-autocomplete": "list", autocomplete: "off",
  });
  const list = h("div.results", { id: "results", role: "listbox", "aria-label": "Results" });
  const said = h("p.said", { "aria-live": "polite" });
  const close = h("button.button.quiet", { type: "button", "aria-label": "Close the search", onclick: () => dialog.close() }, icon("close"));
  const dialog = h("dialog.search", { "aria-label": "Search" }, h("div.field", null, icon("search"), input, close), list, said);
  let chosen = 0;

  function draw() {
    const text = input.value.trim();
    const found = text ? search(text) : [];
    chosen = 0;
    show(list, found.slice(0, SHOWN).map(result));
    input.setAttribute("aria-expanded", String(found.length > 0));
    said.textContent = text ? counted(found.length) : "Type a name, a column, a word of a description or of SQL.";
    markChosen();
  }

  function markChosen() {
    [...list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === chosen)));
    const item = list.children[chosen];
    if (item) input.setAttribute("aria-activedescendant", item.id);
    else input.removeAttribute("aria-activedescendant");
    item?.scrollIntoView?.({ block: "nearest" });
  }

  function open(id) {
    dialog.close();
    location.hash = linkTo(id);
  }

  function result({ id, fields }, at) {
    const node = nodes.get(id);
    const where = fields.filter((field) => field !== "name").map((field) => FOUND_IN[field]);
    return h("div.result", { id: `result-${at}`, role: "option", onclick: () => open(id) }, kindIcon(node.kind),
      h("span.what", null, h("span.name", null, node.name), h("span.muted", null, node.words || node.path)),
      h("span.muted.where", null, where.length && !fields.includes("name") ? `in ${where.join(", ")}` : KINDS[node.kind].toLowerCase().replace(/ies$/, "y").replace(/s$/, "")));
  }

  input.addEventListener("input", draw);
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && list.children.length) {
      chosen = (chosen + step + list.children.length) % list.children.length;
      markChosen();
      event.preventDefault();
    } else if (event.key === "Enter") {
      list.children[chosen]?.click();
      event.preventDefault();
    }
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  return { element: dialog, open: () => { if (!dialog.open) dialog.showModal(); input.select(); draw(); } };
}

function counted(count) {
  if (!count) return "Nothing found.";
  return count > SHOWN ? `The best ${SHOWN} of ${count} results.` : `${count} ${count === 1 ? "result" : "results"}.`;
}
