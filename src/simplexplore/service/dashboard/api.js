// The service: requests below /v1, as any other client sends them, and its stream of changes.
import { ROOT } from "./address.js";
import { askForToken, authorization } from "./token.js";

export const POLL = 5000;  // milliseconds between looks where nothing is pushed
const SILENCE = 40000;     // after which a stream is dead: it gives a sign of life every 15000

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

class Refusal extends Error {
  constructor(status, document) {
    super(document.detail || document.title || `The service answered with status ${status}.`);
    this.status = status;
    this.line = document.line ?? null;
    this.unlikely = document.type === "urn:simplexplore:unlikely" ? document.rewards : null;
  }
}

async function send(path, options = {}) {
  options.headers = { ...authorization(), ...options.headers };
  const response = await fetch(`${ROOT}v1${path}`, options)
    .catch(() => { throw new Refusal(0, { detail: "The service cannot be reached." }); });
  if (response.ok) return response;
  throw new Refusal(response.status, await response.json().catch(() => ({})));
}

// Get a path or, with a body, post to it; the answer is JSON.
export async function call(path, body, key) {
  const posting = body === undefined ? {} : { method: "POST", body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", ...(key ? { "Idempotency-Key": key } : {}) } };
  try {
    const response = await send(path, posting);
    return response.status === 204 ? null : await response.json();
  } catch (error) {
    if (error.status === 401) {
      askForToken(error.message);
      error.message = "This service needs a token: press “Token”.";
    }
    throw error;
  }
}

export const text = async (path) => (await send(path)).text();

export const download = async (path) => (await send(path)).blob();

export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0")).join("");
}

// Calls `changed` whenever the service says so. Read with fetch, since EventSource sends no token.
export async function listen(path, changed) {
  for (;;) {
    const ending = new AbortController();
    let alarm = 0;
    const alive = () => {
      clearTimeout(alarm);
      alarm = setTimeout(() => ending.abort(), SILENCE);
    };
    try {
      alive();
      const response = await send(path, { signal: ending.signal });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; ;) {
        const { done, value } = await reader.read();
        if (done) break;
        alive();
        const events = (text + value).split("\n\n");
        text = events.pop();  // not whole yet
        if (events.some((event) => /^data:/m.test(event))) changed();
      }
    } catch { /* the service is away: look again in a while */ }
    clearTimeout(alarm);
    await pause(POLL);
    changed();
  }
}
