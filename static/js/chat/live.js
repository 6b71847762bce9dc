// The socket: it says that something changed, never what. Without one the page looks by itself.

import { chat, end, root, texts, warn } from "./page.js";

const POLL_SECONDS = 3;
const IDLE_SECONDS = 30;
const LONGEST_WAIT = 30;
const SILENT_SECONDS = 60;
const OVER = 4401;
const FORBIDDEN = 4403;
const NOT_FOUND = 4404;
const TOO_MANY = 4429;

let socket = null;
let failures = 0;
let heardAt = 0;
let timer = 0;
let reconnection = 0;
let onEvent = () => {};
let onCatchUp = () => {};

/** `event` gets every frame of the chat; `catchUp` is called whenever something may have been missed. */
export function start({ event, catchUp }) {
  onEvent = event;
  onCatchUp = catchUp;
  connect();
  poll();
}

/** Another chat is open now. */
export function follow() {
  if (isOpen()) {
    subscribe();
  }
  connect();
}

const isOpen = () => socket?.readyState === WebSocket.OPEN;
const say = (frame) => socket.send(JSON.stringify(frame));

function subscribe() {
  if (chat.uuid) {
    say({ type: "subscribe", conversation: chat.uuid });
  }
}

function connect() {
  clearTimeout(reconnection);
  if (chat.isOver || (socket && socket.readyState <= WebSocket.OPEN)) {
    return;
  }
  const address = new URL("/ws/agent/", location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  const opened = new WebSocket(address);
  socket = opened;
  opened.addEventListener("open", () => {
    heardAt = Date.now();
    subscribe();
    // One that is closed at once was none.
    setTimeout(() => {
      if (socket === opened && failures > 0) {
        failures = 0;
        offline("");
      }
    }, 3_000);
    onCatchUp();
  });
  opened.addEventListener("message", (message) => {
    heardAt = Date.now();
    const frame = JSON.parse(message.data);
    if (frame.conversation === chat.uuid) {
      onEvent(frame);
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
  if (chat.isOver || document.hidden) {
    return;
  }
  if (code === OVER || code === FORBIDDEN || code === NOT_FOUND) {
    end({ [OVER]: texts.over, [FORBIDDEN]: texts.closed, [NOT_FOUND]: texts.gone }[code]);
    return;
  }
  failures += 1;
  if (failures > 1) {
    offline(texts.offline);
  }
  const wait = code === TOO_MANY ? 60 : Math.min(LONGEST_WAIT, 2 ** failures) * (0.5 + Math.random() / 2);
  reconnection = setTimeout(connect, 1000 * wait);
}

function offline(text) {
  root.dataset.offline = text;
  warn(text);
}

function poll() {
  clearTimeout(timer);
  timer = setTimeout(
    () => {
      if (!document.hidden && !chat.isOver) {
        onCatchUp();
      }
      poll();
    },
    1000 * (isOpen() ? IDLE_SECONDS : POLL_SECONDS),
  );
}

function wake() {
  if (!document.hidden && !chat.isOver) {
    // A socket that slept through may be dead without knowing it.
    if (isOpen() && Date.now() - heardAt > 1000 * SILENT_SECONDS) {
      drop();
    }
    connect();
    onCatchUp();
  }
}

function drop() {
  const left = socket;
  socket = null;
  left?.close();
}

// Some proxies end a socket on which nothing is said, and the answer shows that it is alive.
setInterval(() => {
  if (isOpen()) {
    say({ type: "ping" });
  }
}, 25_000);
setInterval(() => {
  if (isOpen() && Date.now() - heardAt > 1000 * SILENT_SECONDS) {
    drop();
    closed(0);
  }
}, 10_000);

addEventListener("pageshow", (event) => {
  if (event.persisted) {
    wake();
  }
});
addEventListener("pagehide", drop);
addEventListener("online", () => {
  // Another network: the old socket leads nowhere, even if nobody has noticed yet.
  drop();
  failures = 0;
  offline("");
  wake();
});
addEventListener("offline", () => offline(texts.offline));
document.addEventListener("visibilitychange", wake);
root.addEventListener("over", () => {
  clearTimeout(timer);
  clearTimeout(reconnection);
  drop();
});
