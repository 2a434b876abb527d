// Whether a query keeps up, in words.

import { h, show } from "../../dom.js";
import { bytes, rate } from "../format.js";
import { statusIcon } from "../status.js";

const STATES = { keeps_up: "running", falls_behind: "error", unknown: "idle", ends: "idle" };
const PER = [["s", 1], ["min", 60], ["h", 3_600], ["day", 86_400]];

/** Returns a rate per second with its unit, per minute, hour or day if it is slow. */
export function rateText(perSecond, unit) {
  const [name, length] = PER.find(([, each]) => perSecond * each >= 0.1) || PER.at(-1);
  const value = perSecond * length;
  return unit === "bytes" ? `${bytes(value)}/${name}` : `${rate(value)} ${unit}/${name}`;
}

/** Returns a verdict of the server in a few words. */
function verdictText(verdict) {
  const now = verdict.is_now;
  if (verdict.kind === "keeps_up") return now ? "Keeps up" : "Kept up";
  if (verdict.kind === "falls_behind") return `${now ? "Falls" : "Fell"} behind by ${rateText(verdict.rate, verdict.unit)}`;
  if (verdict.kind === "ends") return "Ends by itself";
  return now ? "It is not known yet whether it keeps up" : "It is not known whether it kept up";
}

/** Shows a verdict with its reason in `box`. */
export function showVerdict(box, verdict) {
  const [text, drawn] = [verdictText(verdict), JSON.stringify(verdict)];
  if (box.dataset.drawn === drawn) return;
  box.dataset.drawn = drawn;
  box.dataset.kind = verdict.kind;
  show(box, statusIcon(STATES[verdict.kind] || "idle"), h("b", null, text), h("span.why", null, verdict.why));
}
