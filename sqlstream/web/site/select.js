// dbt's node selection, with the meaning that it has on the command line (compiler/selection/).

import { selectable, edges } from "./store.js";

const CRITERION = /^(@)?((\d*)\+)?(?:([\p{L}\p{N}_.]+):)?(.*?)(\+(\d*))?$/u;
const FILE_ENDINGS = [".sql", ".py", ".csv"];
const RESOURCE_TYPES = ["model", "seed", "source", "exposure", "unit_test"];
const VERSIONS = ["latest", "prerelease", "old", "none"];

/** An invalid selector. Its message says why. */
export class SelectorError extends Error {}

/** Returns the Set of unique ids that `--select` and `--exclude` choose. An empty `select` means every node. */
export function selectNodes(select, exclude = "") {
  const chosen = select.trim() ? union(select) : new Set(Object.keys(selectable));
  for (const id of union(exclude)) chosen.delete(id);
  return chosen;
}

const nodes = new Map(Object.entries(selectable));
const parents = new Map([...nodes.keys()].map((id) => [id, []]));
const children = new Map([...nodes.keys()].map((id) => [id, []]));
for (const [from, to] of edges) {
  if (!nodes.has(from) || !nodes.has(to)) continue;
  parents.get(to).push(from);
  children.get(from).push(to);
}

function union(text) {
  const found = new Set();
  for (const word of text.split(" ").filter(Boolean)) {
    const parts = word.split(",").map((part) => (part ? expand(part) : new Set()));
    for (const id of parts[0]) if (parts.every((part) => part.has(id))) found.add(id);
  }
  return found;
}

function expand(raw) {
  const match = CRITERION.exec(raw);
  if (!match) throw new SelectorError(`\`${raw}\`: a selector is one line`);
  const [, at, up, upDepth, named, value, down, downDepth] = match;
  if (at && down) throw new SelectorError(`\`${raw}\`: \`@\` already includes all children, so a \`+\` at the end is not allowed`);
  const [method, ...words] = (named || defaultMethod(value)).split(".");
  const make = METHODS[method];
  if (!make) throw new SelectorError(`\`${raw}\`: \`${method}\` is not a selection method; the methods are ${Object.keys(METHODS).join(", ")}`);
  const matches = make(value, words, raw);
  const found = new Set([...nodes].filter(([, node]) => matches(node)).map(([id]) => id));
  const all = new Set(found);
  const add = (ids) => { for (const id of ids) all.add(id); };
  if (at) {
    const family = new Set([...found, ...walk(found, children)]);
    add(family);
    add(walk(family, parents));
  }
  if (up) add(walk(found, parents, upDepth ? Number(upDepth) : Infinity));
  if (down) add(walk(found, children, downDepth ? Number(downDepth) : Infinity));
  return all;
}

function defaultMethod(value) {
  if (value.includes("/")) return "path";
  return FILE_ENDINGS.some((ending) => value.toLowerCase().endsWith(ending)) ? "file" : "fqn";
}

function walk(starts, next, depth = Infinity) {
  const reached = new Set();
  let layer = new Set(starts);
  for (let step = 0; layer.size && step < depth; step += 1) {
    const following = new Set();
    for (const id of layer) for (const other of next.get(id) || []) if (!reached.has(other)) following.add(other);
    for (const id of following) reached.add(id);
    layer = following;
  }
  return reached;
}

const METHODS = {
  fqn: (value) => (node) => {
    if (node.resource_type === "source") return false;
    const paths = [node.fqn, node.fqn.slice(1)];
    if (!node.version) return paths.some((path) => fqnMatches(path, value));
    if (isVersion(node.version, value)) return true;
    return [...paths, ...paths.map((path) => [...path.slice(0, -2), node.name])].some((path) => fqnMatches(path, value));
  },
  tag: (value) => (node) => node.tags.some((tag) => like(tag, value)),
  source: (value, _, raw) => bySource(value, raw),
  exposure: (value, _, raw) => byExposure(value, raw),
  group: (value) => (node) => node.config?.group === value,
  version: (value, _, raw) => {
    if (!VERSIONS.includes(value)) throw new SelectorError(`\`${raw}\`: \`${value}\` is none of ${VERSIONS.join(", ")}`);
    return (node) => node.resource_type === "model" && value === (node.version ? node.version.release : "none");
  },
  access: (value) => (node) => node.config?.access === value,
  sink: (value) => (node) => node.sinks.some((sink) => like(sink, value)),
  path: (value, _, raw) => byPath(value, raw),
  file: (value) => (node) => {
    const name = node.path.split("/").at(-1);
    return like(name, value) || like(stem(name), value);
  },
  config: (value, words) => byConfig(value, words),
  resource_type: (value, _, raw) => {
    if (!RESOURCE_TYPES.includes(value)) throw new SelectorError(`\`${raw}\`: \`${value}\` is not a resource type`);
    return (node) => node.resource_type === value;
  },
  package: (value) => (node) => value === "this" || like(node.fqn[0], value),
};

function isVersion(version, value) {
  if (!value.includes(".") && like(version.name, value)) return true;
  return value.split(".").slice(-2).join("_") === `${version.name}_v${version.v}`;
}

function fqnMatches(fqn, value) {
  if (fqn.at(-1) === value) return true;
  const have = fqn.join(".").split(".");
  const want = value.split(".");
  if (have.length < want.length) return false;
  const first = want.findIndex((word) => /[*?[\]]/.test(word));
  const plain = first < 0 ? want.length : first;
  if (want.slice(0, plain).some((word, index) => have[index] !== word)) return false;
  if (plain === want.length || like(have.slice(plain).join("."), want.slice(plain).join("."))) return true;
  return !value.includes(".") && like(fqn.at(-1), value);
}

function bySource(value, raw) {
  const parts = value.split(".");
  if (parts.length > 3) throw new SelectorError(`\`${raw}\`: a source is \`source\`, \`source.table\` or \`project.source.table\``);
  const [project, source, table] = parts.length === 3 ? parts : parts.length === 2 ? ["*", ...parts] : ["*", parts[0], "*"];
  return (node) => node.resource_type === "source"
    && like(node.fqn[0], project) && like(node.source_name || "", source) && like(node.name, table);
}

function byExposure(value, raw) {
  const parts = value.split(".");
  if (parts.length > 2) throw new SelectorError(`\`${raw}\`: an exposure is \`exposure\` or \`project.exposure\``);
  const [project, name] = parts.length === 2 ? parts : ["*", parts[0]];
  return (node) => node.resource_type === "exposure" && like(node.fqn[0], project) && like(node.name, name);
}

function byPath(value, raw) {
  const pattern = value.split("/").filter((part) => part && part !== ".");
  if (value.startsWith("/")) throw new SelectorError(`\`${raw}\`: a path must be relative to the project directory`);
  if (!pattern.length) throw new SelectorError(`\`${raw}\`: the path is empty; use \`*\` for the whole project`);
  if (pattern.some((part) => part.includes("**") && part !== "**")) {
    throw new SelectorError(`\`${raw}\`: \`**\` matches whole folders, so it must be alone between slashes`);
  }
  const foldersOnly = value.endsWith("/") || pattern.at(-1) === "**";
  return (node) => {
    const file = node.path.split("/");
    if (file.some((_, depth) => partsMatch(pattern, file.slice(0, depth)))) return true;
    const files = node.properties_path === null ? [file] : [file, node.properties_path.split("/")];
    return !foldersOnly && files.some((parts) => partsMatch(pattern, parts));
  };
}

function partsMatch(pattern, parts) {
  if (!pattern.length) return !parts.length;
  if (pattern[0] === "**") return Array.from({ length: parts.length + 1 }, (_, skip) => skip).some((skip) => partsMatch(pattern.slice(1), parts.slice(skip)));
  return parts.length > 0 && like(parts[0], pattern[0]) && partsMatch(pattern.slice(1), parts.slice(1));
}

function byConfig(value, words) {
  const fold = (text) => (words.length === 1 && words[0] === "severity" ? text.toUpperCase() : text);
  const wanted = { TRUE: true, FALSE: false }[value.toUpperCase()];
  const equals = (found) => (typeof found === "string" ? fold(found) === fold(value) : wanted !== undefined && found === wanted);
  return (node) => {
    if (node.resource_type === "exposure") return false;
    let found = node.config;
    for (const word of words) found = isMapping(found) && Object.hasOwn(found, word) ? found[word] : undefined;
    return Array.isArray(found) ? found.some(equals) : equals(found);
  };
}

function isMapping(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function stem(name) {
  const dot = name.lastIndexOf(".");
  return dot > 0 ? name.slice(0, dot) : name;
}

const patterns = new Map();

/** Returns whether `text` matches `pattern` as Python's fnmatchcase does: `*`, `?`, `[abc]` and `[!abc]`. */
function like(text, pattern) {
  if (!patterns.has(pattern)) patterns.set(pattern, compile(pattern));
  return patterns.get(pattern).test(text);
}

function compile(pattern) {
  let source = "";
  for (let at = 0; at < pattern.length; at += 1) {
    const sign = pattern[at];
    if (sign === "*") source += "[\\s\\S]*";
    else if (sign === "?") source += "[\\s\\S]";
    else if (sign === "[") {
      const from = at + (pattern[at + 1] === "!" ? 2 : 1);
      const end = pattern.indexOf("]", from + (pattern[from] === "]" ? 1 : 0));
      if (end < 0) source += "\\[";
      else {
        const negated = from > at + 1;
        const inside = pattern.slice(from, end).replace(/[\\\]^[]/g, "\\$&");
        source += `[${negated ? "^" : ""}${inside}]`;
        at = end;
      }
    } else source += sign.replace(/[.+^${}()|\\/]/g, "\\$&");
  }
  return new RegExp(`^${source}$`, "u");
}
