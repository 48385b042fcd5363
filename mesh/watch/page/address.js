// One address: who sends, who receives, who waits for what, what is stored, and its rates.

import { el, readable, setAttribute, setText } from "./dom.js";
import { age, bytes, clock, count, duration, rate } from "./format.js";
import { table } from "./lists.js";
import { MissingLines } from "./missing.js";
import { observer, poll } from "./observer.js";
import { encoded, link, parameter } from "./query.js";
import { RateChart } from "./rate_chart.js";

const EVERY_MS = 1000;
const FACTS = [
  ["producers", count], ["consumers", count], ["waiting_producers", count], ["depth", count],
  ["in_rate", rate], ["out_rate", rate], ["in_deliveries", count], ["out_deliveries", count], ["in_bytes", bytes],
];
const PRODUCERS = ["node", "user", "container", "credit", "waits_for", "waiting_since", "starved_s", "rate", "deliveries", "rejected", "released", "last_at"];
const CONSUMERS = ["node", "user", "container", "credit", "unsettled", "missed", "delayed_1s", "rate", "deliveries", "released", "last_at"];
const QUEUES = ["node", "subscriber", "depth", "depth_bytes", "acquired", "oldest_s", "enqueued", "dequeued", "expired", "dead_lettered", "removed"];
const REASONS = {
  no_taker: "No consumer takes messages from this address, at any router. Start a consumer, or declare `fallback`.",
  takers: "The consumers have no credit left: they are slower than the producers. Look at their unsettled deliveries and delays.",
  full_queue: "The queue is full. Start consumers, or raise the limit of the address.",
  disk: "The disk of the broker is full.",
  memory: "The broker is short of memory.",
};

export function show(context) {
  const address = parameter("address") ?? "";
  const { root, signal, model } = context;
  const pattern = el("a");
  const state = el("p", { class: "summary", role: "status", text: "Reading \u2026" });
  const facts = new Map(FACTS.map(([name]) => [name, el("dd", { class: "num" })]));
  const meanings = new Map(model.entities.addresses.map((each) => [each.name, each]));
  const chart = new RateChart(signal);
  const waits = el("ul", { class: "waits" });
  const lacking = new MissingLines("The numbers of this page are without those of these nodes.");
  const is = `address=${address}`;
  const part = (title, things, prefix, filters, options) => table(things, title, { ...context, prefix, fixed: () => [is, ...filters], ...options });
  const tables = [
    part("Producers", "links", "p.", ["role=producer"], { sort: "-starved_s", main: "container", columns: PRODUCERS }),
    part("Consumers", "links", "c.", ["role=consumer"], { sort: "-rate", main: "container", columns: CONSUMERS }),
    part("Queues and subscriptions", "queues", "q.", [], { sort: "-depth", main: "subscriber", columns: QUEUES }),
  ];
  const path = `/api/addresses?filter=${encoded(is)}`;
  root.append(
    el("p", { class: "trail" }, el("a", { href: "/addresses", text: "Declared addresses" }), " \u203a ", pattern),
    el("h1", { text: address === "" ? "(no address)" : readable(address) }),
    state, lacking.element,
    el("dl", { class: "facts" }, ...FACTS.map(([name]) => el("div", {}, el("dt", { text: name.replaceAll("_", " "), title: meanings.get(name).meaning }), facts.get(name)))),
    chart.element,
    el("section", { "aria-labelledby": "waits-title" }, el("h2", { id: "waits-title", text: "Who waits, and why" }), waits),
    ...tables.map((each) => each.element),
    el("p", {}, el("a", { href: link("/links", { filter: is }) ?? "/links", text: "All links of the address, also within the mesh" })),
  );
  const onPage = ({ items: [row], missing }) => {
    lacking.show(missing);
    if (!row) {
      setText(state, `Nobody${missing.length ? " at the hosts that answer" : ""} has a link to this address now, and no queue${missing.length ? " there" : ""} has its name.`);
      chart.add(observer.now, null, null);
      return;
    }
    setText(state, `${row.treatment ?? "address"}${row.pattern ? "" : ": not declared in the topology"}`);
    setText(pattern, row.pattern === null ? "not declared" : readable(row.pattern));
    setAttribute(pattern, "href", row.pattern === null ? null : link("/addresses", { pattern: row.pattern }));
    for (const [name, format] of FACTS) setText(facts.get(name), format(row[name]));
    facts.get("waiting_producers").className = row.waiting_producers ? "num alarm" : "num";
    chart.add(observer.now, row.in_rate, row.out_rate);
  };
  poll(() => path, EVERY_MS, onPage, (error) => setText(state, error.message), signal);
  const asked = `/api/links?filter=${encoded(is)}&filter=waits_for!=&fields=role,node,user,waits_for,starved_s,waiting_since&sort=-starved_s&limit=1000`;
  poll(() => asked, 2 * EVERY_MS, (page) => showWaits(waits, page), () => {}, signal);
  return { sources: () => path, command: () => (address.startsWith("-") ? null : ["explain", "address", address]), changed: () => tables.forEach((each) => each.changed()), refresh: () => tables.forEach((each) => each.refresh()), key: address };
}

/** Say since when the longest of the waits goes on, or, if nobody saw its begin, for how long there was no credit. */
function sinceText(links) {
  const since = links.map((each) => each.waiting_since).filter((each) => each !== null);
  if (since.length) return `Since ${clock(Math.min(...since))}, for ${age(Math.min(...since), observer.now)}.`;
  return `Without credit so far: up to ${duration(links[0].starved_s)}.`;
}

function showWaits(list, page) {
  const byCause = Map.groupBy(page.items, (each) => each.waits_for);
  const lines = [...byCause].map(([cause, links]) => {
    const roles = [...Map.groupBy(links, (each) => each.role)].map(([role, each]) => `${count(each.length)} ${role}${each.length === 1 ? "" : "s"}`);
    const nodes = [...new Set(links.map((each) => each.node))];
    const at = `at ${nodes.slice(0, 4).join(", ")}${nodes.length > 4 ? ` and ${nodes.length - 4} more` : ""}`;
    return `${roles.join(", ")} ${at}: ${REASONS[cause] ?? cause} ${sinceText(links)}`;
  });
  if (!lines.length) lines.push(page.missing.length ? "Nobody at the hosts that answer." : "Nobody: every producer has credit.");
  while (list.children.length > lines.length) list.lastChild.remove();
  while (list.children.length < lines.length) list.append(el("li"));
  lines.forEach((line, place) => setText(list.children[place], line));
  list.className = byCause.size ? "waits alarm" : "waits";
}
