// Reports of drills and of link logs in this mesh's folder, and the commands that make them.

import { el, readable, setText } from "./dom.js";
import { count } from "./format.js";
import { get } from "./observer.js";

export function show(context) {
  const path = "/console/reports";
  const state = el("p", { class: "summary", role: "status", text: "Reading \u2026" });
  const body = el("tbody");
  const table = el("table", { class: "events", "aria-busy": "true", hidden: true }, el("caption", { class: "heard", text: "Reports, newest first" }), el("thead", {}, el("tr", {}, ...["made", "kind", "verdict", "report", "what it says"].map((name) => el("th", { scope: "col", class: "plain", text: name })))), body);
  const commands = el("dl", { class: "commands" });
  context.root.append(
    el("h1", { text: "Drills and reports" }), state,
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Reports, newest first" }, table),
    el("h2", { text: "Make another" }), commands,
  );
  get(path, context.signal).then(
    ({ reports, folders, left_out: leftOut, commands: told }) => {
      setText(state, reports.length ? `${count(reports.length)} report${reports.length === 1 ? "" : "s"} in ${folders.map(readable).join(" and ")}${leftOut ? `; ${count(leftOut)} older ones are left out` : ""}. A report opens without access to this console.` : `No report yet in ${folders.map(readable).join(" or ")}.`);
      table.hidden = !reports.length;
      body.append(...reports.map(rowOf));
      commands.append(...told.flatMap(({ meaning, command }) => [el("dt", { text: meaning }), el("dd", {}, el("code", { text: command }))]));
      table.setAttribute("aria-busy", "false");
    },
    (error) => {
      if (context.signal.aborted) return;
      setText(state, `The reports cannot be read: ${error.message}`);
      table.setAttribute("aria-busy", "false");
    },
  );
  return { sources: () => path, changed() {}, refresh() {} };
}

function rowOf({ made, kind, verdict, name, says, href, folder }) {
  const report = href ? el("a", { href, target: "_blank", rel: "noopener", text: readable(name) }) : readable(name);
  return el(
    "tr", {},
    el("td", { class: "time", text: readable(made) }), el("td", { text: kind }),
    el("td", { class: verdict === "PASS" ? "state running" : verdict === null ? null : "alarm", text: verdict === null ? "\u2013" : readable(verdict) }),
    el("td", { title: readable(folder, 300) }, report), el("td", { class: "said", text: readable(says, 300) }),
  );
}
