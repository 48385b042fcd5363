// The form that sends an edited copy of a message to the queue's address; the message itself stays.

import { bytesOf } from "./body_view.js";
import { confirmWrite, field } from "./confirm.js";
import { el } from "./dom.js";

const HEADERS = ["subject", "message_id", "correlation_id", "content_type", "reply_to", "group_id"];
const KEPT = ["priority", "durable"];
const TEXT_KINDS = new Set(["text", "json"]);

/** Return why no copy of a message can be sent, or null. */
export function uncopied(message) {
  const body = message?.body;
  if (!message) return "Open a message first.";
  if (!body) return "The body cannot be read, and so not copied.";
  if (body.is_cut) return `The body has ${body.bytes.toLocaleString("en")} bytes, and the console has read only its beginning: use \`amqpmesh broker move\`.`;
  if (body.why && body.kind !== "binary") return `${body.why}.`;
  if (body.kind === "value") return "The body is an AMQP value, which the console cannot write.";
  return null;
}

/** Ask for the copy. `path()`: a promise of the queue's path in the REST interface. */
export function replay({ message, address, path, expect, onDone }) {
  const { body } = message;
  const kept = Object.fromEntries(KEPT.map((name) => [name, message[name]]).filter(([, value]) => value !== null && value !== undefined));
  const isText = TEXT_KINDS.has(body.kind) || body.kind === "none";
  const texts = HEADERS.map((name) => field(name, name.replaceAll("_", "-"), el("input", { value: typeof message[name] === "string" ? message[name] : "", autocomplete: "off", spellcheck: "false" })));
  const properties = el("textarea", { rows: "4", spellcheck: "false" });
  properties.value = JSON.stringify(message.properties ?? {}, null, 1);
  const content = el("textarea", { rows: "10", spellcheck: "false" });
  content.value = isText ? (body.text ?? "") : btoa(String.fromCharCode(...bytesOf(body)));
  confirmWrite({
    title: `Send an edited copy of message ${message.number}`,
    about: [`The copy goes to ${address} through a router, as a new message at the end; the message itself stays.`, "Annotations are not copied: they tell where the message has been."],
    verb: "Send the copy",
    fields: [
      field("body", isText ? "body" : "body, in base64", content, { note: body.kind === "json" ? "JSON" : null, read: (it) => bodyOf(it.value, body.kind) }),
      field("properties", "application properties, as a JSON object", properties, { read: (it) => objectOf(it.value) }),
      ...texts,
    ],
    request: async ({ body: written, properties: named, ...headers }) => ({
      path: `${await path()}/send`,
      body: { message: { ...Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== "")), ...kept, properties: named, body: written } },
    }),
    expect, onDone,
  });
}

function bodyOf(text, kind) {
  if (kind === "binary") {
    try {
      atob(text);
    } catch {
      throw new Error("The body is not valid base64: expected letters, digits, +, / and = at the end");
    }
    return { kind, base64: text.replace(/\s/g, "") };
  }
  if (kind === "json") {
    try {
      JSON.parse(text);
    } catch (error) {
      throw new Error(`The body is not valid JSON: ${error.message}`);
    }
  }
  return kind === "none" && text === "" ? { kind } : { kind: kind === "none" ? "text" : kind, text };
}

function objectOf(text) {
  let found = null;
  try {
    found = JSON.parse(text || "{}");
  } catch {
    // The sentence below says what was expected.
  }
  if (found === null || typeof found !== "object" || Array.isArray(found)) throw new Error('The application properties are not valid: expected a JSON object, such as {"region": "eu"}');
  return found;
}
