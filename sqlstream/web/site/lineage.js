// The lineage of columns: from the columns of sources, through all models, to the columns of queries.

import { graphNode, nodes } from "./store.js";

const SEPARATOR = "\u0000";
const MOST = 400;

let below = null;

/** Returns a key for a column of a node. */
export function columnKey(id, column) {
  return `${id}${SEPARATOR}${column}`;
}

/** Returns the node id and the column of a key. */
export function columnOf(key) {
  return key.split(SEPARATOR);
}

/** Returns the keys of the columns from which a column is computed. */
export function origins(key) {
  const [id, name] = columnOf(key);
  const column = nodes.get(id)?.columns?.find((each) => each.name === name);
  return (column?.from || []).filter(([from]) => nodes.has(from)).map(([from, each]) => columnKey(from, each));
}

/** Returns the keys of the columns that are computed from a column. */
export function uses(key) {
  if (!below) {
    below = new Map();
    for (const [id, node] of nodes) {
      for (const column of node.columns || []) {
        for (const from of origins(columnKey(id, column.name))) {
          if (!below.has(from)) below.set(from, []);
          below.get(from).push(columnKey(id, column.name));
        }
      }
    }
  }
  return below.get(key) || [];
}

/** Returns `{ nodes, edges, up, down, cut }` for graph.js: all columns up to the sources and down to the last models. */
export function columnGraph(id, column) {
  const start = columnKey(id, column);
  const found = new Set([start]);
  const edges = [];
  const [up, down] = [new Set(), new Set()];
  let cut = false;
  for (const [next, reached, forward] of [[origins, up, false], [uses, down, true]]) {
    const waiting = [start];
    const seen = new Set([start]);
    while (waiting.length) {
      const key = waiting.shift();
      for (const other of next(key)) {
        if (found.size >= MOST && !found.has(other)) { cut = true; continue; }
        edges.push(forward ? [key, other] : [other, key]);
        found.add(other);
        reached.add(other);
        if (!seen.has(other)) { seen.add(other); waiting.push(other); }
      }
    }
  }
  const shown = [...found].map((key) => {
    const [node, name] = columnOf(key);
    return { ...graphNode(node), id: key, name, sub: nodes.get(node).name };
  });
  return { start, nodes: shown, edges, up, down, cut };
}
