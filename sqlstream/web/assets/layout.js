// Positions of nodes and edges, from left to right. Needs dagre (vendor/dagre/dagre.min.js, a classic script).

/** From this number of nodes on, ranking takes a faster way, with some edges a little longer. */
const MANY = 100;
/** More lines than this have no space for their labels. */
const MANY_LINES = 80;
/** A frame with more members than this has several columns. */
const LONGEST_COLUMN = 12;
const FRAME = { side: 14, head: 54, foot: 14, gap: 10, between: 24 };

/**
 * Returns `{ nodes: Map id -> { x, y, width, height }, frames: the same, lines, width, height }`; x and y are the middle.
 * `size(node)` returns the width and height of a node. `frames` are `{ id, width }` with the least width; the members of
 * a frame have its id as `frame`. `label` is the width of a line's label, 0 for none.
 *
 * A line is `{ from, to, points, label, parts }`. `label` is the place of its label, null if there is no space for it.
 * The lines of a frame with several columns end at the frame; its `parts` are the lines of its members.
 */
export function layout(nodes, edges, size, frames = [], label = 0) {
  const boxes = new Map(nodes.map((node) => [node.id, { id: node.id, frame: node.frame, ...size(node) }]));
  const known = [...new Map(edges.filter(([from, to]) => boxes.has(from) && boxes.has(to) && from !== to).map((edge) => [JSON.stringify(edge), edge])).values()];
  if (!frames.length) return { ...arrange([...boxes.values()], known, 24, label), frames: new Map() };
  const frameOf = (id) => boxes.get(id).frame || id;
  const insides = new Map(frames.map((frame) => [frame.id, inside(frame, [...boxes.values()].filter((box) => box.frame === frame.id), known)]));
  const outer = [...insides].map(([id, { width, height }]) => ({ id, width, height })).concat([...boxes.values()].filter((box) => !box.frame));
  const between = new Map(known.map(([from, to]) => [frameOf(from), frameOf(to)]).filter(([from, to]) => from !== to).map((edge) => [JSON.stringify(edge), edge]));
  const around = arrange(outer, [...between.values()], 24, label);
  const places = new Map([...around.nodes].filter(([id]) => !insides.has(id)));
  const placed = new Map([...around.nodes].filter(([id]) => insides.has(id)).sort((one, other) => one[1].x - other[1].x));
  const near = neighbors(nodes, known);
  for (const [id, place] of placed) putMembers(insides.get(id), place, places, near);
  return { nodes: places, frames: placed, width: around.width, height: around.height, lines: linesOf(known, frameOf, insides, { places, placed, around }) };
}

/** Lays out nodes without frames. */
function arrange(boxes, edges, margin, label = 0) {
  const graph = new dagre.graphlib.Graph({ multigraph: false });
  const ranker = boxes.length > MANY ? "tight-tree" : "network-simplex";
  const space = label && edges.length <= MANY_LINES ? { width: label, height: 26, labelpos: "c" } : {};
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: space.width ? 40 : 64, edgesep: 8, marginx: margin, marginy: margin, ranker });
  graph.setDefaultEdgeLabel(() => ({ ...space }));
  for (const { id, width, height } of boxes) graph.setNode(id, { width, height });
  for (const [from, to] of edges) graph.setEdge(from, to);
  dagre.layout(graph);
  const nodes = new Map(boxes.map(({ id }) => [id, graph.node(id)]));
  const columns = alignColumns([...nodes.values()]);
  const lines = graph.edges().map(({ v, w }) => {
    const { points, x, y } = graph.edge(v, w);
    const [from, to] = [nodes.get(v), nodes.get(w)];
    const ways = points.slice(1, -1).flatMap((point) => through(point, columns));
    return { from: v, to: w, ways, points: join(from, ways, to), label: space.width ? { x, y } : null, parts: [] };
  });
  const { width = 0, height = 0 } = graph.graph();
  return { nodes, lines, width: finite(width), height: finite(height) };
}

/** Moves the nodes of each column to its left, and returns the columns: lines change their height only between them. */
function alignColumns(places) {
  const columns = new Map();
  for (const place of places) {
    const column = columns.get(place.x) || { middle: place.x, width: 0, places: [] };
    columns.set(place.x, column);
    column.width = Math.max(column.width, place.width);
    column.places.push(place);
  }
  for (const { middle, width, places: all } of columns.values()) {
    for (const place of all) {
      place.x = middle - width / 2 + place.width / 2;
      place.right = middle + width / 2;
    }
  }
  return [...columns.values()];
}

/** Returns the points at which a line passes a column, or the point itself between two columns. */
function through(point, columns) {
  const column = columns.find(({ middle }) => Math.abs(middle - point.x) < 1);
  return column ? [{ x: column.middle - column.width / 2, y: point.y }, { x: column.middle + column.width / 2, y: point.y }] : [point];
}

/** Returns the points of a line between two nodes or frames. */
function join(from, ways, to) {
  const start = { x: from.x + from.width / 2, y: beside(from, ways[0]) };
  const end = { x: to.x - to.width / 2, y: beside(to, ways.at(-1)) };
  return start.x < from.right - 1 && from.right < end.x ? [start, { x: from.right, y: start.y }, ...ways, end] : [start, ...ways, end];
}

/** Lays out the members of a frame: those with lines between them from left to right, the others in columns. */
function inside(frame, members, edges) {
  const ids = new Set(members.map(({ id }) => id));
  const within = edges.filter(([from, to]) => ids.has(from) && ids.has(to));
  const linked = new Set(within.flat());
  const [chained, single] = [members.filter(({ id }) => linked.has(id)), members.filter(({ id }) => !linked.has(id))];
  const found = chained.length ? arrange(chained, within, 0) : { nodes: new Map(), lines: [], width: 0, height: 0 };
  const top = chained.length && single.length ? found.height + FRAME.gap : found.height;
  const rows = single.length > LONGEST_COLUMN ? Math.max(LONGEST_COLUMN, Math.ceil(Math.sqrt(single.length * 3))) : single.length;
  let [left, width, height] = [0, found.width, top];
  for (let start = 0; start < single.length; start += rows) {
    const column = single.slice(start, start + rows);
    const wide = Math.max(...column.map((box) => box.width));
    column.forEach((box, row) => {
      const y = top + row * (box.height + FRAME.gap) + box.height / 2;
      found.nodes.set(box.id, { x: left + box.width / 2, y, width: box.width, height: box.height });
      height = Math.max(height, y + box.height / 2);
    });
    left += wide + FRAME.between;
    width = Math.max(width, left - FRAME.between);
  }
  const isBundled = chained.length > 0 || single.length > rows;
  return { places: found.nodes, lines: found.lines, isBundled, width: Math.max(width + 2 * FRAME.side, frame.width), height: height + FRAME.head + FRAME.foot };
}

/** Puts the members of a frame at its place. A single column is in the order of what it is connected with. */
function putMembers(found, frame, places, near) {
  const [left, top] = [frame.x - frame.width / 2 + FRAME.side, frame.y - frame.height / 2 + FRAME.head];
  found.offset = { left, top };
  if (!found.isBundled) {
    const heights = (id) => [...near.parents.get(id), ...near.children.get(id)].map((other) => places.get(other)?.y).filter((y) => y !== undefined);
    const mean = new Map([...found.places.keys()].map((id) => [id, heights(id).reduce((sum, y, _, all) => sum + y / all.length, 0) || 0]));
    const rows = [...found.places.values()].map(({ y }) => y);
    [...found.places].sort((one, other) => mean.get(one[0]) - mean.get(other[0])).forEach(([, place], row) => { place.y = rows[row]; });
  }
  for (const [id, place] of found.places) places.set(id, { ...place, x: place.x + left, y: place.y + top, right: frame.right });
}

/** Returns the lines between nodes and frames; see `layout`. */
function linesOf(edges, frameOf, insides, { places, placed, around }) {
  const ways = new Map(around.lines.map((line) => [JSON.stringify([line.from, line.to]), line]));
  const found = [];
  const bundles = new Map();
  for (const { lines, offset } of insides.values()) {
    for (const line of lines) found.push({ ...line, points: line.points.map(({ x, y }) => ({ x: x + offset.left, y: y + offset.top })), label: null });
  }
  for (const [from, to] of edges) {
    const [first, last] = [frameOf(from), frameOf(to)];
    if (first === last) continue;
    const way = ways.get(JSON.stringify([first, last]));
    const [start, end] = [places.get(from), places.get(to)];
    const line = { from, to, points: join(start, way.ways, end), label: first === from && last === to ? way.label : null, parts: [] };
    const ends = [insides.get(first)?.isBundled ? first : from, insides.get(last)?.isBundled ? last : to];
    if (ends[0] === from && ends[1] === to) { found.push(line); continue; }
    const key = JSON.stringify(ends);
    if (!bundles.has(key)) {
      const [one, other] = ends.map((id) => placed.get(id) || places.get(id));
      const label = ends[0] === first && ends[1] === last ? way.label : null;
      bundles.set(key, { from: ends[0], to: ends[1], points: join(one, way.ways, other), label, parts: [] });
    }
    bundles.get(key).parts.push(line);
  }
  return [...found, ...bundles.values()];
}

/** Returns where a line meets the side of a node, which is its middle, or of a frame, which is tall. */
function beside({ y, height }, point) {
  const reach = height > 100 ? height / 2 - 16 : 0;
  return Math.min(Math.max(point?.y ?? y, y - reach), y + reach);
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
