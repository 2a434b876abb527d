// The graph of the overview: what flows now, by folder, around one node, or node by node.

import { h, icon, kindIcon, readSetting, show, writeSetting } from "../dom.js";
import { createGraph } from "../graph.js";
import { count, rate } from "./format.js";
import { groupsOf, Picture } from "./groups.js";
import { nodeLink, setParameters } from "./router.js";
import { graphStatus, rankOf, stateOf, statusBadge, wordOf } from "./status.js";

const SETTING = "graph";
const RESERVED = "0,000.00 rows/s";
const STEPS = [["1", "1 step"], ["2", "2"], ["3", "3"], ["all", "All"]];
const HINTS = [
  ["wide-only", "Click a node to open its page. Arrow keys move along the lines, Enter opens, F shows only what is near."],
  ["narrow-only", "Tap a node for its details. Two fingers move the graph; one does after a tap."],
];

/** The groups that are open: they stay so while another view is shown. */
const open = new Set();

export class Flow {
  /** `options`: `onOpen(node)`, `onFilter(text)`. `parameters` of the address: `focus` (an id) and `steps`. */
  constructor(options, parameters) {
    this.options = options;
    this.focused = focusIn(parameters);
    this.box = h("div.flow-graph");
    this.toggle = h("button.button.quiet", { type: "button", hidden: true, onclick: () => this.#toggleAll() });
    this.opener = h("button.button.quiet", { type: "button", "aria-expanded": "false", onclick: () => this.#opened() }, "Show the graph");
    this.legend = h("span.legend.flow-legend.wide-only", null,
      ["source", "view", "query", "sink"].map((kind) => h(`span.kind-${kind}`, null, h("i.dot"), kind)));
    this.bar = h("div.flow-bar", { role: "group", "aria-label": "Chosen node" });
    this.around = h("div.flow-around", { role: "group", "aria-label": "What the graph shows", hidden: true });
    this.element = h("section.card.flow", { "aria-labelledby": "flow-title" },
      h("header", null, icon("graph"), h("h2", { id: "flow-title" }, "What flows now"), this.legend, h("span.spread"), this.toggle, this.opener),
      this.around, this.box, this.bar); // the bar changes its height, which must not move the graph
    this.#mark(readSetting(SETTING) === "open" || Boolean(this.focused));
  }

  /** Shows an overview; `isNew` makes a new layout. */
  update(overview, isNew) {
    this.overview = overview;
    if (this.box.hidden) return;
    if (isNew || !this.graph) this.#build();
    else this.#refresh();
  }

  /** Follows the address. */
  moved(parameters) {
    const focused = focusIn(parameters);
    if (focused?.id === this.focused?.id && focused?.steps === this.focused?.steps) return;
    const before = this.focused?.id;
    this.focused = focused;
    if (focused) this.#mark(true);
    if (this.box.hidden || !this.overview) return;
    this.#build();
    this.#choose(focused?.id || before);
  }

  close() {
    this.graph = null;
    this.box.replaceChildren();
  }

  #build() {
    const { overview } = this;
    const isKnown = this.focused && (overview.nodes.some(({ id }) => id === this.focused.id) || groupsOf(overview.nodes).has(this.focused.id));
    const focus = isKnown ? this.focused : null;
    this.picture = new Picture(overview, open, focus);
    const { groups } = this.picture;
    this.toggle.hidden = !groups.size;
    show(this.toggle, icon(this.#isAllOpen() ? "folder" : "plus"), this.#isAllOpen() ? "Group by folder" : `Show all ${this.picture.nodes.size} nodes`);
    this.#drawAround(focus);
    const frames = [...this.picture.open].map((id) => this.#node(id));
    const nodes = [...new Set(this.picture.shownAs.values())].map((id) => this.#node(id));
    this.shown = new Map([...frames, ...nodes].map((node) => [node.id, key(node)]));
    if (this.graph) {
      this.graph.options.chosen = null;
      this.graph.setData(nodes, this.picture.edges, frames);
    } else {
      this.graph = createGraph(this.box, nodes, this.picture.edges, {
        label: "Graph of sources, views, queries and sinks", frames, hasLabels: true,
        onOpen: (id) => this.#act(id), onSelect: (id, isTap) => this.#select(id, isTap), onKey: (name, id) => this.#pressed(name, id),
      });
    }
    this.#setHeight();
    this.#drawLines();
    this.graph.fit();
    if (!this.picture.membersOf(this.chosen).length) this.chosen = null;
    this.graph.choose(this.chosen);
    this.#drawBar(this.chosen);
  }

  /** Builds the graph again; the node `id` stays where `before` was. */
  #rebuild(before, id) {
    const corner = this.graph.cornerOf(before);
    this.#build();
    const now = this.graph.cornerOf(id);
    if (corner && now) this.graph.shift(corner[0] - now[0], corner[1] - now[1]);
    this.graph.focus(id);
  }

  #setHeight() {
    const most = innerWidth < 861 ? Math.min(380, innerHeight * 0.55) : Math.min(620, innerHeight * 0.7);
    this.box.style.height = `${Math.round(Math.min(Math.max(this.graph.placed.height + 16, 180), Math.max(most, 240)))}px`;
  }

  #refresh() {
    for (const [id, shown] of this.shown) {
      const node = this.#node(id);
      if (shown === key(node)) continue;
      this.shown.set(id, key(node));
      this.graph.update(id, { sub: node.sub, status: node.status, title: node.title });
      if (id === this.chosen) this.#drawBar(id);
    }
    this.#drawLines();
  }

  /** Returns a node of the overview, or a group, as the graph draws it. */
  #node(id) {
    const { states, flowing, worst } = this.#nowOf(id);
    const group = this.picture.groups.get(id);
    if (group) {
      const problems = texts(states).filter(([state]) => rankOf(state) < 5).map(([, text]) => text);
      const sub = problems.length ? [...problems, `${rate(flowing)}/s`].join(" · ") : `${rate(flowing)} rows/s`;
      const isOpen = this.picture.open.has(id);
      return { id, kind: group.kind, name: group.name, sub, reserved: longer(sub), status: graphStatus(worst), title: wordOf(worst), isGroup: !isOpen, role: "button" };
    }
    const { kind, name } = this.picture.nodes.get(id);
    const sub = flowing ? `${rate(flowing)} rows/s` : worst === "none" ? "not run" : wordOf(worst).toLowerCase();
    const status = graphStatus(worst);
    return { id, kind, name, sub, reserved: longer(sub), status, title: worst === "none" ? null : wordOf(worst), role: "link", frame: this.picture.frameOf.get(id) };
  }

  /** Returns the states of a node or of the members of a group, the worst of them, and the rows per second. */
  #nowOf(id) {
    const members = this.picture.membersOf(id);
    const states = members.map((node) => stateOfNode(node, this.overview.queries));
    const flowing = members.reduce((sum, node) => sum + (this.overview.flow.nodes[node.id] || 0), 0);
    return { states, flowing, worst: states.reduce((one, other) => (rankOf(other) < rankOf(one) ? other : one), "none") };
  }

  /** Draws each line by its rate: thicker for more rows, gray without any. */
  #drawLines() {
    const rates = this.overview.flow.edges;
    for (const line of this.graph.lines) {
      const total = this.picture.edgesOf(line.from, line.to).reduce((sum, index) => sum + (rates[index] || 0), 0);
      this.graph.changeLine(line, total > 0 ? Math.min(1.4 + Math.log10(1 + total) * 0.8, 5) : 1.2, total > 0, total > 0 ? `${rate(total)}/s` : "");
    }
  }

  /** Shows or hides the graph, which takes the space and the work of a layout. */
  #opened() {
    const isOpen = this.box.hidden;
    writeSetting(SETTING, isOpen ? "open" : "closed");
    this.#mark(isOpen);
    if (!isOpen) this.close();
    else if (this.overview) this.#build();
  }

  #mark(isOpen) {
    this.box.hidden = this.legend.hidden = this.bar.hidden = !isOpen;
    this.around.hidden ||= !isOpen;
    this.toggle.hidden ||= !isOpen;
    this.opener.setAttribute("aria-expanded", String(isOpen));
    this.opener.textContent = isOpen ? "Hide the graph" : "Show the graph";
  }

  #isAllOpen() {
    return this.picture.open.size === this.picture.groups.size;
  }

  #toggleAll() {
    const opens = !this.#isAllOpen();
    for (const id of this.picture.groups.keys()) open[opens ? "add" : "delete"](id);
    this.#build();
  }

  /** Opens the page of a node, and opens or closes a group. */
  #act(id) {
    const node = this.picture.nodes.get(id);
    if (node) this.options.onOpen(node);
    else this.#toggleGroup(id);
  }

  #toggleGroup(id) {
    if (!open.delete(id)) open.add(id);
    this.chosen = id;
    this.#rebuild(id, id);
  }

  /** Shows the details of a node, and opens or closes a group after a tap. */
  #select(id, isTap) {
    if (isTap && this.picture.groups.has(id)) {
      this.#toggleGroup(id);
      return;
    }
    this.#choose(id);
  }

  #choose(id) {
    this.chosen = this.picture.membersOf(id).length ? id : null;
    this.graph.choose(this.chosen);
    this.#drawBar(this.chosen);
  }

  #pressed(name, id) {
    if (name === "f") this.#focusOn(id, this.focused?.steps || 1);
    else if (name === "Escape" && this.focused) this.#endFocus();
    else return false;
    return true;
  }

  /** Shows only what is upstream and downstream of a node or a group within `steps`. */
  #focusOn(id, steps) {
    const isFirst = !this.focused;
    this.focused = { id, steps };
    this.chosen = id;
    setParameters({ focus: id, steps: steps === Infinity ? "all" : String(steps) }, isFirst);
    this.#build();
    this.graph.center(id);
    this.graph.fit();
    this.graph.focus(id);
  }

  #endFocus() {
    const { id } = this.focused;
    this.focused = null;
    setParameters({ focus: null, steps: null }, true);
    this.#build();
    const shown = this.picture.frameOf.has(id) ? id : this.picture.shownAs.get(id) || id;
    this.#choose(shown);
    this.graph.focus(shown);
  }

  #drawAround(focus) {
    this.around.hidden = !focus;
    if (!focus) return;
    const members = this.picture.groups.get(focus.id);
    const name = members ? members.name : this.picture.nodes.get(focus.id)?.name || groupsOf(this.overview.nodes).get(focus.id)?.name;
    show(this.around, h("span", null, "Only ", h("b", null, name), " and the nodes near it"),
      h("span.ranges", { role: "group", "aria-label": "Steps upstream and downstream" }, STEPS.map(([value, label]) => {
        const steps = value === "all" ? Infinity : Number(value);
        return h("button.button", { type: "button", "aria-pressed": String(steps === focus.steps), "aria-label": value === "all" ? "All steps" : count(steps, "step"), onclick: () => this.#restep(steps) }, label);
      })),
      h("button.button", { type: "button", onclick: () => this.#endFocus() }, icon("close"), "Show everything", h("kbd.wide-only", null, "Esc")));
  }

  #restep(steps) {
    this.#focusOn(this.focused.id, steps);
    this.around.querySelector("[aria-pressed='true']").focus();
  }

  /** Shows the details of a node: its full name, its state, and what can be done. */
  #drawBar(id) {
    if (!id || !this.picture.membersOf(id).length) {
      show(this.bar, HINTS.map(([where, text]) => h(`span.muted.${where}`, null, text)));
      return;
    }
    const { states, flowing, worst } = this.#nowOf(id);
    const group = this.picture.groups.get(id);
    const node = this.picture.nodes.get(id);
    const isFocused = this.focused?.id === id;
    const filter = group ? group.folder && group.kind === "query" && `folder:${group.folder}` : node.kind === "sink" && `sink:${node.name}`;
    const button = (label, act) => h("button.button", { type: "button", onclick: act }, label);
    show(this.bar, kindIcon(group ? group.kind : node.kind),
      h("b.name", null, node ? h("a", { href: nodeLink(node) }, node.name) : group.name),
      group ? h("span.muted", null, texts(states).filter(([state]) => state !== "none").map(([, text]) => text).join(" · ")) : worst === "none" ? null : statusBadge(worst),
      h("span.muted", null, `${rate(flowing)} rows/s`), h("span.spread"),
      group ? button(this.picture.open.has(id) ? "Close the group" : "Open the group", () => this.#toggleGroup(id)) : null,
      isFocused ? null : button("Show only what is near", () => this.#focusOn(id, this.focused?.steps || 1)),
      filter ? button("Filter the table", () => this.options.onFilter(filter)) : null);
  }
}

/** Returns the counts of states as texts, the worst first. */
function texts(states) {
  const counts = new Map();
  for (const state of states) counts.set(state, (counts.get(state) || 0) + 1);
  return [...counts].sort(([one], [other]) => rankOf(one) - rankOf(other)).map(([state, number]) => [state, `${number} ${wordOf(state).toLowerCase()}`]);
}

function stateOfNode(node, queries) {
  const query = node.kind === "query" && queries[node.model];
  return query ? stateOf(query) : node.status || "none";
}

function focusIn({ focus, steps } = {}) {
  if (!focus) return null;
  return { id: focus, steps: steps === "all" ? Infinity : Math.min(Math.max(Number.parseInt(steps, 10) || 1, 1), 99) };
}

function longer(sub) {
  return sub.length < RESERVED.length ? RESERVED : sub;
}

function key(node) {
  return `${node.sub}|${node.status}|${node.title}`;
}
