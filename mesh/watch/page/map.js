// The first page: what is wrong, and the map. The observer computes the places; this draws them.

import { arrange, el, readable, setAttribute, setText, svg } from "./dom.js";
import { age, count, duration, moment, rate } from "./format.js";
import { MissingLines } from "./missing.js";
import { observer, poll } from "./observer.js";
import { link } from "./query.js";

const EVERY_MS = 1000;
const MARGIN = 6;
const NAME_CHARS = 17;
const SYMBOLS = { lost: "\u2715", silent: "\u25cc", missing: "\u2260", waiting: "\u2016", old: "\u25f4", unknown: "?" };

export function show({ root, signal }) {
  const summary = el("p", { class: "summary", role: "status", text: "Reading \u2026" });
  const list = el("ol", { class: "troubles" });
  const lacking = new MissingLines("What is wrong there is not known. Boxes of these nodes have the last state that was told.");
  const lines = svg("g", { class: "lines" });
  const boxes = svg("g", { class: "boxes" });
  const drawing = svg("svg", { class: "map", role: "group", "aria-label": "Map of the mesh" }, lines, boxes);
  root.append(
    el("section", { "aria-labelledby": "wrong" }, el("h1", { id: "wrong", text: "What is wrong" }), summary, lacking.element, list),
    el(
      "section", {},
      el("h2", { id: "map-title", text: "Map" }),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": "map-title" }, drawing),
      legend(),
    ),
  );
  const troubles = new Map();
  const drawn = new Map();
  const onMap = (map) => {
    lacking.show(map.missing);
    showTroubles(map, summary, list, troubles);
    setAttribute(drawing, "viewBox", `${-MARGIN} ${-MARGIN} ${map.width + 2 * MARGIN} ${map.height + 2 * MARGIN}`);
    setAttribute(drawing, "width", map.width + 2 * MARGIN);
    setAttribute(drawing, "height", map.height + 2 * MARGIN);
    arrange(lines, map.lines.map((line) => drawLine(line, drawn)));
    arrange(boxes, map.boxes.map((box) => drawBox(box, drawn)));
    const kept = new Set([...map.lines, ...map.boxes].map((each) => each.id));
    for (const id of drawn.keys()) if (!kept.has(id)) drawn.delete(id);
  };
  poll(() => "/console/map", EVERY_MS, onMap, () => {}, signal);
  return { sources: () => "/console/map", changed() {}, refresh() {} };
}

function showTroubles(map, summary, list, known) {
  const some = map.troubles.length;
  setText(summary, some ? `${count(some + map.left_out)} thing${some + map.left_out === 1 ? "" : "s"} to look at, worst first.` : `Nothing${map.missing.length ? " where anybody can tell" : ""}: all nodes run, all connections are up, no producer waits, no message is older than a minute.`);
  summary.className = some || map.missing.length ? "summary" : "summary fine";
  const items = map.troubles.map((each) => {
    let item = known.get(each.id);
    if (!item) {
      item = {
        since: el("span", { class: "since" }),
        what: el("a", {}),
        fix: el("span", { class: "fix" }),
      };
      item.element = el("li", { class: each.kind }, el("span", { class: "sign", "aria-hidden": "true", text: SYMBOLS[each.kind] ?? "!" }), el("span", { class: "what" }, item.what, item.fix), item.since);
      known.set(each.id, item);
    }
    setText(item.what, readable(each.text, 600));
    setAttribute(item.what, "href", link(each.view, each.parameters) ?? each.view);
    if (item.said !== each.fix) item.fix.replaceChildren(...marked((item.said = each.fix)));
    setText(item.since, each.since === null ? "" : `for ${age(each.since, observer.now)}`);
    setAttribute(item.since, "title", each.since === null ? null : `since ${moment(each.since)}`);
    return item.element;
  });
  if (map.left_out) {
    const more = known.get("") ?? { element: el("li", { class: "more" }) };
    known.set("", more);
    setText(more.element, `${count(map.left_out)} more of these kinds are left out here.`);
    items.push(more.element);
  }
  const kept = new Set(items);
  for (const [id, item] of known) if (!kept.has(item.element)) known.delete(id);
  arrange(list, items);
}

/** Return the parts of a sentence, with what stands between backticks as code. */
function marked(sentence) {
  return sentence.split("`").map((part, place) => (place % 2 ? el("code", { text: part }) : part));
}

function drawLine(line, drawn) {
  let found = drawn.get(line.id);
  if (!found) {
    found = { path: svg("path"), cost: svg("text", { class: "cost", "text-anchor": "middle" }), title: svg("title") };
    found.element = svg("g", {}, found.path, found.cost, found.title);
    drawn.set(line.id, found);
  }
  const { x1, y1, x2, y2, bend } = line;
  const middle = (x1 + x2) / 2;
  const d = bend ? `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 + bend} ${y2} ${x2} ${y2}` : `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
  setAttribute(found.path, "d", d);
  setAttribute(found.element, "class", `line ${line.state}`);
  const words = { up: "", missing: "missing", unknown: "?", spare: "spare" }[line.state];
  setText(found.cost, [line.cost === 1 ? "" : `${line.cost}`, words].filter(Boolean).join(" "));
  setAttribute(found.cost, "x", bend ? x1 + bend * 0.75 : middle);
  setAttribute(found.cost, "y", (y1 + y2) / 2 - 4);
  setText(found.title, `${line.from} \u2013 ${line.to}: ${line.state}, cost ${line.cost}`);
  return found.element;
}

function drawBox(box, drawn) {
  let found = drawn.get(box.id);
  if (!found) {
    const text = (name, anchor = "start") => svg("text", { class: name, "text-anchor": anchor });
    found = { rect: svg("rect", { rx: 2 }), name: text("name"), side: text("side", "end"), rates: text("rates"), title: svg("title") };
    found.element = svg("a", {}, found.rect, found.name, found.side, found.rates, found.title);
    drawn.set(box.id, found);
  }
  const { x, y, width, height } = box;
  const words = describe(box);
  setAttribute(found.element, "class", `box ${box.kind} ${box.state}`);
  setAttribute(found.element, "href", words.href);
  setAttribute(found.element, "aria-label", words.all);
  for (const [name, value] of Object.entries({ x, y, width, height })) setAttribute(found.rect, name, value);
  place(found.name, x + 8, y + 15, words.name);
  place(found.side, x + width - 8, y + 15, words.side);
  place(found.rates, x + 8, y + 31, words.rates);
  setText(found.title, words.all);
  return found.element;
}

function place(text, x, y, content) {
  setAttribute(text, "x", x);
  setAttribute(text, "y", y);
  setText(text, content);
}

function describe(box) {
  if (box.kind === "more") {
    const name = `${count(box.count)} more nodes`;
    return { name, side: "", rates: "", all: name, href: "/nodes" };
  }
  if (box.kind === "clients") {
    const clients = `${count(box.count)} client${box.count === 1 ? "" : "s"}`;
    const of = box.user === undefined ? `${count(box.users)} ${box.is_rest ? "more " : ""}users` : readable(box.user, NAME_CHARS - 6);
    const href = box.user === undefined ? link("/clients", { by: "connection", filter: `node=${box.node}` }) : link("/clients", { by: "connection", filter: `user=${box.user}` });
    return { name: `${clients} of ${of}`, side: "", rates: "", all: `${clients} of ${of} at ${box.node}`, href: href ?? "/clients" };
  }
  const name = readable(box.name, NAME_CHARS);
  const href = box.is_existing ? link("/nodes", { filter: `name=${box.name}` }) : link("/node", { name: box.name });
  if (box.state === "unknown") {
    if (box.is_existing) return { name, side: "existing", rates: "", all: `${box.kind} ${name}: existing broker`, href };
    const heard = typeof box.age_s === "number" ? `${duration(Math.floor(box.age_s))} ago` : "";
    const told = `${heard && `last heard ${heard}, `}${readable(box.unknown_because ?? "nobody has told of it", 200)}`;
    return { name, side: "unknown", rates: box.kind === "broker" ? "" : heard && `heard ${heard}`, all: `${box.kind} ${name}: unknown, ${told}`, href };
  }
  const isStale = box.state !== "running";
  const asOf = isStale ? `${box.state} ${duration(Math.floor(box.age_s))}` : null;
  if (box.kind === "broker") {
    const depth = box.depth === undefined ? "" : `${count(box.depth)} msg`;
    return { name, side: asOf ?? depth, rates: "", all: `broker ${name}: ${asOf ?? `running ${depth}`}`, href };
  }
  const clients = `${count(box.clients)} client${box.clients === 1 ? "" : "s"}`;
  const rates = `${rate(box.in_rate)} in  ${rate(box.out_rate)} out /s`;
  return { name, side: asOf ?? (box.waiting_producers ? `${count(box.waiting_producers)} wait` : clients), rates, all: `${box.kind} ${name}: ${asOf ?? "running"}, ${clients}, ${rates}`, href };
}

function legend() {
  const words = [["up", "connected, with its cost if that is not 1"], ["missing", "missing"], ["unknown", "unknown: nobody can tell"]];
  return el(
    "p", { class: "legend" },
    ...words.map(([state, text]) => el("span", {}, svg("svg", { width: 28, height: 8, "aria-hidden": "true" }, svg("g", { class: `line ${state}` }, svg("path", { d: "M0 4H28" }))), ` ${text}`)),
  );
}
