// A DAG that can be panned, zoomed and walked through with the keyboard.

import { h, icon, s, show } from "./dom.js";
import { followGestures } from "./gestures.js";
import { layout, neighbors, reach } from "./layout.js";
import { arrowHead, changeFrame, changeNode, drawFrame, drawLabel, drawLine, drawNode, frameWidth, fullLabel, nodeSize } from "./shapes.js";

const SMALLEST = 0.04;
const LARGEST = 2.5;
/** At this size, the smallest text has 11 pixels. */
const READABLE = 0.96;
const LABEL_WIDTH = 64;
const COLUMN = 120;
/** So few nodes can be wide. */
const FEW = 25;

/**
 * Shows a graph in `container` and returns it.
 *
 * `nodes` are `{ id, name, sub, kind, status, title }`: `sub` is a second line, `kind` an icon of dom.js, `status` one of
 * ok, warn, bad, idle, or nothing. They can have `frame` (the id of an open group), `isGroup`, `role` and `reserved` (the
 * longest `sub` to come). `edges` are pairs of ids. `options`: `label` (for screen readers), `chosen` (an id), `onOpen(id)`
 * (a click or Enter), `onSelect(id, isTap)` (a tap, or the focus; without it, a tap opens), `onKey(key, id)` (returns whether it did
 * something), `wheel` ("zoom": without Ctrl), `frames` (open groups, as nodes), `hasLabels` (lines have labels, see `changeLine`).
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
    followGestures(this, options);
    this.setData(nodes, edges, options.frames);
  }

  /** Replaces the nodes, edges and frames. */
  setData(nodes, edges, frames = []) {
    this.nodes = new Map(nodes.map((node) => [node.id, node]));
    this.frames = new Map(frames.map((frame) => [frame.id, frame]));
    this.near = neighbors(nodes, edges);
    const hasSpace = nodes.length <= FEW;
    this.placed = layout(nodes, edges, (node) => nodeSize(node, hasSpace), frames.map((frame) => ({ id: frame.id, width: frameWidth(frame) })), this.options.hasLabels ? LABEL_WIDTH : 0);
    this.lit = null;
    this.#draw();
    this.focusId = this.nodes.has(this.options.chosen) ? this.options.chosen : this.#first();
    this.#markFocus();
    this.fit();
  }

  /** Changes the status or the second line of a node or a frame, without a new layout. */
  update(id, changes) {
    const [node, frame] = [this.nodes.get(id), this.frames.get(id)];
    if (node) changeNode(this.elements.get(id), Object.assign(node, changes), this.placed.nodes.get(id));
    else if (frame) changeFrame(this.boxes.get(id), Object.assign(frame, changes), this.placed.frames.get(id));
  }

  /** Changes the width of a line, whether something flows there, and its label. */
  changeLine(line, width, flows, text) {
    const shown = `${width.toFixed(1)} ${text}`;
    if (line.shown === shown) return;
    line.shown = shown;
    line.element.style.strokeWidth = `${width.toFixed(1)}px`;
    line.element.classList.toggle("flows", flows);
    line.rate ||= this.labels.appendChild(drawLabel(line));
    line.rate.textContent = text;
    line.rate.classList.toggle("always", Boolean(line.label));
  }

  /** Highlights the nodes `ids` and the edges between them; null ends it. */
  highlight(ids) {
    this.lit = ids === null ? null : new Set(ids);
    this.container.classList.toggle("lit", this.lit !== null);
    for (const [id, element] of this.elements) element.classList.toggle("on", Boolean(this.lit?.has(id)));
    for (const line of this.lines) {
      const isOn = this.#isLit(line) || line.parts.some((part) => this.#isLit(part));
      line.element.classList.toggle("on", isOn);
      line.rate?.classList.toggle("on", isOn);
    }
    this.#drawParts();
  }

  /** Highlights a node with everything upstream and downstream of it. */
  highlightFamily(id) {
    if (!this.nodes.has(id)) return;
    this.highlight([id, ...reach(id, this.near.parents), ...reach(id, this.near.children)]);
    this.#showFull(id);
  }

  /** Marks a node as the chosen one; null marks none. */
  choose(id) {
    for (const element of this.scene.querySelectorAll(".chosen")) element.classList.remove("chosen");
    this.#elementOf(id)?.classList.add("chosen");
  }

  /** Shows the whole graph; a large one at a readable size, around the chosen node or from the left. */
  fit(whole = false) {
    const { width, height } = this.#size();
    const scale = Math.min(1.15, width / (this.placed.width || 1), height / (this.placed.height || 1));
    if (whole || scale >= READABLE) {
      this.place(Math.max(scale, SMALLEST));
    } else if (this.options.chosen) {
      this.center(this.focusId, READABLE);
    } else {
      this.place(READABLE);
      const first = this.placed.nodes.get(this.focusId);
      if (first) this.shift(0, Math.min(height / 2 - this.view.y - first.y * READABLE, 0));
    }
  }

  /** Shows the graph at `scale` in the middle, or from its left and top where it is larger than the container. */
  place(scale) {
    const { width, height } = this.#size();
    const [left, top] = [(width - this.placed.width * scale) / 2, (height - this.placed.height * scale) / 2];
    this.#move({ scale, x: Math.max(left, 0), y: Math.max(top, 0) });
  }

  /** Moves a node or a frame into the middle. */
  center(id, scale = this.view.scale) {
    const place = this.#placeOf(id);
    if (!place) return;
    const { width, height } = this.#size();
    this.#move({ scale, x: width / 2 - place.x * scale, y: height / 2 - place.y * scale });
  }

  /** Returns where the left top corner of a node or a frame is in the container, null without such a node. */
  cornerOf(id) {
    const place = this.#placeOf(id);
    const { x, y, scale } = this.view;
    return place ? [(place.x - place.width / 2) * scale + x, (place.y - place.height / 2) * scale + y] : null;
  }

  /** Moves the graph by pixels. A part of it stays in the container. */
  shift(dx, dy) {
    const { width, height } = this.#size();
    const { x, y, scale } = this.view;
    const within = (value, span, space) => Math.min(Math.max(value, 80 - span * scale), space - 80);
    this.#move({ scale, x: within(x + dx, this.placed.width, width), y: within(y + dy, this.placed.height, height) });
  }

  /** Zooms by `factor` around a point of the container, by default its middle. */
  zoom(factor, x, y) {
    const { width, height } = this.#size();
    const [px, py] = [x ?? width / 2, y ?? height / 2];
    const scale = Math.min(LARGEST, Math.max(SMALLEST, this.view.scale * factor));
    const ratio = scale / this.view.scale;
    this.#move({ scale, x: px - (px - this.view.x) * ratio, y: py - (py - this.view.y) * ratio });
  }

  /** Focuses a node or a frame and brings it into view. */
  focus(id) {
    const element = this.#elementOf(id);
    if (!element) return;
    if (this.nodes.has(id)) this.focusId = id;
    this.#markFocus();
    this.#reveal(id);
    element.focus({ preventScroll: true });
  }

  /** Acts on a click; called by the gestures. */
  clicked(event) {
    const id = event.target.closest(".node")?.dataset.id;
    if (!id || event.detail > 1) return; // the second click of two
    if (event.pointerType === "touch" && this.options.onSelect) this.options.onSelect(id, true);
    else this.options.onOpen?.(id);
  }

  /** Returns the first node of the longest way: the top one on the left. */
  #first() {
    const places = [...this.placed.nodes].map(([id, place]) => [id, place.x - place.width / 2, place.y]);
    return places.sort((a, b) => a[1] - b[1] || a[2] - b[2])[0]?.[0];
  }

  #elementOf(id) {
    return this.elements.get(id) || this.boxes.get(id)?.querySelector(".frame-title");
  }

  #placeOf(id) {
    return this.placed.nodes.get(id) || this.placed.frames.get(id);
  }

  #size() {
    return { width: this.container.clientWidth || 600, height: this.container.clientHeight || 400 };
  }

  #move(view) {
    this.view = view;
    this.scene.setAttribute("transform", `translate(${view.x},${view.y}) scale(${view.scale})`);
  }

  /** Moves the graph as little as needed to show a node or a frame, or the left and top of a larger one. */
  #reveal(id) {
    const place = this.#placeOf(id);
    const size = this.#size();
    const [left, top] = this.cornerOf(id);
    const within = (from, span, space) => Math.max(Math.min(from, space - span * this.view.scale - 16), 16) - from;
    const [dx, dy] = [within(left, place.width, size.width), within(top, place.height, size.height)];
    this.#move({ ...this.view, x: this.view.x + dx, y: this.view.y + dy });
  }

  #draw() {
    this.lines = this.placed.lines.map((line) => ({ ...line, element: drawLine(line) }));
    this.elements = new Map([...this.nodes.values()].map((node) => [node.id, drawNode(node, this.placed.nodes.get(node.id))]));
    this.boxes = new Map([...this.frames.values()].map((frame) => [frame.id, drawFrame(frame, this.placed.frames.get(frame.id))]));
    this.parts = s("g.parts-of-lines");
    this.labels = s("g.rates");
    this.full = s("g");
    this.scene.replaceChildren(...this.boxes.values(), ...this.lines.map((line) => line.element), this.parts, ...this.elements.values(), this.labels, this.full);
    this.container.classList.remove("lit");
    this.choose(this.options.chosen);
  }

  #isLit({ from, to }) {
    return Boolean(this.lit?.has(from) && this.lit.has(to));
  }

  /** Draws the lit lines of the members of frames, which are otherwise one line. */
  #drawParts() {
    const parts = this.lit ? this.lines.flatMap((line) => line.parts.filter((part) => this.#isLit(part))) : [];
    show(this.parts, parts.map((part) => {
      const element = drawLine(part);
      element.classList.add("on");
      return element;
    }));
  }

  #showFull(id) {
    const node = this.nodes.get(id);
    show(this.full, node ? fullLabel(node, this.placed.nodes.get(id)) : null);
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
    const nodeAt = (event) => event.target.closest(".node")?.dataset.id;
    svg.addEventListener("keydown", (event) => this.#pressed(event));
    svg.addEventListener("focusin", (event) => {
      const id = nodeAt(event);
      if (!id) return;
      if (event.target.matches(":focus-visible")) this.#reveal(id);
      this.highlightFamily(id);
      this.options.onSelect?.(id, false);
    });
    svg.addEventListener("focusout", () => this.#unlit());
    svg.addEventListener("pointerover", (event) => {
      const id = nodeAt(event);
      if (id && event.pointerType === "mouse" && !event.buttons) this.highlightFamily(id);
    });
    svg.addEventListener("pointerout", (event) => {
      if (nodeAt(event) && !event.buttons) this.#unlit();
    });
  }

  #unlit() {
    this.highlight(null);
    this.#showFull(null);
  }

  #pressed(event) {
    const id = event.target.closest(".node")?.dataset.id;
    if (!id || event.ctrlKey || event.metaKey || event.altKey) return;
    const go = (other) => () => other && this.focus(other);
    const act = {
      ArrowRight: () => this.focus(this.#nearest(id, this.near.children)),
      ArrowLeft: () => this.focus(this.#nearest(id, this.near.parents)),
      ArrowDown: go(this.#beside(id, 1)),
      ArrowUp: go(this.#beside(id, -1)),
      Enter: () => this.options.onOpen?.(id),
      "+": () => this.zoom(1.3),
      "=": () => this.zoom(1.3),
      "-": () => this.zoom(1 / 1.3),
      0: () => this.fit(true),
    }[event.key];
    if (this.options.onKey?.(event.key, id)) event.stopPropagation();
    else if (act) act();
    else if (event.key === "Escape" && this.lit) this.#unlit();
    else return;
    event.preventDefault();
  }

  /** Returns the neighbor at about the same height. */
  #nearest(id, next) {
    const place = this.placed.nodes.get(id);
    const away = (other) => Math.abs(this.placed.nodes.get(other).y - place.y);
    return [...(next.get(id) || [])].sort((a, b) => away(a) - away(b))[0];
  }

  /** Returns the next node or title of a frame up or down in the same column. */
  #beside(id, direction) {
    const top = (place) => place.y - place.height / 2;
    const here = this.#placeOf(id);
    const away = ([, place]) => (top(place) - top(here)) * direction;
    const beside = ([, place]) => Math.min(Math.abs(place.x - here.x), Math.abs(place.x - place.width / 2 - here.x + here.width / 2));
    const column = [...this.placed.nodes, ...this.placed.frames].filter((each) => each[0] !== id && beside(each) < COLUMN && away(each) > 0);
    return column.sort((a, b) => away(a) - away(b))[0]?.[0];
  }
}
