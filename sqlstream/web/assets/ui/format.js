// Values as text: short numbers with aligned units, and local times with UTC on hover.

import { h } from "../dom.js";

export const NONE = "–";

const EXACT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });
const PREFIXES = ["", "k", "M", "G", "T", "P"];

/** Returns whether `value` is known. */
export function known(value) {
  return value !== null && value !== undefined && !Number.isNaN(value);
}

/** Returns all digits of a number, with commas. */
export function exact(value) {
  return known(value) ? EXACT.format(value) : NONE;
}

/** Returns about three digits of a number: 57.3, 1.71k, 23.4M. A whole number below 10,000 keeps all its digits. */
export function short(value) {
  if (!known(value)) return NONE;
  if (Number.isInteger(value) && Math.abs(value) < 10_000) return EXACT.format(value);
  return scaled(value, 1_000, PREFIXES, "");
}

/** Returns a size in bytes with its unit. */
export function bytes(value) {
  return known(value) ? scaled(value, 1_000, ["B", "kB", "MB", "GB", "TB", "PB"], " ") : NONE;
}

function scaled(value, base, units, space) {
  let [left, step] = [Math.abs(value), 0];
  while (left >= 999.5 && step < units.length - 1) [left, step] = [left / base, step + 1];
  const digits = left >= 99.95 || (step === 0 && left === Math.round(left)) ? 0 : left >= 9.995 ? 1 : 2;
  return `${value < 0 ? "−" : ""}${left.toFixed(left === 0 ? 0 : digits)}${space}${units[step]}`;
}

/** Returns a rate in rows per second, without its unit. */
export function rate(value) {
  if (!known(value)) return NONE;
  return value > 0 && value < 10 ? value.toFixed(value < 1 ? 2 : 1) : scaled(value, 1_000, PREFIXES, "");
}

/** Returns a time span given in milliseconds. */
export function millis(value) {
  if (!known(value)) return NONE;
  if (value < 1_000) return `${Math.round(value)} ms`;
  return value < 60_000 ? `${(value / 1_000).toFixed(value < 10_000 ? 2 : 1)} s` : seconds(value / 1_000);
}

/** Returns a time span given in seconds, in at most two units. */
export function seconds(value) {
  if (!known(value)) return NONE;
  if (value < 0) return `−${seconds(-value)}`;
  if (value < 10 && value % 1) return `${value.toFixed(1)} s`;
  const whole = Math.round(value);
  if (whole < 60) return `${whole} s`;
  if (whole < 3_600) return two(whole, 60, "min", 1, "s");
  return whole < 86_400 ? two(whole, 3_600, "h", 60, "min") : two(whole, 86_400, "d", 3_600, "h");
}

function two(value, large, largeUnit, small, smallUnit) {
  const rest = Math.floor((value % large) / small);
  return `${Math.floor(value / large)} ${largeUnit}${rest ? ` ${rest} ${smallUnit}` : ""}`;
}

const UNITS = { records: "records", files: "files", versions: "versions" };

/** Returns a lag: what is not read yet, in its most exact unit. */
export function lag(value) {
  if (!value) return NONE;
  for (const unit of Object.keys(UNITS)) if (known(value[unit])) return short(value[unit]);
  return known(value.bytes) ? bytes(value.bytes) : NONE;
}

/** Returns a lag in all its units, null if it is unknown. */
export function lagTitle(value) {
  if (!value) return null;
  const parts = Object.keys(UNITS).filter((unit) => known(value[unit])).map((unit) => `${exact(value[unit])} ${UNITS[unit]}`);
  if (known(value.bytes)) parts.push(bytes(value.bytes));
  return parts.join(", ");
}

function pad(number, width = 2) {
  return String(number).padStart(width, "0");
}

/** Returns a local time of day; with its date if that is not today. `at` is in ms or ISO 8601. */
export function localTime(at, withDate = false) {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return NONE;
  const day = `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())}`;
  const clock = `${pad(time.getHours())}:${pad(time.getMinutes())}:${pad(time.getSeconds())}`;
  return withDate || new Date().toDateString() !== time.toDateString() ? `${day} ${clock}` : clock;
}

/** Returns a text of the server with its times, which are in UTC, in the time zone of this browser. */
export function withLocalTimes(text) {
  return text.replace(/\b(\d{4}-\d\d-\d\d) (\d\d:\d\d)(:\d\d(?:\.\d+)?)?(?: UTC)?\b/g, (found, day, minute, rest) => {
    const time = new Date(`${day}T${minute}${rest || ":00"}Z`);
    if (Number.isNaN(time.getTime())) return found;
    const shown = localTime(time, true);
    return rest ? shown : shown.slice(0, -3);
  });
}

/** Returns a time in UTC, in full. */
export function utcTime(at) {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? NONE : `${time.toISOString().replace("T", " ").slice(0, 19)} UTC`;
}

/** Returns an element with a local time, and UTC on hover. */
export function timeElement(at, withDate = false) {
  if (!known(at) || Number.isNaN(new Date(at).getTime())) return h("span", null, NONE);
  return h("time", { datetime: new Date(at).toISOString(), title: utcTime(at) }, localTime(at, withDate));
}

/** Returns how long ago a time was. */
export function ago(at, now = Date.now()) {
  return known(at) ? `${seconds(Math.max(Math.round((now - new Date(at).getTime()) / 1_000), 0))} ago` : NONE;
}

/** Returns a count with its noun: `1 row`, `2 rows`. */
export function count(number, noun, plural = `${noun}s`) {
  return `${exact(number)} ${number === 1 ? noun : plural}`;
}

/** Returns a text that begins with a capital. */
export function sentence(text) {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}
