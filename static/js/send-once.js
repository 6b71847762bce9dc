// A form whose answer is shown once: a double click would replace that answer by "it was sent already".

for (const form of document.querySelectorAll("form[data-send-once]")) {
  let isSent = false;
  form.addEventListener("submit", (event) => {
    if (isSent) {
      event.preventDefault();
    }
    isSent = true;
  });
  // Back from the next page, the form is there again.
  addEventListener("pageshow", () => {
    isSent = false;
  });
}
