// One connection: whose it is, what it carries, its links; it can be closed, and its frames traced.

import { confirmWrite, field, writeButton } from "./confirm.js";
import { el, readable } from "./dom.js";
import { age, count, rate } from "./format.js";
import { entityPage, unchanged } from "./entity_page.js";
import { table } from "./lists.js";
import { observer } from "./observer.js";
import { link, parameter } from "./query.js";

const MAX_TRACE_S = 600;
const LINKS = ["role", "address", "credit", "waits_for", "waiting_since", "unsettled", "rate", "deliveries", "rejected", "released", "last_at"];

export function show(context) {
  const id = parameter("id") ?? "";
  let shown;
  const close = writeButton("Close the connection \u2026", null, () => closeConnection(shown));
  const trace = writeButton("Trace the frames \u2026", null, () => traceConnection(shown));
  const links = table("links", "Links", { ...context, fixed: () => [`connection=${id}`], sort: "-rate", columns: LINKS, main: "address" });
  return entityPage(context, {
    things: "connections", wanted: id, tables: [links], command: ["explain", "client", id],
    trail: [el("a", { href: link("/clients", { by: "connection" }), text: "Connections" }), " \u203a ", el("a", { href: link("/node", { name: id.split("/")[0] }), text: readable(id.split("/")[0]) })],
    title: (row) => nameOf(row),
    told: (row) => `${row.role || "peer"} at ${row.node}, from ${readable(row.remote_address ?? "an unknown place")}; open ${row.opened_at ? `for ${age(row.opened_at, observer.now)}` : "since before the observer started"}; ${count(row.links)} links, in ${rate(row.in_rate)}/s, out ${rate(row.out_rate)}/s.`,
    links: { node: (row) => link("/node", { name: row.node }), user: (row) => link("/clients", { by: "connection", filter: `user=${row.user}` }) },
    gone: "This connection is not open now: it ended, or the node started again, which numbers connections anew.",
    actions: [close.element, trace.element],
    onRow: (row) => {
      shown = row;
      const why = unchanged(row);
      close.allow(why);
      trace.allow(why === null ? null : "");
    },
  });
}

function nameOf(row) {
  return `Connection ${row.id}: ${readable(row.container ?? "no container-id", 60)}${row.user ? ` of ${readable(row.user, 40)}` : ""}`;
}

function expected({ user, container, remote_address }) {
  return { user, container, remote_address };
}

function closeConnection(row) {
  const reason = el("input", { autocomplete: "off", maxlength: "200" });
  confirmWrite({
    title: `Close ${nameOf(row)}`,
    about: [`${count(row.links)} links of ${row.user ? readable(row.user, 40) : row.role} end. The peer gets \`amqp:connection:forced\` with the reason; most clients connect again.`, "Deliveries under way end as if the peer had been lost: nothing accepted is lost."],
    verb: "Close the connection", expect: expected(row),
    fields: [field("reason", "reason, which the peer gets", reason, { read: (it) => reasonOf(it.value) })],
    request: async ({ reason: text }) => ({ path: `/api/connections/${row.id}/close`, body: { reason: text } }),
  });
}

function traceConnection(row) {
  const seconds = el("input", { type: "number", min: "1", max: String(MAX_TRACE_S), value: "30" });
  confirmWrite({
    title: `Trace the frames of ${nameOf(row)}`,
    about: ["The node writes the frames of this connection to a file of its own, without bodies of messages, and stops by itself. The result names the file."],
    verb: "Trace", expect: expected(row),
    fields: [field("seconds", `seconds, 1 to ${MAX_TRACE_S}`, seconds, { read: (it) => wholeOf(it.value, 1, MAX_TRACE_S) })],
    request: async ({ seconds: time }) => ({ path: `/api/connections/${row.id}/trace`, body: { seconds: time } }),
  });
}

/** Return the reason that a user wrote. */
export function reasonOf(text) {
  if (!text.trim()) throw new Error("Give a reason: the peer and the audit entry have it");
  return text.trim();
}

/** Return the number that a user wrote. */
export function wholeOf(text, least, most) {
  const number = Number(text);
  if (!Number.isInteger(number) || number < least || number > most || text.trim() === "") throw new Error(`${text.trim() === "" ? "Nothing" : readable(text, 20)} is not valid: expected a whole number from ${least} to ${most}`);
  return number;
}
