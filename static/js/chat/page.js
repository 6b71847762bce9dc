// What all parts of the chat page share: its elements, its texts, and the two ways to the server.

// What is parsed is a fragment of our own server, which escapes what others wrote.
const rules = { createHTML: (text) => text };
const policy = globalThis.trustedTypes?.createPolicy("tollhouse", rules) ?? rules;

export const root = document.querySelector("[data-chat]");
export const texts = document.querySelector("[data-texts]").dataset;
export const base = root.dataset.base;

const banner = root.querySelector("[data-banner]");
const status = root.querySelector("[data-status]");
const token = root.querySelector("[name=csrfmiddlewaretoken]").value;

export const chat = { uuid: root.dataset.chat, isOver: false };

// Seconds by which the server's clock is ahead of this one. The first guess is the page's own age, each fragment tells anew.
let ahead = Number(root.dataset.now) - (performance.timeOrigin + navigated()) / 1000;

function navigated() {
  return performance.getEntriesByType("navigation")[0]?.responseStart ?? 0;
}

/** The server's time, in seconds since 1970. */
export const now = () => Date.now() / 1000 + ahead;

/** Shown above the messages; an empty text takes it away. */
export function warn(text) {
  banner.hidden = !text;
  if (banner.textContent !== text) {
    banner.textContent = text;
  }
}

/** Read out politely, and shown nowhere. */
export function tell(text) {
  if (status.textContent !== text) {
    status.textContent = text;
  }
}

/** The page is of no use any more: nothing is sent or asked for again. */
export function end(text) {
  chat.isOver = true;
  warn(text);
  for (const control of root.querySelectorAll(".composer textarea, .composer button, [data-decide], [data-do], [data-retry], [data-suggestion]")) {
    control.disabled = true;
  }
  root.dispatchEvent(new Event("over"));
}

export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail ?? texts.unreachable);
    this.status = status;
    this.code = problem.code ?? "";
    this.reason = problem.reason ?? "";
  }
}

/** A call of the REST face. Gives the JSON, or raises Refused; anything else that is raised means that the server did not answer. */
export async function call(method, path, body) {
  const answer = await fetch(`/api/agent/${path}`, {
    method,
    redirect: "manual",
    headers: { "Content-Type": "application/json", "X-CSRFToken": token },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
  if (answer.type === "opaqueredirect" || answer.status === 401) {
    end(texts.over);
    throw new Refused(401, { detail: texts.over, code: "unauthorized" });
  }
  const text = await answer.text();
  const found = text ? JSON.parse(text) : {};
  if (!answer.ok) {
    throw new Refused(answer.status, found);
  }
  return found;
}

/** A fragment of a page, parsed; null where the page is over. Raises where the server did not answer. */
export async function fragment(address) {
  const answer = await fetch(address, { redirect: "manual", signal: AbortSignal.timeout(15_000) });
  if (answer.type === "opaqueredirect") {
    end(texts.over);
  } else if (answer.status === 403) {
    end(texts.closed);
  } else if (answer.status === 404) {
    end(texts.gone);
  } else if (!answer.ok) {
    throw new Error(String(answer.status));
  } else {
    const told = Date.parse(answer.headers.get("Date") ?? "");
    if (told) {
      // Without its milliseconds, so half a second more on average.
      ahead = (told + 500 - Date.now()) / 1000;
    }
    return new DOMParser().parseFromString(policy.createHTML(await answer.text()), "text/html");
  }
  return null;
}

/** A uuid of our own. `crypto.randomUUID` is missing on pages without TLS. */
export function newUUID() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
