// Requests to the observer, and whether the observer answers. Nothing else here opens a connection.

const SILENT_MS = 5000;
const AGAIN_MS = 1000;
/** Too much is under way, of this login or of all: a part of it will have ended when the request is sent again. */
export const BUSY = new Set([429, 503]);

/** The state of the observer as this page sees it: `ok`, `gone`, or `login` when the session has ended. */
export const observer = new (class extends EventTarget {
  state = "ok";
  heardAt = Date.now();
  /** The observer's clock minus this browser's, in seconds. */
  offset = 0;
  isPaused = false;

  get now() {
    return Date.now() / 1000 + this.offset;
  }

  heard(at) {
    if (typeof at === "number") this.offset = at - Date.now() / 1000;
    this.heardAt = Date.now();
    this.#become("ok");
  }

  lost(isLogin = false) {
    this.#become(isLogin ? "login" : "gone");
  }

  pause(isPaused) {
    this.isPaused = isPaused;
    this.dispatchEvent(new Event("pause"));
  }

  #become(state) {
    if (this.state === state) return;
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }
})();

/** A request that the observer refused: `status` 400 with a sentence that says what was expected. */
export class Refused extends Error {
  constructor(status, content) {
    super(content.error ?? `the observer answered with status ${status}`);
    this.status = status;
    this.allowed = content.allowed ?? [];
    /** Whether a write may have been carried out, or a part of it. */
    this.isUncertain = content.is_uncertain ?? false;
  }
}

async function request(path, signal) {
  let response;
  try {
    response = await fetch(path, { signal, cache: "no-store" });
  } catch (error) {
    if (!signal?.aborted) observer.lost();
    throw error;
  }
  if (response.ok) return response;
  const content = await response.json().catch(() => ({}));
  if (response.status === 401) observer.lost(true);
  else observer.heard();
  throw new Refused(response.status, content);
}

export async function get(path, signal) {
  const limited = AbortSignal.any([AbortSignal.timeout(SILENT_MS), ...(signal ? [signal] : [])]);
  let content;
  try {
    content = await (await request(path, limited)).json();
  } catch (error) {
    if (error.name === "TimeoutError" || (error.name === "AbortError" && !signal?.aborted)) observer.lost();
    throw error;
  }
  observer.heard(content.at);
  return content;
}

/** Show what the observer told. A mistake in it is the page's own: it is told to the browser, and the page goes on. */
function draw(show, ...told) {
  try {
    show(...told);
  } catch (error) {
    reportError(error);
  }
}

/**
 * Call `onPage(page)` with the answer to `path()` once a second or so, until `signal` aborts. Waits while the page is
 * hidden or paused.
 */
export async function poll(path, everyMs, onPage, onRefused, signal) {
  while (!signal.aborted) {
    await awake(signal);
    if (signal.aborted) return;
    try {
      const page = await get(path(), signal);
      if (!signal.aborted && !observer.isPaused) draw(onPage, page);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused && error.status !== 401) onRefused(error);
    }
    await delay(everyMs, signal);
  }
}

/**
 * Follow a stream: `onEvent(name, data)` for each event, until `signal` aborts. A stream that breaks is opened again,
 * and begins with `all`. `onRefused(error)` is called for a refused request; the stream ends unless it may work later.
 */
export async function follow(path, onEvent, onRefused, signal) {
  while (!signal.aborted) {
    await awake(signal);
    if (signal.aborted) return;
    const one = new AbortController();
    const stop = () => one.abort();
    const sleep = () => (document.hidden || observer.isPaused) && one.abort();
    signal.addEventListener("abort", stop);
    document.addEventListener("visibilitychange", sleep);
    observer.addEventListener("pause", sleep);
    try {
      const response = await request(path, one.signal);
      await read(response.body.getReader(), one, onEvent);
      if (!one.signal.aborted) observer.lost();
    } catch (error) {
      if (error instanceof Refused && error.status !== 401) onRefused(error);
      if (error instanceof Refused && error.status !== 401 && !BUSY.has(error.status)) return;
      if (!one.signal.aborted && !(error instanceof Refused)) observer.lost();
    } finally {
      signal.removeEventListener("abort", stop);
      document.removeEventListener("visibilitychange", sleep);
      observer.removeEventListener("pause", sleep);
      one.abort();
    }
    await delay(AGAIN_MS, signal);
  }
}

async function read(reader, controller, onEvent) {
  const decoder = new TextDecoder();
  let text = "";
  let watchdog;
  const alive = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => {
      observer.lost();
      controller.abort();
    }, SILENT_MS);
  };
  alive();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      alive();
      observer.heard();
      text += decoder.decode(value, { stream: true });
      let end;
      while ((end = text.indexOf("\n\n")) >= 0) {
        const event = text.slice(0, end);
        text = text.slice(end + 2);
        const found = /^event: (.*)\ndata: (.*)$/s.exec(event);
        if (!found || controller.signal.aborted) continue;
        const data = JSON.parse(found[2]);
        observer.heard(data.at);
        draw(onEvent, found[1], data);
      }
    }
  } finally {
    clearTimeout(watchdog);
  }
}

function delay(ms, signal) {
  return new Promise((done) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      done();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}

/** Wait until the page is visible and not paused: hidden pages cost the observer nothing, and hold no connection. */
function awake(signal) {
  const isAwake = () => !document.hidden && !observer.isPaused;
  if (isAwake() || signal.aborted) return Promise.resolve();
  return new Promise((done) => {
    const look = () => {
      if (!isAwake() && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      observer.removeEventListener("pause", look);
      signal.removeEventListener("abort", look);
      done();
    };
    document.addEventListener("visibilitychange", look);
    observer.addEventListener("pause", look);
    signal.addEventListener("abort", look);
  });
}
