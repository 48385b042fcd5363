// The pages that are tables: addresses, clients, links, queues and nodes.

import { el, readable, setText } from "./dom.js";
import { link, parameter } from "./query.js";
import { LiveTable } from "./table.js";

const COLUMNS = {
  patterns: ["pattern", "type", "addresses", "producers", "consumers", "waiting_producers", "starved_s", "in_rate", "out_rate", "in_deliveries", "out_deliveries"],
  addresses: ["address", "pattern", "treatment", "producers", "consumers", "waiting_producers", "waiting_since", "depth", "in_rate", "out_rate", "in_deliveries", "out_deliveries"],
  links: ["node", "role", "address", "user", "container", "credit", "waits_for", "waiting_since", "unsettled", "rate", "deliveries", "last_at"],
  queues: ["node", "address", "subscriber", "depth", "depth_bytes", "acquired", "oldest_s", "enqueued", "dequeued", "expired", "dead_lettered"],
  nodes: ["name", "role", "state", "age_s", "cause", "started_at", "clients", "links", "waiting_producers", "in_rate", "out_rate", "ingress_deliveries", "egress_deliveries", "version"],
  neighbors: ["node", "neighbor", "cost", "since"],
  paths: ["node", "egress", "path", "cost", "since"],
  users: ["user", "connections", "links", "in_rate", "out_rate", "in_deliveries", "out_deliveries", "in_last_at", "out_last_at"],
  clients: ["user", "container", "connections", "links", "waiting_producers", "in_rate", "out_rate", "in_deliveries", "out_deliveries", "nodes"],
  connections: ["node", "user", "container", "remote_address", "opened_at", "links", "in_rate", "out_rate", "in_deliveries", "out_deliveries"],
};
const MAIN = {
  patterns: "pattern", addresses: "address", links: "address", queues: "address", nodes: "name", neighbors: "node",
  paths: "node", users: "user", clients: "container", connections: "container",
};

export function table(things, title, { model, signal, ...options }) {
  return new LiveTable({ things, title, fields: model.entities[things], columns: COLUMNS[things], main: MAIN[things], signal, ...options });
}

/** A page that is one table, or one of several that the parameter `name` chooses. */
function tabs(name, choices) {
  return (context) => {
    const [chosen, { title, things, options }] = Object.entries(choices).find(([key]) => key === (parameter(name) ?? Object.keys(choices)[0])) ?? Object.entries(choices)[0];
    const shown = table(things, title, { ...context, ...options });
    const links = Object.entries(choices).map(([key, each]) => el("a", { href: link(location.pathname, { [name]: key }), "aria-current": key === chosen ? "page" : null, text: each.title }));
    context.root.append(el("h1", { class: "heard", text: document.title.split(" - ")[0] }));
    if (links.length > 1) context.root.append(el("nav", { class: "tabs", "aria-label": "Views" }, ...links));
    context.root.append(shown.element);
    return { sources: () => shown.listPath, changed: () => shown.changed(), refresh: () => shown.refresh(), key: chosen };
  };
}

export const clients = tabs("by", {
  group: { title: "By user and container", things: "clients", options: { path: "/console/clients", sort: "-connections" } },
  user: { title: "By user", things: "users", options: { sort: "-connections" } },
  connection: { title: "Connections", things: "connections", options: { fixed: () => ["role=client"] } },
  other: { title: "Between nodes", things: "connections", options: { fixed: () => ["role!=client"] } },
});

export const links = tabs("show", { links: { title: "Links", things: "links", options: { sort: "-rate" } } });

export const queues = tabs("show", { queues: { title: "Queues and subscriptions", things: "queues", options: { sort: "-depth" } } });

export const nodes = tabs("show", {
  nodes: { title: "Nodes", things: "nodes", options: {} },
  neighbors: { title: "Neighbors", things: "neighbors", options: {} },
  paths: { title: "Paths", things: "paths", options: {} },
});

export function addresses(context) {
  const pattern = parameter("pattern");
  context.root.append(el("h1", { class: "heard", text: "Addresses" }));
  if (pattern === null) {
    const declared = table("patterns", "Declared addresses and patterns", { ...context, sort: "-in_rate" });
    const used = table("addresses", "All addresses in use", { ...context, prefix: "a.", sort: "-in_rate" });
    context.root.append(declared.element, used.element);
    return {
      sources: () => declared.listPath,
      changed: () => (declared.changed(), used.changed()),
      refresh() {},
    };
  }
  const name = el("span", { class: "name" });
  setText(name, readable(pattern));
  const used = table("addresses", "Addresses in use", { ...context, fixed: () => [`pattern=${parameter("pattern") ?? ""}`], sort: "-in_rate" });
  context.root.append(el("p", { class: "trail" }, el("a", { href: "/addresses", text: "Declared addresses" }), " \u203a ", name), used.element);
  return { sources: () => used.listPath, changed: () => used.changed(), refresh() {}, key: pattern };
}
