// Submits the form that leads back to a panel. Without this script, the person presses its button.
const place = document.querySelector("[data-way-back]");
const form = place.closest("form");
const key = "gone:" + location.pathname;
// In a panel's frame the browser may forbid storage.
const attempt = (act) => { try { return act(sessionStorage); } catch { return null; } };
const [visit] = performance.getEntriesByType("navigation");

form.addEventListener("submit", () => {
  attempt((storage) => { storage[key] = 1; });
  // If the request failed, the person may send it again.
  setTimeout(() => { delete form.dataset.sent; }, 5000);
});
// Submit by script only once, on the first visit to the page, and not when the person comes back.
if ("goes" in place.dataset && visit?.type === "navigate" && !attempt((storage) => storage[key])) setTimeout(() => {
  if (!form.dataset.sent) form.requestSubmit();
}, 2000);
