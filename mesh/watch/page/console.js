// The frame around all pages: which page the URL names, keys, help, and whether the observer answers.

import * as address from "./address.js";
import * as connection from "./connection.js";
import { el, hasHidden, setText } from "./dom.js";
import * as events from "./events.js";
import { clock, duration } from "./format.js";
import { watchNodes } from "./health.js";
import { help } from "./help.js";
import * as linkPage from "./link_page.js";
import * as lists from "./lists.js";
import * as map from "./map.js";
import { readRights } from "./me.js";
import * as neighbor from "./neighbor.js";
import * as node from "./node.js";
import { get, observer } from "./observer.js";
import * as queue from "./queue.js";
import * as reports from "./reports.js";

const VIEWS = {
  "/": map.show, "/addresses": lists.addresses, "/address": address.show, "/clients": lists.clients,
  "/links": lists.links, "/queues": lists.queues, "/nodes": lists.nodes, "/events": events.show, "/reports": reports.show,
  "/queue": queue.show, "/connection": connection.show, "/link": linkPage.show, "/node": node.show, "/neighbor": neighbor.show,
};
// A change of any other parameter is told to the page that is open.
const OWN = ["by", "show", "pattern", "address", "id", "name", "subscriber"];
const RETRY_MS = 1000;
const main = document.getElementById("main");
let model = null;
let shown = null;

/** Open the page of the URL, or tell the open page that the parameters of the URL changed. */
function route() {
  const page = model.pages.find((each) => each.path === location.pathname) ?? model.pages[0];
  const key = `${page.path} ${[...OWN, ...(page.path === "/queue" ? ["node"] : [])].map((name) => new URLSearchParams(location.search).get(name)).join("\n")}`;
  if (shown?.key === key) shown.view.changed();
  else {
    shown?.controller.abort();
    const controller = new AbortController();
    document.title = `${page.title} - ${model.mesh}`;
    document.querySelectorAll("dialog[open]").forEach((each) => each.close());
    for (const each of document.querySelectorAll("#pages a"))
      if (each.getAttribute("href") === (page.parent ?? page.path)) each.setAttribute("aria-current", "page");
      else each.removeAttribute("aria-current");
    main.replaceChildren();
    main.removeAttribute("data-gone");
    shown = { key, page, controller, view: VIEWS[page.path]({ root: main, signal: controller.signal, model }) };
    scrollTo(0, 0);
  }
  showSources();
}

function navigate(url) {
  history.pushState(null, "", url);
  route();
}

// The footer: the same from a shell.
const curl = el("code", { id: "curl" });
const command = el("code", { id: "command" });

function showSources() {
  const path = shown.view.sources();
  const token = model.token_file === null ? "" : ` -H "Authorization: Bearer $(cat ${quoted(model.token_file)})"`;
  setText(curl, `curl -s${token} '${location.origin}${path}'`);
  setText(command, commandOf(shown.view.command?.()));
}

/** Return the command of the page; one with a name that nobody can read, and so nobody should paste, is not shown. */
function commandOf(words) {
  if (!words || words.some((each) => each === "" || hasHidden(each))) return shown.page.command;
  return ["amqpmesh", ...words.map(quotedIfNeeded), model.topology].filter(Boolean).join(" ");
}

function quotedIfNeeded(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : quoted(text);
}

function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function source(label, code) {
  const button = el("button", { type: "button", text: "Copy", "aria-label": `Copy the line for ${label}` });
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return el("div", { class: "source" }, el("span", { class: "label", text: label }), code, button);
}

// The banner: the observer does not answer.
const banner = document.getElementById("banner");

function showBanner() {
  const { state, heardAt } = observer;
  document.body.classList.toggle("gone", state !== "ok");
  banner.hidden = state === "ok";
  if (state === "login") setText(banner, "The login has ended. Log in at /login, or run `amqpmesh console` on the host of the mesh, and open the URL. Below is the last state.");
  if (state === "gone") {
    const since = (Date.now() - heardAt) / 1000;
    setText(banner, `The observer has not answered since ${clock(heardAt / 1000)}, for ${duration(Math.floor(since))}. Below is the last state. The mesh may run well: \`amqpmesh status\` asks the nodes.`);
  }
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog[open]")) return;
  if (event.key === "/") {
    const field = document.querySelector("input.filter");
    if (!field) return;
    event.preventDefault();
    field.focus();
    field.select();
  } else if (event.key === "?") help(model);
  else if (event.key === "p") togglePause();
  else if (/^[1-9]$/.test(event.key)) document.querySelectorAll("#pages a")[Number(event.key) - 1]?.click();
}

const pause = document.getElementById("pause");

function togglePause() {
  observer.pause(!observer.isPaused);
  pause.setAttribute("aria-pressed", String(observer.isPaused));
  setText(pause, observer.isPaused ? "Resume" : "Pause");
}

function toggleTheme() {
  const root = document.documentElement;
  const isDark = (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  root.dataset.theme = isDark ? "light" : "dark";
  try {
    localStorage.setItem("amqpmesh theme", root.dataset.theme);
  } catch {
    // Without storage, the choice lasts as long as the page.
  }
  dispatchEvent(new Event("theme"));
}

async function begin() {
  for (;;) {
    try {
      model = await get("/console/model");
      break;
    } catch {
      await new Promise((done) => setTimeout(done, RETRY_MS));
    }
  }
  setText(document.getElementById("mesh"), model.mesh);
  const pages = model.pages.filter((each) => each.parent === null);
  document.getElementById("pages").append(...pages.map((each) => el("a", { href: each.path, text: each.title })));
  document.getElementById("sources").append(source("curl", curl), source("terminal", command));
  addEventListener("popstate", route);
  addEventListener("url", route);
  addEventListener("keydown", onKey);
  document.addEventListener("click", (event) => {
    const anchor = event.target.closest("a[href]");
    const href = anchor?.getAttribute("href");
    if (!href?.startsWith("/") || anchor.target || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    navigate(href);
  });
  pause.addEventListener("click", togglePause);
  document.getElementById("theme").addEventListener("click", toggleTheme);
  document.getElementById("help-open").addEventListener("click", () => help(model));
  await readRights(document.getElementById("me"));
  watchNodes(document.getElementById("health"), () => shown?.view.refresh());
  route();
}

observer.addEventListener("state", showBanner);
setInterval(showBanner, 1000);
begin();
