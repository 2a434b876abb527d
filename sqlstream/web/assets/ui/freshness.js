// How a query stands against the clock: its newest event, its watermark, its last batch, and the batch that runs now.

import { ago, exact, known, localTime, seconds } from "./format.js";
import { expectedAt, isAlive, since } from "./status.js";

const LONG_BATCH_SECONDS = 10;

/** Returns the age of the newest event of a running query in seconds, or of its last batch if its rows have no time. */
export function freshness(query) {
  return isAlive(query) ? (since(query.newest_event) ?? since(query.last_batch_at)) : null;
}

/** Returns the seconds by which the watermark of a running query is behind the clock. */
export function watermarkBehind(query) {
  return isAlive(query) ? since(query.watermark) : null;
}

/** Returns what a batch that has run for long does, null if there is none. */
export function runningBatch(query) {
  const open = isAlive(query) ? query.open_batch : null;
  const lasts = open ? since(open.since) : null;
  if (!(lasts >= LONG_BATCH_SECONDS)) return null;
  const which = known(query.last_batch_id) ? `batch ${exact(open.batch_id)}` : "first batch";
  return `${which} running for ${seconds(lasts)}${waiting(query.lag)}`;
}

function waiting(lag) {
  const unit = ["records", "files", "versions"].find((name) => lag?.[name] > 0);
  return unit ? `, ${exact(lag[unit])} ${lag[unit] === 1 ? unit.slice(0, -1) : unit} wait${lag[unit] === 1 ? "s" : ""}` : "";
}

/** Returns what the last batches of a query say about how fresh it is. */
export function batchText(query) {
  const running = runningBatch(query);
  if (running) return running;
  return query.last_batch_at ? `last batch ${ago(query.last_batch_at)}` : "no batch in this run";
}

/** Returns what a freshness is measured by, for a tooltip. */
export function freshnessTitle(query) {
  const event = query.newest_event ? `newest event ${localTime(query.newest_event, true)}` : "its rows have no event time";
  return `${event}; ${batchText(query)}`;
}

/** Returns when the next rows are expected, as a sentence; null if they are not. */
export function expectedText(query) {
  const at = expectedAt(query);
  return at === null ? null : `The next rows are due at about ${localTime(at).replace(/:\d\d$/, "")}, if events keep arriving as they do now.`;
}

/** Returns the current value of the figure that an alert is about, null if the page has none. */
export function currentValue(alert, query) {
  const kind = alert.alert || alert.kind;
  const values = {
    state_rows_over: () => known(query.state_rows) && `${exact(query.state_rows)} rows`,
    late_rows_over: () => known(query.late_rows) && `${exact(query.late_rows)} late rows in this run`,
    quarantined_over: () => known(query.quarantined_rows) && `${exact(query.quarantined_rows)} quarantined rows in this run`,
    restarts_over: () => known(query.restarts) && `${exact(query.restarts)} restarts in this run`,
    watermark_behind: () => known(watermarkBehind(query)) && `${seconds(watermarkBehind(query))} behind the clock`,
    no_rows_for: () => query.last_batch_at && batchText(query),
    lag_over: () => query.lag && (waiting(query.lag).replace(/^, | waits?$/g, "") || "nothing") + " not read yet",
  };
  return values[kind]?.() || null;
}
