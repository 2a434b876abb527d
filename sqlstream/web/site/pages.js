// The page of one node: what it is, its columns with lineage, SQL, configuration, guarantees, tests and neighbors.

import { copyButton, h, icon, kindIcon, markup, show } from "../assets/dom.js";
import { createGraph } from "../assets/graph.js";
import { codeBlock } from "../assets/sql.js";
import { columnGraph, columnOf, columnKey, uses } from "./lineage.js";
import { MEANINGS } from "../assets/kinds.js";
import { IN_GRAPH, edges, graphNode, linkTo, liveLink, nameOf, nodes, selectable, testsOf } from "./store.js";

const MANY_NEIGHBORS = 40;
const IS_LEAF = new Set(["source", "seed"]);

/** Returns the page of a node, and shows the lineage of `column` if it is given. */
export function nodePage(id, column) {
  const node = nodes.get(id);
  const sections = [
    findingsCard(node), descriptionCard(node), graphCard(id), columnsCard(id, node, column), contractCard(node), versionsCard(id, node),
    codeCard(node), outputsCard(node), guaranteesCard(node), emissionCard(node), dataTestsCard(node), testsCard(id), linksCard(id, node),
    configCard(node),
  ].filter(Boolean);
  return h("article", null, head(id, node), h("div.cards", null, sections));
}

function head(id, node) {
  const place = node.line === undefined ? node.path : `${node.path}:${node.line}`;
  return h("header.head", null,
    h("div.title", null, kindIcon(node.kind, true), h("div", null, h("h1", { tabindex: -1 }, node.name),
      h("p.muted.place", null, node.kind, " · ", h("span.mono", null, place)))),
    h("div.badges", null,
      node.streaming === undefined ? null : h("span.badge", null, icon(node.streaming ? "query" : "seed"), node.streaming ? "stream" : "batch"),
      node.kind === "query" ? h("span.badge.accent", null, `mode ${node.mode}`) : null,
      node.trigger ? h("span.badge", null, icon("clock"), node.trigger) : null,
      node.stored ? h("span.badge", null, "stored") : null,
      node.contract?.enforced ? h("span.badge.ok", null, icon("ok"), "contract") : null,
      node.contract?.is_deprecated ? h("span.badge.warn", null, icon("warn"), "deprecated") : null,
      (node.tags || []).map((tag) => h("span.badge", { title: "tag" }, `#${tag}`)),
      liveLink(id) ? h("a.button.quiet.no-print", { href: liveLink(id) }, icon("query"), "Live page") : null,
      node.url ? h("a.button.quiet", { href: node.url, rel: "noopener noreferrer" }, icon("link"), "Open") : null,
      IN_GRAPH.has(node.kind) ? h("a.button.quiet.no-print", { href: graphLink(id) }, icon("graph"), "Show in the graph") : null));
}

function graphLink(id) {
  const node = nodes.get(id);
  const version = selectable[id]?.version;
  const plain = version ? `${version.name}.v${version.v}` : node.name;
  const name = ["source", "sink", "exposure"].includes(node.kind) ? `${node.kind}:${node.name}` : plain;
  return `#/graph?select=${encodeURIComponent(`+${name}+`)}`;
}

/** Returns a card with a heading, whose id is the name of its section. */
export function card(title, ...content) {
  return h("section.card", { "aria-label": title }, h("header", null, h("h2", null, title)), h("div.body", null, content));
}

function findingsCard(node) {
  return node.findings?.length ? card("Findings", node.findings.map(finding)) : null;
}

/** Returns a finding: its severity as icon and word, its location, its reason and how to fix it. */
export function finding(each) {
  const sign = { error: "bad", warning: "warn" }[each.severity] || "info";
  return h("div.finding", null,
    h("p", null, h(`span.badge.${sign === "info" ? "idle" : sign}`, null, icon(sign), each.severity), " ", h("code", null, each.code), " ", each.message),
    h("p.muted", null, each.location ? [h("span.mono", null, each.location), h("br")] : null, "why: ", each.why, h("br"), "fix: ", each.fix));
}

function descriptionCard(node) {
  if (node.kind === "test" || (!node.description && !IN_GRAPH.has(node.kind))) {
    return node.description ? card("Description", markup("div.markdown", node.description)) : null;
  }
  const content = node.description ? markup("div.markdown", node.description) : h("p.muted", null, "It has no description.");
  return card("Description", content);
}

/** The node with what it reads and what reads it. */
function graphCard(id) {
  const node = nodes.get(id);
  if (!IN_GRAPH.has(node.kind)) return null;
  const near = new Set([...(node.depends_on || []), id, ...(node.read_by || [])]);
  if (near.size < 2 || near.size > MANY_NEIGHBORS) return null;
  const place = h("div.small-graph");
  const shown = [...near].filter((each) => IN_GRAPH.has(nodes.get(each).kind)).map(graphNode);
  const lines = edges.filter(([from, to]) => near.has(from) && near.has(to) && (from === id || to === id));
  later(place, () => createGraph(place, shown, lines, {
    label: `${node.name} with what it reads and what reads it`, chosen: id, onOpen: (other) => { location.hash = linkTo(other); },
  }));
  return h("section.card", { "aria-label": "Lineage" }, h("header", null, h("h2", null, "Lineage"), h("span.spread"),
    h("a.button.quiet", { href: graphLink(id) }, icon("graph"), "All levels")), place);
}

function columnsCard(id, node, column) {
  if (node.columns === undefined) return null;
  if (!node.columns) return card("Columns", h("p.muted", null, "The columns are unknown without Spark: no schema declares them, or code in Python makes them."));
  const place = h("div");
  const chosen = node.columns.find((each) => each.name === column);
  if (chosen) show(place, lineagePanel(id, chosen.name));
  const rows = node.columns.map((each) => columnRow(id, each, chosen));
  const names = IS_LEAF.has(node.kind) ? ["Name", "Type", "Description", "Used by"] : ["Name", "Type", "Description", "Made from", "Used by"];
  return h("section.card", { "aria-label": "Columns" },
    h("header", null, h("h2", null, "Columns"), h("span.muted", null, node.columns.length), h("span.spread"),
      h("span.muted.wide-only.no-print", null, `choose a column to see where it ${IS_LEAF.has(node.kind) ? "is used" : "comes from"}`)),
    place,
    h("div.scroll-x", { tabindex: 0, role: "region", "aria-label": "Table of columns" }, h("table.table", null,
      h("thead", null, h("tr", null, names.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", null, rows))));
}

function columnRow(id, column, chosen) {
  const from = [...new Set((column.from || []).map(([node]) => node))];
  const used = new Set(uses(columnKey(id, column.name)).map((key) => columnOf(key)[0]));
  const isChosen = column === chosen;
  return h("tr", { class: isChosen ? "chosen" : null },
    h("td.fixed", null, h("a.mono", { href: linkTo(id, column.name), "aria-current": isChosen ? "true" : null }, column.name),
      column.watermark ? h("span.badge.accent", { title: "event time with a watermark" }, icon("clock"), column.watermark) : null),
    h("td.mono.type", null, column.type || h("span.muted", null, "unknown")),
    h("td.text", null, column.description ? markup("div.markdown", column.description) : null),
    IS_LEAF.has(nodes.get(id).kind) ? null : h("td", null, from.map((node) => [
      h("div.from", null, nodes.has(node) ? kindIcon(nodes.get(node).kind) : null,
        h("span", null, nameOf(node), h("span.muted", null, " · ", column.from.filter(([other]) => other === node).map(([, name]) => name).join(", ")))),
    ])),
    h("td", null, used.size ? `${used.size} ${used.size === 1 ? "model" : "models"}` : ""));
}

function lineagePanel(id, name) {
  const found = columnGraph(id, name);
  const place = h("div.column-graph");
  const open = (key) => {
    const [node, column] = columnOf(key);
    location.hash = linkTo(node, column);
  };
  later(place, () => createGraph(place, found.nodes, found.edges, {
    label: `Lineage of the column ${name}`, chosen: found.start, onOpen: open,
  }));
  const list = (title, keys, none) => h("div", null, h("h3", null, title), keys.size
    ? h("ul.plain", null, [...keys].map((key) => {
      const [node, column] = columnOf(key);
      return h("li", null, h("a", { href: linkTo(node, column) }, `${nameOf(node)}.${column}`));
    }))
    : h("p.muted", null, none));
  return h("div.column-lineage", { id: "column-lineage" },
    h("div.panel-head", null, h("h3", null, "Lineage of ", h("code", null, name)), h("span.spread"),
      h("a.button.quiet", { href: linkTo(id), "aria-label": "Close the lineage of the column" }, icon("close"))),
    found.nodes.length > 1 ? place : null,
    found.cut ? h("p.muted", null, "The graph shows the nearest 400 columns.") : null,
    h("div.two", null, list("Comes from", found.up, "No other column: it is a constant, a count, or a column of a source."),
      list("Used in", found.down, "No other column.")));
}

/** What readers can rely on: columns, nulls and constraints; who may read the model, and who owns it. */
function contractCard(node) {
  const contract = node.contract;
  if (!contract) return null;
  const settings = [
    ["contract", contract.enforced ? [badge("ok", "enforced"), " the columns, their types and their order are these"] : [badge("idle", "not enforced"), " the declared columns only describe the model"]],
    ["access", { private: "private: only models of its group can read it", public: "public" }[contract.access] || contract.access],
    ["group", contract.group ? [contract.group, contract.group_description ? h("span.muted", null, ` · ${contract.group_description}`) : null] : null],
    ["owner", contract.owner],
    ["deprecation date", deprecation(contract)],
  ].filter(([, value]) => value);
  return h("section.card", { "aria-label": "Contract" }, h("header", null, h("h2", null, "Contract")),
    h("table.table.settings", null, h("tbody", null, settings.map(([name, value]) => h("tr", null, h("th", { scope: "row" }, name), h("td", null, value))))),
    contract.columns.length ? dataTable("columns of the contract", ["Column", "Type", "Null", "Constraints"], contract.columns.map((column) => [
      h("code", null, column.name), h("code", null, column.type || "any"), column.required ? "never" : "possible",
      contract.constraints.filter((each) => each.columns.length === 1 && each.columns[0].toLowerCase() === column.name.toLowerCase()).map(constraintText),
    ])) : null,
    ...wholeConstraints(contract));
}

function wholeConstraints(contract) {
  const whole = contract.constraints.filter((each) => each.columns.length !== 1);
  return whole.length ? [h("div.body", null, h("h3", null, "Constraints of the whole row"), whole.map(constraintText))] : [];
}

function constraintText(each) {
  const columns = each.columns.length > 1 ? ` (${each.columns.join(", ")})` : "";
  const to = each.to ? ` to ${each.to}${each.to_columns.length ? ` (${each.to_columns.join(", ")})` : ""}` : "";
  return h("div.constraint", null, h("span", null, each.type, columns, to), each.expression ? h("code", null, each.expression) : null,
    each.name ? h("span.muted", null, each.name) : null,
    each.unenforced ? h("span.badge.warn", { title: each.unenforced }, icon("warn"), "not enforced") : null);
}

function versionsCard(id, node) {
  if (!node.versions?.length) return null;
  const signs = { latest: "ok", old: "idle", prerelease: "idle" };
  return h("section.card", { "aria-label": "Versions" }, h("header", null, h("h2", null, "Versions")),
    dataTable("versions", ["Version", "Model", "Release", "Deprecation date"], node.versions.map((each) => [
      h("code", null, `v${each.v}`), each.node === id ? h("strong", null, nameOf(id), " (this page)") : nodeLink(each.node), badge(signs[each.release], each.release), deprecation(each),
    ])));
}

function deprecation(each) {
  if (!each.deprecated) return null;
  return each.is_deprecated ? badge("warn", `deprecated since ${each.deprecated}`) : each.deprecated;
}

function dataTestsCard(node) {
  if (!node.data_tests?.length) return null;
  return h("section.card", { "aria-label": "Data tests" }, h("header", null, h("h2", null, "Data tests"), h("span.muted", null, node.data_tests.length)),
    dataTable("data tests", ["Name", "Rows must meet", "A row that violates it", "In test --data"], node.data_tests.map((test) => [
      h("span.mono", null, test.name), [test.description ? markup("div.markdown", test.description) : null, h("code", null, test.condition)],
      VIOLATIONS[test.on_violation] || "is not looked for in the stream", h("span.badge", null, test.severity === "warn" ? "warning" : "error"),
    ])));
}

const VIOLATIONS = {
  warn: "is counted (warn)", drop: "is left out (drop)", quarantine: "goes to the quarantine (quarantine)", fail: "ends the query (fail)",
};

function badge(sign, text) {
  return h(`span.badge.${sign}`, null, icon(sign === "idle" ? "info" : sign), text);
}

function dataTable(name, titles, rows) {
  return h("div.scroll-x", { tabindex: 0, role: "region", "aria-label": `Table of ${name}` }, h("table.table", null,
    h("thead", null, h("tr", null, titles.map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", null, rows.map((cells) => h("tr", null, cells.map((cell) => h("td", null, cell)))))));
}

function codeCard(node) {
  if (!node.raw) return null;
  const same = !node.compiled || node.compiled === node.raw;
  const parts = [["Source", node.raw, node.language || "sql"], ...(same ? [] : [["Compiled", node.compiled, "sql"]])];
  const titles = { macro: "Macro", test: "Test as written" };
  return tabbed(titles[node.kind] || (node.language === "python" ? "Code" : "SQL"), parts);
}

/** Returns a card with a tab for each `[title, text, language]`, and a button that copies the text. */
function tabbed(title, parts) {
  const panel = h("div", { role: "tabpanel", id: `code-${title}` });
  let chosen = 0;
  const tabs = parts.map(([name], at) => h("button", {
    role: "tab", type: "button", "aria-controls": panel.id, id: `code-${title}-${at}`, onclick: () => choose(at),
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      choose((chosen + step + parts.length) % parts.length);
      tabs[chosen].focus();
    },
  }, name));
  function choose(at) {
    chosen = at;
    tabs.forEach((tab, index) => { tab.setAttribute("aria-selected", String(index === at)); tab.tabIndex = index === at ? 0 : -1; });
    panel.setAttribute("aria-labelledby", `code-${title}-${at}`);
    show(panel, codeBlock(parts[at][1], parts[at][2], `${title}, ${parts[at][0].toLowerCase()}`));
  }
  choose(0);
  return h("section.card", { "aria-label": title }, h("header.with-tabs", null, h("h2", null, title),
    h("div.tabs", { role: "tablist", "aria-label": title }, tabs), h("span.spread"), copyButton(() => parts[chosen][1])), panel);
}

function outputsCard(node) {
  if (!node.outputs?.length) return null;
  return card("Output", node.outputs.map((output) => h("div.output", null,
    h("p", null, nodeLink(output.sink, output.name), " ", h("span.badge", null, output.format), " ", guaranteeBadge(output.rows)),
    h("p.muted", null, output.means, output.place ? [h("br"), "place: ", h("code", null, output.place)] : null,
      output.partition_by.length ? [h("br"), "partitioned by ", output.partition_by.join(", ")] : null))));
}

function guaranteeBadge(rows) {
  const sign = { "exactly once": "ok", "at least once": "warn" }[rows] || "idle";
  return badge(sign, rows);
}

function guaranteesCard(node) {
  if (!node.guarantees?.length) return null;
  return card("Guarantees", h("p.muted", null, "How often a row arrives when runs fail and resume, for each mode of a query."),
    dataTable("guarantees", ["Mode", "Rows", "Means"], node.guarantees.map((each) => [each.mode, guaranteeBadge(each.rows), each.means])));
}

function emissionCard(node) {
  if (!node.emission) return null;
  const [, ...paragraphs] = node.emission.split("\n\n");
  if (!paragraphs.length) return null;
  return card("When it emits rows", paragraphs.map((paragraph) => {
    const [first, ...rest] = paragraph.split("\n");
    return h("div.emission", null, h("p.first", null, first), rest.map((line) => h("p", null, line.trim())));
  }));
}

function testsCard(id) {
  const tests = testsOf.get(id);
  if (!tests) return null;
  return card("Unit tests", h("ul.plain", null, tests.map(([test, node]) => h("li", null, nodeLink(test), " ", h("span.muted", null, node.words)))));
}

function linksCard(id, node) {
  const groups = [["Tests", node.model ? [node.model] : []], ["Reads", node.depends_on], ["Read by", node.read_by], ["Used in", node.used_in]];
  const shown = groups.filter(([, ids]) => ids?.length);
  if (!shown.length) return null;
  return card("Depends on and used by", h("div.two", null, shown.map(([title, ids]) => h("div", null,
    h("h3", null, title), h("ul.plain", null, ids.map((each) => h("li", null, nodeLink(each))))))));
}

function configCard(node) {
  const settings = Object.entries(node.config || {});
  const meta = Object.entries(node.meta || {});
  if (!settings.length && !meta.length && !node.arguments) return null;
  const row = ([name, value]) => h("tr", null, h("th.mono", { scope: "row" }, name), h("td.mono", null, written(value)));
  return h("section.card", { "aria-label": "Configuration" }, h("header", null, h("h2", null, "Configuration")),
    h("table.table.settings", null, h("tbody", null,
      node.arguments ? row(["arguments", node.arguments]) : null, settings.map(row), meta.map(([name, value]) => row([`meta.${name}`, value])))));
}

function written(value) {
  if (Array.isArray(value) && value.every((each) => typeof each !== "object")) return value.join(", ");
  if (value && typeof value === "object") {
    return h("div", null, Object.entries(value).map(([name, each]) => h("div", null, `${name}: ${typeof each === "object" ? JSON.stringify(each) : each}`)));
  }
  return String(value);
}

/** Returns a link to a node with its icon; only its name if the site does not have it. */
export function nodeLink(id, name = nameOf(id)) {
  const node = nodes.get(id);
  return node ? h("a.node-link", { href: linkTo(id), title: `${node.kind}: ${MEANINGS[node.kind]}` }, kindIcon(node.kind), name) : h("span", null, name);
}

/** Runs `act` once `element` is in the page and has a size. */
export function later(element, act) {
  requestAnimationFrame(() => { if (element.isConnected) act(); });
}
