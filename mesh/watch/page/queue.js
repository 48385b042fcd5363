// One queue or subscription: what is stored, how old, who takes it, and its messages, with what can be done to them.

import { writeButton } from "./confirm.js";
import { el, readable, setAttribute, setText } from "./dom.js";
import { bytes, count, duration } from "./format.js";
import { refusal } from "./me.js";
import { hostLacking, unknownText } from "./missing.js";
import { MessageTable, selected } from "./messages.js";
import { MessageView } from "./message_view.js";
import { get, observer, poll } from "./observer.js";
import { change, encoded, link, parameter, queryString } from "./query.js";
import { deleteQueue, move, nameOf, purge, redrive, remove } from "./queue_writes.js";
import { replay, uncopied } from "./replay.js";

const LIMIT = 50;
const ROW_MS = 1000;
const LIST_MS = 3000;
const TYPING_MS = 400;
const BODY_BYTES = 65_536;
const FACTS = [
  ["depth", count], ["depth_bytes", bytes], ["acquired", count], ["oldest_s", duration], ["enqueued", count], ["dequeued", count],
  ["expired", count], ["dead_lettered", count], ["removed", count],
];

export function show(context) {
  return new QueuePage(context).view;
}

class QueuePage {
  constructor({ root, signal, model }) {
    this.signal = signal;
    this.queue = { node: parameter("node") ?? "", address: parameter("address") ?? "", subscriber: parameter("subscriber") ?? "" };
    this.name = nameOf(this.queue);
    this.address = this.queue.address;
    this.id = null;
    this.shown = null;
    this.turn = this.answered = 0;
    this.#build(root, model);
    const filters = [`node=${this.queue.node}`, `address=${this.address}`, `subscriber=${this.queue.subscriber}`];
    this.rowPath = `/api/queues?${queryString(filters.map((each) => ["filter", each]))}`;
    poll(() => this.rowPath, ROW_MS, (page) => this.#onRow(page.items[0], page.missing), (error) => setText(this.state, error.message), signal);
    const taken = `/api/addresses?filter=${encoded(`address=${this.address}`)}&fields=consumers,producers,waiting_producers`;
    poll(() => taken, 2 * ROW_MS, (page) => (this.clients = page.items[0] ?? { consumers: 0, producers: 0 }), () => {}, signal);
    poll(() => this.rowPath, LIST_MS, () => this.#refreshList(), () => {}, signal);
    this.view = {
      sources: () => (this.id === null ? this.rowPath : this.#listPath()),
      command: () => this.#command(),
      changed: () => this.#onUrl(),
      refresh() {},
    };
  }

  #build(root, model) {
    const meanings = new Map(model.entities.queues.map((each) => [each.name, each.meaning]));
    this.state = el("p", { class: "summary", role: "status", text: "Reading \u2026" });
    this.facts = new Map(FACTS.map(([name]) => [name, el("dd", { class: "num" })]));
    this.search = el("input", { type: "search", id: "message-search", class: "filter", autocomplete: "off", spellcheck: "false", placeholder: "text in headers, properties, body", value: parameter("search") ?? "", on: { input: () => this.#onTyping(), keydown: (event) => event.key === "Escape" && this.search.blur() } });
    this.counts = el("span", { class: "counts", role: "status" });
    this.error = el("p", { class: "error", role: "alert", hidden: true });
    this.table = new MessageTable();
    this.first = el("button", { type: "button", text: "First page", on: { click: () => change({ after: null, select: null }) } });
    this.next = el("button", { type: "button", text: "Next page", hidden: true, on: { click: () => change({ after: String(this.shown.next), select: null }) } });
    this.again = el("button", { type: "button", text: "Read again", on: { click: () => this.#list() } });
    this.copy = writeButton("Send an edited copy \u2026", null, () => replay({ message: this.message.message, address: this.name, expect: this.#expect(), path: () => this.#path(), onDone: () => this.#list() }));
    this.message = new MessageView([this.copy.element, el("button", { type: "button", text: "Close message", on: { click: () => change({ open: null }) } })]);
    const page = { name: this.name, address: this.address, expect: this.#expect(), path: () => this.#path(), onDone: () => this.#afterWrite() };
    const now = () => ({ ...page, shown: this.shown });
    const button = (text, work) => writeButton(text, null, work);
    this.writes = {
      move: button("Move \u2026", () => move(now(), selected())),
      redrive: button("Redrive \u2026", () => redrive(now(), selected())),
      remove: button("Remove \u2026", () => remove(now(), selected())),
      purge: button("Purge what is shown \u2026", () => purge(now())),
      delete: button("Delete the queue \u2026", () => deleteQueue(now())),
    };
    this.why = el("p", { class: "why", id: "queue-why", hidden: true });
    this.chosen = el("span", { class: "counts" });
    root.append(
      el("p", { class: "trail" }, el("a", { href: "/queues", text: "Queues" }), " \u203a ", el("a", { href: link("/node", { name: this.queue.node }), text: readable(this.queue.node) }), " \u203a ", el("a", { href: link("/address", { address: this.address }), text: readable(this.address, 60) })),
      el("h1", { text: this.name }),
      this.state,
      el("dl", { class: "facts" }, ...FACTS.map(([name]) => el("div", {}, el("dt", { text: name.replace(/_s$/, "").replaceAll("_", " "), title: meanings.get(name) }), this.facts.get(name)))),
      el(
        "section", { class: "tabled" },
        el("div", { class: "above" }, el("h2", { text: "Messages" }), this.counts, el("label", { class: "heard", for: this.search.id, text: "Search the messages" }), this.search, this.again),
        el("div", { class: "actions" }, this.chosen, ...Object.values(this.writes).map((each) => each.element)),
        this.why, this.error, this.table.element,
        el("div", { class: "below" }, this.first, this.next),
      ),
      this.message.element,
    );
    this.#onUrl(true);
  }

  // The queue
  #onRow(row, missing) {
    const isNew = (row?.id ?? null) !== this.id;
    this.id = row?.id ?? null;
    const lacking = hostLacking(missing, this.queue.node);
    if (!row && lacking) {
      setText(this.state, `${unknownText(lacking)} The queue keeps its messages. Numbers below are the last that were told.`);
      this.table.table.setAttribute("aria-busy", "false");
    } else if (!row) {
      setText(this.state, `No queue of the broker ${readable(this.queue.node)} has this name now: it was deleted, or the broker does not run.`);
      this.table.table.setAttribute("aria-busy", "false");
    } else {
      setText(this.state, this.#told(row));
      setAttribute(this.state, "class", row.depth && this.clients && !this.clients.consumers ? "summary alarm" : "summary");
      for (const [name, format] of FACTS) setText(this.facts.get(name), format(row[name]));
    }
    this.#allow();
    if (isNew) this.#list().then(() => dispatchEvent(new Event("url")));
  }

  #told({ depth, acquired, oldest_s: oldest }) {
    if (!depth) return "The queue is empty.";
    const parts = [`${count(depth)} message${depth === 1 ? "" : "s"}${oldest === null ? "" : `, the oldest for ${duration(Math.floor(oldest))}`}${acquired ? `, ${count(acquired)} at consumers` : ""}.`];
    const { clients } = this;
    if (clients && !clients.consumers) parts.push("Nobody takes messages: start a consumer, or move the messages.");
    else if (clients) parts.push(`${count(clients.consumers)} consumer${clients.consumers === 1 ? "" : "s"}.`);
    if (clients?.waiting_producers) parts.push(`${count(clients.waiting_producers)} producers wait: see the page of the address.`);
    return parts.join(" ");
  }

  /** Return the path of the queue in the REST interface. Numbers of queues are other ones after a restart: ask again. */
  async #path() {
    const { items } = await get(this.rowPath, this.signal);
    if (!items.length) throw new Error("the queue is gone");
    return `/api/queues/${items[0].id}`;
  }

  #expect() {
    return { node: this.queue.node, address: this.address, subscriber: this.queue.subscriber || null };
  }

  // The messages
  #listPath() {
    const pairs = [["limit", String(LIMIT)]];
    if (parameter("after")) pairs.push(["after", parameter("after")]);
    if (parameter("search")) {
      pairs.push(["search", parameter("search")]);
      // A search in bodies needs the right to read them; the list shows none.
      if (refusal("browse", this.address) === null) pairs.push(["bodies", "true"], ["body_bytes", "1"]);
    }
    return `/api/queues/${this.id}/messages?${queryString(pairs)}`;
  }

  #command() {
    if (this.address.startsWith("-")) return null;
    const options = { broker: this.queue.node, subscriber: this.queue.subscriber, search: parameter("search"), after: parameter("after") };
    return ["broker", "browse", this.address, ...Object.entries(options).filter(([, value]) => value).map(([name, value]) => `--${name}=${value}`)];
  }

  /** A search reads the whole queue: it is done once, and again when the user asks. */
  #refreshList() {
    if (!parameter("search") && !document.querySelector("dialog[open]")) this.#list();
  }

  async #list() {
    if (this.id === null || this.signal.aborted) return;
    const asked = this.#listPath();
    const turn = ++this.turn;
    try {
      const page = await get(asked, this.signal);
      // What was asked for later may be answered earlier, and is newer.
      if (turn < this.answered || asked !== this.#listPath()) return;
      this.answered = turn;
      this.shown = { last: page.last, at: observer.now, next: page.next };
      this.table.show(page.messages, parameter("search") ? `No message matches, of ${count(page.scanned)} that were searched.` : "No messages.");
      const more = page.next === null || page.next === undefined ? "" : ", more follow";
      setText(this.counts, `${count(page.messages.length)} shown${parameter("search") ? ` of ${count(page.scanned)} searched` : ""}${more}`);
      this.next.hidden = !more;
      this.error.hidden = true;
      this.#openIfOther();
    } catch (error) {
      if (this.signal.aborted || turn < this.answered) return;
      this.error.hidden = false;
      setText(this.error, `The messages cannot be read: ${error.message}`);
      setAttribute(this.table.table, "aria-busy", "false");
    }
    this.#allow();
  }

  #onTyping() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => change({ search: this.search.value || null, after: null, select: null }, { replace: true }), TYPING_MS);
  }

  #onUrl(isFirst = false) {
    const key = `${parameter("search")}\n${parameter("after")}`;
    this.first.hidden = !parameter("after");
    this.table.changed();
    if (key !== this.listed && !isFirst) this.#list();
    this.listed = key;
    this.#openIfOther();
    if (this.message.message) this.message.body.changed();
    this.#allow();
  }

  #openIfOther() {
    const open = parameter("open");
    if (this.id !== null && open !== this.opened) this.#open(open);
  }

  async #open(number) {
    this.opened = number;
    if (number === null || !/^\d+$/.test(number)) {
      this.message.show(null, null);
      return;
    }
    const why = refusal("browse", this.address);
    const body = why ? [] : [["bodies", "true"], ["body_bytes", String(BODY_BYTES)]];
    try {
      const page = await get(`/api/queues/${this.id}/messages?${queryString([["after", String(Number(number) - 1)], ["limit", "1"], ...body])}`, this.signal);
      const found = page.messages.find((each) => each.number === Number(number));
      if (this.opened !== number) return;
      this.error.hidden = Boolean(found);
      setText(this.error, found ? "" : `Message ${count(Number(number))} is not in the queue any more.`);
      this.message.show(found ?? null, why);
    } catch (error) {
      if (this.signal.aborted || this.opened !== number) return;
      // With the next list, it is asked for again.
      this.opened = undefined;
      this.error.hidden = false;
      setText(this.error, `The message cannot be read: ${error.message}`);
    }
    this.#allow();
  }

  // Rights
  #allow() {
    const why = refusal("manage", this.address) ?? (this.id === null ? "The queue is not there." : null);
    const numbers = selected();
    const isEmpty = !this.shown || !this.table.rows.size;
    this.why.hidden = why === null;
    setText(this.why, why ?? "");
    setText(this.chosen, numbers.length ? `${count(numbers.length)} selected` : "None selected");
    const { writes } = this;
    setText(writes.move.button, numbers.length ? "Move selected \u2026" : "Move what is shown \u2026");
    setText(writes.redrive.button, numbers.length ? "Redrive selected \u2026" : "Redrive \u2026");
    writes.remove.allow(why ? "" : numbers.length ? null : "Select messages to remove.");
    // The table says that it has no messages: a sentence beside each button would move the other buttons.
    writes.move.allow(why || isEmpty ? "" : null);
    writes.purge.allow(why || isEmpty ? "" : null);
    writes.redrive.allow(why ? "" : null);
    writes.delete.allow(why ? "" : null);
    const ofTopic = this.queue.subscriber ? "Messages reach a subscription by its topic: a copy needs a queue." : null;
    this.copy.allow(why ?? ofTopic ?? uncopied(this.message.message));
  }

  #afterWrite() {
    change({ select: null, open: null }, { replace: true });
    this.#list();
  }
}
