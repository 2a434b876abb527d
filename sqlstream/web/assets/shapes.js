// What the graph draws: nodes, frames around the members of an open group, and lines with their labels.

import { iconPath, s } from "./dom.js";
import { curve } from "./layout.js";

const HEIGHT = 44;
const LEAST = 104;
const MOST = 290;
const MOST_WITH_SPACE = 520;
const TEXT_LEFT = 38;
const TEXT_RIGHT = 12;
const NAME_FONT = '500 13px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif';
const SUB_FONT = NAME_FONT.replace("500 13px", "400 11.5px");
const STATUS_SHAPES = {
  ok: "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
  warn: "M0-6 6 5H-6z",
  bad: "M-5-5H5V5H-5z",
  idle: "M0-6 6 0 0 6-6 0z",
};

let pen = null;

function widthOf(text, font) {
  pen ||= document.createElement("canvas").getContext("2d");
  pen.font = font;
  return pen.measureText(text).width;
}

/** Returns the size of a node by its texts. `reserved` is the longest second line that it will have; `hasSpace`: of few. */
export function nodeSize(node, hasSpace) {
  const most = hasSpace || node.isGroup ? MOST_WITH_SPACE : MOST;
  const letters = Math.max(widthOf(node.name, NAME_FONT), widthOf(node.reserved || node.sub || "", SUB_FONT));
  return { width: Math.ceil(Math.min(most, Math.max(LEAST, letters + TEXT_LEFT + TEXT_RIGHT))), height: HEIGHT };
}

/** Returns the least width of a frame, by its title. */
export function frameWidth(frame) {
  return Math.min(MOST_WITH_SPACE, Math.ceil(Math.max(widthOf(frame.name, NAME_FONT), widthOf(frame.reserved || frame.sub || "", SUB_FONT)) + 84));
}

/** Returns the text, without its middle if it is wider than `width`: the ends of long names tell them apart. */
export function shorten(text, width, font = NAME_FONT) {
  if (widthOf(text, font) <= width) return text;
  const letters = [...text];
  let [least, most] = [1, letters.length - 1];
  const cut = (kept) => `${letters.slice(0, Math.ceil(kept / 2)).join("")}…${letters.slice(letters.length - Math.floor(kept / 2)).join("")}`;
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (widthOf(cut(middle), font) <= width) least = middle;
    else most = middle - 1;
  }
  return cut(least);
}

/** Returns the element of a node. */
export function drawNode(node, place) {
  const element = s(`g.node.kind-${node.kind}`, {
    transform: `translate(${place.x - place.width / 2},${place.y - place.height / 2})`, role: node.role || "link", tabindex: -1, "data-id": node.id,
    "aria-expanded": node.isGroup ? "false" : null,
  },
  s("title"),
  node.isGroup ? s("rect.behind", { x: 4, y: 4, width: place.width, height: place.height, rx: 8 }) : null,
  s("rect.box", { width: place.width, height: place.height, rx: 8 }),
  s("rect.stripe", { x: 6, y: 10, width: 24, height: 24, rx: 6 }),
  s("path.glyph", { d: iconPath(node.kind), transform: "translate(10,14)" }),
  s("text.name", { x: TEXT_LEFT }), s("text.sub", { x: TEXT_LEFT, y: 34 }),
  s("path.status"));
  changeNode(element, node, place);
  return element;
}

/** Shows the texts and the status of a node. */
export function changeNode(element, node, { width }) {
  const [title, name, sub] = ["title", ".name", ".sub"].map((part) => element.querySelector(part));
  const said = [node.name, node.sub !== node.kind && node.sub, node.kind, node.status && (node.title || node.status)].filter(Boolean).join(", ");
  const space = width - TEXT_LEFT - TEXT_RIGHT + 2;
  write(title, said);
  write(name, shorten(node.name, space));
  write(sub, shorten(node.sub || "", space, SUB_FONT));
  name.setAttribute("y", node.sub ? 18.5 : 26.5);
  drawStatus(element.querySelector(".status"), node.status, width - 5, 5);
}

/** Returns the element of a frame, whose title closes it. */
export function drawFrame(frame, place) {
  const element = s(`g.frame-box.kind-${frame.kind}`, { transform: `translate(${place.x - place.width / 2},${place.y - place.height / 2})` },
    s("rect.area", { width: place.width, height: place.height, rx: 10 }),
    s("g.node.frame-title", { role: "button", tabindex: 0, "aria-expanded": "true", "data-id": frame.id },
      s("title"), s("rect.box", { width: place.width, height: 42, rx: 10 }),
      s("path.glyph", { d: "M3.5 6 8 10.5 12.5 6", transform: "translate(11,13)" }),
      s("text.name", { x: 34, y: 26 }), s("text.sub", { y: 26, "text-anchor": "end" }), s("path.status")));
  changeFrame(element, frame, place);
  return element;
}

/** Shows the texts and the status of a frame. */
export function changeFrame(element, frame, { width }) {
  const name = shorten(frame.name, width - 66);
  write(element.querySelector("title"), [frame.name, frame.sub, frame.title].filter(Boolean).join(", "));
  write(element.querySelector(".name"), name);
  const sub = element.querySelector(".sub");
  const space = width - 34 - widthOf(name, NAME_FONT) - 44;
  write(sub, widthOf(frame.sub || "", SUB_FONT) <= space ? frame.sub || "" : "");
  sub.setAttribute("x", width - 28);
  drawStatus(element.querySelector(".status"), frame.status, width - 15, 21);
}

/** Returns the full texts of a node as a label over it, null if nothing of them is cut. */
export function fullLabel(node, place) {
  const [name, sub] = [widthOf(node.name, NAME_FONT), widthOf(node.sub || "", SUB_FONT)];
  const width = Math.max(name, sub) + TEXT_LEFT + TEXT_RIGHT;
  if (width <= place.width + 2) return null;
  return s("g.full", { transform: `translate(${place.x - place.width / 2},${place.y - place.height / 2})`, "aria-hidden": "true" },
    s("rect", { x: TEXT_LEFT - 6, y: 2, width: width - TEXT_LEFT + 2, height: place.height - 4, rx: 5 }),
    s("text.name", { x: TEXT_LEFT, y: node.sub ? 18.5 : 26.5 }, node.name), s("text.sub", { x: TEXT_LEFT, y: 34 }, node.sub || ""));
}

/** Returns the element of a line. */
export function drawLine(line) {
  return s("path.edge", { d: curve(line.points), "marker-end": "url(#graph-arrow)" });
}

/** Returns the element of a line's label, at its place, or at the end that is not shared with other lines. */
export function drawLabel(line) {
  const place = line.label || middle(line.points);
  return s("text.rate", { x: place.x, y: place.y - 6, "text-anchor": "middle" });
}

function middle(points) {
  if (points.length % 2) return points[(points.length - 1) / 2];
  const [one, other] = [points[points.length / 2 - 1], points[points.length / 2]];
  return { x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 };
}

/** Returns the heads of arrows. */
export function arrowHead() {
  const shape = s("path.arrow", { d: "M0 0.8 8 4 0 7.2z" });
  const marker = { id: "graph-arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" };
  return s("defs", null, s("marker", marker, shape));
}

function drawStatus(element, status, x, y) {
  const shape = STATUS_SHAPES[status];
  element.setAttribute("class", shape ? `status ${status}` : "status none");
  element.setAttribute("transform", `translate(${x},${y})`);
  if (shape) element.setAttribute("d", shape);
  else element.removeAttribute("d");
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
