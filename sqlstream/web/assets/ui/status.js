// The states of queries and nodes: each has a word, a shape and a color.

import { h, s } from "../dom.js";
import { known } from "./format.js";

const STATES = {
  error: ["bad", "Failed", 0],
  killed: ["bad", "Killed", 1],
  failed: ["bad", "Failed", 1],
  restarting: ["warn", "Restarting", 2],
  silent: ["warn", "No output", 3],
  unknown: ["warn", "Unknown", 4],
  alert: ["warn", "Alert", 3],
  running: ["ok", "Running", 5],
  flowing: ["ok", "Flowing", 5],
  pending: ["idle", "Starting", 6],
  idle: ["idle", "Idle", 6],
  interrupted: ["idle", "Interrupted", 7],
  stopped: ["idle", "Stopped", 8],
  skipped: ["idle", "Skipped", 8],
  success: ["done", "Finished", 9],
  none: ["none", "Not run", 10],
};

/** The time that a watermark may stand still, or that rows may be overdue, before this is a problem. */
const PATIENCE_SECONDS = 60;
const BATCHES_OF_PATIENCE = 3;

/** The states of a query that an open alert replaces. */
const WELL = new Set(["running", "success"]);

const SHAPES = {
  ok: "M8 3.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9z",
  done: "M3.5 8.5 6.8 12 12.8 4.5",
  warn: "M8 2.8 14 13.2H2z",
  bad: "M3.5 3.5h9v9h-9z",
  idle: "M8 2.5 13.5 8 8 13.5 2.5 8z",
  none: "M8 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8z",
};

/**
 * Returns the state of a query: its status, but `alert` for one with an open alert, and `silent` for a running one
 * without output whose next rows are not expected.
 */
export function stateOf(query) {
  if (!query.status) return "none";
  if (WELL.has(query.status) && query.alerts?.length) return "alert";
  if (query.status === "running" && query.silence && expectedAt(query) === null) return "silent";
  return STATES[query.status] ? query.status : "unknown";
}

/** Returns whether the run of a query has not ended. */
export function isAlive(query) {
  return ["pending", "running", "restarting"].includes(query.status);
}

/** Returns the seconds since a time in ISO 8601, null if it is unknown. */
export function since(at) {
  const seconds = known(at) ? (Date.now() - new Date(at).getTime()) / 1_000 : NaN;
  return Number.isFinite(seconds) ? seconds : null; // a browser knows no years beyond 9999
}

/**
 * Returns when a query without output is expected to emit rows (ms since 1970): its newest events advance, and the one
 * that releases the rows comes as long after them as its time says. null if they stand still, or the rows are overdue.
 */
export function expectedAt(query) {
  const due = query.silence?.due_event;
  if (!isAlive(query) || !due || !query.newest_event || !query.newest_event_at) return null;
  const patience = Math.max(PATIENCE_SECONDS, BATCHES_OF_PATIENCE * (query.batch_span_seconds || 0));
  const at = new Date(query.newest_event_at).getTime() + Math.max(new Date(due) - new Date(query.newest_event), 0);
  if (!Number.isFinite(at)) return null;
  const isStill = !query.open_batch && since(query.newest_event_at) > patience;
  const isOverdue = Date.now() > at + patience * 1_000;
  return isStill || isOverdue ? null : at;
}

/** Returns the look of a state: ok, done, warn, bad, idle or none. */
export function lookOf(state) {
  return (STATES[state] || STATES.none)[0];
}

/** Returns the word for a state. */
export function wordOf(state) {
  return (STATES[state] || STATES.none)[1];
}

/** Returns a number by which states sort, those that need somebody first. */
export function rankOf(state) {
  return (STATES[state] || STATES.none)[2];
}

/** Returns the status for a node of the graph: ok, warn, bad, idle, or null. Through a finished query nothing flows. */
export function graphStatus(state) {
  const look = lookOf(state || "none");
  return look === "none" ? null : look === "done" ? "idle" : look;
}

/** Returns the shape of a state. */
export function statusIcon(state) {
  const look = lookOf(state);
  return s(`svg.state.${look}`, { viewBox: "0 0 16 16", "aria-hidden": "true" }, s("path", { d: SHAPES[look] }));
}

/** Returns the shape and the word of a state as a badge. */
export function statusBadge(state) {
  const look = lookOf(state);
  const tone = { done: "idle", none: "idle" }[look] || look;
  return h(`span.badge.${tone}`, null, statusIcon(state), wordOf(state));
}
