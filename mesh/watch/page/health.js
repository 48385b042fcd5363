// The nodes that do not run, for the header and for the rows of all tables.

import { el, readable, setAttribute, setText } from "./dom.js";
import { count, duration } from "./format.js";
import { observer, poll } from "./observer.js";
import { link } from "./query.js";

const EVERY_MS = 2000;
const NAMED = 3;
const unwell = new Map();
let readAt = 0;

/** Return null if the numbers of a node are fresh, else the state of the node and the age of its numbers. */
export function staleness(node) {
  const found = unwell.get(node);
  return found ? { state: found.state, age_s: found.age_s + observer.now - readAt } : null;
}

export function staleText(stale) {
  return `${stale.state}, as of ${duration(Math.floor(stale.age_s))} ago`;
}

/** Show the nodes in `place` until the page closes, and call `onChange` when the nodes that do not run changed. */
export function watchNodes(place, onChange) {
  const dot = el("span", { class: "dot", "aria-hidden": "true" });
  const words = el("a", { href: "/nodes" });
  place.append(dot, words);
  let before = "";
  poll(
    () => "/api/nodes?filter=state!=running&fields=name,state,age_s&limit=1000",
    EVERY_MS,
    (page) => {
      unwell.clear();
      for (const each of page.items) unwell.set(each.name, each);
      readAt = page.at;
      const bad = page.items.filter((each) => each.state !== "ended");
      const running = page.total - page.matched;
      const named = bad.slice(0, NAMED).map((each) => `${readable(each.name, 24)} ${each.state}`);
      if (bad.length > NAMED) named.push(`${count(bad.length - NAMED)} more`);
      setText(words, [`${count(running)} of ${count(page.total)} nodes run`, ...named].join(" \u00b7 "));
      setAttribute(words, "href", bad.length ? link("/nodes", { filter: "state!=running" }) : "/nodes");
      place.className = bad.length ? "health bad" : "health";
      const now = page.items.map((each) => `${each.name} ${each.state}`).join("\n");
      if (now !== before) onChange();
      before = now;
    },
    () => {},
    new AbortController().signal,
  );
}
