// The one dialog of all writes: what is asked for, what it would do, the confirmation, the result with its audit entry.

import { el, readable, setText } from "./dom.js";
import { count } from "./format.js";
import { Refused } from "./observer.js";
import { auditEntry } from "./audit_list.js";
import { link } from "./query.js";
import { dry, newKey, send } from "./write.js";

const TYPED_KEY = "confirm-count";

/**
 * Return a button for a write. `allow(why)`: the reason why the write is not possible stands beside the button; null: it
 * is possible; empty: the reason stands elsewhere.
 */
export function writeButton(text, why, onClick) {
  const reason = el("span", { class: "why", hidden: true });
  const button = el("button", { type: "button", text, on: { click: onClick } });
  const element = el("span", { class: "action" }, button, reason);
  const allow = (now) => {
    if (button.disabled !== (now !== null)) button.disabled = now !== null;
    reason.hidden = !now;
    setText(reason, now ?? "");
  };
  allow(why);
  return { element, button, allow };
}

/**
 * Ask for a write, and carry it out when the user confirms.
 *
 * `title`, `about`: sentences that name what is written to. `verb`: of the button, such as "Purge". `fields`: inputs, as
 * `field` makes them. `request(values)`: a promise of `{method, path, body}`. `expect`: fields of the entity as they were
 * shown, so that nothing else is changed than what the user saw. `typed`: name of the count, in the answer of the dry run,
 * that the user has to type. `onDone(answer)`: after the write.
 */
export function confirmWrite(options) {
  new Confirmation(options).open();
}

/** Make an input of the dialog. `read(input)`: its value, or an Error with a sentence. */
export function field(name, label, input, { note = null, read = (it) => it.value } = {}) {
  input.id = `write-${name}`;
  return { name, input, read: () => read(input), element: el("div", { class: "field" }, el("label", { for: input.id, text: label }), input, note && el("p", { class: "note", text: note })) };
}

class Confirmation {
  constructor({ title, about, verb, fields = [], request, expect = {}, typed = null, onDone = () => {} }) {
    Object.assign(this, { title, verb, fields, request, expect, typed, onDone });
    this.dialog = document.getElementById("write");
    this.said = el("div", { class: "said", role: "status" });
    this.error = el("p", { class: "error", role: "alert", hidden: true });
    // Below the buttons, and the link first: the entry comes later than the result, and moves nothing that can be clicked.
    this.audited = el("p", { class: "audited", role: "status", hidden: true });
    this.preview = el("button", { type: "submit", text: "Show what it would do" });
    this.confirm = el("button", { type: "button", class: "confirm", hidden: true, on: { click: () => this.#write() } });
    this.close = el("button", { type: "button", text: "Cancel", on: { click: () => this.dialog.close() } });
    this.form = el(
      "form", { class: "write", novalidate: true },
      el("h2", { id: "write-title", text: title }),
      ...about.map((sentence) => el("p", { text: sentence })),
      ...fields.map((each) => each.element),
      this.said, this.error,
      el("div", { class: "buttons" }, this.close, this.preview, this.confirm),
      this.audited,
    );
    this.form.addEventListener("submit", (event) => (event.preventDefault(), this.#rehearse()));
    for (const each of fields) each.input.addEventListener("input", () => this.#forget());
  }

  open() {
    this.dialog.replaceChildren(this.form);
    this.dialog.showModal();
    if (!this.fields.length) this.#rehearse();
    else this.fields[0].input.focus();
  }

  /** What was rehearsed is not what the fields say any more. */
  #forget() {
    this.planned = null;
    this.said.replaceChildren();
    this.confirm.hidden = true;
    this.preview.hidden = false;
  }

  async #rehearse() {
    this.#forget();
    this.#fail(null);
    this.#busy(true);
    try {
      const values = Object.fromEntries(this.fields.map((each) => [each.name, each.read()]));
      const { method = "POST", path, body: asked } = await this.request(values);
      const body = { ...asked, expect: this.expect };
      const answer = await send(method, dry(path), body, newKey());
      this.planned = { method, path, body, key: newKey() };
      this.#offer(answer.would ?? {}, answer.before);
    } catch (error) {
      this.#fail(error);
    }
    this.#busy(false);
  }

  #offer(would, before) {
    const now = before && Object.keys(before).length ? ` Now: ${words(before)}.` : "";
    this.said.replaceChildren(el("p", { class: "would" }, "Nothing has changed yet. It would do: ", el("strong", { text: words(would) }), ".", now));
    const wanted = this.typed && String(would[this.typed] ?? 0);
    setText(this.confirm, wanted ? `${this.verb} ${count(Number(wanted))} ${this.typed.replaceAll("_", " ")}` : this.verb);
    this.confirm.hidden = false;
    this.confirm.disabled = Boolean(wanted);
    this.preview.hidden = true;
    if (!wanted) {
      this.confirm.focus();
      return;
    }
    const typed = el("input", { id: TYPED_KEY, autocomplete: "off", inputmode: "numeric" });
    const isTyped = () => typed.value.replace(/[\s,]/g, "") === wanted;
    typed.addEventListener("input", () => (this.confirm.disabled = !isTyped()));
    typed.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      if (isTyped()) this.#write();
    });
    this.said.append(el("div", { class: "field" }, el("label", { for: TYPED_KEY, text: `To confirm, type the count: ${wanted}` }), typed));
    typed.focus();
  }

  async #write() {
    if (!this.planned || this.isBusy) return;
    const { method, path, body, key } = this.planned;
    this.#fail(null);
    this.#busy(true);
    try {
      this.#finish(await send(method, path, body, key), key);
    } catch (error) {
      this.#fail(error);
      // The same key again: what was carried out, is not carried out twice.
      if (error instanceof Refused) this.confirm.hidden = true;
      else setText(this.confirm, `${this.verb} (ask again; it is done once)`);
    }
    this.#busy(false);
  }

  #finish(answer, key) {
    const { done = {}, before, after } = answer;
    const change = before && after ? ` Before: ${words(before)}; after: ${words(after)}.` : "";
    const entry = el("span");
    this.planned = null;
    for (const each of this.fields) each.input.disabled = true;
    this.confirm.hidden = true;
    setText(this.close, "Close");
    this.said.replaceChildren(el("p", { class: "done" }, "Done: ", el("strong", { text: words(done) }), ".", change));
    this.audited.replaceChildren(el("a", { href: link("/events", { show: "audit" }), text: "Audit entries", on: { click: () => this.dialog.close() } }), entry);
    this.audited.hidden = false;
    this.close.focus();
    auditEntry(key).then((found) => setText(entry, found ? `, of which this is ${found}.` : ""));
    this.onDone(answer);
  }

  #busy(isBusy) {
    this.isBusy = isBusy;
    this.form.setAttribute("aria-busy", String(isBusy));
    this.preview.disabled = isBusy;
  }

  #fail(error) {
    this.error.hidden = error === null;
    if (error === null) return;
    const allowed = error.allowed?.length ? ` Allowed: ${error.allowed.join(", ")}.` : "";
    const isKnown = error instanceof Refused && !error.isUncertain;
    const unknown = isKnown || !this.planned ? "" : " Whether the write was done is not known: look at the audit entries, or ask again.";
    setText(this.error, `${error.message}${/[.?!]$/.test(error.message) ? "" : "."}${allowed}${unknown}`);
  }
}

/** Return names and values of an answer as a phrase: `messages: 12, missing: none`. */
function words({ at_most: isMost, ...counts }) {
  const told = Object.entries(counts).filter(([, value]) => value !== null && value !== undefined);
  const text = told.map(([name, value]) => `${name.replaceAll("_", " ")}: ${phrase(value)}`).join(", ");
  return `${isMost ? "at most " : ""}${text || "nothing"}`;
}

function phrase(value) {
  if (Array.isArray(value)) return value.length ? value.map(phrase).join(", ") : "none";
  if (typeof value === "object") return value === null ? "none" : words(value);
  return typeof value === "number" ? count(value) : readable(value, 300);
}
