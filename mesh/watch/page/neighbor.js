// One connection between two routers, as the link state has it; its cost can be changed.

import { confirmWrite, field, writeButton } from "./confirm.js";
import { wholeOf } from "./connection.js";
import { el, readable } from "./dom.js";
import { age, count } from "./format.js";
import { entityPage, unchanged } from "./entity_page.js";
import { observer } from "./observer.js";
import { link, parameter } from "./query.js";

const MAX_COST = 1_000_000;

export function show(context) {
  const id = parameter("id") ?? "";
  let shown;
  const cost = writeButton("Change the cost \u2026", null, () => changeCost(shown));
  return entityPage(context, {
    things: "neighbors", wanted: id,
    trail: [el("a", { href: link("/nodes", { show: "neighbors" }), text: "Neighbors" })],
    title: (row) => `${row.node} \u2013 ${readable(row.neighbor)}`,
    told: (row) => `Cost ${count(row.cost)}; up ${row.since ? `for ${age(row.since, observer.now)}` : "since before the observer started"}. Paths with the least sum of costs carry the messages.`,
    links: { node: (row) => link("/node", { name: row.node }), neighbor: (row) => link("/node", { name: row.neighbor }) },
    gone: "The two routers have no connection now. The map says which of them runs.",
    actions: [cost.element],
    onRow: (row) => {
      shown = row;
      cost.allow(unchanged(row));
    },
  });
}

function changeCost(row) {
  const cost = el("input", { type: "number", min: "1", max: String(MAX_COST), value: String(row.cost) });
  confirmWrite({
    title: `Change the cost of ${row.node} \u2013 ${readable(row.neighbor)}`,
    about: [`The cost is ${count(row.cost)} now. Traffic moves after two seconds; links to queues and topics stay where they are. The topology file stays as it is, and a router that starts again has its cost.`],
    verb: "Change the cost", expect: { node: row.node, neighbor: row.neighbor },
    fields: [field("cost", `cost, 1 to ${count(MAX_COST)}`, cost, { read: (it) => wholeOf(it.value, 1, MAX_COST) })],
    request: async ({ cost: wanted }) => ({ path: `/api/neighbors/${row.id}/cost`, body: { cost: wanted } }),
  });
}
