// Events of this host's nodes and audit entries, newest first, with filters.

import { AuditList } from "./audit_list.js";
import { el, setText } from "./dom.js";
import { EventList, knownEvents } from "./event_list.js";
import { count } from "./format.js";
import { change, link, parameter, queryString } from "./query.js";

const LIMIT = 100;
const TYPING_MS = 400;
const LEVELS = ["", "debug", "info", "warning", "error"];
const TABS = { events: "Events", audit: "Audit" };
const FILTERS = { events: ["node", "level", "event", "since", "until"], audit: ["who", "operation", "target", "outcome"] };

export function show(context) {
  const chosen = parameter("show") === "audit" ? "audit" : "events";
  const inputs = Object.fromEntries(FILTERS[chosen].map((name) => [name, inputOf(name)]));
  const known = el("p", { class: "summary", role: "status" });
  const next = el("button", { type: "button", text: "Older", hidden: true });
  const first = el("button", { type: "button", text: "Newest", on: { click: () => change({ after: null }) } });
  let page = {};
  next.addEventListener("click", () => change({ after: String(page.next) }));
  const path = () => `/api/${chosen}?${query(FILTERS[chosen])}`;
  const onPage = (answer) => {
    page = answer;
    next.hidden = page.next === null || page.next === undefined;
  };
  const List = chosen === "audit" ? AuditList : EventList;
  const list = new List(context, { path, onPage, emptyText: "None matches." });
  const tabs = Object.entries(TABS).map(([name, title]) => el("a", { href: link("/events", { show: name }), "aria-current": name === chosen ? "page" : null, text: title }));
  context.root.append(
    el("h1", { class: "heard", text: TABS[chosen] }),
    el("nav", { class: "tabs", "aria-label": "Views" }, ...tabs),
    el("form", { class: "filters", role: "search", on: { submit: (event) => event.preventDefault() } }, ...Object.values(inputs).map((each) => each.element)),
    known,
    list.element,
    el("div", { class: "below" }, first, next),
  );
  if (chosen === "events") fillNames(context.signal);
  const changed = () => {
    first.hidden = parameter("after") === null;
    for (const [name, { input }] of Object.entries(inputs)) if (document.activeElement !== input) input.value = parameter(name) ?? "";
    if (chosen === "events") tell(known, context.signal);
    list.changed();
  };
  changed();
  return { sources: path, command: () => commandOf(chosen), changed, refresh() {} };
}

function query(names) {
  const pairs = [...names, "after"].map((name) => [name, parameter(name)]).filter(([, value]) => value !== null && value !== "");
  return queryString([["limit", String(LIMIT)], ...pairs]);
}

function commandOf(chosen) {
  const event = parameter("event");
  return chosen === "events" && event !== null && /^[a-z_]+$/.test(event) ? ["explain", event] : null;
}

/** What the event of the filter means. */
async function tell(place, signal) {
  const name = parameter("event");
  const found = name === null ? null : (await knownEvents(signal))[name];
  setText(place, found ? `${name} (${found.level}, of ${found.origin.toLowerCase()}): ${found.meaning || "its name says all."}` : "");
}

async function fillNames(signal) {
  const names = Object.keys(await knownEvents(signal)).sort();
  document.getElementById("events-event")?.after(el("datalist", { id: "event-names" }, ...names.map((name) => el("option", { value: name }))));
}

function inputOf(name) {
  const id = `events-${name}`;
  const common = { id, class: name === "node" || name === "who" ? "filter" : "narrow", autocomplete: "off", spellcheck: "false" };
  const input = name === "level"
    ? el("select", { id }, ...LEVELS.map((each) => el("option", { value: each, text: each === "" ? "any" : `${each} and worse` })))
    : el("input", { ...common, list: name === "event" ? "event-names" : null, placeholder: name === "since" || name === "until" ? "2026-01-31T03:00Z" : null });
  input.value = parameter(name) ?? "";
  let typing;
  input.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => change({ [name]: input.value.trim() || null, after: null }, { replace: true }), TYPING_MS);
  });
  return { input, element: el("span", {}, el("label", { for: id, text: name }), input) };
}
