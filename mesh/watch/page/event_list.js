// Events of nodes, newest first, each with its meaning and with links to what it names.

import { arrange, el, readable, setText } from "./dom.js";
import { moment } from "./format.js";
import { get, poll } from "./observer.js";
import { link } from "./query.js";

const EVERY_MS = 3000;
const HEADS = new Set(["ts", "level", "event", "node", "id", "meaning"]);
const NODES = new Set(["router", "broker", "neighbor", "egress"]);
const LINKS = {
  address: (value) => link("/address", { address: value }),
  queue: (value) => link("/address", { address: value }),
  user: (value) => link("/clients", { by: "connection", filter: `user=${value}` }),
  container_id: (value) => link("/clients", { by: "connection", filter: `container=${value}` }),
};
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
    this.emptyText = emptyText;
    this.#begin(path, onPage, signal);
  }

  async #begin(path, onPage, signal) {
    this.known = await knownEvents(signal);
    if (signal.aborted) return;
    const onAnswer = (page) => (this.#show(page.items), onPage(page));
    poll(path, EVERY_MS, onAnswer, (error) => this.#refuse(error), signal);
  }

  #show(items) {
    const seen = new Map();
    for (const event of items) {
      const text = JSON.stringify(event);
      // Two events may say the same in the same microsecond.
      const turn = (seen.get(text) ?? 0) + 1;
      seen.set(text, turn);
      const key = `${turn} ${text}`;
      event.key = key;
      if (!this.rows.has(key)) this.rows.set(key, this.#row(event));
    }
    const keys = new Set(items.map((each) => each.key));
    for (const key of [...this.rows.keys()]) if (!keys.has(key)) this.rows.delete(key);
    arrange(this.body, items.map((each) => this.rows.get(each.key)));
    this.empty.hidden = items.length > 0;
    setText(this.empty, this.emptyText);
    this.error.hidden = true;
    this.table.setAttribute("aria-busy", "false");
  }

  #row(event) {
    const fields = Object.entries(event).filter(([name, value]) => !HEADS.has(name) && name !== "key" && value !== null);
    const meaning = event.meaning ?? this.known[event.event]?.meaning;
    return el(
      "tr", { class: `level ${event.level}` },
      el("td", { class: "time", text: timeOf(event.ts) }),
      el("td", { class: "level", text: event.level }),
      el("td", {}, nodeLink(event.node)),
      el(
        "td", { class: "said" },
        el("a", { class: "name", href: link("/events", { event: event.event }), text: readable(event.event, 60) }),
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

/** Times of events are texts; of audit entries, perhaps seconds. */
export function timeOf(at) {
  if (typeof at === "number") return moment(at);
  return readable(at ?? "\u2013", 40).replace("T", " ").replace(/\+00:00$|Z$/, " UTC");
}
