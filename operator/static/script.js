// Everything works without this. It sends a form once, says when things were on this clock, and goes to what was refused.
"use strict";

document.addEventListener("submit", (event) => {
  if (event.target.dataset.sent) {
    event.preventDefault();
  }
  event.target.dataset.sent = "1";
});

// A form that is come back to by the browser's history can be sent again.
window.addEventListener("pageshow", () => {
  for (const form of document.forms) {
    delete form.dataset.sent;
  }
});

for (const time of document.querySelectorAll("time")) {
  time.title += " (" + new Date(time.dateTime).toLocaleString() + " here)";
}

document.getElementById("refused")?.focus();
