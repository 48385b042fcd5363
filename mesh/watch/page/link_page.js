// One link: who sends or receives, credit and what it waits for; the link can be closed.

import { confirmWrite, field, writeButton } from "./confirm.js";
import { reasonOf } from "./connection.js";
import { el, readable } from "./dom.js";
import { age, count, duration, rate } from "./format.js";
import { entityPage, unchanged } from "./entity_page.js";
import { observer } from "./observer.js";
import { link, parameter } from "./query.js";
import { WAITS } from "./table.js";

export function show(context) {
  const id = parameter("id") ?? "";
  let shown;
  const close = writeButton("Close the link \u2026", null, () => closeLink(shown));
  return entityPage(context, {
    things: "links", wanted: id,
    trail: [el("a", { href: "/links", text: "Links" }), " \u203a ", el("a", { href: link("/node", { name: id.split("/")[0] }), text: readable(id.split("/")[0]) })],
    title: (row) => nameOf(row),
    told,
    links: {
      node: (row) => link("/node", { name: row.node }), connection: (row) => link("/connection", { id: row.connection }),
      address: (row) => link("/address", { address: row.address }), pattern: (row) => link("/addresses", { pattern: row.pattern }),
      user: (row) => link("/clients", { by: "connection", filter: `user=${row.user}` }),
    },
    gone: "This link is not attached now: it ended, or the node started again, which numbers links anew.",
    actions: [close.element],
    onRow: (row) => {
      shown = row;
      close.allow(unchanged(row));
    },
  });
}

function told(row) {
  const since = row.attached_at ? `for ${age(row.attached_at, observer.now)}` : "since before the observer started";
  const waits = row.waits_for ? `It has no credit: ${WAITS[row.waits_for] ?? row.waits_for}. ${row.waiting_since ? `For ${age(row.waiting_since, observer.now)}; in all` : "Without credit so far:"} ${duration(row.starved_s)}. ` : "";
  return `${waits}${row.role} of ${readable(row.user ?? row.container ?? "an unknown peer", 60)}, attached ${since}; ${count(row.deliveries)} deliveries, ${rate(row.rate)}/s.`;
}

function nameOf(row) {
  return `Link ${row.id}: ${row.role}${row.address ? ` at ${readable(row.address, 60)}` : ""}`;
}

function closeLink(row) {
  const reason = el("input", { autocomplete: "off", maxlength: "200" });
  confirmWrite({
    title: `Close ${nameOf(row)}`,
    about: ["The peer gets `amqp:link:detach-forced` with the reason; its connection stays. Deliveries under way end as if the peer had been lost."],
    verb: "Close the link", expect: { connection: row.connection, role: row.role, address: row.address, name: row.name },
    fields: [field("reason", "reason, which the peer gets", reason, { read: (it) => reasonOf(it.value) })],
    request: async ({ reason: text }) => ({ path: `/api/links/${row.id}/close`, body: { reason: text } }),
  });
}
