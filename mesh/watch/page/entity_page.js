// A page of one entity: its fields with their meaning, and what belongs to it.

import { el, readable, setAttribute, setText } from "./dom.js";
import { moment, value } from "./format.js";
import { refusal } from "./me.js";
import { hostLacking, unknownText } from "./missing.js";
import { observer, poll } from "./observer.js";
import { encoded } from "./query.js";

const EVERY_MS = 1000;

/**
 * Show the entity of `things` with the value `wanted` in `field`, and return the view of the page.
 *
 * `title(row)`, `told(row)`: the heading, and what is wrong or what the entity does. `links`: by name of a field, a
 * function from the row to a link. `command`: words of a command for the terminal. `actions`: elements; `parts`: elements below. `onRow(row)`: for each answer, with
 * undefined if the entity is not there. `gone`: the sentence for that.
 */
export function entityPage({ root, signal, model }, { things, field = "id", wanted, trail, title, told, links = {}, command = null, actions = [], parts = [], tables = [], gone, onRow = () => {} }) {
  const head = el("h1", { text: readable(wanted) });
  const state = el("p", { class: "summary", role: "status", text: "Reading \u2026" });
  const cells = new Map();
  const body = el("tbody");
  for (const each of model.entities[things]) {
    const name = each.name.replace(/_s$|_at$/, "").replaceAll("_", " ");
    const inner = links[each.name] ? el("a") : el("span");
    cells.set(each.name, { ...each, inner });
    body.append(el("tr", {}, el("th", { scope: "row", text: name, title: each.meaning }), el("td", { class: "value" }, inner)));
  }
  const path = `/api/${things}?filter=${encoded(`${field}=${wanted}`)}&limit=1`;
  root.append(
    el("p", { class: "trail" }, ...trail), head, state,
    actions.length ? el("div", { class: "actions" }, ...actions) : "",
    ...parts,
    ...tables.map((each) => each.element),
    el("details", { class: "fields" }, el("summary", { text: "All fields" }), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All fields" }, el("table", { class: "properties" }, el("caption", { class: "heard", text: "All fields" }), body))),
  );
  let last = null;
  const show = (row, missing) => {
    const lacking = row ? undefined : hostLacking(missing, wanted.split("/")[0]);
    setText(head, row ? title(row) : last && lacking ? title(last.row) : readable(wanted));
    setText(state, row ? told(row) : `${lacking ? unknownText(lacking) : gone}${last ? ` Below is its last state, of ${moment(last.at)}.` : ""}`);
    setAttribute(root, "data-gone", row ? null : "true");
    onRow(row);
    if (row) last = { at: observer.now, row };
    for (const { name, type, unit, inner } of row ? cells.values() : []) {
      const raw = row[name];
      setText(inner, type === "text" ? (raw === null ? "\u2013" : raw === "" ? "(empty)" : readable(raw)) : value(raw, unit, observer.now));
      if (inner.tagName === "A") setAttribute(inner, "href", raw === null || raw === "" ? null : links[name](row));
      if (unit.startsWith("seconds since") && raw) setAttribute(inner, "title", moment(raw));
    }
  };
  poll(() => path, EVERY_MS, (page) => show(page.items[0], page.missing), (error) => setText(state, error.message), signal);
  return {
    sources: () => path,
    command: () => command,
    changed: () => tables.forEach((each) => each.changed()),
    refresh: () => tables.forEach((each) => each.refresh()),
  };
}

/** Return why the user may not change the mesh, or that the entity is not there, or null. */
export function unchanged(row) {
  return refusal("manage") ?? (row ? null : "It is not there now.");
}
