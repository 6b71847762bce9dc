// The list of chats: search, rename, archive, and delete with a way back.

import { Idiomorph } from "../../vendor/idiomorph/idiomorph.esm.js";
import { base, call, chat, fragment, root, texts, warn } from "./page.js";
import * as thread from "./thread.js";

const search = document.getElementById("search");
const toast = root.querySelector("[data-toast]");
const dialog = root.querySelector("[data-rename]");
const opener = root.querySelector("[data-open-list]");

const TOAST_SECONDS = 12;
const TYPING = 250;

let asked = 0;
let typing = 0;
let toastTimer = 0;
let isLonger = false;

/** The list as it is now. */
export async function refresh(cursor = "") {
  const mine = ++asked;
  const address = new URL(`${base}list/`, location.href);
  address.searchParams.set("here", chat.uuid);
  address.searchParams.set("q", search.value);
  address.searchParams.set("cursor", cursor);
  try {
    const found = await fragment(address);
    // An answer that a later question has overtaken is dropped.
    if (found && mine === asked) {
      put(found.getElementById("chats"), cursor);
    }
  } catch {
    warn(texts.unreachable);
  }
}

/** The same by itself: not under the hand of who has a menu open, or who went further than the first page. */
export function refreshUnlessInUse() {
  if (!isLonger && !root.querySelector("[data-menu][open]")) {
    refresh();
  }
}

function put(fresh, cursor) {
  isLonger = Boolean(cursor);
  const old = document.getElementById("chats");
  const list = old.querySelector("ul");
  if (!cursor || !list) {
    Idiomorph.morph(old, document.importNode(fresh, true), { morphStyle: "outerHTML" });
    return;
  }
  list.append(...Array.from(fresh.querySelectorAll("li"), (row) => document.importNode(row, true)));
  old.querySelector("[data-more]").closest("p").replaceWith(document.importNode(fresh.querySelector("p") ?? document.createElement("p"), true));
}

root.addEventListener("click", (event) => {
  const more = event.target.closest("[data-more]");
  const action = event.target.closest("[data-do]");
  if (more) {
    refresh(more.dataset.more);
  } else if (action) {
    action.closest("details").open = false;
    ACTIONS[action.dataset.do](action.dataset.uuid, action.dataset.title ?? "");
  }
});

const ACTIONS = {
  rename,
  archive: (uuid) => putAway(uuid, () => call("POST", `conversations/${uuid}/archive`, {}), texts.archived, "unarchive"),
  unarchive: (uuid) => change(() => call("POST", `conversations/${uuid}/unarchive`, {})),
  delete: (uuid) => putAway(uuid, () => call("DELETE", `conversations/${uuid}`), texts.deleted, "restore"),
};

async function change(action) {
  try {
    await action();
    warn("");
  } catch (problem) {
    warn(problem.status ? `${texts.refused} ${problem.message}` : texts.unreachable);
    return false;
  }
  await refresh();
  return true;
}

async function putAway(uuid, action, text, back) {
  if (!(await change(action))) {
    return;
  }
  if (uuid === chat.uuid && back === "restore") {
    location.assign(`${base}?deleted=${uuid}`);
  } else {
    offerBack(text, uuid, back);
    thread.catchUp();
  }
}

function offerBack(text, uuid, back) {
  show(text, async () => {
    await change(() => call("POST", `conversations/${uuid}/${back}`, {}));
    thread.catchUp();
  });
}

// The page of the chat that was deleted a moment ago led here.
const deleted = new URL(location.href).searchParams.get("deleted");
if (/^[0-9a-f-]{36}$/.test(deleted ?? "")) {
  history.replaceState(null, "", base);
  show(texts.deleted, async () => {
    if (await change(() => call("POST", `conversations/${deleted}/restore`, {}))) {
      location.assign(`${base}${deleted}/`);
    }
  });
}

function show(text, undo) {
  clearTimeout(toastTimer);
  toast.querySelector("[data-toast-text]").textContent = text;
  toast.hidden = false;
  const button = toast.querySelector("[data-toast-undo]");
  button.onclick = () => {
    toast.hidden = true;
    undo();
  };
  leaveSoon();
}

function leaveSoon() {
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (toast.hidden = true), 1000 * TOAST_SECONDS);
}

// Nobody is hurried who is on the way to the button.
for (const name of ["pointerenter", "focusin"]) {
  toast.addEventListener(name, () => clearTimeout(toastTimer));
}
for (const name of ["pointerleave", "focusout"]) {
  toast.addEventListener(name, leaveSoon);
}

// --- Renaming ---------------------------------------------------------------------------------------------------------

let renamed = "";
function rename(uuid, title) {
  renamed = uuid;
  const field = dialog.querySelector("input");
  field.value = title;
  dialog.querySelector("[data-rename-error]").hidden = true;
  dialog.showModal();
  field.select();
}

dialog.querySelector("form").addEventListener("submit", async (event) => {
  if (event.submitter?.value !== "save") {
    return;
  }
  event.preventDefault();
  const error = dialog.querySelector("[data-rename-error]");
  try {
    await call("PATCH", `conversations/${renamed}`, { title: dialog.querySelector("input").value });
    dialog.close();
    if (renamed === chat.uuid) {
      thread.catchUp();
    }
    refresh();
  } catch (problem) {
    error.textContent = problem.status ? problem.message : texts.unreachable;
    error.hidden = false;
  }
});

// --- Searching, opening -----------------------------------------------------------------------------------------------

search.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(refresh, TYPING);
});
search.form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(typing);
  refresh();
});
opener.addEventListener("click", () => setOpen(!root.classList.contains("list-open")));
root.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    setOpen(false);
    for (const menu of root.querySelectorAll("[data-menu][open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  }
});
// The list scrolls, so a menu of its last rows would be cut: it stands in the window instead.
root.addEventListener(
  "toggle",
  (event) => {
    const menu = event.target;
    if (menu.matches("[data-menu][open]")) {
      const { bottom, top, right } = menu.getBoundingClientRect();
      const items = menu.querySelector(".menu-items");
      const fits = bottom + items.offsetHeight < innerHeight;
      items.style.setProperty("inset-block-start", `${fits ? bottom : Math.max(0, top - items.offsetHeight)}px`);
      items.style.setProperty("inset-inline-start", `${Math.max(0, right - items.offsetWidth)}px`);
    }
  },
  true,
);
document.addEventListener("click", (event) => {
  for (const menu of root.querySelectorAll("[data-menu][open]")) {
    if (!menu.contains(event.target)) {
      menu.open = false;
    }
  }
});

function setOpen(isOpen) {
  root.classList.toggle("list-open", isOpen);
  opener.setAttribute("aria-expanded", String(isOpen));
}
