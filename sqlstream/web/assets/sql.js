// SQL with Jinja as highlighted lines. Made from text: nothing in it is ever read as HTML.

import { h } from "./dom.js";

const KEYWORDS = new Set(
  ("ALL ANALYZE AND ANTI ANY ARRAY AS ASC BETWEEN BY CASE CAST CROSS CUBE CURRENT DATE DELAY DESC DISTINCT ELSE END " +
    "EXCEPT EXISTS FALSE FILTER FIRST FOLLOWING FOR FROM FULL GROUP GROUPING HAVING IN INNER INTERSECT INTERVAL INTO IS " +
    "JOIN LAST LATERAL LEFT LIKE LIMIT MAP MINUS NATURAL NOT NULL NULLS OF OFFSET ON OR ORDER OUTER OVER PARTITION PIVOT " +
    "PRECEDING RANGE RIGHT RLIKE ROLLUP ROW ROWS SELECT SEMI SETS STRUCT TABLE THEN TIMESTAMP TRUE UNBOUNDED UNION UNPIVOT " +
    "USING VALUES VIEW WATERMARK WHEN WHERE WINDOW WITH WITHIN").split(" "),
);

const TOKENS = new RegExp(
  [
    /(?<jinja>\{\{[\s\S]*?\}\}|\{%[\s\S]*?%\}|\{#[\s\S]*?#\})/,
    /(?<hint>\/\*\+[\s\S]*?\*\/)/,
    /(?<comment>--[^\n]*|\/\*[\s\S]*?\*\/)/,
    /(?<string>'(?:[^'\\]|\\[\s\S]|'')*'|"(?:[^"\\]|\\[\s\S])*")/,
    /(?<quoted>`[^`]*`)/,
    /(?<number>\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)/,
    /(?<word>[A-Za-z_]\w*)/,
  ].map((part) => part.source).join("|"),
  "g",
);

const PYTHON = new RegExp(
  [
    /(?<comment>#[^\n]*)/,
    /(?<string>"""[\s\S]*?"""|'''[\s\S]*?'''|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")/,
    /(?<number>\b\d+(?:\.\d+)?\b)/,
    /(?<word>[A-Za-z_]\w*)/,
  ].map((part) => part.source).join("|"),
  "g",
);

const PYTHON_KEYWORDS = new Set(
  ("and as assert async await break class continue def del elif else except False finally for from global if import in is " +
    "lambda None nonlocal not or pass raise return True try while with yield").split(" "),
);

/** Returns a `pre` with numbered, highlighted lines of `text` in `language`: sql (with Jinja), python, or text. */
export function codeBlock(text, language = "sql", label = "SQL") {
  const lines = [[]];
  for (const [kind, part] of tokens(text.replace(/\n$/, ""), language)) {
    part.split("\n").forEach((piece, index) => {
      if (index) lines.push([]);
      if (piece) lines.at(-1).push(kind ? h(`span.sql-${kind}`, null, piece) : piece);
    });
  }
  const shown = lines.map((line, index) => [h("span.line", { "data-n": index + 1 }, line), "\n"]);
  return h("pre.code", { tabindex: 0, role: "region", "aria-label": label }, h("code", null, shown));
}

/** Yields pairs of a kind (null for plain text) and the text, which together are the whole `text`. */
export function* tokens(text, language) {
  if (language !== "sql" && language !== "python") {
    yield [null, text];
    return;
  }
  let at = 0;
  for (const match of text.matchAll(language === "sql" ? TOKENS : PYTHON)) {
    const kind = kindOf(match, text, language);
    if (!kind) continue;
    if (match.index > at) yield [null, text.slice(at, match.index)];
    yield [kind, match[0]];
    at = match.index + match[0].length;
  }
  if (at < text.length) yield [null, text.slice(at)];
}

function kindOf(match, text, language) {
  const { jinja, hint, comment, string, number, word } = match.groups;
  if (jinja) return jinja.startsWith("{#") ? "comment" : "jinja";
  if (hint) return "keyword";
  if (comment) return "comment";
  if (string) return "string";
  if (number) return "number";
  if (!word) return null;
  if (language === "python" ? PYTHON_KEYWORDS.has(word) : KEYWORDS.has(word.toUpperCase())) return "keyword";
  return text[match.index + word.length] === "(" ? "function" : null;
}
