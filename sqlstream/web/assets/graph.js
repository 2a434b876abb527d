// A DAG that can be panned, zoomed and walked through with the keyboard.

import { h, icon, iconPath, s, show } from "./dom.js";
import { curve, layout, neighbors, reach } from "./layout.js";

const HEIGHT = 40;
const LEAST = 96;
const MOST = 250;
const SMALLEST = 0.04;
const LARGEST = 2.5;
const READABLE = 0.55;
const STATUS_SHAPES = {
  ok: "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
  warn: "M0-6 6 5H-6z",
  bad: "M-5-5H5V5H-5z",
  idle: "M0-6 6 0 0 6-6 0z",
};

/**
 * Shows a graph in `container` and returns it.
 *
 * `nodes` are `{ id, name, sub, kind, status, title }`: `sub` is a second line, `kind` an icon of dom.js, `status` one of
 * ok, warn, bad, idle, or nothing. `edges` are pairs of ids. `options`: `label` (for screen readers), `chosen` (an id),
 * `onOpen(id)` (click or Enter), `onChoose(id)` (a node gets the focus), `wheel` ("zoom": without Ctrl).
 *
 * Keys: left and right go along edges, up and down to the next node of a column, Enter opens, + - 0 zoom, Escape ends
 * the highlighting. Only one node is a tab stop.
 */
export function createGraph(container, nodes, edges, options = {}) {
  return new Graph(container, nodes, edges, options);
}

class Graph {
  constructor(container, nodes, edges, options) {
    this.options = options;
    this.container = container;
    this.view = { x: 0, y: 0, scale: 1 };
    this.scene = s("g");
    this.svg = s("svg", { role: "group", "aria-label": options.label || "Graph" }, arrowHead(), this.scene);
    container.classList.add("graph");
    show(container, this.svg, this.#tools());
    this.#listen();
    this.setData(nodes, edges);
  }

  /** Replaces the nodes and edges. */
  setData(nodes, edges) {
    this.nodes = new Map(nodes.map((node) => [node.id, node]));
    this.near = neighbors(nodes, edges);
    this.placed = layout(nodes, edges, nodeSize);
    this.lit = null;
    this.#draw();
    this.focusId = this.nodes.has(this.options.chosen) ? this.options.chosen : this.#first();
    this.#markFocus();
    this.fit();
  }

  /** Changes the status or the second line of a node, without a new layout. */
  update(id, changes) {
    const node = this.nodes.get(id);
    if (!node) return;
    Object.assign(node, changes);
    const drawn = this.#drawNode(node);
    drawn.setAttribute("class", this.elements.get(id).getAttribute("class"));
    if (id === this.focusId) drawn.setAttribute("tabindex", "0");
    const hadFocus = document.activeElement === this.elements.get(id);
    this.elements.get(id).replaceWith(drawn);
    this.elements.set(id, drawn);
    if (hadFocus) drawn.focus();
  }

  /** Highlights the nodes `ids` and the edges between them; null ends it. */
  highlight(ids) {
    this.lit = ids === null ? null : new Set(ids);
    this.container.classList.toggle("lit", this.lit !== null);
    for (const [id, element] of this.elements) element.classList.toggle("on", Boolean(this.lit?.has(id)));
    for (const line of this.lines) line.element.classList.toggle("on", Boolean(this.lit?.has(line.from) && this.lit.has(line.to)));
  }

  /** Highlights a node with everything upstream and downstream of it. */
  highlightFamily(id) {
    this.highlight([id, ...reach(id, this.near.parents), ...reach(id, this.near.children)]);
  }

  /** Shows the whole graph; a large one at a readable size, around the chosen node or from the left. */
  fit(whole = false) {
    const { width, height } = this.#size();
    const scale = Math.min(1.15, width / (this.placed.width || 1), height / (this.placed.height || 1));
    if (whole || scale >= READABLE) {
      this.place(Math.max(scale, SMALLEST));
    } else if (this.options.chosen) {
      this.center(this.focusId, 0.8);
    } else {
      const first = this.placed.nodes.get(this.focusId) || { y: 0 };
      this.#move({ scale: 0.8, x: 12, y: height / 2 - first.y * 0.8 });
    }
  }

  /** Shows the graph at `scale` in the middle, or from its left and top where it is larger than the container. */
  place(scale) {
    const { width, height } = this.#size();
    const [left, top] = [(width - this.placed.width * scale) / 2, (height - this.placed.height * scale) / 2];
    this.#move({ scale, x: Math.max(left, 12), y: Math.max(top, 12) });
  }

  /** Moves a node into the middle. */
  center(id, scale = this.view.scale) {
    const place = this.placed.nodes.get(id);
    if (!place) return;
    const { width, height } = this.#size();
    this.#move({ scale, x: width / 2 - place.x * scale, y: height / 2 - place.y * scale });
  }

  /** Zooms by `factor` around a point of the container, by default its middle. */
  zoom(factor, x, y) {
    const { width, height } = this.#size();
    const [px, py] = [x ?? width / 2, y ?? height / 2];
    const scale = Math.min(LARGEST, Math.max(SMALLEST, this.view.scale * factor));
    const ratio = scale / this.view.scale;
    this.#move({ scale, x: px - (px - this.view.x) * ratio, y: py - (py - this.view.y) * ratio });
  }

  /** Focuses a node and brings it into view. */
  focus(id) {
    if (!this.nodes.has(id)) return;
    this.focusId = id;
    this.#markFocus();
    this.#reveal(id);
    this.elements.get(id).focus({ preventScroll: true });
    this.options.onChoose?.(id);
  }

  /** Returns the first node of the longest way: the top one on the left. */
  #first() {
    const places = [...this.placed.nodes].map(([id, place]) => [id, place.x - place.width / 2, place.y]);
    return places.sort((a, b) => a[1] - b[1] || a[2] - b[2])[0]?.[0];
  }

  #size() {
    return { width: this.container.clientWidth || 600, height: this.container.clientHeight || 400 };
  }

  #move(view) {
    this.view = view;
    this.scene.setAttribute("transform", `translate(${view.x},${view.y}) scale(${view.scale})`);
  }

  #reveal(id) {
    const place = this.placed.nodes.get(id);
    const { width, height } = this.#size();
    const { x, y, scale } = this.view;
    const [cx, cy] = [place.x * scale + x, place.y * scale + y];
    const [mx, my] = [(place.width * scale) / 2 + 12, (place.height * scale) / 2 + 12];
    if (cx < mx || cy < my || cx > width - mx || cy > height - my) this.center(id);
  }

  #draw() {
    this.lines = this.placed.edges.map((edge) => ({
      ...edge, element: s("path.edge", { d: curve(edge.points), "marker-end": "url(#graph-arrow)" }),
    }));
    this.elements = new Map([...this.nodes.values()].map((node) => [node.id, this.#drawNode(node)]));
    this.scene.replaceChildren(...this.lines.map((line) => line.element), ...this.elements.values());
    this.container.classList.remove("lit");
    this.elements.get(this.options.chosen)?.classList.add("chosen");
  }

  #drawNode(node) {
    const place = this.placed.nodes.get(node.id);
    const [left, top] = [place.x - place.width / 2, place.y - place.height / 2];
    const said = [node.name, node.sub !== node.kind && node.sub, node.kind, node.status && (node.title || node.status)].filter(Boolean);
    const shape = STATUS_SHAPES[node.status];
    return s(`g.node.kind-${node.kind}`, {
      transform: `translate(${left},${top})`, role: "link", tabindex: -1, "data-id": node.id,
    },
    s("title", null, said.join(", ")),
    s("rect.box", { width: place.width, height: place.height, rx: 8 }),
    s("rect.stripe", { x: 6, y: 8, width: 24, height: 24, rx: 6 }),
    s("path.glyph", { d: iconPath(node.kind), transform: "translate(10,12)" }),
    s("text", { x: 38, y: node.sub ? 17.5 : 24.5 }, shorten(node.name, place.width)),
    node.sub ? s("text.sub", { x: 38, y: 31 }, shorten(node.sub, place.width + 20)) : null,
    shape ? s(`path.status.${node.status}`, { d: shape, transform: `translate(${place.width - 5},5)` }) : null);
  }

  #markFocus() {
    for (const [id, element] of this.elements) element.setAttribute("tabindex", id === this.focusId ? "0" : "-1");
  }

  #tools() {
    const tool = (name, label, act) =>
      h("button.button", { type: "button", "aria-label": label, title: label, onclick: act }, icon(name));
    return h("div.tools", null,
      tool("plus", "Zoom in", () => this.zoom(1.3)),
      tool("minus", "Zoom out", () => this.zoom(1 / 1.3)),
      tool("fit", "Show the whole graph", () => this.fit(true)));
  }

  #listen() {
    const { svg } = this;
    svg.addEventListener("click", (event) => this.#clicked(event));
    svg.addEventListener("keydown", (event) => this.#pressed(event));
    svg.addEventListener("pointerdown", (event) => this.#grabbed(event));
    svg.addEventListener("focusin", (event) => {
      const id = event.target.closest(".node")?.dataset.id;
      if (id) this.highlightFamily(id);
    });
    svg.addEventListener("focusout", () => this.highlight(null));
    svg.addEventListener("pointerover", (event) => {
      const id = event.target.closest(".node")?.dataset.id;
      if (id && event.pointerType === "mouse" && !this.grab) this.highlightFamily(id);
    });
    svg.addEventListener("pointerout", (event) => {
      if (event.target.closest(".node") && !this.grab) this.highlight(null);
    });
    this.container.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && this.options.wheel !== "zoom") return;
      event.preventDefault();
      const box = this.container.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY * 0.0018), event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
  }

  #clicked(event) {
    const id = event.target.closest(".node")?.dataset.id;
    if (id && !this.moved) this.options.onOpen?.(id);
  }

  /** Follows one pointer, which moves the graph, or two, which zoom it. */
  #grabbed(event) {
    if (event.button !== 0) return;
    this.moved = false;
    this.pointers = this.grab ? this.pointers : new Map();
    this.pointers.set(event.pointerId, event);
    if (this.grab) return;
    this.grab = new AbortController();
    const follow = { signal: this.grab.signal };
    addEventListener("pointermove", (move) => this.#dragged(move), follow);
    for (const name of ["pointerup", "pointercancel"]) addEventListener(name, (up) => this.#released(up), follow);
  }

  #dragged(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    if (!this.moved && Math.hypot(dx, dy) < 4) return;
    this.moved = true;
    this.container.classList.add("panning");
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.pointers.set(event.pointerId, event);
    if (!other) {
      this.#move({ ...this.view, x: this.view.x + dx, y: this.view.y + dy });
      return;
    }
    const box = this.container.getBoundingClientRect();
    const span = (point) => Math.hypot(point.clientX - other.clientX, point.clientY - other.clientY) || 1;
    const middle = [(event.clientX + other.clientX) / 2 - box.left, (event.clientY + other.clientY) / 2 - box.top];
    this.zoom(span(event) / span(before), ...middle);
  }

  #released(event) {
    this.pointers.delete(event.pointerId);
    if (this.pointers.size) return;
    this.grab.abort();
    this.grab = null;
    this.container.classList.remove("panning");
  }

  #pressed(event) {
    const id = event.target.closest(".node")?.dataset.id;
    if (!id || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      ArrowRight: () => this.focus(this.#nearest(id, this.near.children)),
      ArrowLeft: () => this.focus(this.#nearest(id, this.near.parents)),
      ArrowDown: () => this.focus(this.#beside(id, 1)),
      ArrowUp: () => this.focus(this.#beside(id, -1)),
      Enter: () => this.options.onOpen?.(id),
      "+": () => this.zoom(1.3),
      "=": () => this.zoom(1.3),
      "-": () => this.zoom(1 / 1.3),
      0: () => this.fit(true),
      Escape: () => this.highlight(null),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  /** Returns the neighbor at about the same height. */
  #nearest(id, next) {
    const { y } = this.placed.nodes.get(id);
    const away = (other) => Math.abs(this.placed.nodes.get(other).y - y);
    return [...next.get(id)].sort((a, b) => away(a) - away(b))[0];
  }

  /** Returns the next node up or down in the same column. */
  #beside(id, direction) {
    const here = this.placed.nodes.get(id);
    const away = ([, place]) => (place.y - here.y) * direction;
    const column = [...this.placed.nodes].filter((each) => Math.abs(each[1].x - here.x) < MOST / 2 && away(each) > 0);
    return column.sort((a, b) => away(a) - away(b))[0]?.[0];
  }
}

function arrowHead() {
  const shape = s("path.arrow", { d: "M0 0.8 8 4 0 7.2z" });
  const marker = { id: "graph-arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" };
  return s("defs", null, s("marker", marker, shape));
}

/** Returns the size of a node by its texts; measuring them would be slow for a thousand nodes. */
function nodeSize(node) {
  const letters = Math.max(node.name.length * 7.1, (node.sub || "").length * 5.9);
  return { width: Math.round(Math.min(MOST, Math.max(LEAST, letters + 56))), height: HEIGHT };
}

function shorten(text, width) {
  const letters = Math.floor((width - 46) / 6.9);
  return text.length <= letters ? text : `${text.slice(0, letters - 1)}…`;
}
