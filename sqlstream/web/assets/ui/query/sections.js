// The tabs of a query about its code: SQL and columns.

import { copyButton, h, icon, kindIcon, markup } from "../../dom.js";
import { codeBlock } from "../../sql.js";
import { nodeLink, route } from "../router.js";

/** Returns a card with a title. */
export function card(title, ...content) {
  return h("section.card", { "aria-label": title }, h("header", null, h("h2", null, title)), content);
}

/** Returns a table in a region that scrolls sideways; `head` are texts, or pairs of a text and a class. */
export function table(label, head, rows) {
  return h("div.scroll-x", { tabindex: 0, role: "region", "aria-label": label }, h("table.table", null,
    h("thead", null, h("tr", null, head.map((each) => (Array.isArray(each) ? h("th", { scope: "col", class: each[1] }, each[0]) : h("th", { scope: "col" }, each))))),
    h("tbody", null, rows)));
}

/** Returns the SQL as written and compiled, side by side; they scroll together. The `line` of the address is marked. */
export function sqlTab(page) {
  const { line } = route().parameters;
  const written = pane("As written", page.path, page.raw_sql, page.path?.endsWith(".py") ? "python" : "sql");
  const compiled = pane("Compiled", "what Spark runs", page.compiled_sql, "sql");
  const [left, right] = [written, compiled].map((each) => each.querySelector(".code"));
  if (left && right) scrollTogether(left, right);
  if (/^\d+$/.test(line || "")) written.querySelector(`.line[data-n="${line}"]`)?.classList.add("marked");
  return h("div.sides", null, written, compiled);
}

/** Scrolls to the marked line of SQL in `element`, if there is one. */
export function scrollToMark(element) {
  element.querySelector(".line.marked")?.scrollIntoView({ block: "center", inline: "nearest" });
}

function pane(title, sub, text, language) {
  const label = `SQL ${title.toLowerCase()}`;
  return h("section.card.code-card", { "aria-label": label },
    h("header", null, h("h2", null, title), h("span.muted.path", null, sub), h("span.spread"), text ? copyButton(() => text) : null),
    text ? codeBlock(text, language, `${label}, text`) : h("p.note-text", null, "Not available: the model has no SQL, or does not compile."));
}

function scrollTogether(one, other) {
  let leader = null;
  for (const [from, to] of [[one, other], [other, one]]) {
    const lead = () => { leader = from; };
    from.addEventListener("pointerenter", lead);
    from.addEventListener("focus", lead);
    from.addEventListener("scroll", () => {
      if (leader !== from) return;
      const share = from.scrollTop / Math.max(from.scrollHeight - from.clientHeight, 1);
      to.scrollTop = share * (to.scrollHeight - to.clientHeight);
      to.scrollLeft = from.scrollLeft;
    }, { passive: true });
  }
}

/** Returns the columns with the columns that they come from. */
export function columnsTab(page) {
  return h("div.stack", null,
    card("Columns", columnsTable(page.columns, true)),
    card("Reads", table("Sources", ["Table", "Kind", "Format", "Place", "Description"], (page.sources || []).map((source) => h("tr", null,
      h("td", null, h("a", { href: tableLink(source) }, source.name)), h("td", null, source.kind), h("td", null, source.format || "–"),
      h("td.mono", null, source.path || source.table || "–"), describedCell(source))))),
    page.views?.length ? card("Views on the way", h("ul.neighbors", null, page.views.map((view) => h("li", null, kindIcon("view"), h("a", { href: nodeLink({ id: view.unique_id, kind: "view" }) }, view.name))))) : null);
}

/** Returns the address of a table that a query reads: a source, a seed, or the output of another query. */
function tableLink({ unique_id: id, kind, name }) {
  return nodeLink({ id, kind: kind === "model" ? "query" : kind, model: name });
}

/** Returns a table of columns; `isMade`: with the columns of sources from which each comes. */
export function columnsTable(columns, isMade) {
  if (!columns?.length) return h("p.note-text", null, "The columns are not known before a query reads them.");
  const head = ["Column", "Type", ...(isMade ? ["Comes from"] : []), "Description"];
  return table("Columns", head, columns.map((column) => h("tr", null,
    h("td", null, h("b.mono", null, column.name), column.watermark ? h("span.badge.accent", { title: watermarkText(column.watermark) }, icon("clock"), "watermark") : null),
    h("td.mono", null, column.data_type || column.type || "unknown"),
    isMade ? h("td", null, originsOf(column)) : null, describedCell(column))));
}

/** Returns a cell with a description in Markdown. */
function describedCell({ description_html: html }) {
  return h("td.text", null, html ? markup("div.markdown", html) : h("span.muted", null, "–"));
}

function originsOf(column) {
  if (!column.origins?.length) return h("span.muted", null, "computed: no column of a source");
  return h("ul.origins", null, column.origins.map((origin) => h("li", null, h("a.muted", { href: nodeLink({ id: origin.unique_id }) }, origin.name || origin.unique_id), ".", h("b", null, origin.column))));
}

function watermarkText(watermark) {
  return typeof watermark === "string" ? `delay ${watermark}` : "This column has the watermark.";
}
