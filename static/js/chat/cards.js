// The cards of proposed changes: a countdown, and the person's word, which counts once.

import { call, chat, now, root, texts } from "./page.js";
import * as thread from "./thread.js";

root.addEventListener("click", (event) => {
  const button = event.target.closest("[data-decide]");
  if (button) {
    decide(button);
  }
});

async function decide(button) {
  const card = button.closest("[data-card]");
  const article = card.closest("[data-message]");
  const buttons = card.querySelectorAll("[data-decide]");
  buttons.forEach((one) => (one.disabled = true));
  card.setAttribute("aria-busy", "true");
  fail(card, "");
  try {
    await call("POST", `conversations/${chat.uuid}/confirmations/${card.dataset.card}/${button.dataset.decide}`, {});
  } catch (problem) {
    fail(card, problem.reason === "used" ? texts.used : problem.status ? `${texts.refused} ${problem.message}` : texts.unreachable);
    buttons.forEach((one) => (one.disabled = chat.isOver));
  }
  card.removeAttribute("aria-busy");
  card.querySelector("h3").focus({ preventScroll: true });
  thread.again(article.dataset.message);
  thread.catchUp();
}

function fail(card, text) {
  const error = card.querySelector("[data-card-error]");
  if (!error) {
    return;
  }
  error.hidden = !text;
  error.textContent = text;
}

function count() {
  for (const time of root.querySelectorAll("[data-until]")) {
    const left = Math.ceil(Number(time.dataset.until) - now());
    const clock = left > 0 ? `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}` : "0:00";
    if (time.textContent !== clock) {
      time.textContent = clock;
    }
    time.closest("[data-card]").classList.toggle("hurry", left < 60);
    if (left <= 0 && left > -4) {
      thread.again(time.closest("[data-message]").dataset.message);
    }
  }
}
setInterval(count, 1000);
thread.onChange(count);
count();
