// The API reference: asks this server for the document, with the key that was typed or without one, and shows it in the reader.
// The key is held in this module's memory alone, until the page is left.

const { admin, public: publicPath } = document.body.dataset;
const input = document.getElementById("key");
const shown = document.getElementById("shown");
const failed = document.getElementById("failed");
const reader = document.getElementById("reader");

let key = null;
let latest = 0;

async function show(path, wantedKey) {
  const number = ++latest;
  say(shown, shown.dataset.loading);
  say(failed, "");
  let answer, found;
  try {
    answer = await fetch(path, {
      headers: wantedKey === null ? {} : { Authorization: `Bearer ${wantedKey}` },
      credentials: "omit",
      cache: "no-store",
    });
    found = await answer.json();
  } catch {
    return refuse(number, failed.dataset.unreachable);
  }
  if (number !== latest) {
    return;
  }
  if (!answer.ok) {
    return refuse(number, explained(answer.status, found));
  }
  key = wantedKey;
  say(shown, wantedKey === null ? shown.dataset.public : shown.dataset.admin);
  render(found);
}

function explained(status, problem) {
  if (problem.code === "unauthorized") {
    return failed.dataset.key;
  }
  return status === 403 && problem.code === "api_disabled" && key === null && input.value === ""
    ? failed.dataset.closed
    : `${problem.title}: ${problem.detail}`;
}

function refuse(number, text) {
  if (number === latest) {
    say(shown, "");
    say(failed, text);
  }
}

function say(place, text) {
  place.textContent = text;
  if (place === failed) {
    place.hidden = text === "";
  }
}

function render(found) {
  // The calls go where this page came from, whatever name the server calls itself by.
  found.servers = [{ ...found.servers[0], url: location.origin }];
  reader.replaceChildren();
  window.SwaggerUIBundle({
    spec: found,
    domNode: reader,
    deepLinking: false,
    docExpansion: "list",
    defaultModelsExpandDepth: -1,
    displayRequestDuration: true,
    persistAuthorization: false,
    validatorUrl: null,
    withCredentials: false,
    tryItOutEnabled: false,
    requestInterceptor,
  });
}

/** Adds the key where the call is sent and not before: the command line that the reader shows has a placeholder. No other host is called. */
function requestInterceptor(request) {
  if (new URL(request.url, location.href).origin !== location.origin) {
    throw new Error("Calls go to this host alone.");
  }
  if (key !== null) {
    request.headers.Authorization = "Bearer YOUR_KEY";
  }
  request.userFetch = (url, { headers, ...options }) =>
    fetch(url, {
      ...options,
      headers: key === null ? headers : { ...headers, Authorization: `Bearer ${key}` },
      credentials: "omit",
    });
  return request;
}

document.getElementById("with-key").addEventListener("submit", (event) => {
  event.preventDefault();
  const typed = input.value.trim();
  if (!/^\w+$/.test(typed)) {
    return say(failed, failed.dataset.odd);
  }
  show(admin, typed);
});
document.getElementById("without-key").addEventListener("click", () => {
  input.value = "";
  show(publicPath, null);
});
// Left and come back to: the browser may have kept the page with the key in it.
addEventListener("pageshow", (event) => {
  if (event.persisted) {
    location.reload();
  }
});
addEventListener("pagehide", () => {
  key = null;
  input.value = "";
});

/** The reader's lists of examples and of media types have no name for those who hear the page. */
function nameLists() {
  for (const list of reader.querySelectorAll("select:not([aria-label], [aria-labelledby])")) {
    const label = list.closest(".examples-select, label")?.querySelector(".examples-select__section-label");
    list.setAttribute("aria-label", (label?.textContent ?? reader.dataset.choose).replace(/:\s*$/, ""));
  }
}
new MutationObserver(nameLists).observe(reader, { childList: true, subtree: true });

const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

show(publicPath, null);
