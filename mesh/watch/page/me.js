// Who is logged in, and what the topology lets this user do. The observer judges each request anyway: the pages use the
// rights only to say beforehand why something cannot be done.

import { el, readable, setText } from "./dom.js";
import { get } from "./observer.js";

const AGAIN_MS = 1000;
const EVERYTHING = "#";
const ANONYMOUS = "anonymous";
const MAX_PATTERN_CHARS = 1024;
const TITLES = { view: "see", browse: "read the messages of", manage: "change" };
let rights = { user: null, is_owner: false, view: [], browse: [], manage: [] };
let unread = "The rights of your login are not read yet.";

/**
 * Read the rights, and show in `place` who is logged in, with a button that logs out, or a link to the login. Rights that
 * the observer does not tell are asked for again and again.
 */
export async function readRights(place) {
  try {
    rights = await get("/api/me");
    unread = null;
  } catch (error) {
    unread = `The observer does not tell the rights of your login: ${error.message}.`;
    setTimeout(readRights, AGAIN_MS, place);
    return;
  }
  if (isNobody()) {
    place.replaceChildren(el("a", { href: "/login", target: "_self", text: "Log in" }));
    return;
  }
  const out = el("button", { type: "button", id: "log-out", text: "Log out", on: { click: () => logOut(out) } });
  place.replaceChildren(el("span", { class: "who", title: "Who is logged in", text: name() }), out);
}

function isNobody() {
  return !rights.is_owner && (rights.user === null || rights.user === ANONYMOUS);
}

function name() {
  if (unread) return "";
  return rights.is_owner ? "owner" : readable(rights.user ?? "anonymous", 24);
}

async function logOut(button) {
  try {
    await fetch("/logout", { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
    location.assign("/login");
  } catch {
    setText(button, "No answer: log out again");
  }
}

/** Return why the right `view`, `browse` or `manage` is missing for an address (null: for the whole mesh), or null. */
export function refusal(right, address = null) {
  if (unread) return unread;
  if (rights.is_owner) return null;
  if (isNobody() && right === "manage") return "A change needs a login: run `amqpmesh console` on the host of the mesh.";
  const held = right === "view" ? [...rights.view, ...rights.browse, ...rights.manage] : rights[right];
  const is = (pattern) => pattern === EVERYTHING || (address !== null && matches(pattern, address));
  if (held.some(is)) return null;
  const what = address === null ? "the mesh" : "this address";
  const fix = `\`${right}\` of the user in the topology ${address === null ? "has to contain `#`" : "does not contain the address"}`;
  return `${name()} may not ${TITLES[right]} ${what}: ${fix}.`;
}

/** Tell whether a pattern of the topology matches an address: `*` is one token, `#` any number, `.` and `/` delimit. */
export function matches(pattern, address) {
  if (pattern === address) return true;
  if (address.length > MAX_PATTERN_CHARS) return false;
  const tokens = pattern.split(/(?=[./])/);
  const parts = tokens.map((token, place) => {
    const [delimiter, bare] = /^[./]/.test(token) ? [token[0], token.slice(1)] : ["", token];
    if (bare === "#") return place === 0 ? (tokens.length > 1 ? "" : ".*") : `(?:${quoted(delimiter)}.*)?`;
    // After a leading `#` that stands for no token, there is no delimiter either.
    const before = place === 1 && tokens[0] === "#" ? `(?:.*${quoted(delimiter)})?` : quoted(delimiter);
    return `${before}${bare === "*" ? "[^./]*" : quoted(bare)}`;
  });
  return new RegExp(`^${parts.join("")}$`, "su").test(address);
}

function quoted(text) {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
