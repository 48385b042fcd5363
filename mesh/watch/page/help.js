// The dialog with keys, the words of filters, and the words that the pages use.

import { el } from "./dom.js";

const KEYS = [
  ["/", "write a filter"], ["?", "this help"], ["p", "stop updates, and go on"], ["1 \u2026 8", "open a page"], ["Esc", "leave the filter, close a dialog"],
];
const FILTERS = [
  ["orders", "names that contain `orders`"], ["role=producer", "equal; != is not equal"], ["rate>100", "also <, <=, >="],
  ["container~web", "contains"], ["waits_for!=", "has any value; waits_for= has none"], ['"name=two words"', "a value with spaces"],
];
const WORDS = [
  ["silent", "The process of the node is there, and has not written its clock for 3 s."],
  ["lost", "The process is gone, and did not say that it would end. Its last numbers are grey."],
  ["unknown", "No node of this host has the name: the node may run well on another host."],
  ["waits for", "Why a producer has no credit: no consumer; slow consumers; a full queue; disk or memory of the broker."],
  ["at a consumer", "A message that a consumer has, without an outcome yet. It is not moved, and not removed."],
  ["starved", "The time for which a producer had no credit."],
];

export function help(model) {
  const dialog = document.getElementById("help");
  if (!dialog.children.length) {
    const list = (pairs) => el("dl", {}, ...pairs.flatMap(([term, meaning]) => [el("dt", {}, el("kbd", { text: term })), el("dd", { text: meaning })]));
    dialog.append(
      el("form", { method: "dialog" }, el("h2", { id: "help-title", text: `The console of ${model.mesh}` }), el("button", { text: "Close", "aria-label": "Close the help" })),
      el("h3", { text: "Keys" }), list(KEYS),
      el("h3", { text: "Filters" }), el("p", { text: "All words have to hold. Fields are in the list of columns, with their meaning." }), list(FILTERS),
      el("h3", { text: "Words" }), list(WORDS),
      el("p", { text: "The URL has the filter, the sort, the page and the columns: send the URL to a colleague on this host. Rates are over the last seconds; counters count since the observer first saw the node." }),
    );
    dialog.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      dialog.close();
    });
  }
  if (!dialog.open) dialog.showModal();
}
