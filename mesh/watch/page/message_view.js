// One message: its header, properties and annotations as a table, and its body.

import { BodyView } from "./body_view.js";
import { el, readable, setText } from "./dom.js";
import { count } from "./format.js";

const SHOWN_CHARS = 2000;
const LISTED = ["properties", "annotations"];
const OF_BROKER = new Set(["number", "stored_at", "expires_at", "attempts", "is_locked", "reason", "origin", "bytes"]);
const SAID = new Set(["body", "why", "left_out", ...LISTED]);

export class MessageView {
  /** `actions`: elements that stand below the title, such as the button that sends a copy. */
  constructor(actions) {
    this.title = el("h2", { id: "message-title" });
    this.rows = el("tbody");
    this.note = el("p", { class: "note", role: "status" });
    this.body = new BodyView();
    this.message = null;
    this.element = el(
      "section", { class: "message", "aria-labelledby": "message-title", hidden: true },
      el("div", { class: "above" }, this.title, ...actions),
      this.note,
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Header and properties" }, el("table", { class: "properties" }, el("caption", { class: "heard", text: "Header and properties" }), this.rows)),
      this.body.element,
    );
  }

  /** Show a message (null: none); `refusal` says why its body is not there. */
  show(message, refusal) {
    this.message = message;
    this.element.hidden = message === null;
    if (message === null) return;
    setText(this.title, `Message ${count(message.number)}`);
    const left = message.left_out?.length ? `Left out: ${message.left_out.map((each) => readable(each, 300)).join("; ")}.` : "";
    setText(this.note, [message.why, left].filter(Boolean).join(" "));
    this.rows.replaceChildren(...rowsOf(message).map(([kind, name, value]) => el("tr", {}, el("th", { scope: "row", text: readable(name) }), el("td", { class: "kind", text: kind }), el("td", { class: "value", text: value }))));
    this.body.show(message.body, refusal);
  }
}

function* pairsOf(message) {
  for (const [name, value] of Object.entries(message)) {
    if (SAID.has(name) || value === null || value === undefined) continue;
    yield [OF_BROKER.has(name) ? "broker" : "header", name, shown(value)];
  }
  for (const kind of LISTED)
    for (const [name, value] of Object.entries(message[kind] ?? {})) yield [kind === "properties" ? "property" : "annotation", name, shown(value)];
}

function rowsOf(message) {
  return [...pairsOf(message)];
}

function shown(value) {
  return readable(typeof value === "string" ? value : JSON.stringify(value), SHOWN_CHARS);
}
