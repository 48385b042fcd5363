// Audit entries, newest first: who asked for what, what was before and after, and the outcome.

import { arrange, el, readable, setText } from "./dom.js";
import { moment } from "./format.js";
import { get, poll } from "./observer.js";

const EVERY_MS = 3000;
const COLUMNS = ["time", "who", "operation", "target", "asked for", "before", "after", "outcome"];
const NEWEST = 20;

/** Return number and outcome of the audit entry of a write by its key, or null: only who sees all may read the audit. */
export async function auditEntry(key) {
  const page = await get(`/api/audit?limit=${NEWEST}`).catch(() => ({ items: [] }));
  const found = page.items.find((each) => each.key === key);
  return found ? `${found.number}: ${readable(found.who, 60)}, ${readable(found.operation, 40)} of ${readable(found.target, 60)}, ${readable(found.outcome, 40)}` : null;
}

export class AuditList {
  constructor({ signal }, { path, onPage, emptyText }) {
    this.rows = new Map();
    this.body = el("tbody");
    this.empty = el("p", { class: "empty", hidden: true, text: emptyText });
    this.error = el("p", { class: "error", role: "alert", hidden: true });
    this.table = el("table", { class: "events", "aria-busy": "true" }, el("caption", { class: "heard", text: "Audit entries, newest first" }), el("thead", {}, el("tr", {}, ...COLUMNS.map((name) => el("th", { scope: "col", class: "plain", text: name })))), this.body);
    this.element = el("div", {}, this.error, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Audit entries, newest first" }, this.table), this.empty);
    Object.assign(this, { path, onPage, signal });
    this.changed();
  }

  /** The path may be another one: ask at once. */
  changed() {
    if (this.signal.aborted || this.path() === this.followed) return;
    this.followed = this.path();
    this.polling?.abort();
    this.polling = new AbortController();
    const onAnswer = (page) => (this.#show(page.items), this.onPage(page));
    poll(this.path, EVERY_MS, onAnswer, (error) => this.#refuse(error), AbortSignal.any([this.signal, this.polling.signal]));
  }

  #show(items) {
    const numbers = new Set(items.map((each) => each.number));
    for (const number of [...this.rows.keys()]) if (!numbers.has(number)) this.rows.delete(number);
    for (const entry of items) if (!this.rows.has(entry.number)) this.rows.set(entry.number, rowOf(entry));
    arrange(this.body, [...numbers].map((number) => this.rows.get(number)));
    this.empty.hidden = items.length > 0;
    this.error.hidden = true;
    this.table.setAttribute("aria-busy", "false");
  }

  #refuse(error) {
    this.error.hidden = false;
    setText(this.error, `The audit entries cannot be read: ${error.message}`);
    this.table.setAttribute("aria-busy", "false");
  }
}

function rowOf(entry) {
  const cells = [
    moment(entry.at), shown(entry.who), shown(entry.operation), `${shown(entry.target)}${entry.what ? ` (${shown(entry.what)})` : ""}`,
    shown(entry.arguments), shown(entry.before), shown(entry.after), `${shown(entry.outcome)}${entry.error ? `: ${readable(entry.error, 300)}` : ""}`,
  ];
  return el("tr", { class: entry.outcome === "done" || entry.outcome === "counted" ? null : "not" }, ...cells.map((text, place) => el("td", { class: place === 0 ? "time" : "said", text })));
}

function shown(value) {
  if (value === null || value === undefined || value === "") return "\u2013";
  if (typeof value !== "object") return readable(value, 300);
  return Object.entries(value).map(([name, each]) => `${readable(name, 60)}: ${readable(typeof each === "string" ? each : JSON.stringify(each), 300)}`).join(", ") || "\u2013";
}
