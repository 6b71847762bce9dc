// A page that shows a secret once: copies it, and forgets it when the page is left, so that "back" finds nothing.

const page = document.querySelector("[data-shown-once]");

for (const button of page.querySelectorAll("[data-copy]")) {
  const state = button.parentElement.querySelector("[data-copy-state]");
  const source = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      state.textContent = button.dataset.copied;
    } catch {
      // Without the right to the clipboard (plain HTTP): the person copies the selection.
      getSelection().selectAllChildren(source);
    }
  });
}

addEventListener("pagehide", () => {
  for (const secret of page.querySelectorAll("[data-secret]")) {
    secret.textContent = "";
  }
});
