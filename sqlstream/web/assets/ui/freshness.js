// How a query stands against the clock: its newest event, its watermark, its last batch, and the batch that runs now.

import { ago, count, exact, known, lagTitle, localTime, seconds } from "./format.js";
import { expectedAt, isAlive, since } from "./status.js";

const LONG_BATCH_SECONDS = 10;

/** Events that are further from the clock do not arrive at its speed: they are old ones that a query catches up with. */
const LIVE_SECONDS = 3_600;

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
  const which = open.batch_id === 0 ? "first batch" : `batch ${exact(open.batch_id)}`;
  return `${which} running for ${seconds(lasts)}${waiting(query.lag)}`;
}

function waiting(lag) {
  const unit = ["records", "files", "versions"].find((name) => lag?.[name] > 0);
  return unit ? `, ${count(lag[unit], unit.slice(0, -1))} not committed yet` : "";
}

/** Returns what the last batches of a query say about how fresh it is. */
export function batchText(query) {
  const running = runningBatch(query);
  if (running) return running;
  return query.last_batch_at ? `last batch ${ago(query.last_batch_at)}` : "no batch in this run";
}

/** Returns what a freshness is measured by, for a tooltip. */
export function freshnessTitle(query) {
  const none = query.batches ? "Spark reports event times only of queries with a watermark" : "no event was read in this run";
  const event = query.newest_event ? `newest event ${localTime(query.newest_event, true)}` : none;
  return `${event}; ${batchText(query)}`;
}

/** Returns when the next rows are expected, as a sentence; null if they are not. */
export function expectedText(query) {
  const at = expectedAt(query);
  if (at === null) return null;
  if (Math.abs(since(query.newest_event)) > LIVE_SECONDS) return `The next rows are due when an event of ${localTime(query.silence.due_event, true)} or later arrives.`;
  return `The next rows are due at about ${localTime(at).replace(/:\d\d$/, "")}, if events keep arriving as they do now.`;
}

/** Returns the alerts of a query that count now: not those of one that was stopped, or whose run is gone. */
export function openAlerts(query) {
  return isAlive(query) || query.status === "success" || query.status === "error" ? query.alerts || [] : [];
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
    lag_over: () => query.lag && `${lagTitle(query.lag)} not read yet`,
  };
  return values[kind]?.() || null;
}
