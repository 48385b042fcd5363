// Audit entries, newest first: who asked for what, what was before and after, and the outcome.

import { arrange, el, readable, setText } from "./dom.js";
import { timeOf } from "./event_list.js";
import { poll } from "./observer.js";

const EVERY_MS = 3000;
const COLUMNS = ["at", "who", "what", "before", "after", "outcome"];

export class AuditList {
  constructor({ signal }, { path, onPage, emptyText }) {
    this.rows = new Map();
    this.body = el("tbody");
    this.empty = el("p", { class: "empty", hidden: true, text: emptyText });
    this.error = el("p", { class: "error", role: "alert", hidden: true });
    this.table = el("table", { class: "events", "aria-busy": "true" }, el("caption", { class: "heard", text: "Audit entries, newest first" }), el("thead", {}, el("tr", {}, ...COLUMNS.map((name) => el("th", { scope: "col", class: "plain", text: name })))), this.body);
    this.element = el("div", {}, this.error, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Audit entries, newest first" }, this.table), this.empty);
    poll(path, EVERY_MS, (page) => (this.#show(page.items), onPage(page)), (error) => this.#refuse(error), signal);
  }

  #show(items) {
    const keys = items.map((each) => JSON.stringify(each));
    items.forEach((entry, place) => this.rows.has(keys[place]) || this.rows.set(keys[place], rowOf(entry)));
    for (const key of [...this.rows.keys()]) if (!keys.includes(key)) this.rows.delete(key);
    arrange(this.body, [...new Set(keys)].map((key) => this.rows.get(key)));
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
  const cells = COLUMNS.map((name) => el("td", { class: name === "at" ? "time" : "said", text: name === "at" ? timeOf(entry.at) : shown(entry[name]) }));
  return el("tr", { class: `outcome ${entry.outcome === "done" ? "done" : "not"}` }, ...cells);
}

function shown(value) {
  if (value === null || value === undefined || value === "") return "\u2013";
  if (typeof value !== "object") return readable(value, 300);
  return Object.entries(value).map(([name, each]) => `${readable(name, 60)}: ${readable(typeof each === "object" ? JSON.stringify(each) : String(each), 300)}`).join(", ") || "\u2013";
}
