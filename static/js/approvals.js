// Keeps the pages of approvals fresh. The socket says that something changed; what, is fetched as a fragment of the same page, whose parts
// replace those that differ. Without a socket the page looks by itself.

const POLL_SECONDS = 5;
const LONGEST_WAIT = 30;
// Milliseconds from one look to the next, however many events come.
const GAP = 250;
const OVER = 4401;
const FORBIDDEN = 4403;
const TOO_MANY = 4429;

// What is parsed is a page of our own server, which escapes what others wrote.
const rules = { createHTML: (text) => text };
const policy = globalThis.trustedTypes?.createPolicy("tollhouse", rules) ?? rules;

const live = document.querySelector("[data-live]");
const banner = document.querySelector("[data-banner]");
const texts = document.querySelector("[data-texts]").dataset;

const known = new Map();
let socket = null;
let failures = 0;
let isOver = false;
let isFetching = false;
let isWanted = false;
let timer = 0;
let reconnection = 0;

const partsOf = (root) => root.querySelectorAll("[data-part]");
const partNamed = (name) => document.querySelector(`[data-part="${name}"]`);
// The token of a form is another one each time.
const written = (part) => part.outerHTML.replace(/name="csrfmiddlewaretoken" value="[^"]*"/, "");

function say(text) {
  banner.hidden = !text;
  if (banner.textContent !== text) {
    banner.textContent = text;
  }
}

function isLive() {
  return socket?.readyState === WebSocket.OPEN;
}

function end(text) {
  isOver = true;
  clearTimeout(timer);
  clearTimeout(reconnection);
  socket?.close();
  say(text);
}

// --- Parts ------------------------------------------------------------------------------------------------------------

function show(html) {
  const fresh = new DOMParser().parseFromString(policy.createHTML(html), "text/html");
  for (const part of partsOf(fresh)) {
    const name = part.dataset.part;
    const text = written(part);
    const old = partNamed(name);
    if (old && known.get(name) !== text) {
      known.set(name, text);
      replace(old, part);
    }
  }
}

function replace(old, part) {
  const rows = new Set(Array.from(old.querySelectorAll("li[id]"), (row) => row.id));
  const fields = Array.from(old.querySelectorAll("textarea"), (field) => [field.id, field.value]);
  const place = placeOf(old);
  for (const name of old.getAttributeNames().filter((name) => !part.hasAttribute(name))) {
    old.removeAttribute(name);
  }
  for (const name of part.getAttributeNames()) {
    old.setAttribute(name, part.getAttribute(name));
  }
  old.replaceChildren(...part.childNodes);
  for (const [id, value] of fields) {
    const field = document.getElementById(id);
    if (field) {
      field.value = value;
    }
  }
  for (const row of old.querySelectorAll(".queue > li")) {
    row.classList.toggle("arrived", !rows.has(row.id));
  }
  if (place) {
    goBackTo(place, old);
  }
  count();
}

// Where the keyboard is, so that it is there again in the new part.
function placeOf(part) {
  const focused = document.activeElement;
  if (!focused || !part.contains(focused)) {
    return null;
  }
  const row = focused.closest(".queue > li");
  const start = focused.selectionStart;
  return { id: focused.id, row: row ? Array.from(row.parentElement.children).indexOf(row) : -1, start };
}

function goBackTo(place, part) {
  const links = part.querySelectorAll(".queue h2 a");
  const nearby = place.row < 0 ? null : links[Math.min(place.row, links.length - 1)];
  const target = (place.id && document.getElementById(place.id)) || nearby || document.getElementById("stands");
  target?.focus({ preventScroll: true });
  if (target?.id === place.id && Number.isInteger(place.start)) {
    target.setSelectionRange(place.start, place.start);
  }
}

// --- Looking ----------------------------------------------------------------------------------------------------------

async function look() {
  if (isOver) {
    return;
  }
  if (isFetching) {
    isWanted = true;
    return;
  }
  isFetching = true;
  isWanted = false;
  try {
    await fetchOnce();
  } catch {
    say(texts.unreachable);
  }
  isFetching = false;
  if (isWanted && !isOver) {
    clearTimeout(timer);
    timer = setTimeout(look, GAP);
  } else {
    waitForNext();
  }
}

async function fetchOnce() {
  const address = new URL(live.dataset.address ?? location.href, location.href);
  address.searchParams.set("fragment", "1");
  const seen = document.querySelector("[data-seen]")?.dataset.seen;
  if (seen) {
    address.searchParams.set("seen", seen);
  }
  // A redirect leads to the sign-in page.
  const answer = await fetch(address, { redirect: "manual", signal: AbortSignal.timeout(15_000) });
  if (answer.type === "opaqueredirect") {
    end(texts.over);
  } else if (answer.status === 403 || answer.status === 404) {
    end(texts.gone);
  } else if (!answer.ok) {
    say(texts.unreachable);
  } else {
    show(await answer.text());
    say(failures < 2 ? "" : texts.offline);
  }
}

function waitForNext() {
  clearTimeout(timer);
  if (isOver || document.hidden) {
    return;
  }
  const again = Number(document.querySelector("[data-again]").dataset.again);
  timer = setTimeout(look, 1000 * (isLive() ? again : Math.min(again, POLL_SECONDS)));
}

// --- Socket -----------------------------------------------------------------------------------------------------------

function connect() {
  clearTimeout(reconnection);
  if (isOver || (socket && socket.readyState <= WebSocket.OPEN)) {
    return;
  }
  const address = new URL("/ws/approvals/", location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  const opened = new WebSocket(address);
  socket = opened;
  opened.addEventListener("open", () => {
    // One that is closed at once was none.
    setTimeout(() => {
      if (socket === opened && failures > 0) {
        failures = 0;
        look();
      }
    }, 1000 * POLL_SECONDS);
    // What happened while nobody listened.
    look();
  });
  opened.addEventListener("message", (event) => {
    if (JSON.parse(event.data).type === "approval_changed") {
      look();
    }
  });
  opened.addEventListener("close", (event) => {
    if (socket === opened) {
      closed(event.code);
    }
  });
}

function closed(code) {
  socket = null;
  if (isOver || document.hidden) {
    return;
  }
  if (code === OVER || code === FORBIDDEN) {
    end(code === OVER ? texts.over : texts.gone);
    return;
  }
  failures += 1;
  const wait = code === TOO_MANY ? 60 : Math.min(LONGEST_WAIT, 2 ** failures) * (0.5 + Math.random() / 2);
  reconnection = setTimeout(connect, 1000 * wait);
  look();
}

function wake() {
  if (!document.hidden) {
    connect();
    look();
  }
}

// Some proxies end a socket on which nothing is said.
setInterval(() => {
  if (isLive()) {
    socket.send(JSON.stringify({ type: "ping" }));
  }
}, 25_000);

// --- Time, keys, forms ------------------------------------------------------------------------------------------------

function count() {
  for (const time of document.querySelectorAll("[data-until]")) {
    const left = Math.floor(Number(time.dataset.until) - Date.now() / 1000);
    if (left >= 0 && left < 3600) {
      const clock = `${String(Math.floor(left / 60)).padStart(2, "0")}:${String(left % 60).padStart(2, "0")}`;
      time.textContent = clock;
    } else if (left < 0 && left > -2) {
      look();
    }
  }
}

function move(steps) {
  const links = Array.from(document.querySelectorAll(".queue h2 a"));
  const row = document.activeElement?.closest(".queue > li");
  const here = row ? Array.from(row.parentElement.children).indexOf(row) : -1;
  const next = here < 0 ? 0 : Math.min(links.length - 1, Math.max(0, here + steps));
  links[next]?.focus();
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  a: () => document.getElementById("approve")?.focus(),
  r: () => document.getElementById("reject")?.focus(),
  n: () => document.getElementById("note")?.focus(),
};

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) {
    return;
  }
  event.preventDefault();
  KEYS[event.key]();
});

// One click counts. Back from the next page, the form is there again.
let isSent = false;
document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-once]")) {
    return;
  }
  if (isSent) {
    event.preventDefault();
  }
  isSent = true;
});

for (const part of partsOf(document)) {
  known.set(part.dataset.part, written(part));
}
addEventListener("pageshow", (event) => {
  isSent = false;
  if (event.persisted) {
    wake();
  }
});
addEventListener("pagehide", () => {
  const left = socket;
  socket = null;
  left?.close();
});
addEventListener("online", wake);
document.addEventListener("visibilitychange", wake);
setInterval(count, 1000);
count();
connect();
waitForNext();
