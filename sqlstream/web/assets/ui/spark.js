// Small charts.

import { s } from "../dom.js";

const WIDTH = 64;
const HEIGHT = 20;

/** Returns a small chart without values. */
export function sparkline() {
  return s("svg.spark", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    s("path.area"), s("path.stroke"));
}

/** Shows `values` in a small chart, from zero to their maximum; unknown ones are gaps. */
export function drawSpark(svg, values) {
  const line = sparkPath(values || []);
  svg.lastChild.setAttribute("d", line);
  svg.firstChild.setAttribute("d", line && `${line}V${HEIGHT}H${firstX(line)}Z`);
}

function firstX(line) {
  return line.slice(1, line.indexOf(","));
}

function sparkPath(values) {
  const numbers = values.filter((value) => value !== null);
  if (numbers.length < 2) return "";
  const top = Math.max(...numbers) || 1;
  const step = WIDTH / Math.max(values.length - 1, 1);
  let path = "";
  values.forEach((value, index) => {
    if (value === null) return;
    const y = HEIGHT - 1.5 - (Math.max(value, 0) / top) * (HEIGHT - 3);
    path += `${path ? "L" : "M"}${(index * step).toFixed(1)},${y.toFixed(1)}`;
  });
  return path;
}
