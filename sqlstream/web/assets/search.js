// Full-text search over names, columns, descriptions, tags and SQL, in a dialog. Both pages use it.

import { h, icon, kindIcon, show } from "./dom.js";
import { kindRank, kindWord } from "./kinds.js";

const SHOWN = 30;
const BOOST = { name: 8, columns: 3, words: 2, tags: 2, column_words: 1.5, path: 1, sql: 0.6 };
const FOUND_IN = { columns: "column", words: "description", column_words: "description of a column", tags: "tag", path: "path", sql: "SQL" };

// Lower is better: a whole word, then the beginning of a word, then a word with a typo; and in each, names first.
const [BEGINS, FUZZY] = [1, 10];
const RANKS = { name: 2, columns: 4, tags: 4, words: 6, column_words: 6, path: 6, sql: 8 };

/**
 * Returns a function that finds entries by a text, best first, each as `{ entry, fields }` with the fields in which it was
 * found. An entry has `id`, `kind`, `name`, `words`, `tags`, `path`, `columns` (names), `column_words` and `sql`.
 * Exact names come first, then names that begin with the text, and unit tests last.
 */
export function makeSearch(entries) {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const index = new globalThis.MiniSearch({
    fields: Object.keys(BOOST),
    tokenize: (text) => text.split(/[^\p{L}\p{N}_]+|_(?=[\p{L}\p{N}])/u).concat(text.match(/[\p{L}\p{N}]+(?:_[\p{L}\p{N}]+)+/gu) || []).filter(Boolean),
    searchOptions: { boost: BOOST, prefix: true, combineWith: "AND" },
  });
  index.addAll(entries.map((entry) => ({ ...entry, tags: (entry.tags || []).join(" "), columns: (entry.columns || []).join(" ") })));
  return (text) => {
    const name = text.trim().toLowerCase();
    const exact = index.search(text);
    return (exact.length ? exact : index.search(text, { fuzzy })).map((found) => {
      const entry = byId.get(found.id);
      const rank = rankOf(entry, found, name);
      const isNamed = rank <= BEGINS; // then the score says no more than the name
      const isLast = entry.kind === "test" && rank > 0;
      return { entry, fields: [...new Set(Object.values(found.match).flat())], order: [isLast, rank, kindRank(entry.kind), isNamed ? 0 : -found.score] };
    }).sort((one, other) => compare(one.order, other.order) || one.entry.name.localeCompare(other.entry.name));
  };
}

/** Returns how many letters of a word can differ, if nothing has the word: two that are swapped count as two. */
function fuzzy(term) {
  return term.length > 3 ? Math.min(2, Math.round(term.length * 0.3)) : false;
}

function rankOf(entry, found, text) {
  const names = [entry.name.toLowerCase(), entry.name.toLowerCase().split(".").at(-1)]; // a table of a source has both
  if (names.includes(text)) return 0;
  if (names.some((name) => name.startsWith(text))) return 1;
  return Math.max(...found.queryTerms.map((term) => Math.min(...Object.entries(found.match).flatMap(([word, fields]) => {
    const penalty = word === term ? 0 : word.startsWith(term) ? BEGINS : FUZZY;
    return fields.map((field) => RANKS[field] + penalty);
  }))));
}

function compare(one, other) {
  const at = one.findIndex((value, index) => value !== other[index]);
  return at < 0 ? 0 : one[at] - other[at];
}

/** Returns the button that opens a search. `key` is shown in it. */
export function searchButton(finder, key) {
  return h("button.button.find", { type: "button", onclick: () => finder.open(), title: `Search (${key})` },
    icon("search"), h("span", null, "Search"), h("kbd.wide-only", { "aria-hidden": "true" }, key));
}

/**
 * Returns the dialog, and a function that opens it, maybe with a text. Ctrl K opens it, too. `load()` resolves to the
 * function of `makeSearch`; `open(entry, fields)` opens a result, and `sign(entry)` returns what is beside it.
 */
export function searchDialog({ label, load, open, sign = () => null }) {
  const input = h("input.input", {
    type: "search", role: "combobox", placeholder: "Names, columns, descriptions, SQL", "aria-label": label,
    "aria-controls": "results", "aria-expanded": "false", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false",
  });
  const list = h("div.results", { id: "results", role: "listbox", "aria-label": "Results" });
  const said = h("p.said", { "aria-live": "polite" });
  const close = h("button.button.quiet", { type: "button", "aria-label": "Close the search", onclick: () => dialog.close() }, icon("close"));
  const dialog = h("dialog.search", { "aria-label": "Search" }, h("div.field", null, icon("search"), input, close), list, said);
  let search = null;
  let chosen = 0;

  function draw() {
    if (!search) return;
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

  function result({ entry, fields }, at) {
    const where = fields.filter((field) => field !== "name").map((field) => FOUND_IN[field]);
    const isInName = fields.includes("name") || !where.length;
    const act = () => {
      dialog.close();
      open(entry, fields);
    };
    return h("div.result", { id: `result-${at}`, role: "option", onclick: act }, kindIcon(entry.kind),
      h("span.what", null, h("span.name", null, entry.name), h("span.muted", null, entry.words || entry.path || "")), sign(entry),
      h("span.muted.where", null, isInName ? kindWord(entry.kind, 1).toLowerCase() : `in ${where.join(", ")}`));
  }

  async function begin() {
    if (!dialog.open) dialog.showModal();
    input.select();
    try {
      if (!search) said.textContent = "Loading…";
      search = await load();
      draw();
    } catch (error) {
      said.textContent = error.message;
    }
  }

  input.addEventListener("input", draw);
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && list.children.length) {
      chosen = (chosen + step + list.children.length) % list.children.length;
      markChosen();
      event.preventDefault();
    } else if (event.key === "Enter" && event.target === input) {
      list.children[chosen]?.click();
      event.preventDefault();
    }
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    begin();
  });
  return {
    element: dialog,
    open: (text) => {
      if (text !== undefined) input.value = text;
      return begin();
    },
  };
}

function counted(count) {
  if (!count) return "Nothing found.";
  return count > SHOWN ? `The best ${SHOWN} of ${count} results.` : `${count} ${count === 1 ? "result" : "results"}.`;
}
