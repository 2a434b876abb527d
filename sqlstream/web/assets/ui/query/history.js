// The tab about the past: what happened, the versions of the query, and its checkpoint.

import { h, show } from "../../dom.js";
import { get, queryPath } from "../api.js";
import { exact, known, seconds, timeElement } from "../format.js";
import { card, table } from "./sections.js";
import { markerOf } from "./series.js";

const SHOWN_EVENTS = 100;

/** Returns the tab. Events are read when it opens. */
export function historyTab(page, store, signal) {
  const events = h("div", null, h("p.loading", { role: "status" }, "Reading…"));
  loadEvents(page.model, store.target, events, signal);
  return h("div.stack", null, card("Events", events), card("Versions", versionsBody(page.versions)), card("Checkpoint", checkpointBody(page.checkpoint)));
}

async function loadEvents(model, target, box, signal) {
  try {
    const { events } = await get(queryPath(model, "events"), { target, limit: SHOWN_EVENTS }, signal);
    if (!events.length) show(box, h("p.note-text", null, "Nothing has happened yet."));
    else show(box, table("Events", ["When", "Event", "What", "Run"], events.map(eventRow)));
  } catch (error) {
    if (error.name !== "AbortError") show(box, h("p.note-text", null, error.message));
  }
}

function eventRow(event) {
  const { word, color } = markerOf(event);
  const label = h("span.event", null, word);
  label.style.color = `var(${color})`;
  return h("tr", null, h("td.fixed", null, timeElement(event.at_ms, true)), h("td", null, label), h("td.text", null, eventText(event.detail)), h("td.mono", null, event.run.slice(0, 18)));
}

function eventText(detail) {
  const parts = [detail.finding?.message || detail.error?.message || detail.text || detail.message];
  if (known(detail.attempt)) parts.push(`attempt ${detail.attempt}${known(detail.attempts) ? ` of ${detail.attempts}` : ""}`);
  if (known(detail.delay_seconds)) parts.push(`restarts after ${seconds(detail.delay_seconds)}`);
  if (known(detail.restarts)) parts.push(`restart ${detail.restarts}`);
  if (!parts[0] && detail.status) parts.push(`status ${detail.status}`);
  if (known(detail.batches)) parts.push(`${exact(detail.batches)} batches`);
  return parts.filter(Boolean).join("; ") || "–";
}

function versionsBody(versions) {
  if (!versions) return h("p.note-text", null, "The versions are not known: the project does not compile, or only Spark can read its storage.");
  if (!versions.length) return h("p.note-text", null, "The storage has no version of this query yet.");
  return table("Versions", [["Version", "number"], "Part", ["Batches", "number"], "Written", "Output", "Changes"], [...versions].reverse().map((version) => h("tr", null,
    h("td.number", null, version.version), h("td", null, version.part || "–"), h("td.number", null, exact(version.batches)),
    h("td.fixed", null, known(version.written_at) ? timeElement(version.written_at, true) : "–"), h("td.mono", null, version.output || "–"),
    h("td.text", null, version.reason || null, h("ul.origins", null, (version.entries || []).map((entry) => h("li", null, entryText(entry))))))));
}

function entryText(entry) {
  if (typeof entry === "string") return entry;
  const { at, written_at: written, ...rest } = entry;
  const time = at || written;
  const words = Object.values(rest).flat().filter((each) => ["string", "number"].includes(typeof each));
  return [time ? timeElement(time, true) : null, " ", words.join(", ")];
}

function checkpointBody(checkpoint) {
  if (!checkpoint) return h("p.note-text", null, "The checkpoint is not known: only Spark can read its storage.");
  if (checkpoint.problem) return h("p.note-text", null, checkpoint.problem);
  if (!checkpoint.versions?.length) return h("p.note-text", null, "The query has no checkpoint yet: it has not committed a batch.");
  return checkpoint.versions.map((version) => table("Checkpoint", [["Version", "number"], ["Committed batch", "number"], "Committed", "Source", "Offset", "Left to read"], version.sources.map((source) => h("tr", null,
    h("td.number", null, version.version), h("td.number", null, exact(version.committed_batch)), h("td.fixed", null, known(version.committed_at) ? timeElement(version.committed_at, true) : "–"),
    h("td", null, source.source), h("td.mono", null, known(source.offset) ? (typeof source.offset === "string" ? source.offset : JSON.stringify(source.offset)) : "–"),
    h("td", null, lagText(source))))));
}

function lagText(source) {
  if (source.problem) return source.problem;
  if (!source.lag) return "–";
  return Object.entries(source.lag).filter(([, value]) => typeof value === "number").map(([unit, value]) => `${exact(value)} ${unit}`).join(", ") || "–";
}
