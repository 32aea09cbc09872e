// The way back to a panel, where it is a form. Without script its button does the same.
const place = document.querySelector("[data-way-back]");
const form = place.closest("form");
const key = "gone:" + location.pathname;
// Storage may be forbidden in a panel's frame.
const attempt = (act) => { try { return act(sessionStorage); } catch { return null; } };
const [visit] = performance.getEntriesByType("navigation");

form.addEventListener("submit", () => {
  attempt((kept) => { kept[key] = 1; });
  // What did not get through may be sent again.
  setTimeout(() => { delete form.dataset.sent; }, 5000);
});
// Once, when the page was seen, and never on coming back to it.
if ("goes" in place.dataset && visit?.type === "navigate" && !attempt((kept) => kept[key])) setTimeout(() => {
  if (!form.dataset.sent) form.requestSubmit();
}, 2000);
