// Why a query has failed, where, what happens next, and the commands that help; and findings in general.

import { coded, h, icon } from "../../dom.js";
import { commandLine, commandText } from "../commands.js";
import { ago, exact, known, localTime, seconds, sentence, timeElement } from "../format.js";
import { link, queryLink } from "../router.js";

/** Returns an error or a warning in its three lines: what, why, how to fix. `page` is the query, for a link to its SQL. */
export function findingBox(finding, title, tone, page = null) {
  return h("section.card.notice", { class: tone, "aria-label": title }, icon(tone === "bad" ? "bad" : "warn"),
    h("div", null, h("h2", null, title, codeName(finding)), h("p.message", null, coded(finding.message)),
      h("dl.finding", null, fact("where", placeLink(finding.location, page)), fact("why", finding.why), fact("fix", finding.fix))));
}

function codeName(finding) {
  return finding.code ? h("code.code-name", null, finding.code) : null;
}

function fact(name, value, isCode = false) {
  const shown = typeof value === "string" && !isCode ? coded(value) : value;
  return known(value) && value !== "" ? [h("dt", null, name), h("dd", { class: isCode ? "mono" : null }, shown)] : null;
}

/** Returns a place in a file; as a link to its line, if the file is that of the query or of one of its views. */
function placeLink(place, page) {
  if (!place) return null;
  const text = [place.path, place.line, place.column].filter(known).join(":");
  const view = page?.views?.find(({ path }) => path === place.path);
  if (!known(place.line) || !(view || (page?.raw_sql && place.path === page.path))) return h("span.mono", null, text);
  return h("a.mono", { href: view ? link(`node/${encodeURIComponent(view.unique_id)}`, { line: place.line }) : queryLink(page.model, "sql", { line: place.line }) }, text);
}

/** Returns the failure of a query that has failed, or waits for its restart; null otherwise. */
export function failureOf(now, state) {
  return now.error || (state === "restarting" ? now.last_failure : null);
}

/**
 * Returns the card about `finding`. `changing(name, element)` makes an element whose text follows `failureTexts`.
 * `page` is what is known of the query, null until it is read.
 */
export function failureCard(finding, now, page, project, changing) {
  const { batch, file, position, row, value, sql } = finding.failure || {};
  const waits = now.status === "restarting";
  const says = known(batch) && new RegExp(`\\bbatch ${batch}\\b`).test(finding.message);
  return h("section.card.notice.bad.failure", { "aria-label": waits ? "It failed and will restart" : "Why it failed" }, icon("bad"), h("div", null,
    h("h2", null, coded(sentence(finding.message)), codeName(finding)),
    h("p.muted.when", null, timeElement(now.failed_at || now.heard_at), " · ", changing("failed", h("span"))),
    h("dl.finding", null,
      says ? null : fact("batch", batch), fact("why", finding.why), fact("value", value, true), fact("row", row, true), fact("file", file, true), fact("position", position),
      fact("SQL", sql, true), fact("where", placeLink(finding.location, page)),
      (finding.calls || []).map((call) => fact("called at", placeLink(call, page))),
      fact("fix", finding.fix), fact("next", [changing("next", h("span")), " ", h("a", { href: queryLink(now.model, "history") }, "Checkpoint")])),
    h("div.commands", null, commandsOf(finding, now, waits).map(([does, ...words]) => commandLine(commandText(words, project), does)))));
}

/** Returns the card of a query whose run was killed, and the command that continues it. */
export function killedCard(now, project) {
  return h("section.card.notice.bad", { "aria-label": "Its run was killed" }, icon("bad"), h("div", null,
    h("h2", null, `Its run${now.run ? ` ${now.run.slice(0, 8)}` : ""} was killed`),
    h("p.muted", null, "last event ", timeElement(now.heard_at, true)),
    h("p", null, "Its process ended without a stop. The next run reads the interrupted batch again."),
    h("div.commands", null, commandLine(commandText(["run", "--select", now.model], project), "Continue this query"))));
}

/** Returns the texts of the card that change with time: how long ago the query failed, and what happens next. */
export function failureTexts(finding, now, page) {
  return { failed: ago(now.failed_at || now.heard_at), next: nextText(finding, now, page) };
}

function nextText(finding, now, page) {
  const reads = readsText(finding, now, page);
  const { retry } = now;
  if (now.status !== "restarting") return page?.plan?.verdict === "refuse" ? `A run refuses this query now: ${page.plan.reason}.` : `A run ${reads}.`;
  if (!retry) return `The run restarts it; it ${reads}.`;
  const left = Math.ceil((new Date(retry.at) - Date.now()) / 1_000);
  const due = left > 0 ? `at ${localTime(retry.at)}, in ${seconds(left)}` : `now (it was due at ${localTime(retry.at)})`;
  const more = retry.attempts - retry.attempt;
  return `Restart ${retry.attempt} of ${retry.attempts} begins ${due}; ${more > 0 ? `${more} more can follow` : "it is the last one"}. It ${reads}.`;
}

/** Returns what the next start reads: the checkpoint knows it, or the failure, which has looked into the checkpoint. */
function readsText(finding, now, page) {
  if (now.kind === "batch") return "reads everything again";
  const version = page?.checkpoint?.versions?.find((each) => each.version === now.version);
  const open = version && !version.problem ? version.open_batch : finding.failure?.batch;
  if (known(open)) return `reads batch ${exact(open)} again, from the same offsets`;
  return known(version?.committed_batch) ? `continues after batch ${exact(version.committed_batch)}, which is committed` : "continues where the checkpoint ends";
}

/** Returns the commands that help, each with what it does. */
function commandsOf(finding, now, waits) {
  const { model } = now;
  const batch = finding.failure?.batch;
  const found = [];
  if (finding.code === "torn-checkpoint") found.push(["Move torn files of the checkpoint away", "state", "repair", model]);
  if (now.kind !== "batch" && known(batch)) found.push([`Show the rows that batch ${exact(batch)} reads; writes nothing`, "replay", model, "--batch", String(batch)]);
  if (finding.code === "state-change") found.push(["Show how the query has changed", "state", "history", model]);
  else if (now.state_rows > 0) found.push(["Show the rows of its state", "state", "show", model]);
  if (!waits) found.push(["Start only this query again", "run", "--select", model]);
  return found;
}
