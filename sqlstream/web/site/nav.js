// The sidebar: the project as a tree of folders, or its nodes by kind, with a filter.

import { h, icon, kindIcon, readSetting, show, writeSetting } from "../assets/dom.js";
import { KINDS } from "../assets/kinds.js";
import { groupBy, linkTo, nodes } from "./store.js";

const MANY = 60;

/** Returns the sidebar. Its `mark(id)` shows which page is open. */
export function sidebar() {
  const tree = h("div.tree");
  const filter = h("input.input.filter", { type: "search", placeholder: "Filter by name", "aria-label": "Filter the list by name" });
  const tabs = ["project", "kind"].map((name) => h("button", {
    role: "tab", type: "button", id: `nav-${name}`, "aria-controls": "nav-tree",
  }, name === "project" ? "Files" : "By kind"));
  let way = readSetting("sqlstream-nav") === "kind" ? "kind" : "project";
  let current = null;

  function draw() {
    tabs.forEach((tab, index) => {
      const chosen = (index === 0) === (way === "project");
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", `nav-${way}`);
    const words = filter.value.trim().toLowerCase();
    const shown = [...nodes].filter(([, node]) => !words || node.name.toLowerCase().includes(words));
    show(tree, (way === "project" ? byFolder : byKind)(shown, Boolean(words)));
    if (!shown.length) show(tree, h("p.muted.none", null, "No name contains this text."));
    mark(current);
  }

  function choose(name, focus) {
    way = name;
    writeSetting("sqlstream-nav", way);
    draw();
    if (focus) tabs[way === "project" ? 0 : 1].focus();
  }

  function mark(id) {
    current = id;
    for (const link of tree.querySelectorAll("a[aria-current]")) link.removeAttribute("aria-current");
    const link = id && tree.querySelector(`a[data-id="${CSS.escape(id)}"]`);
    if (!link) return;
    link.setAttribute("aria-current", "page");
    for (let at = link.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
    link.scrollIntoView?.({ block: "nearest" });
  }

  tabs.forEach((tab, index) => {
    tab.addEventListener("click", () => choose(index ? "kind" : "project"));
    tab.addEventListener("keydown", (event) => {
      if (["ArrowLeft", "ArrowRight"].includes(event.key)) choose(way === "kind" ? "project" : "kind", true);
    });
  });
  filter.addEventListener("input", draw);
  const panel = h("div", { id: "nav-tree", role: "tabpanel" }, tree);
  const element = h("nav.side", { "aria-label": "Project", id: "side" }, filter,
    h("div.tabs", { role: "tablist", "aria-label": "Order of the list" }, tabs), panel);
  draw();
  return { element, mark, focusFilter: () => filter.focus() };
}

function byKind(shown, open) {
  const groups = groupBy(shown, ([, node]) => node.kind);
  return Object.keys(KINDS).filter((kind) => groups.has(kind)).map((kind) => {
    const items = groups.get(kind).sort((a, b) => a[1].name.localeCompare(b[1].name));
    return branch(KINDS[kind], items.length, kindIcon(kind), open || items.length <= MANY, () => items.map(leaf));
  });
}

function byFolder(shown, open) {
  const root = { folders: new Map(), items: [] };
  for (const item of shown) {
    if (item[1].kind === "test") continue;
    let at = root;
    for (const folder of item[1].path.split("/").slice(0, -1)) {
      if (!at.folders.has(folder)) at.folders.set(folder, { folders: new Map(), items: [] });
      at = at.folders.get(folder);
    }
    if (item[1].line !== undefined) {
      const file = item[1].path.split("/").at(-1);
      if (!at.folders.has(file)) at.folders.set(file, { folders: new Map(), items: [], isFile: true });
      at = at.folders.get(file);
    }
    at.items.push(item);
  }
  return level(root, open || shown.length <= MANY);
}

function level(at, open) {
  const folders = [...at.folders].sort(([a, one], [b, other]) => rank(a, one) - rank(b, other) || a.localeCompare(b)).map(([name, below]) =>
    branch(name, count(below), h("span.kind-icon", null, icon(below.isFile ? "doc" : "folder")), open || at.folders.size === 1, () => level(below, open)));
  return [...folders, ...at.items.sort((a, b) => a[1].name.localeCompare(b[1].name)).map(leaf)];
}

/** Models come first, then other folders, then files. */
function rank(name, at) {
  return name === "models" ? 0 : at.isFile ? 2 : 1;
}

function count(at) {
  return at.items.length + [...at.folders.values()].reduce((sum, below) => sum + count(below), 0);
}

/** Returns a part of the tree, whose content is made at once only if it is small: links must exist to be marked. */
function branch(name, number, sign, open, content) {
  return h("details", { open }, h("summary", null, icon("right"), sign, h("span.name", null, name), h("span.count", null, number)),
    h("div.below", null, content()));
}

function leaf([id, node]) {
  return h("a.leaf", { href: linkTo(id), "data-id": id, title: `${node.name} (${node.kind})` }, kindIcon(node.kind), h("span.name", null, node.name));
}
