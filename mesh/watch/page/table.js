// A table of entities: filter, sort, pages and columns by the observer; rows change in place.

import { arrange, el, readable, setAttribute, setText } from "./dom.js";
import { count, moment, value } from "./format.js";
import { staleness, staleText } from "./health.js";
import { hostLacking, MissingLines } from "./missing.js";
import { follow, get, observer, poll } from "./observer.js";
import { change, encoded, filtersOf, link, parameter, parameters, textOf } from "./query.js";

const LIMIT = 100;
const POLL_MS = 2000;
const TYPING_MS = 300;
const STATES = {
  running: "\u25cf", up: "\u25cf", silent: "\u25cc", lost: "\u2715", ended: "\u25a0", unknown: "?",
};
export const WAITS = {
  no_taker: "no consumer", takers: "slow consumers", full_queue: "full queue", disk: "full disk", memory: "little memory",
};
/** What a table does without the hosts that an answer lacks. */
const LACKS = {
  nodes: "The numbers of these nodes are the last that were told, with their age.",
  sums: "The numbers below are without those of these nodes.",
  rows: "Rows of these nodes are not in the answer; rows in italics are the last that were told.",
};
const LINKS = {
  address: (row) => link("/address", { address: row.address }),
  pattern: (row) => link("/addresses", { pattern: row.pattern }),
  node: (row) => link("/node", { name: row.node }),
  user: (row) => link("/clients", { by: "connection", filter: `user=${row.user}` }),
  connection: (row) => link("/connection", { id: row.connection }),
};
const queue = (row) => link("/queue", { node: row.node, address: row.address ?? "", subscriber: row.subscriber ?? "" });
/** Links of the columns that lead to the page of the row's own entity. */
const OWN_LINKS = {
  connections: { id: byId("/connection"), container: byId("/connection"), remote_address: byId("/connection") },
  links: { id: byId("/link"), role: byId("/link") },
  neighbors: { neighbor: byId("/neighbor"), cost: byId("/neighbor") },
  nodes: { name: (row) => link("/node", { name: row.name }) },
  queues: { address: queue, depth: queue, subscriber: queue },
};
/** Fields that those links need, besides the columns that are shown. */
const NEEDED = { nodes: ["name", "state", "age_s"], queues: ["address", "subscriber"] };
let number = 0;

function byId(path) {
  return (row) => link(path, { id: row.id });
}

export class LiveTable {
  /**
   * `fields`: of the entity `things`, with `columns` shown unless the URL has others. `fixed()`: filters that always
   * hold. `prefix`: of this table's parameters in the URL, if a page has several tables. `path`: of a list that is
   * not in the REST interface, and is asked again and again.
   */
  constructor({ things, title, fields, columns, main, fixed = () => [], sort = "id", prefix = "", path = null, signal }) {
    Object.assign(this, { things, title, fields, defaults: columns, main, fixed, defaultSort: sort, prefix, path, signal });
    this.byName = new Map(fields.map((each) => [each.name, each]));
    this.rows = new Map();
    this.key = `table-${number++}`;
    this.#build();
    this.changed();
    const timer = setInterval(() => this.#tick(), 1000);
    signal.addEventListener("abort", () => (clearInterval(timer), this.stream?.abort()), { once: true });
  }

  // The query
  get filters() {
    return parameters(`${this.prefix}filter`);
  }

  get sort() {
    return parameter(`${this.prefix}sort`) ?? this.defaultSort;
  }

  get limit() {
    return Number(parameter(`${this.prefix}limit`)) || LIMIT;
  }

  get columns() {
    const asked = parameter(`${this.prefix}fields`)?.split(",").filter((name) => this.byName.has(name));
    return asked?.length ? asked : this.defaults;
  }

  query({ limit = this.limit, after = parameter(`${this.prefix}after`), fields = this.columns } = {}) {
    const needed = ["id", ...fields, ...(this.byName.has("node") ? ["node"] : []), ...(NEEDED[this.things] ?? [])];
    const pairs = [...this.fixed(), ...this.filters].map((each) => ["filter", each]);
    if (this.sort !== "id") pairs.push(["sort", this.sort]);
    pairs.push(["limit", String(limit)]);
    if (after) pairs.push(["after", after]);
    pairs.push(["fields", [...new Set(needed)].join(",")]);
    return pairs.map(([name, each]) => `${name}=${encoded(each)}`).join("&");
  }

  get listPath() {
    return `${this.path ?? `/api/${this.things}`}?${this.query()}`;
  }

  // Elements that stay
  #build() {
    this.input = el("input", {
      type: "search", id: `${this.key}-filter`, class: "filter", autocomplete: "off", spellcheck: "false",
      placeholder: `${this.main}, or field=value, field>number`, "aria-describedby": `${this.key}-error`,
      on: { input: () => this.#onTyping(), keydown: (event) => event.key === "Escape" && this.input.blur() },
    });
    this.counts = el("span", { class: "counts" });
    this.error = el("p", { class: "error", id: `${this.key}-error`, role: "alert", hidden: true });
    this.missing = new MissingLines(LACKS[this.things] ?? (this.byName.has("node") ? LACKS.rows : LACKS.sums));
    this.head = el("tr");
    this.body = el("tbody");
    this.empty = el("p", { class: "empty", hidden: true });
    this.table = el("table", { "aria-busy": "true" }, el("caption", { class: "heard", text: this.title }), el("thead", {}, this.head), this.body);
    this.first = el("button", { type: "button", text: "First page", on: { click: () => change({ [`${this.prefix}after`]: null }) } });
    this.next = el("button", { type: "button", text: "Next page", on: { click: () => this.#turn() } });
    this.boxes = new Map();
    const open = () => this.boxes.size || this.picker.append(this.#choices());
    this.picker = el("details", { class: "picker", on: { toggle: open } }, el("summary", { text: "Columns" }));
    this.element = el(
      "section", { class: "tabled" },
      el(
        "div", { class: "above" },
        el("h2", { id: `${this.key}-title`, text: this.title }),
        this.counts,
        el("label", { class: "heard", for: this.input.id, text: `Filter ${this.title}` }),
        this.input, this.picker,
      ),
      this.error, this.missing.element,
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": `${this.key}-title` }, this.table),
      this.empty,
      el("div", { class: "below" }, this.first, this.next),
    );
  }

  #choices() {
    const list = el("ul", { class: "choices" });
    for (const field of this.fields) {
      const box = el("input", { type: "checkbox", checked: this.columns.includes(field.name), on: { change: () => this.#choose() } });
      this.boxes.set(field.name, box);
      list.append(
        el("li", {}, el("label", {}, box, el("span", { class: "field", text: field.name }), el("span", { class: "meaning", text: `${field.meaning}${field.unit ? ` (${field.unit})` : ""}` }))),
      );
    }
    return list;
  }

  #choose() {
    const chosen = [...this.columns, ...this.fields.map((each) => each.name)].filter(
      (name, place, all) => this.boxes.get(name).checked && all.indexOf(name) === place,
    );
    change({ [`${this.prefix}fields`]: chosen.length ? chosen.join(",") : null }, { replace: true });
  }

  #onTyping() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => {
      change({ [`${this.prefix}filter`]: filtersOf(this.input.value, this.main), [`${this.prefix}after`]: null }, { replace: true });
    }, TYPING_MS);
  }

  async #turn() {
    try {
      const page = await get(`${this.path ?? `/api/${this.things}`}?${this.query({ fields: ["id"] })}`, this.signal);
      if (page.next) change({ [`${this.prefix}after`]: page.next });
    } catch (error) {
      this.#refuse(error);
    }
  }

  /** The URL changed: show what it says. Rows stay until other rows are there. */
  changed() {
    if (document.activeElement !== this.input) this.input.value = textOf(this.filters);
    const columns = this.columns;
    if (columns.join() !== this.shown?.join()) this.#show(columns);
    this.#showSort();
    this.first.hidden = !parameter(`${this.prefix}after`);
    const query = this.query();
    if (query === this.followed) return;
    this.followed = query;
    this.isOther = true;
    this.stream?.abort();
    this.stream = new AbortController();
    this.table.setAttribute("aria-busy", "true");
    const refuse = (error) => this.#refuse(error);
    if (this.path) poll(() => this.listPath, POLL_MS, (page) => this.#all(page), refuse, this.stream.signal);
    else follow(`/api/stream?entity=${this.things}&${query}`, (name, data) => this.#onEvent(name, data), refuse, this.stream.signal);
  }

  #show(columns) {
    this.shown = columns;
    for (const [name, box] of this.boxes) box.checked = columns.includes(name);
    this.headers = new Map();
    this.head.replaceChildren(
      ...columns.map((name) => {
        const field = this.byName.get(name);
        const button = el("button", { type: "button", text: label(field), title: `${field.meaning}${field.unit ? ` (${field.unit})` : ""}`, on: { click: () => this.#sortBy(field) } });
        const cell = el("th", { scope: "col", class: field.type === "number" ? "num" : "" }, button);
        this.headers.set(name, cell);
        return cell;
      }),
    );
    for (const entry of this.rows.values()) this.#fill(entry);
  }

  #showSort() {
    const descending = this.sort.startsWith("-");
    for (const [name, cell] of this.headers)
      setAttribute(cell, "aria-sort", this.sort.replace(/^-/, "") === name ? (descending ? "descending" : "ascending") : null);
  }

  #sortBy(field) {
    const down = `-${field.name}`;
    const wanted = this.sort === field.name ? down : this.sort === down ? field.name : field.type === "number" ? down : field.name;
    change({ [`${this.prefix}sort`]: wanted, [`${this.prefix}after`]: null }, { replace: true });
  }

  // Rows
  #onEvent(name, data) {
    if (name === "all") this.#all(data);
    else {
      for (const id of data.gone) this.#leave(id, data.missing);
      for (const row of data.items) this.#take(row);
      this.#arrange(data, data.order);
    }
  }

  #all(page) {
    const ids = new Set(page.items.map((row) => row.id));
    for (const id of [...this.rows.keys()]) if (!ids.has(id)) this.#leave(id, this.isOther ? [] : page.missing);
    this.isOther = false;
    for (const row of page.items) this.#take(row);
    this.#arrange(page, page.items.map((row) => row.id));
  }

  #take(row) {
    let entry = this.rows.get(row.id);
    if (!entry) {
      entry = { row, line: el("tr"), cells: [], toldAt: null };
      this.rows.set(row.id, entry);
      this.#fill(entry);
    }
    entry.row = row;
    entry.toldAt = null;
    this.#write(entry);
  }

  /** The row is not in the answer any more: it ended, or nobody can tell of its node now, and the last state stays. */
  #leave(id, missing) {
    const entry = this.rows.get(id);
    if (!entry || !hostLacking(missing, entry.row.node)) this.#forget(id);
    else if (entry.toldAt === null) {
      entry.toldAt = observer.now;
      this.#write(entry);
    }
  }

  #forget(id) {
    this.rows.get(id)?.line.remove();
    this.rows.delete(id);
  }

  #fill(entry) {
    entry.cells = this.shown.map((name) => new Cell(this.byName.get(name), this.things));
    entry.line.replaceChildren(...entry.cells.map((each) => each.element));
    this.#write(entry);
  }

  #write({ row, line, cells, toldAt }) {
    let stale = this.things === "nodes" ? (row.state === "running" ? null : row) : staleness(row.node);
    if (!stale && toldAt !== null) stale = { state: "unknown", age_s: observer.now - toldAt };
    setAttribute(line, "class", stale ? "stale" : null);
    for (const cell of cells) cell.write(row, stale);
  }

  #arrange(page, order) {
    this.missing.show(page.missing);
    const old = [];
    for (const [id, entry] of [...this.rows]) {
      if (entry.toldAt === null) continue;
      if (hostLacking(page.missing, entry.row.node) && old.length < LIMIT) old.push(entry.line);
      else this.#forget(id);
    }
    arrange(this.body, [...order.map((id) => this.rows.get(id)?.line).filter(Boolean), ...old]);
    this.table.setAttribute("aria-busy", "false");
    this.error.hidden = true;
    setAttribute(this.input, "aria-invalid", null);
    const isFiltered = this.filters.length > 0 && !this.fixed().length;
    const shown = order.length < page.matched ? `${count(order.length)} of ` : "";
    setText(this.counts, `${shown}${count(page.matched)}${isFiltered ? ` (${count(page.total)} in all)` : ""}${old.length ? `, and ${count(old.length)} old` : ""}`);
    this.next.hidden = order.length < this.limit || page.matched <= this.limit;
    this.empty.hidden = order.length + old.length > 0;
    setText(this.empty, `${this.filters.length ? "None matches the filter" : "None at the moment"}${page.missing?.length ? ", of what is known" : ""}.`);
  }

  /** Ages grow, and nodes fall silent, without a change of a row. */
  #tick() {
    if (document.hidden || observer.isPaused || observer.state !== "ok") return;
    for (const entry of this.rows.values()) this.#write(entry);
  }

  refresh() {
    this.#tick();
  }

  #refuse(error) {
    this.error.hidden = false;
    setText(this.error, `${error.message}${error.allowed?.length ? `. Allowed: ${error.allowed.join(", ")}` : ""}`);
    setAttribute(this.input, "aria-invalid", "true");
    this.table.setAttribute("aria-busy", "false");
  }
}

function label(field) {
  return field.name.replace(/_s$|_at$/, "").replaceAll("_", " ");
}

class Cell {
  constructor(field, things) {
    this.field = field;
    this.things = things;
    this.element = el("td", { class: field.type === "number" ? "num" : "" });
    this.link = OWN_LINKS[things]?.[field.name] ?? LINKS[field.name];
    if (this.link) this.element.append((this.anchor = el("a")));
    this.inner = this.anchor ?? this.element;
    if (field.name === "node") this.element.append((this.note = el("span", { class: "note" })));
  }

  write(row, stale) {
    const { name, type, unit } = this.field;
    const raw = row[name];
    setText(this.inner, this.#text(raw, type, unit, name));
    if (this.anchor) setAttribute(this.anchor, "href", raw === null || raw === undefined || raw === "" ? null : this.link(row));
    if (name === "state") setAttribute(this.element, "class", `state ${raw}`);
    if (name === "waits_for" || name === "waiting_producers") setAttribute(this.element, "class", `${type === "number" ? "num " : ""}${raw ? "alarm" : ""}`.trim() || null);
    if (type === "number" && unit.startsWith("seconds since")) setAttribute(this.element, "title", raw ? moment(raw) : null);
    if (this.note) setText(this.note, stale ? ` ${staleText(stale)}` : "");
  }

  #text(raw, type, unit, name) {
    if (name === "state") return `${STATES[raw] ?? ""} ${raw}`;
    if (name === "waits_for" && raw) return WAITS[raw] ?? raw;
    if (name === "topology" && raw) return raw.slice(0, 10);
    if (type === "text") return raw === null || raw === undefined ? "\u2013" : raw === "" ? "(empty)" : readable(raw);
    return value(raw, unit, observer.now);
  }
}
