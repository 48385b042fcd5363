// Events of nodes, newest first, each with its meaning and with links to what it names.

import { arrange, el, readable, setText } from "./dom.js";
import { moment } from "./format.js";
import { get, poll } from "./observer.js";
import { link } from "./query.js";

const EVERY_MS = 3000;
const NODES = new Set(["router", "broker", "neighbor", "egress"]);
const LINKS = {
  address: (value) => link("/address", { address: value }),
  queue: (value) => link("/address", { address: value }),
  user: (value) => link("/clients", { by: "connection", filter: `user=${value}` }),
  container_id: (value) => link("/clients", { by: "connection", filter: `container=${value}` }),
};
const LEVELS = new Set(["debug", "info", "warning", "error"]);
let catalog = null;

/** Return the known events by name, each with its level and meaning: read once. */
export async function knownEvents(signal) {
  catalog ??= get("/console/page/events.json", signal).catch(() => ((catalog = null), {}));
  return catalog;
}

export class EventList {
  /** `path()`: of the list in the REST interface. `onPage(page)`: after each answer. */
  constructor({ signal }, { path, onPage = () => {}, emptyText = "No events." }) {
    this.rows = new Map();
    this.body = el("tbody");
    this.empty = el("p", { class: "empty", hidden: true });
    this.error = el("p", { class: "error", role: "alert", hidden: true });
    this.table = el("table", { class: "events", "aria-busy": "true" }, el("caption", { class: "heard", text: "Events, newest first" }), el("thead", {}, el("tr", {}, ...["time", "level", "node", "event"].map((name) => el("th", { scope: "col", class: "plain", text: name })))), this.body);
    this.element = el("div", {}, this.error, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Events, newest first" }, this.table), this.empty);
    Object.assign(this, { path, onPage, emptyText, signal });
    this.#begin();
  }

  async #begin() {
    this.known = await knownEvents(this.signal);
    this.changed();
  }

  /** The path may be another one: ask at once. */
  changed() {
    if (!this.known || this.signal.aborted || this.path() === this.followed) return;
    this.followed = this.path();
    this.polling?.abort();
    this.polling = new AbortController();
    const onAnswer = (page) => (this.#show(page.items), this.onPage(page));
    poll(this.path, EVERY_MS, onAnswer, (error) => this.#refuse(error), AbortSignal.any([this.signal, this.polling.signal]));
  }

  #show(items) {
    const seen = new Map();
    const keys = [];
    for (const event of items) {
      const text = JSON.stringify(event);
      // Two events may say the same in the same microsecond.
      const turn = (seen.get(text) ?? 0) + 1;
      seen.set(text, turn);
      const key = `${turn} ${text}`;
      keys.push(key);
      if (!this.rows.has(key)) this.rows.set(key, this.#row(event));
    }
    const kept = new Set(keys);
    for (const key of [...this.rows.keys()]) if (!kept.has(key)) this.rows.delete(key);
    arrange(this.body, keys.map((key) => this.rows.get(key)));
    this.empty.hidden = items.length > 0;
    setText(this.empty, this.emptyText);
    this.error.hidden = true;
    this.table.setAttribute("aria-busy", "false");
  }

  #row(event) {
    const fields = Object.entries(event.fields ?? {}).filter(([, value]) => value !== null);
    const meaning = this.known[event.event]?.meaning;
    const name = event.event ?? "output";
    return el(
      "tr", { class: LEVELS.has(event.level) ? event.level : null },
      el("td", { class: "time", text: event.at ? moment(event.at) : "\u2013" }),
      el("td", { class: "level", text: readable(event.level ?? "\u2013", 20) }),
      el("td", {}, nodeLink(event.node)),
      el(
        "td", { class: "said" },
        el("a", { class: "name", href: link("/events", { event: name }), text: readable(name, 60) }),
        ...fields.flatMap(([name, value]) => [" ", el("span", { class: "pair" }, `${readable(name, 40)}=`, valueOf(name, value))]),
        meaning ? el("p", { class: "meaning", text: meaning }) : "",
      ),
    );
  }

  #refuse(error) {
    this.error.hidden = false;
    setText(this.error, `The events cannot be read: ${error.message}`);
    this.table.setAttribute("aria-busy", "false");
  }
}

function valueOf(name, value) {
  const text = readable(typeof value === "string" ? value : JSON.stringify(value), 300);
  if (typeof value !== "string" || value === "") return text;
  const href = NODES.has(name) ? link("/node", { name: value }) : LINKS[name]?.(value);
  return href ? el("a", { href, text }) : text;
}

function nodeLink(name) {
  if (!name) return "";
  return name.startsWith("_") ? readable(name) : el("a", { href: link("/node", { name }), text: readable(name) });
}
