// The hosts and nodes that an answer lacks: which, since when nobody can tell of them, and why.

import { el, readable, setText } from "./dom.js";
import { clock, count, duration } from "./format.js";
import { observer } from "./observer.js";

const NAMED = 5;
const WHY_CHARS = 200;

/** Return the host of `missing` that may have `node`, or undefined: what is not in the answer may be there. */
export function hostLacking(missing, node) {
  return (missing ?? []).find((each) => each.nodes.includes(node) || (each.host !== null && !each.nodes.length));
}

/** Return the sentence about one host of `missing`. */
export function unknownText({ host, nodes, age_s: age, why }) {
  const named = nodes.slice(0, NAMED).map((each) => readable(each, 40)).join(", ");
  const more = nodes.length > NAMED ? ` and ${count(nodes.length - NAMED)} more` : "";
  const all = nodes.length ? `${named}${more}` : "nodes not known";
  const place = host === null ? all : `host ${readable(host, 60)} (${all})`;
  const heard = age === null ? "" : `, last heard ${duration(Math.floor(age))} ago, at ${clock(observer.now - age)}`;
  return `Unknown: ${place}${heard}: ${readable(why, WHY_CHARS)}.`;
}

/** Lines that name the hosts an answer lacks. `lacks`: a sentence that says what the page does without them. */
export class MissingLines {
  constructor(lacks) {
    this.lacks = lacks;
    this.list = el("ul");
    this.rest = el("p", { text: lacks });
    this.element = el("div", { class: "missing", hidden: true }, this.list, this.rest);
  }

  show(missing) {
    const lines = (missing ?? []).map(unknownText);
    while (this.list.children.length > lines.length) this.list.lastChild.remove();
    while (this.list.children.length < lines.length) this.list.append(el("li"));
    lines.forEach((line, place) => setText(this.list.children[place], line));
    this.element.hidden = !lines.length;
  }
}
