// The states of queries and nodes: each has a word, a shape and a color.

import { h, s } from "../dom.js";

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

/** The states of a query that an open alert replaces. */
const WELL = new Set(["running", "stopped", "success"]);

const SHAPES = {
  ok: "M8 3.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9z",
  done: "M3.5 8.5 6.8 12 12.8 4.5",
  warn: "M8 2.8 14 13.2H2z",
  bad: "M3.5 3.5h9v9h-9z",
  idle: "M8 2.5 13.5 8 8 13.5 2.5 8z",
  none: "M8 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8z",
};

/** Returns the state of a query: its status, but `alert` for one with an open alert, and `silent` for a running one without output. */
export function stateOf(query) {
  if (!query.status) return "none";
  if (WELL.has(query.status) && query.alerts?.length) return "alert";
  if (query.status === "running" && query.silence) return "silent";
  return STATES[query.status] ? query.status : "unknown";
}

/** Returns whether the run of a query has not ended. */
export function isAlive(query) {
  return ["pending", "running", "restarting"].includes(query.status);
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
