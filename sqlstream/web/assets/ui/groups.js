// What the graph of the overview draws: nodes, and groups of nodes of one kind and folder, which are closed or open.

import { neighbors } from "../layout.js";
import { count } from "./format.js";

/** With more nodes of one kind, nodes are grouped. */
const MANY = 12;
/** Fewer nodes of a folder, or of a source or a top folder, are no group. */
const FEWEST = 3;
const FEWEST_AT_TOP = 2;

/** Returns the number of nodes of the most common kind, which is about the number of rows in the graph. */
function tallest(nodes) {
  const counts = new Map();
  for (const { kind } of nodes) counts.set(kind, (counts.get(kind) || 0) + 1);
  return Math.max(...counts.values(), 1);
}

/**
 * Returns the groups of nodes by id, each with `{ id, kind, folder, name, members }`, and none if the nodes are few.
 * Sources are grouped by their source, views and queries by their folder, and sinks together. `alone` is never grouped.
 */
export function groupsOf(nodes, alone = new Set()) {
  if (tallest(nodes) <= MANY) return new Map();
  const kinds = new Map();
  for (const node of nodes) {
    if (alone.has(node.id)) continue;
    if (!kinds.has(node.kind)) kinds.set(node.kind, []);
    kinds.get(node.kind).push(node);
  }
  return new Map([...kinds].flatMap(([kind, members]) => [...groupsOfKind(kind, members)]));
}

/** Returns groups of the deepest folders that make at most `MANY` of a kind; otherwise of the top folders. */
function groupsOfKind(kind, nodes) {
  const isModel = kind === "view" || kind === "query"; // other folders are no paths
  const deepest = isModel ? Math.max(...nodes.map(({ folder }) => folder.split("/").length)) : 1;
  for (let depth = deepest; depth > 0; depth -= 1) {
    const groups = new Map();
    for (const node of nodes) {
      const folder = isModel ? node.folder.split("/").slice(0, depth).join("/") : node.folder;
      const id = `${kind}:${folder}`;
      if (!groups.has(id)) groups.set(id, { id, kind, folder, members: [] });
      groups.get(id).members.push(node);
    }
    const fewest = depth === 1 ? FEWEST_AT_TOP : FEWEST;
    const large = [...groups.values()].filter(({ members }) => members.length >= fewest);
    const shown = large.length + nodes.length - large.reduce((sum, { members }) => sum + members.length, 0);
    if (depth > 1 && shown > MANY) continue;
    return new Map(large.map((group) => [group.id, { ...group, name: nameOf(group) }]));
  }
  return new Map();
}

function nameOf({ kind, folder, members }) {
  const noun = kind === "query" ? ["query", "queries"] : [kind, `${kind}s`];
  const number = count(members.length, ...noun);
  return kind === "sink" || kind === "seed" ? number : `${folder || "models"} · ${number}`;
}

/** Returns the ids of `start` and of what is upstream and downstream of them within `steps`. */
function around(start, steps, nodes, edges) {
  const near = neighbors(nodes, edges);
  const found = new Set(start);
  for (const next of [near.parents, near.children]) {
    const seen = new Set(start);
    let border = [...start];
    for (let step = 0; step < steps && border.length; step += 1) {
      border = [...new Set(border.flatMap((id) => next.get(id) || []))].filter((id) => !seen.has(id));
      for (const id of border) {
        seen.add(id);
        found.add(id);
      }
    }
  }
  return found;
}

/** What is drawn for the nodes and edges of an overview, with `open` groups and a `focus` (`{ id, steps }`, or null). */
export class Picture {
  constructor(overview, open, focus) {
    const everything = groupsOf(overview.nodes);
    const roots = focus ? everything.get(focus.id)?.members.map(({ id }) => id) || [focus.id] : [];
    const family = focus && around(roots, focus.steps, overview.nodes, overview.edges);
    const nodes = overview.nodes.filter(({ id }) => !family || family.has(id)).sort((one, other) => (one.name < other.name ? -1 : 1));
    this.groups = groupsOf(nodes, focus && !everything.has(focus.id) ? new Set(roots) : new Set());
    this.open = new Set([...this.groups.keys()].filter((id) => open.has(id)));
    this.nodes = new Map(nodes.map((node) => [node.id, node]));
    this.shownAs = new Map(nodes.map(({ id }) => [id, id]));
    this.frameOf = new Map();
    for (const group of this.groups.values()) {
      for (const { id } of group.members) (this.open.has(group.id) ? this.frameOf : this.shownAs).set(id, group.id);
    }
    this.lines = new Map();
    this.edges = [];
    overview.edges.forEach(([from, to], index) => {
      if (this.shownAs.has(from) && this.shownAs.has(to)) this.#addEdge(from, to, index);
    });
  }

  /** Returns the members of a group, or the node itself. */
  membersOf(id) {
    return this.groups.get(id)?.members || [this.nodes.get(id)].filter(Boolean);
  }

  /** Returns the numbers of the edges that a line of the graph shows. */
  edgesOf(from, to) {
    return this.lines.get(JSON.stringify([from, to])) || [];
  }

  #addEdge(from, to, index) {
    const [start, end] = [this.shownAs.get(from), this.shownAs.get(to)];
    if (start === end) return;
    if (!this.lines.has(JSON.stringify([start, end]))) this.edges.push([start, end]);
    // a line ends at a node or at the frame around it
    for (const one of new Set([start, this.frameOf.get(from) || start])) {
      for (const other of new Set([end, this.frameOf.get(to) || end])) {
        const key = JSON.stringify([one, other]);
        if (!this.lines.has(key)) this.lines.set(key, []);
        this.lines.get(key).push(index);
      }
    }
  }
}
