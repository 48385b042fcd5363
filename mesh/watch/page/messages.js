// The messages of a queue, a page of them: rows that can be selected, and change in place.

import { arrange, el, readable, setAttribute, setText } from "./dom.js";
import { age, bytes, count, moment } from "./format.js";
import { observer } from "./observer.js";
import { change, parameter } from "./query.js";

const COLUMNS = ["number", "stored", "id", "subject", "size", "priority", "attempts", "state"];
const NUMBERS = new Set(["number", "stored", "size", "priority", "attempts"]);

/** The numbers of the messages that the URL has as selected. */
export function selected() {
  return (parameter("select") ?? "").split(",").filter((each) => /^\d+$/.test(each)).map(Number);
}

export class MessageTable {
  constructor() {
    this.rows = new Map();
    this.every = el("input", { type: "checkbox", "aria-label": "Select all messages of this page", on: { change: () => this.#selectAll() } });
    this.body = el("tbody");
    this.empty = el("p", { class: "empty", hidden: true });
    this.table = el(
      "table", { "aria-busy": "true" },
      el("caption", { class: "heard", text: "Messages" }),
      el("thead", {}, el("tr", {}, el("td", { class: "pick" }, this.every), ...COLUMNS.map((name) => el("th", { scope: "col", class: NUMBERS.has(name) ? "num plain" : "plain", text: name })))),
      this.body,
    );
    this.element = el("div", {}, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Messages" }, this.table), this.empty);
  }

  show(messages, emptyText) {
    const numbers = new Set(messages.map((each) => each.number));
    for (const number of [...this.rows.keys()]) if (!numbers.has(number)) this.rows.delete(number);
    for (const message of messages) {
      if (!this.rows.has(message.number)) this.rows.set(message.number, new Row(message.number));
      this.rows.get(message.number).write(message);
    }
    arrange(this.body, messages.map((each) => this.rows.get(each.number).line));
    this.empty.hidden = messages.length > 0;
    setText(this.empty, emptyText);
    setAttribute(this.table, "aria-busy", "false");
    this.changed();
  }

  /** The URL has another selection, or another open message. */
  changed() {
    const chosen = new Set(selected());
    const open = Number(parameter("open"));
    for (const [number, row] of this.rows) row.mark(chosen.has(number), number === open);
    this.every.checked = this.rows.size > 0 && [...this.rows.keys()].every((number) => chosen.has(number));
  }

  #selectAll() {
    const numbers = this.every.checked ? [...this.rows.keys()] : [];
    change({ select: numbers.length ? numbers.join(",") : null }, { replace: true });
  }
}

class Row {
  constructor(number) {
    this.box = el("input", { type: "checkbox", "aria-label": `Select message ${number}`, on: { change: () => select(number, this.box.checked) } });
    this.opener = el("button", { type: "button", class: "plain", text: count(number), on: { click: () => change({ open: String(number) }) } });
    this.cells = Object.fromEntries(COLUMNS.slice(1).map((name) => [name, el("td", { class: NUMBERS.has(name) ? "num" : null })]));
    this.line = el("tr", {}, el("td", { class: "pick" }, this.box), el("td", { class: "num" }, this.opener), ...Object.values(this.cells));
  }

  write(message) {
    const { cells } = this;
    const at = message.stored_at ? Date.parse(message.stored_at) / 1000 : null;
    setText(cells.stored, age(at, observer.now));
    setAttribute(cells.stored, "title", at === null ? null : moment(at));
    setText(cells.id, named(message.message_id));
    setText(cells.subject, named(message.subject));
    setText(cells.size, bytes(message.bytes));
    setText(cells.priority, count(message.priority));
    setText(cells.attempts, count(message.attempts));
    setText(cells.state, `${message.is_locked ? "at a consumer" : "waits"}${message.reason ? `, ${message.reason} at ${readable(message.origin ?? "?", 40)}` : ""}`);
  }

  mark(isChosen, isOpen) {
    this.box.checked = isChosen;
    setAttribute(this.line, "class", isOpen ? "open" : null);
    setAttribute(this.opener, "aria-expanded", String(isOpen));
  }
}

function named(value) {
  return value === null || value === undefined ? "\u2013" : value === "" ? "(empty)" : readable(typeof value === "string" ? value : JSON.stringify(value), 60);
}

function select(number, isChosen) {
  const numbers = selected().filter((each) => each !== number);
  if (isChosen) numbers.push(number);
  change({ select: numbers.length ? numbers.join(",") : null }, { replace: true });
}
