// The chat page: which part does what.

import "./cards.js";
import * as composer from "./composer.js";
import * as list from "./list.js";
import * as live from "./live.js";
import { base, call, chat, root, texts, warn } from "./page.js";
import * as thread from "./thread.js";

let listTimer = 0;
function listSoon() {
  clearTimeout(listTimer);
  listTimer = setTimeout(list.refreshUnlessInUse, 1_000);
}

live.start({
  event: (frame) => {
    thread.heard(frame);
    if (frame.type === "agent_message_added") {
      listSoon();
    }
  },
  catchUp: () => {
    thread.catchUp();
    listSoon();
  },
});

composer.start({
  sent: (isNew) => {
    if (isNew) {
      history.replaceState(null, "", `${base}${chat.uuid}/`);
      root.dataset.chat = chat.uuid;
      document.body.classList.add("in-chat");
      live.follow();
    }
    thread.goToEnd();
    thread.catchUp();
    listSoon();
  },
});

root.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (button?.matches("[data-suggestion]")) {
    composer.send(button.textContent);
  } else if (button?.matches("[data-earlier]")) {
    thread.showEarlier(button);
  } else if (button?.matches("[data-retry]")) {
    retry(button);
  } else if (button?.matches("[data-copy]")) {
    copy(button);
  }
});

async function retry(button) {
  button.disabled = true;
  try {
    await call("POST", `conversations/${chat.uuid}/turn/retry`, {});
  } catch (problem) {
    warn(problem.status ? `${texts.refused} ${problem.message}` : texts.unreachable);
  }
  thread.catchUp();
}

async function copy(button) {
  const source = button.closest("[data-message]").querySelector("[data-source]").content.textContent;
  try {
    await navigator.clipboard.writeText(source);
    button.textContent = texts.copied;
    setTimeout(() => (button.textContent = texts.copy), 2_000);
  } catch {
    // Without TLS a page may not: the text is marked instead, for the keyboard.
    getSelection().selectAllChildren(button.closest("[data-message]").querySelector(".answer"));
  }
}

thread.goToEnd();
