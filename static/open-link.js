// Beside a new start, an open link offers the pages that this browser began by it. It opens none of them by itself.
const $ = (selector) => document.querySelector(selector);
const offer = $("#places"), form = $("form[data-link]");
const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
const text = (name, values) => JSON.parse(document.body.dataset.texts)[name].replace(/%\((\w+)\)s/g, (_, key) => values[key]);
// In a frame the browser may forbid storage. Then it remembers nothing.
const attempt = (act) => { try { return act(); } catch { return null; } };
const recall = (key) => attempt(() => JSON.parse(localStorage["heval:" + key]));

function list() {
  const begun = recall("begun:" + location.pathname) || [];
  offer.hidden = !begun.length;
  if (!begun.length) return;
  offer.querySelector("ul").replaceChildren(...begun.map((href) => {
    const { at, place } = recall("seen:" + href) || {};
    const time = new Date(at).toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short", numberingSystem: "latn" });
    const item = make("li", {});
    item.append(make("a", { href, textContent: text(place ? "begun" : "ended", { place, time }) }));
    return item;
  }));
  $("[name=start]").textContent = text("start");
}

addEventListener("pageshow", list);
form?.addEventListener("submit", () => attempt(() => { sessionStorage["heval:link"] = location.pathname; }));
