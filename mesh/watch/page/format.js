// Numbers, sizes and times as people read them.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const TENTHS = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const SIZES = ["B", "kB", "MB", "GB", "TB", "PB"];
export const NONE = "\u2013";

export function count(value) {
  return value === null || value === undefined ? NONE : WHOLE.format(value);
}

export function rate(value) {
  if (value === null || value === undefined) return NONE;
  return value === 0 ? "0" : value < 100 ? TENTHS.format(value) : WHOLE.format(value);
}

export function bytes(value) {
  if (value === null || value === undefined) return NONE;
  let step = 0;
  while (value >= 1000 && step < SIZES.length - 1) [value, step] = [value / 1000, step + 1];
  return `${step && value < 100 ? TENTHS.format(value) : WHOLE.format(value)} ${SIZES[step]}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return NONE;
  if (seconds < 0.05) return "0 s";
  if (seconds < 10) return `${Number.isInteger(seconds) ? seconds : TENTHS.format(seconds)} s`;
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** The age of a time, in whole seconds: a table that shows tenths would be restless. */
export function age(at, now) {
  if (at === null || at === undefined) return NONE;
  const seconds = Math.floor(now - at);
  return seconds < 1 ? "now" : duration(seconds);
}

export function clock(at) {
  return new Date(at * 1000).toLocaleTimeString("en-GB");
}

export function moment(at) {
  return new Date(at * 1000).toISOString().replace("T", " ").replace("Z", " UTC");
}

/** Format a value by the unit of its field. `now` is the observer's time. */
export function value(of, unit, now) {
  if (of === null || of === undefined || of === "") return NONE;
  if (unit === "bytes") return bytes(of);
  if (unit === "seconds") return duration(of);
  if (unit === "deliveries per second") return rate(of);
  if (unit.startsWith("seconds since")) return age(of, now);
  return typeof of === "number" ? count(of) : String(of);
}
