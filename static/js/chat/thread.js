// The messages. Whatever changed is fetched as a fragment and put into its place; nothing is ever drawn from what an event says.

import { Idiomorph } from "../../vendor/idiomorph/idiomorph.esm.js";
import { base, chat, fragment, root, tell, texts, warn } from "./page.js";

// Milliseconds from one fetch to the next, however many events come.
const GAP = 60;
const MOST_AT_ONCE = 40;
// So near to the end the reader follows it.
const NEAR = 80;

const scroller = root.querySelector("[data-scroller]");
const thread = document.getElementById("thread");
const toEnd = root.querySelector("[data-to-end]");

const wanted = new Set();
let wantsNew = false;
let wantsTurn = false;
let isFetching = false;
let timer = 0;
let fetchedAt = 0;
let listeners = [];

const last = () => thread.lastElementChild;
export const isRunning = () => document.getElementById("turn").hasAttribute("data-running");

/** The function is called after each change of the messages or of the turn. */
export function onChange(listener) {
  listeners.push(listener);
}

// --- What an event asks for -------------------------------------------------------------------------------------------

export function heard(event) {
  switch (event.type) {
    case "agent_message_added":
      wantsNew = wantsNew || !articleOf(event.message);
      break;
    case "agent_message_updated": {
      const article = articleOf(event.message);
      if (!article) {
        wantsNew = true;
      } else if (Number(article.dataset.version) < event.version) {
        wanted.add(event.message);
      }
      break;
    }
    case "agent_turn_changed":
      wantsTurn = true;
      break;
    case "agent_confirmation_changed": {
      const article = thread.querySelector(`[data-card="${CSS.escape(event.confirmation)}"]`)?.closest("[data-message]");
      if (article) {
        wanted.add(article.dataset.message);
      }
      wantsNew = true;
      wantsTurn = true;
      break;
    }
    default:
      return;
  }
  soon();
}

/** Everything that may have changed while nobody listened: what is new, what was growing, open cards, the turn. */
export function catchUp() {
  for (const article of thread.querySelectorAll("[data-live], :has([data-state=waiting])")) {
    if (article.dataset.message) {
      wanted.add(article.dataset.message);
    }
  }
  wantsNew = true;
  wantsTurn = true;
  soon();
}

/** The message is asked for again. */
export function again(uuid) {
  wanted.add(uuid);
  soon();
}

function soon() {
  if (!timer && !isFetching && !chat.isOver) {
    timer = setTimeout(look, Math.max(0, fetchedAt + GAP - performance.now()));
  }
}

async function look() {
  timer = 0;
  if (!chat.uuid || chat.isOver || isFetching) {
    return;
  }
  isFetching = true;
  const asked = Array.from(wanted).slice(0, MOST_AT_ONCE);
  const askedNew = wantsNew;
  for (const uuid of asked) {
    wanted.delete(uuid);
  }
  wantsNew = false;
  wantsTurn = false;
  let found = null;
  try {
    found = await fragment(address(asked, askedNew));
    if (found) {
      warn(root.dataset.offline ?? "");
    }
  } catch {
    asked.forEach((uuid) => wanted.add(uuid));
    wantsNew = wantsNew || askedNew;
    warn(texts.unreachable);
    setTimeout(catchUp, 5_000);
  }
  isFetching = false;
  fetchedAt = performance.now();
  if (found) {
    show(found);
    if (found.querySelector("[data-again]")) {
      wantsNew = true;
    }
    if (wanted.size || wantsNew || wantsTurn) {
      soon();
    }
  }
}

function address(asked, askedNew) {
  const found = new URL(`${base}${chat.uuid}/thread/`, location.href);
  if (askedNew) {
    found.searchParams.set("after", last()?.dataset.message ?? "");
  }
  if (asked.length) {
    found.searchParams.set("also", asked.join(","));
  }
  return found;
}

// --- Showing ----------------------------------------------------------------------------------------------------------

function show(found) {
  const follows = isNearEnd();
  const wasRunning = isRunning();
  const hadCards = thread.querySelectorAll("[data-state=waiting]").length;
  let isNew = false;
  for (const article of found.querySelectorAll("[data-message]")) {
    isNew = put(article) || isNew;
  }
  for (const name of ["turn", "title"]) {
    const fresh = found.getElementById(name);
    if (fresh) {
      morph(document.getElementById(name), fresh);
    }
  }
  document.querySelector("[data-empty]")?.remove();
  if (follows) {
    goToEnd();
  } else if (isNew) {
    toEnd.hidden = false;
  }
  if (thread.querySelectorAll("[data-state=waiting]").length > hadCards) {
    tell(texts.proposed);
  } else if (wasRunning !== isRunning()) {
    tell(isRunning() ? texts.answering : texts.answered);
  }
  document.title = `${document.getElementById("title").textContent.trim()} · ${texts.page}`;
  listeners.forEach((listener) => listener());
}

/** Into its place by its number. True for one that was not there. */
function put(article) {
  const old = document.getElementById(article.id);
  if (old) {
    if (Number(old.dataset.version) <= Number(article.dataset.version)) {
      morph(old, article);
    }
    return false;
  }
  thread.insertBefore(document.importNode(article, true), following(Number(article.dataset.number)));
  return true;
}

/** The first message with a higher number; null at the end, where most new ones belong. */
function following(number) {
  if (Number(last()?.dataset.number ?? 0) < number) {
    return null;
  }
  for (const other of thread.children) {
    if (Number(other.dataset.number) > number) {
      return other;
    }
  }
  return null;
}

function morph(old, fresh) {
  const taken = document.importNode(fresh, true);
  taken.querySelectorAll("[data-card]").forEach(carryOver);
  Idiomorph.morph(old, taken, {
    morphStyle: "outerHTML",
    callbacks: {
      // What the reader opened stays open.
      beforeAttributeUpdated: (name, node) => !(name === "open" && node.matches("details")),
    },
  });
}

/** A fault that a card shows, and a decision that is on its way, stay until the card is in another state. */
function carryOver(card) {
  const old = document.getElementById(card.id);
  if (old?.dataset.state !== card.dataset.state || !card.querySelector("[data-card-error]")) {
    return;
  }
  const [error, oldError] = [card, old].map((one) => one.querySelector("[data-card-error]"));
  error.hidden = oldError.hidden;
  error.textContent = oldError.textContent;
  if (old.getAttribute("aria-busy") === "true") {
    card.setAttribute("aria-busy", "true");
    card.querySelectorAll("[data-decide]").forEach((button) => (button.disabled = true));
  }
}

/** The page before the first message that is shown; the reader's place stays. */
export async function showEarlier(button) {
  button.disabled = true;
  try {
    const first = thread.firstElementChild;
    const found = await fragment(`${base}${chat.uuid}/thread/?before=${first.dataset.message}`);
    if (found) {
      const height = scroller.scrollHeight - scroller.scrollTop;
      for (const article of found.querySelectorAll("[data-message]")) {
        put(article);
      }
      scroller.scrollTop = scroller.scrollHeight - height;
      button.closest("p").hidden = !found.querySelector("[data-has-earlier]");
      first.setAttribute("tabindex", "-1");
      first.focus({ preventScroll: true });
    }
  } catch {
    warn(texts.unreachable);
  }
  button.disabled = false;
}

// --- Following --------------------------------------------------------------------------------------------------------

function isNearEnd() {
  return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR;
}

export function goToEnd() {
  scroller.scrollTop = scroller.scrollHeight;
  toEnd.hidden = true;
}

toEnd.addEventListener("click", () => {
  goToEnd();
  scroller.focus({ preventScroll: true });
});
scroller.addEventListener(
  "scroll",
  () => {
    if (isNearEnd()) {
      toEnd.hidden = true;
    }
  },
  { passive: true },
);

function articleOf(uuid) {
  return document.getElementById(`m-${uuid}`);
}
