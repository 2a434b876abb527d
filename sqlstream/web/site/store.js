// The data of the site, and what the pages look up in it.
//
// The element `sqlstream-docs` contains { project, nodes, edges, selectable }, made by app/docs/catalog.py:
//   project: { name, version, target, sqlstream_version, generated_at, live (address of the live page), overview (HTML), findings }
//   nodes: by unique id { kind, name, path, description (HTML), words, tags, meta, columns, config, raw, compiled,
//     outputs, emission, depends_on, read_by, findings, ... }; kind is source, seed, view, query, sink,
//     exposure, macro, function or test
//   edges: pairs of ids; selectable: what selectors match, by unique id

const data = JSON.parse(document.getElementById("sqlstream-docs").textContent);

export const project = data.project;
export const nodes = new Map(Object.entries(data.nodes));
export const edges = data.edges;
export const selectable = data.selectable;

/** The kinds that the graph shows. */
export const IN_GRAPH = new Set(["source", "seed", "view", "query", "sink", "exposure"]);

/** The unit tests of each model, by its unique id. */
export const testsOf = groupBy([...nodes].filter(([, node]) => node.kind === "test"), ([, node]) => node.model);

/** Returns a Map from a key to the items with that key. */
export function groupBy(items, key) {
  const groups = new Map();
  for (const item of items) {
    const value = key(item);
    if (!groups.has(value)) groups.set(value, []);
    groups.get(value).push(item);
  }
  return groups;
}

/** Returns the link to a node, and to one of its columns. */
export function linkTo(id, column) {
  return `#/node/${encodeURIComponent(id)}${column === undefined ? "" : `/column/${encodeURIComponent(column)}`}`;
}

/** Returns the link to a node on the live page; null if it has none, or the site knows no live page. */
export function liveLink(id) {
  const node = nodes.get(id);
  if (!project.live || !LIVE.has(node.kind)) return null;
  const path = node.kind === "query" ? `query/${encodeURIComponent(node.name)}` : `node/${encodeURIComponent(id)}`;
  return `${liveHome()}${path}?target=${encodeURIComponent(project.target)}`;
}

/** Returns the address of the live page; null if the site knows none. */
export function liveHome() {
  return project.live ? `${project.live}#/` : null;
}

const LIVE = new Set(["query", "view", "source", "seed"]);

/** Returns a name for a node that the site may not have. */
export function nameOf(id) {
  return nodes.get(id)?.name || id.split(".").slice(2).join(".") || id;
}

/** Returns the node for graph.js. */
export function graphNode(id) {
  const node = nodes.get(id);
  const formats = { source: node.config?.format, sink: node.config?.format, exposure: node.config?.type, query: node.outputs?.map((each) => each.name).join(", ") };
  const sub = node.kind === "query" ? `${node.mode} → ${formats.query}` : formats[node.kind] || node.kind;
  const errors = (node.findings || []).some((finding) => finding.severity === "error");
  return { id, name: node.name, kind: node.kind, sub, status: errors ? "bad" : null, title: errors ? "has errors" : null };
}
