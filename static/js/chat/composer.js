// What the person writes: sent once, kept until it is stored, and with the names of the tools after a slash.

import { base, call, chat, newUUID, root, texts } from "./page.js";
import * as thread from "./thread.js";

const form = root.querySelector("[data-composer]");
const field = form.querySelector("textarea");
const sendButton = form.querySelector("[data-send]");
const stopButton = form.querySelector("[data-stop]");
const error = form.querySelector("[data-error]");
const completion = form.querySelector("[data-completion]");

const MOST_OFFERED = 8;
const PREFIX = "tollhouse.draft.";

let sending = null;
let tools = null;
let opened = "";
let onSent = () => {};

/** `sent` is called after a text was stored, with whether the chat is a new one. */
export function start({ sent }) {
  onSent = sent;
  restore();
  if (field.value) {
    keep();
  }
  refresh();
  fit();
  thread.onChange(refresh);
}

// --- Sending ----------------------------------------------------------------------------------------------------------

/** Store the text and have it answered: what the person wrote, or what the page proposes. */
export async function send(content) {
  if (!content.trim() || sending || chat.isOver) {
    return;
  }
  // The same text that was sent before is the same message: a second try can't store it twice.
  sending = { content, client_uuid: pending(content) };
  sendButton.disabled = true;
  fail("");
  try {
    const isNew = !chat.uuid;
    // A new chat whose first text was refused is used for the next one.
    opened = chat.uuid || opened || (await call("POST", "conversations", {})).uuid;
    await call("POST", `conversations/${opened}/messages`, sending);
    forget();
    chat.uuid = opened;
    // What was typed meanwhile is the next text.
    if (field.value === content) {
      field.value = "";
    } else if (field.value) {
      keep();
    }
    onSent(isNew);
  } catch (problem) {
    field.value = field.value || content;
    // Perhaps the chat was deleted, or a turn begun, in another tab.
    thread.catchUp();
    fail(problem.code === "turn_running" ? texts.running : problem.status ? problem.message : texts.notSent);
  }
  sending = null;
  refresh();
  fit();
}

let last = { content: "", uuid: "" };
function pending(content) {
  if (last.content !== content) {
    last = { content, uuid: newUUID() };
  }
  if (field.value === content) {
    keep();
  }
  return last.uuid;
}

function fail(text) {
  error.hidden = !text;
  error.textContent = text;
}

function refresh() {
  const isRunning = thread.isRunning();
  stopButton.hidden = !isRunning;
  sendButton.hidden = isRunning;
  sendButton.disabled = Boolean(sending) || chat.isOver;
}

// Not with every fragment: it has the browser lay out the page twice.
function fit() {
  field.style.setProperty("height", "auto");
  field.style.setProperty("height", `${Math.min(field.scrollHeight + 2, 240)}px`);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!thread.isRunning()) {
    send(field.value);
  }
});
field.addEventListener("keydown", (event) => {
  if (event.isComposing) {
    return;
  }
  if (!completion.hidden && choose(event.key)) {
    event.preventDefault();
  } else if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    if (thread.isRunning()) {
      fail(texts.running);
    } else {
      send(field.value);
    }
  }
});
field.addEventListener("input", () => {
  fit();
  keep();
  complete();
});
stopButton.addEventListener("click", async () => {
  stopButton.disabled = true;
  try {
    await call("POST", `conversations/${chat.uuid}/turn/stop`, {});
  } catch (problem) {
    fail(problem.status ? problem.message : texts.unreachable);
  }
  stopButton.disabled = false;
  thread.catchUp();
  field.focus();
});

// --- Drafts -----------------------------------------------------------------------------------------------------------

const key = () => PREFIX + (chat.uuid || "new");

// With the uuid under which it was sent, if it was: after a reload it is still the same message.
function keep() {
  const draft = { content: field.value, uuid: field.value === last.content ? last.uuid : "" };
  try {
    localStorage.setItem(key(), JSON.stringify(draft));
  } catch {
    // A browser that keeps nothing: then nothing is kept.
  }
}

function restore() {
  try {
    const { content = "", uuid = "" } = JSON.parse(localStorage.getItem(key()) ?? "{}");
    field.value = field.value || content;
    last = uuid && field.value === content ? { content, uuid } : last;
  } catch {
    // The same, or what is kept there is not ours.
  }
}

function forget() {
  last = { content: "", uuid: "" };
  try {
    localStorage.removeItem(key());
  } catch {
    // The same.
  }
}

// Whoever signs out leaves nothing behind in this browser.
document.querySelector("form.who")?.addEventListener("submit", () => {
  try {
    for (const name of Object.keys(localStorage).filter((name) => name.startsWith(PREFIX))) {
      localStorage.removeItem(name);
    }
  } catch {
    // The same.
  }
});

// --- Completion -------------------------------------------------------------------------------------------------------

async function complete() {
  if (typedName() === null) {
    hide();
    return;
  }
  tools = tools ?? known();
  const offerable = await tools;
  // Meanwhile the person typed on.
  const name = typedName();
  if (name === null) {
    return;
  }
  const typed = name.replaceAll(".", "_").toLowerCase();
  const offered = offerable.filter((tool) => tool.name.includes(typed)).slice(0, MOST_OFFERED);
  completion.replaceChildren(...offered.map(option));
  completion.hidden = offered.length === 0;
  mark(0);
}

const typedName = () => /^\/(?:tool\s+)?([\w.]*)$/.exec(field.value)?.[1] ?? null;

async function known() {
  try {
    const answer = await fetch(`${base}tools/`, { redirect: "manual", signal: AbortSignal.timeout(10_000) });
    if (answer.ok) {
      return (await answer.json()).tools;
    }
  } catch {
    // Asked for again at the next slash.
  }
  tools = null;
  return [];
}

function option(tool, index) {
  const found = document.createElement("li");
  found.id = `tool-${index}`;
  found.setAttribute("role", "option");
  found.dataset.insert = tool.usage;
  const name = document.createElement("code");
  name.textContent = `/${tool.name}`;
  const title = document.createElement("span");
  title.textContent = tool.title;
  found.append(name, " ", title);
  found.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    insert(found);
  });
  return found;
}

function mark(index) {
  const options = Array.from(completion.children);
  options.forEach((one, at) => one.setAttribute("aria-selected", String(at === index)));
  if (completion.hidden || !options.length) {
    field.removeAttribute("aria-activedescendant");
  } else {
    field.setAttribute("aria-activedescendant", options[index].id);
    options[index].scrollIntoView({ block: "nearest" });
  }
}

function choose(pressed) {
  const options = Array.from(completion.children);
  const at = options.findIndex((one) => one.getAttribute("aria-selected") === "true");
  switch (pressed) {
    case "ArrowDown":
      mark((at + 1) % options.length);
      return true;
    case "ArrowUp":
      mark((at - 1 + options.length) % options.length);
      return true;
    case "Tab":
    case "Enter":
      insert(options[Math.max(at, 0)]);
      return true;
    case "Escape":
      hide();
      return true;
    default:
      return false;
  }
}

function insert(one) {
  field.value = one.dataset.insert;
  hide();
  keep();
  fit();
  field.focus();
  const gap = field.value.indexOf("…");
  if (gap >= 0) {
    field.setSelectionRange(gap, gap + 1);
  }
}

function hide() {
  completion.hidden = true;
  mark(0);
}
field.addEventListener("blur", hide);
