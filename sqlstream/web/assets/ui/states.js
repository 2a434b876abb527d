// What the page says when there is nothing to show, and what to do about it.

import { h, icon, show } from "../dom.js";
import { commandLine, commandText } from "./commands.js";
import { localTime, sentence, timeElement } from "./format.js";
import { link, queryLink } from "./router.js";

/** Returns a page that says what went wrong: `error` is a text, or an error of `get`. */
export function problemPage(error, retry) {
  const { message = error, details = {} } = error;
  if (details.unknown === "target") return unknownPage(message, "Choose a target, or declare this one under `targets` in project.yml.", choices("Targets", details.targets, (name) => link("", { target: name })));
  if (details.unknown === "query") {
    const elsewhere = details.targets.length ? choices("Targets with this query", details.targets, (name) => queryLink(details.query, "", { target: name })) : null;
    return unknownPage(message, "It was removed, renamed or disabled, it belongs to another target, or its name in the address is wrong.", elsewhere, similarQueries(details.similar));
  }
  return h("section.card.empty", { role: "alert" }, h("h1", null, "This cannot be shown"), h("p", null, message),
    retry ? h("button.button", { type: "button", onclick: retry }, "Try again") : null);
}

function unknownPage(message, text, ...lists) {
  return h("section.card.empty", { role: "alert" }, h("h1", null, sentence(message)), h("p", null, text), lists,
    h("p", null, h("a", { href: link("", { target: "" }) }, "Go to the overview")));
}

function choices(label, names, address) {
  return names?.length ? h("div.choices", null, h("h2", null, label), h("ul", null, names.map((name) => h("li", null, h("a", { href: address(name) }, name))))) : null;
}

function similarQueries(names) {
  return choices("Similar queries", names, (name) => queryLink(name));
}

/** Returns the notice on the page of a query that is not in the project as it is now. */
export function missingNotice(page) {
  const title = page.is_removed ? "This query is no longer in the project" : "The project does not compile";
  const text = page.is_removed
    ? "It was removed, renamed or disabled. What you see is from its last run; its checkpoint and output are unchanged."
    : "Therefore, the page has no SQL, columns or plan of this query. The overview lists the errors.";
  return h("section.card.notice.warn", { "aria-label": title }, icon("warn"), h("div", null, h("h2", null, title), h("p", null, text),
    page.is_removed ? similarQueries(page.similar) : h("p", null, h("a", { href: link("") }, "Go to the errors"))));
}

/** The card of the overview of a target in which nothing has run. */
export class EmptyCard {
  constructor() {
    this.element = h("section.card.empty", { hidden: true });
  }

  /** Shows what to do, unless a query of `queries` has run. */
  update(queries, project) {
    const all = Object.values(queries);
    const isEmpty = Boolean(project) && !all.some((query) => query.status);
    const drawn = isEmpty && JSON.stringify([project.compiles, project.target, project.targets_with_runs, all.length > 0]);
    this.element.hidden = !isEmpty;
    if (drawn && drawn !== this.drawn) show(this.element, emptyContent(project, all.length > 0));
    this.drawn = drawn;
  }
}

function emptyContent(project, hasQueries) {
  const others = (project.targets_with_runs || []).filter((name) => name !== project.target);
  const runs = choices("Targets with runs", others, (name) => link("", { target: name }));
  if (!project.compiles) {
    return [h("h2", null, "The project does not compile"), h("p", null, "Fix the errors below. The page compiles the project again when you save a file; this command does the same in a terminal:"),
      commandLine(commandText(["compile"], project)), runs];
  }
  if (!hasQueries) return [h("h2", null, "This project has no queries yet"), h("p", null, "A model becomes a query when it names a sink: ", h("code", null, "{{ config(sink='…') }}"), "."), runs];
  return [h("h2", null, `Nothing has run yet with target ${project.target}`), h("p", null, "Start the queries in the folder of the project, in another terminal. This page updates by itself."),
    commandLine(commandText(["run"], project)), runs];
}

/** Returns since when there are figures of a target and, if earlier ones are missing, why. */
export function historyNote(project) {
  const since = project?.has_history_since;
  if (!since) return null;
  const aside = project.set_aside.at(-1);
  const texts = ["Figures since ", timeElement(since, true), "."];
  if (aside) texts.push(` Earlier ones are in logs/${aside}: it was damaged, or written by another version of sqlstream, and was renamed${renamedAt(aside)}.`);
  else if (project.lacks_earlier_batches) texts.push(" There were batches before: logs/history.sqlite was deleted or is new, and logs/events.jsonl begins there.");
  return texts;
}

function renamedAt(name) {
  const found = /\.(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)\.\d+Z$/.exec(name);
  return found ? ` on ${localTime(`${found[1]}T${found.slice(2).join(":")}Z`, true)}` : "";
}
