// The kinds of nodes, in the order in which people look for them, with the same words on all pages.

/** The headings of the kinds. */
export const KINDS = {
  query: "Queries", view: "Views", source: "Sources", seed: "Seeds", sink: "Sinks", exposure: "Exposures",
  macro: "Macros", function: "Functions", test: "Unit tests",
};

/** What a kind is, for people who see it for the first time. */
export const MEANINGS = {
  query: "a model that runs and writes to a sink",
  view: "a model without a sink, which other models read",
  source: "an input that the project declares",
  seed: "a small table in a CSV file",
  sink: "an output that the project declares",
  exposure: "a dashboard, an application or another use of the outputs",
  macro: "SQL that models share",
  function: "a Python function that SQL can call",
  test: "given rows and expected rows of a model",
};

const RANKS = new Map(Object.keys(KINDS).map((kind, rank) => [kind, rank]));

/** Returns a number by which kinds sort: queries first, unit tests last. */
export function kindRank(kind) {
  return RANKS.get(kind) ?? RANKS.size;
}

/** Returns the heading for `count` nodes of a kind: `Query` or `Queries`. */
export function kindWord(kind, count) {
  return count === 1 ? KINDS[kind].replace(/ies$/, "y").replace(/s$/, "") : KINDS[kind];
}
