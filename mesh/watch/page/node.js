// One node: whether it runs, since when, what it carries, its last events; the level of its log can be changed.

import { confirmWrite, field, writeButton } from "./confirm.js";
import { el } from "./dom.js";
import { age, bytes, count, duration, rate } from "./format.js";
import { entityPage, unchanged } from "./entity_page.js";
import { EventList } from "./event_list.js";
import { table } from "./lists.js";
import { observer } from "./observer.js";
import { link, parameter } from "./query.js";

const LEVELS = ["debug", "info", "warning", "error"];
const LAST_EVENTS = 10;

export function show(context) {
  const name = parameter("name") ?? "";
  let shown;
  const level = writeButton("Change the log level \u2026", null, () => changeLevel(shown));
  const events = el("div");
  const path = () => `/api/events?node=${encodeURIComponent(name)}&limit=${LAST_EVENTS}`;
  const fixed = () => [`node=${name}`];
  const tables = [
    table("neighbors", "Neighbors", { ...context, prefix: "n.", fixed, columns: ["neighbor", "cost", "since"], main: "neighbor" }),
    table("connections", "Connections", { ...context, prefix: "c.", fixed, sort: "-in_rate" }),
  ];
  return entityPage(context, {
    things: "nodes", field: "name", wanted: name, tables,
    trail: [el("a", { href: "/nodes", text: "Nodes" })],
    title: (row) => `${row.role || "node"} ${row.name}`,
    told,
    gone: "No node has this name: neither the topology nor any host that answers has it.",
    actions: [level.element],
    parts: [el("section", {}, el("div", { class: "above" }, el("h2", { text: "Last events" }), el("a", { href: link("/events", { node: name }), text: "All events of the node" })), events)],
    onRow: (row) => {
      shown = row;
      if (row && !events.children.length) events.append(new EventList(context, { path }).element);
      level.allow(unchanged(row?.state === "running" ? row : undefined));
    },
  });
}

function told(row) {
  if (row.state === "running") return `Runs for ${age(row.started_at, observer.now)}; ${count(row.clients)} clients, in ${rate(row.ingress_rate ?? row.in_rate)}/s, out ${rate(row.egress_rate ?? row.out_rate)}/s${row.resident_bytes === null ? "" : `; ${bytes(row.resident_bytes)} of memory`}${row.waiting_producers ? `; ${count(row.waiting_producers)} producers wait` : ""}.`;
  if (row.state === "unknown") return `Unknown: nobody can tell of this node now, as ${row.unknown_because}.${row.age_s === null ? "" : ` Below is the last state, of ${duration(Math.floor(row.age_s))} ago.`} Traffic may go on: \`amqpmesh status\` on the node's host says more.`;
  const ago = `for ${duration(Math.floor(row.age_s))}`;
  if (row.state === "lost") return `Lost ${ago}${row.cause ? `: ${row.cause}` : ": the process is gone without a record of its end"}. The events below say more; \`amqpmesh status\` says whether the node is started again.`;
  if (row.state === "silent") return `Silent ${ago}: the process is there and does not run. Is the host short of CPU or memory, or the process stopped?`;
  return `${row.state} ${ago}${row.cause ? `: ${row.cause}` : ""}.`;
}

function changeLevel(row) {
  const level = el("select", {}, ...LEVELS.map((each) => el("option", { text: each, value: each, selected: each === "info" })));
  const module = el("input", { autocomplete: "off", spellcheck: "false", placeholder: "router.routes" });
  confirmWrite({
    title: `Change the log level of ${row.name}`,
    about: ["The level is changed at once, and lasts until the node starts again."],
    verb: "Change the level", expect: { name: row.name },
    fields: [field("level", "level", level), field("module", "module (empty: all modules)", module)],
    request: async (values) => ({ path: `/api/nodes/${row.id}/log-level`, body: { module: values.module.trim(), level: values.level } }),
  });
}
