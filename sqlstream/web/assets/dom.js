// Elements made from values. Text is always text: only `markup` accepts HTML, from sqlstream's own renderer.

const SVG = "http://www.w3.org/2000/svg";

/** Returns an element: `h("a.button", { href }, "text", child)`. Null, undefined and false add nothing. */
export function h(spec, attributes, ...children) {
  const [tag, ...classes] = spec.split(".");
  return fill(document.createElement(tag), classes, attributes, children);
}

/** Returns an SVG element, as `h` does. */
export function s(spec, attributes, ...children) {
  const [tag, ...classes] = spec.split(".");
  return fill(document.createElementNS(SVG, tag), classes, attributes, children);
}

function fill(element, classes, attributes, children) {
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2).toLowerCase(), value);
    else if (name === "class") element.classList.add(...String(value).split(" ").filter(Boolean));
    else if (name === "style") element.style.cssText = value; // an attribute would break a strict Content-Security-Policy
    else if (name === "href") element.setAttribute(name, safeLink(String(value)));
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/** Appends texts, elements and lists of them to `element`. */
export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** Replaces the content of `element`. */
export function show(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

/** Returns `link` if it is relative, http, https or mailto; otherwise an empty fragment. */
export function safeLink(link) {
  const scheme = /^[\s\u0000-\u001f]*([a-z][a-z0-9+.-]*):/i.exec(link);
  return !scheme || /^(https?|mailto)$/i.test(scheme[1]) ? link : "#";
}

/** Returns a text with the parts between backticks as code. */
export function coded(text) {
  return String(text).split("`").map((part, index, parts) => (index % 2 && index < parts.length - 1 ? h("code", null, part) : `${index % 2 ? "`" : ""}${part}`));
}

/** Returns an element with `html`, which only sqlstream's own Markdown renderer may have made. */
export function markup(spec, html) {
  const element = h(spec);
  element.innerHTML = html;
  return element;
}

/** Copies `text`, also on pages opened from a file, and resolves to whether it worked. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", { style: "position:fixed;opacity:0", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const worked = document.execCommand("copy");
    area.remove();
    return worked;
  }
}

/** Returns a button that copies the result of `text()`. */
export function copyButton(text, label = "Copy") {
  const said = h("span", { "aria-live": "polite" }, label);
  const button = h("button.button.quiet", { type: "button" }, icon("copy"), said);
  button.addEventListener("click", async () => {
    said.textContent = (await copyText(text())) ? "Copied" : "Copying failed";
    setTimeout(() => { said.textContent = label; }, 1600);
  });
  return button;
}

// One path each, on a grid of 16 by 16.
const ICONS = {
  source: "M2.5 4c0-1.2 2.5-2 5.5-2s5.5.8 5.5 2-2.5 2-5.5 2-5.5-.8-5.5-2zm0 0v8c0 1.2 2.5 2 5.5 2s5.5-.8 5.5-2V4M2.5 8c0 1.2 2.5 2 5.5 2s5.5-.8 5.5-2",
  seed: "M2.5 3h11v10h-11zM2.5 6.5h11M6.2 3v10",
  view: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 6.2a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6z",
  query: "M1.5 5c2.2-2.4 4.3-2.4 6.5 0s4.3 2.4 6.5 0M1.5 11c2.2-2.4 4.3-2.4 6.5 0s4.3 2.4 6.5 0",
  sink: "M8 2v7M5 6.5 8 9.5l3-3M2.5 10v3.5h11V10",
  exposure: "M2 2.5h12v8.5H2zM8 11v2.5M5 13.5h6M5 8.5V7M8 8.5V5M11 8.5V6",
  macro: "M5 2.5c-2 0-2 1.3-2 2.7S3 8 1.8 8C3 8 3 9.4 3 10.8S3 13.5 5 13.5M11 2.5c2 0 2 1.3 2 2.7S13 8 14.2 8C13 8 13 9.4 13 10.8s0 2.7-2 2.7",
  function: "M11.5 3c-2-.7-3 .3-3.4 2.5L6.8 11c-.5 2.2-1.5 3-3.3 2.4M4.5 7h6",
  test: "M6 2v4L2.5 12.5c-.4.8 0 1.5.9 1.5h9.2c.9 0 1.3-.7.9-1.5L10 6V2M5 2h6M4.5 10h7",
  doc: "M3.5 1.5h6l3 3v10h-9zM9.5 1.5v3h3M5.5 8h5M5.5 11h5",
  folder: "M1.5 12.5v-9h4.5l1.5 2h7v7z",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.5 10.5l3.5 3.5",
  graph: "M2 3h4v3H2zM10 10h4v3h-4zM10 3h4v3h-4zM6 4.5h4M8 4.5v7h2",
  home: "M2 7.5 8 2.5l6 5M3.5 6.5v7h9v-7",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  moon: "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z",
  menu: "M2 4h12M2 8h12M2 12h12",
  close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  fit: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  right: "M6 3.5 10.5 8 6 12.5",
  down: "M3.5 6 8 10.5 12.5 6",
  ok: "M3 8.5 6.5 12 13 4.5",
  warn: "M8 2 1.5 13.5h13zM8 6.5v3.5M8 11.8v.2",
  bad: "M5.5 1.5h5l4 4v5l-4 4h-5l-4-4v-5zM5.5 5.5l5 5M10.5 5.5l-5 5",
  idle: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM6.5 5.5v5M9.5 5.5v5",
  info: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM8 7.5v3.5M8 5v.2",
  clock: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM8 4.5V8l2.5 1.5",
  columns: "M2 3h12v10H2zM6 3v10M10 3v10",
  link: "M6.5 9.5l3-3M7 4.5l1.5-1.5a3 3 0 0 1 4.5 4.5L11.5 9M9 11.5 7.5 13A3 3 0 0 1 3 8.5L4.5 7",
};

/** Returns the path of an icon on a grid of 16 by 16. */
export function iconPath(name) {
  return ICONS[name] || ICONS.doc;
}

/** Returns an icon. It has no label: words stand beside it, or in `title`. */
export function icon(name, title) {
  const label = title ? { role: "img", "aria-label": title } : { "aria-hidden": "true" };
  return s("svg.icon", { viewBox: "0 0 16 16", ...label }, s("path", { d: iconPath(name) }));
}

/** Returns the icon of a kind of node (source, seed, view, query, sink, exposure, macro, function, test, doc) in its color. */
export function kindIcon(kind, large = false) {
  return h(`span.kind-icon.kind-${kind}`, { class: large ? "large" : null, title: kind }, icon(kind));
}

/** Returns sqlstream's mark. */
export function logo() {
  return s("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" },
    s("rect", { width: 24, height: 24, rx: 6.5, style: "fill:var(--accent)" }),
    s("path", {
      d: "M4 8.5c2.7-3 5.3-3 8 0s5.3 3 8 0M4 15.5c2.7-3 5.3-3 8 0s5.3 3 8 0",
      style: "fill:none;stroke:var(--on-accent);stroke-width:2.2;stroke-linecap:round",
    }));
}

/** Returns the link with sqlstream's mark and the name of a project. */
export function brand(href, project) {
  return h("a.brand", { href, title: "Overview" }, logo(), h("span", null, brandName(project)));
}

/** Returns the name of a project as the bar of a page shows it; sqlstream's while it is unknown. */
export function brandName(project) {
  return project ? [h("span.wide-only", null, "sqlstream ", h("span.slash", null, "/ ")), project] : "sqlstream";
}

/** Returns the button that switches between dark and light, and remembers the choice. */
export function themeButton() {
  const stored = readSetting("sqlstream-theme");
  if (stored) document.documentElement.dataset.theme = stored;
  const button = h("button.button.quiet", { type: "button" });
  const draw = () => {
    const name = isDark() ? "light" : "dark";
    button.setAttribute("aria-label", `Switch to the ${name} theme`);
    button.title = `Switch to the ${name} theme`;
    show(button, icon(isDark() ? "sun" : "moon"));
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    writeSetting("sqlstream-theme", document.documentElement.dataset.theme);
    draw();
    document.dispatchEvent(new CustomEvent("themechange"));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
  return button;
}

/** Returns whether the page is dark now. */
export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Returns a stored setting, null if there is none or the browser does not store any. */
export function readSetting(name) {
  try { return localStorage.getItem(name); } catch { return null; }
}

/** Stores a setting, if the browser can. */
export function writeSetting(name, value) {
  try { localStorage.setItem(name, value); } catch { /* private windows cannot store */ }
}

/** Returns a color token such as `--chart-1` as a browser computes it now, for canvases. */
export function color(token) {
  const probe = h("span", { style: `color: var(${token})`, hidden: true });
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
