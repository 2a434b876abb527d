// Positions of nodes and edges, from left to right. Needs dagre (vendor/dagre/dagre.min.js, a classic script).

/** From this number of nodes on, ranking takes a faster way, with some edges a little longer. */
const MANY = 100;

/**
 * Returns `{ nodes: Map id -> { x, y, width, height }, edges: [{ from, to, points }], width, height }`; x and y are
 * the middle of a node. `size(node)` returns its width and height.
 */
export function layout(nodes, edges, size) {
  const graph = new dagre.graphlib.Graph({ multigraph: false });
  const ranker = nodes.length > MANY ? "tight-tree" : "network-simplex";
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 64, edgesep: 8, marginx: 24, marginy: 24, ranker });
  graph.setDefaultEdgeLabel(() => ({}));
  const known = new Set(nodes.map((node) => node.id));
  for (const node of nodes) graph.setNode(node.id, size(node));
  for (const [from, to] of edges) if (known.has(from) && known.has(to) && from !== to) graph.setEdge(from, to);
  dagre.layout(graph);
  const placed = new Map(nodes.map((node) => [node.id, graph.node(node.id)]));
  const lines = graph.edges().map((edge) => ({ from: edge.v, to: edge.w, points: graph.edge(edge).points }));
  const { width = 0, height = 0 } = graph.graph();
  return { nodes: placed, edges: lines, width: finite(width), height: finite(height) };
}

function finite(value) {
  return Number.isFinite(value) ? value : 0;
}

/** Returns the path of a smooth line through `points` from left to right. */
export function curve(points) {
  const [first, ...rest] = points;
  let path = `M${round(first.x)},${round(first.y)}`;
  let before = first;
  for (const point of rest) {
    const middle = (before.x + point.x) / 2;
    path += `C${round(middle)},${round(before.y)} ${round(middle)},${round(point.y)} ${round(point.x)},${round(point.y)}`;
    before = point;
  }
  return path;
}

function round(value) {
  return Math.round(value * 10) / 10;
}

/** Returns the ids reached from `start` over `next` (a Map from an id to ids), without `start`. */
export function reach(start, next) {
  const found = new Set();
  const waiting = [start];
  while (waiting.length) {
    for (const id of next.get(waiting.pop()) || []) {
      if (!found.has(id) && id !== start) {
        found.add(id);
        waiting.push(id);
      }
    }
  }
  return found;
}

/** Returns `{ parents, children }`, each a Map from an id to the ids beside it. */
export function neighbors(nodes, edges) {
  const parents = new Map(nodes.map((node) => [node.id, []]));
  const children = new Map(nodes.map((node) => [node.id, []]));
  for (const [from, to] of edges) {
    if (!parents.has(to) || !children.has(from)) continue;
    parents.get(to).push(from);
    children.get(from).push(to);
  }
  return { parents, children };
}
