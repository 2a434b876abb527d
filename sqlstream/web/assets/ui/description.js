// A description in Markdown, which must not push the figures of a page off the screen.

import { h, markup, show } from "../dom.js";

/** Shows a description in `box`: of a long one its first lines, and a button that shows all of it. Without one, hides the box. */
export function showDescription(box, html) {
  box.hidden = !html;
  const text = markup("div.markdown", html || "");
  const more = h("button.button.quiet", { type: "button", hidden: true, "aria-expanded": "false", onclick: () => open() }, "Show all");
  const open = () => {
    text.classList.remove("cut");
    more.hidden = true;
  };
  text.classList.add("cut");
  text.addEventListener("focusin", open); // a link in the part that does not show
  show(box, text, more);
  requestAnimationFrame(() => { more.hidden = text.scrollHeight <= text.clientHeight + 2; });
}
