// The body of a message as text, as JSON with a line for each member, or as bytes. Says why a body cannot be shown.

import { el, setText, visible } from "./dom.js";
import { bytes } from "./format.js";
import { indented } from "./json_text.js";
import { change, parameter } from "./query.js";

const SHOWN_BYTES = 4096;
const ROW = 16;
const NAMES = { text: "Text", json: "JSON", hex: "Hex" };

/** Return the bytes of a body as the observer sent them: at most those that were asked for. */
export function bytesOf(body) {
  if (typeof body.base64 === "string") return Uint8Array.from(atob(body.base64), (each) => each.charCodeAt(0));
  return new TextEncoder().encode(body.text ?? "");
}

export class BodyView {
  constructor() {
    this.tabs = Object.keys(NAMES).map((name) => el("button", { type: "button", text: NAMES[name], data: { as: name }, on: { click: () => change({ as: name }, { replace: true }) } }));
    this.note = el("p", { class: "note", role: "status" });
    this.text = el("pre", { class: "body", tabindex: "0", "aria-label": "Body of the message" });
    this.more = el("button", { type: "button", text: "Show all of it", on: { click: () => ((this.isWhole = true), this.#show()) } });
    this.element = el("section", { class: "message-body" }, el("div", { class: "above" }, el("h3", { text: "Body" }), ...this.tabs), this.note, this.text, this.more);
  }

  /** Show another body; `refusal` is a sentence if the user may not read it. */
  show(body, refusal) {
    this.body = refusal || !body ? null : body;
    this.refusal = refusal ?? "The observer sent no body.";
    this.isWhole = false;
    this.#show();
  }

  /** The URL chooses another viewer. */
  changed() {
    this.#show();
  }

  #show() {
    const { body } = this;
    const isThere = body !== null && (typeof body.text === "string" || typeof body.base64 === "string");
    for (const each of this.tabs) each.hidden = !isThere;
    this.text.hidden = !isThere;
    this.more.hidden = true;
    if (!isThere) {
      setText(this.note, body === null ? this.refusal : body.why || "The message has no body.");
      return;
    }
    const isText = typeof body.text === "string";
    const json = isText && !body.is_cut ? indented(body.text) : null;
    const asked = parameter("as") ?? (json !== null ? "json" : isText ? "text" : "hex");
    const [as, why] = this.#possible(asked, isText, json, body);
    for (const each of this.tabs) each.setAttribute("aria-pressed", String(each.dataset.as === as));
    const cut = body.is_cut ? `The first ${bytes(bytesOf(body).length)} of ${bytes(body.bytes)}.` : `${bytes(body.bytes)}.`;
    setText(this.note, [cut, why, body.why && `${body.why}.`].filter(Boolean).join(" "));
    setText(this.text, as === "json" ? visible(json) : as === "text" ? visible(body.text) : this.#hex(bytesOf(body)));
  }

  #possible(asked, isText, json, body) {
    if (asked === "json" && json === null) return [isText ? "text" : "hex", body.is_cut ? "It is cut, and so is not shown as JSON." : "It is not JSON."];
    if (asked === "text" && !isText) return ["hex", "It is not text: it is shown as bytes."];
    return [asked in NAMES ? asked : "hex", null];
  }

  #hex(content) {
    const most = this.isWhole ? content.length : Math.min(content.length, SHOWN_BYTES);
    this.more.hidden = most === content.length;
    const lines = [];
    for (let start = 0; start < most; start += ROW) {
      const row = [...content.subarray(start, Math.min(start + ROW, most))];
      const digits = row.map((each) => each.toString(16).padStart(2, "0")).join(" ");
      const letters = row.map((each) => (each >= 32 && each < 127 ? String.fromCharCode(each) : ".")).join("");
      lines.push(`${start.toString(16).padStart(6, "0")}  ${digits.padEnd(ROW * 3 - 1)}  ${letters}`);
    }
    return lines.join("\n");
  }
}
