// Commands of sqlstream to copy, for the target of this page.

import { copyButton, h } from "../dom.js";

/** Returns a word as a shell reads it: in quotes unless it has only characters without a meaning. */
function shellWord(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Returns a command, with `--target` unless the target of the page is the default one. `project` is null until known. */
export function commandText(words, project) {
  const { target, targets = [], default_target: usual } = project || {};
  const option = targets.length > 1 && target !== usual ? ["--target", target] : [];
  return ["sqlstream", ...words, ...option].map(shellWord).join(" ");
}

/** Returns a command with a button that copies it, below what it does; `does` can be empty. */
export function commandLine(text, does = "") {
  return h("div.command", null, does ? h("span.does", null, does) : null,
    h("div.command-line", null, h("code", null, text), copyButton(() => text)));
}
