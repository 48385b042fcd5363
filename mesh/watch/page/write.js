// Requests that change the mesh. A request that gets no answer is sent again with the same idempotency key, and so is
// carried out once.

import { BUSY, observer, Refused } from "./observer.js";

const ANSWER_MS = 30_000;
const AGAIN_MS = [500, 1500];

/** No answer came: whether the write was carried out is not known. */
export class NoAnswer extends Error {}

export function newKey() {
  return crypto.randomUUID();
}

/** Return the path of a write that only tells what the write would do. */
export function dry(path) {
  return `${path}?dry_run=true`;
}

/**
 * Send a write, and return the observer's answer. Raises Refused with the observer's sentence, or NoAnswer. The same
 * write has to be sent with the same `key`.
 */
export async function send(method, path, body, key) {
  for (let turn = 0; ; turn++) {
    const answer = await attempt(method, path, body, key);
    const isLast = turn === AGAIN_MS.length;
    if (answer && (isLast || !BUSY.has(answer.status))) return judged(answer);
    if (isLast) throw new NoAnswer("The observer does not answer.");
    await new Promise((done) => setTimeout(done, AGAIN_MS[turn]));
  }
}

/** Return status and content of the answer, or null if it did not come as a whole. */
async function attempt(method, path, body, key) {
  try {
    const headers = { "content-type": "application/json", "idempotency-key": key };
    const response = await fetch(path, { method, headers, body: JSON.stringify(body), cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS) });
    return { status: response.status, ok: response.ok, content: await response.json() };
  } catch {
    return null;
  }
}

function judged({ status, ok, content }) {
  if (status === 401) observer.lost(true);
  else observer.heard();
  if (!ok) throw new Refused(status, content ?? {});
  return content;
}
