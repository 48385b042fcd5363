// What the page of a queue can change: each write as title, sentences and request of the dialog for writes.

import { confirmWrite, field } from "./confirm.js";
import { el, readable } from "./dom.js";
import { clock, count } from "./format.js";
import { get } from "./observer.js";

/** `page`: `{name, address, path, expect, shown, onDone}`; `path()` is a promise, `shown` has `last` and `at` of the list. */
export function purge(page) {
  const { last, at } = page.shown;
  confirmWrite({
    title: `Purge ${page.name}`,
    about: [`Drops all messages up to number ${count(last)}, the newest when the list was read at ${clock(at)}. Messages that came later stay.`, "Dropped messages cannot be brought back."],
    verb: "Purge", typed: "messages",
    request: async () => ({ path: `${await page.path()}/purge`, body: { up_to: last } }),
    expect: page.expect, onDone: page.onDone,
  });
}

export function remove(page, numbers) {
  confirmWrite({
    title: `Remove ${messages(numbers)} of ${page.name}`,
    about: ["Removed messages cannot be brought back. A message that a consumer has stays."],
    verb: "Remove", typed: "messages",
    request: async () => ({ path: `${await page.path()}/remove`, body: { numbers } }),
    expect: page.expect, onDone: page.onDone,
  });
}

/** `numbers` empty: all messages that the list has shown. */
export async function move(page, numbers) {
  const list = el("datalist", { id: "write-targets" });
  const target = el("input", { list: list.id, autocomplete: "off", spellcheck: "false" });
  confirmWrite({
    title: `Move ${numbers.length ? messages(numbers) : "all messages shown"} of ${page.name}`,
    about: [numbers.length ? "The messages keep their order." : `Moves all messages up to number ${count(page.shown.last)}, in order. Messages that came later stay.`],
    verb: "Move",
    fields: [field("target", "to the queue", target, { read: (it) => wanted(it.value, "Name the queue that takes the messages") })],
    request: async (values) => ({ path: `${await page.path()}/move`, body: { target: values.target, ...(numbers.length ? { numbers } : { up_to: page.shown.last }) } }),
    expect: page.expect, onDone: page.onDone,
  });
  target.after(list);
  const found = await get("/api/queues?fields=address,subscriber&filter=subscriber=&limit=200").catch(() => ({ items: [] }));
  const names = new Set(found.items.map((each) => each.address).filter((name) => name && name !== page.address));
  list.append(...[...names].map((name) => el("option", { value: name })));
}

export function redrive(page, numbers) {
  const target = el("input", { autocomplete: "off", spellcheck: "false" });
  confirmWrite({
    title: `Redrive ${numbers.length ? messages(numbers) : "all messages"} of ${page.name}`,
    about: ["Moves dead letters back to the queues that they come from, as their annotations say."],
    verb: "Redrive",
    fields: [field("to", "to another queue instead (empty: each to its own)", target)],
    request: async (values) => ({ path: `${await page.path()}/redrive`, body: { ...(values.to ? { to: values.to } : {}), ...(numbers.length ? { numbers } : {}) } }),
    expect: page.expect, onDone: page.onDone,
  });
}

export function deleteQueue(page) {
  const force = el("input", { type: "checkbox" });
  confirmWrite({
    title: `Delete ${page.name}`,
    about: ["The queue goes, with all of its counters. A queue of the topology is made again when a client uses it."],
    verb: "Delete",
    fields: [field("force", "also if it has messages or consumers", force, { read: (it) => it.checked })],
    request: async (values) => ({ method: "DELETE", path: await page.path(), body: { force: values.force } }),
    expect: page.expect, onDone: page.onDone,
  });
}

function messages(numbers) {
  return `${count(numbers.length)} message${numbers.length === 1 ? "" : "s"}`;
}

function wanted(text, sentence) {
  if (!text.trim()) throw new Error(sentence);
  return text.trim();
}

/** Return the name of a queue for sentences. */
export function nameOf({ address, subscriber }) {
  return subscriber ? `subscription ${readable(subscriber, 60)} of ${readable(address, 60)}` : readable(address, 80);
}
