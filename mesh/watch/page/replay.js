// The form that sends an edited copy of a message to the queue's address; the message itself stays.

import { bytesOf } from "./body_view.js";
import { confirmWrite, field } from "./confirm.js";
import { el } from "./dom.js";

const EDITED = ["subject", "message_id", "correlation_id", "content_type", "reply_to", "group_id"];
/** What the copy has of the message besides, as it was. */
const KEPT = ["priority", "durable", "content_encoding", "creation_time", "group_sequence", "reply_to_group_id"];

/** Return why no copy of a message can be sent, or null. */
export function uncopied(message) {
  const body = message?.body;
  if (!message) return "Open a message first.";
  if (!body) return "The body cannot be read, and so not copied.";
  if (body.is_cut) return `The body has ${body.bytes.toLocaleString("en")} bytes, and the console has read only its beginning: use \`amqpmesh broker move\`.`;
  if (message.why) return `${message.why}.`;
  if (body.kind === "value" && typeof body.text !== "string") return `${body.why}.`;
  return null;
}

/** Ask for the copy. `path()`: a promise of the queue's path in the REST interface. */
export function replay({ message, address, path, expect, onDone }) {
  const { body } = message;
  const kept = Object.fromEntries(KEPT.map((name) => [name, message[name]]).filter(([, value]) => value !== null && value !== undefined));
  const isBinary = body.kind === "binary";
  const texts = EDITED.map((name) => fieldOf(name, message[name]));
  const properties = el("textarea", { rows: "4", spellcheck: "false" });
  properties.value = JSON.stringify(message.properties ?? {}, null, 1);
  const content = el("textarea", { rows: "10", spellcheck: "false" });
  content.value = isBinary ? btoa(String.fromCharCode(...bytesOf(body))) : (body.text ?? "");
  confirmWrite({
    title: `Send an edited copy of message ${message.number}`,
    about: [`The copy goes to ${address} through a router, as a new message at the end; the message itself stays.`, "Annotations are not copied: they tell where the message has been."],
    verb: "Send the copy",
    fields: [
      field("body", isBinary ? "body, in base64" : "body", content, { note: NOTES[body.kind], read: (it) => bodyOf(it.value, body) }),
      field("properties", "application properties, as a JSON object", properties, { read: (it) => objectOf(it.value) }),
      ...texts,
    ],
    request: async ({ body: written, properties: named, ...headers }) => ({
      path: `${await path()}/send`,
      body: { message: { ...kept, ...Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== "")), properties: named, body: written } },
    }),
    expect, onDone,
  });
}

const NOTES = { json: "JSON", value: "the JSON form of an AMQP value" };

/** An input for a field of the header; a value that is no text, such as a number, is edited in its JSON form. */
function fieldOf(name, value) {
  const isText = value === null || value === undefined || typeof value === "string";
  const input = el("input", { value: isText ? (value ?? "") : JSON.stringify(value), autocomplete: "off", spellcheck: "false" });
  const label = name.replaceAll("_", "-");
  return field(name, label, input, { note: isText ? null : "JSON form of an AMQP value", read: (it) => (isText || it.value === "" ? it.value : parsed(it.value, `The ${label} is`)) });
}

function parsed(text, what) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${what} not valid JSON: ${error.message}`);
  }
}

function bodyOf(text, { kind, section }) {
  if (kind === "binary") {
    try {
      atob(text);
    } catch {
      throw new Error("The body is not valid base64: expected letters, digits, +, / and = at the end");
    }
    return { kind, section, base64: text.replace(/\s/g, "") };
  }
  if (kind === "none" && text === "") return { kind };
  if (kind === "json" || kind === "value") parsed(text, "The body is");
  return kind === "none" ? { kind: "text", text } : { kind, section, text };
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
