// Conveniences for annotators. Every page works without this script, and the script does not change the questions.
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const $ = (...where) => all(...where)[0];
const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
const on = (target, names, act) => names.split(" ").forEach((name) => target.addEventListener(name, act));
// A text of this page in its language, with these values (annotators/pages/script_texts.py).
const text = (name, values) => JSON.parse(document.body.dataset.texts)[name].replace(/%\((\w+)\)s/g, (_, key) => values[key]);
const { pathname } = location;
const { page, state } = document.body.dataset;
const form = $("#answers");
const RETRY = 5000;

// In a panel's frame the browser may forbid storage. Then it keeps no copy.
const attempt = (act) => { try { return act(localStorage); } catch { return null; } };
const recall = (key) => attempt((storage) => JSON.parse(storage["heval:" + key]));
const remember = (key, value) => attempt((storage) => { storage["heval:" + key] = JSON.stringify(value); });
const forget = (start, but) => attempt((storage) => Object.keys(storage).forEach((key) => {
  if (key.startsWith("heval:" + start) && key !== "heval:" + but) storage.removeItem(key);
}));

const clock = (time) => new Date(time).toLocaleTimeString(document.documentElement.lang, { hour: "2-digit", minute: "2-digit", numberingSystem: "latn" });
function say(words, isBad = false) {
  $(".saved").classList.toggle("unsaved", isBad);
  $(".saved span").textContent = words;
}

// Drafts are sent after a pause in typing. The browser keeps what the server does not have yet.
// If another tab or device has saved newer answers, this one is stale: it saves and sends nothing more.
let typed = 0, safe = 0, seconds = 0, timer, sending, isSent, isStale, renew = () => {};
const answers = () => new URLSearchParams([...new FormData(form), ["save", "auto"]]);
const keep = () => remember(pathname, { seconds, answers: typed > safe && !isStale ? [...new FormData(form)] : null });

function changed() {
  typed += 1;
  keep();
  clearTimeout(timer);
  timer = setTimeout(save, 1500);
}

// Returns false if the server cannot be reached, and tries again later.
async function save() {
  await sending;
  clearTimeout(timer);
  if (isStale) return true;
  const upTo = typed;
  sending = fetch(pathname, { method: "POST", body: answers() }).catch(() => null);
  const reply = await sending;
  if (!(reply?.status < 429)) {
    say(text("offline"), true);
    timer = setTimeout(save, RETRY);
    return false;
  }
  const words = await reply.text().catch(() => "");
  if (reply.ok) {
    safe = upTo;
    say(text("saved", { time: clock(Date.now()) }));
    renew(words);
  } else {
    const refused = $("#refused", new DOMParser().parseFromString(words, "text/html"));
    isStale = refused?.dataset.stale === "";
    say(refused?.textContent || text("not_saved"), true);
  }
  keep();
  return true;
}

function restore() {
  const copy = recall(pathname) || {};
  seconds = copy.seconds || 0;
  if (!copy.answers || $("#problems")) return;
  const values = new Map(copy.answers);
  for (const field of form.elements) {
    if (/radio|checkbox/.test(field.type)) field.checked = values.get(field.name) === field.value;
    else if (field.type !== "hidden" && values.has(field.name)) field.value = values.get(field.name);
  }
  changed();
}

// Save first, then send: the page is only sent when the server answers, so a lost connection loses no answers.
async function send(event) {
  if (isSent) return;
  event.preventDefault();
  const { submitter } = event;
  if (submitter.value === "next") return moveOn();
  if (isSent === false && !isStale) return;
  isSent = false;
  submitter.ariaDisabled = "true";
  while (!(await save())) await new Promise((done) => { setTimeout(done, RETRY); });
  isSent = !isStale;
  submitter.ariaDisabled = isSent;
  if (isSent) form.requestSubmit(submitter);
}

// Focuses a question, and none of its answers: there, a key that somebody presses to read on would answer it.
function goTo(question) {
  question.tabIndex = -1;
  if (!question.matches("fieldset")) {
    question.setAttribute("role", "group");
    question.ariaLabel = $(".ask, .point", question).innerText;
  }
  question.focus({ preventScroll: true });
  const parts = $(":checked", question) ? [":checked"] : [".ask", "input, textarea"];
  parts.forEach((part) => $(part, question)?.scrollIntoView({ block: "nearest" }));
}

// Enter in a field presses the form's first button, which is hidden. It leads to the next question, into its field if one types
// there, or to the button that sends.
function moveOn() {
  const from = document.activeElement;
  const next = all(".field, [name=go]", form).find((stop) => stop.checkVisibility() &&
    from.compareDocumentPosition(stop) & Node.DOCUMENT_POSITION_FOLLOWING);
  const typed = next?.matches("button") ? next : next && $("[type=text], textarea", next);
  if (typed) typed.focus();
  else if (next) goTo(next);
}

// An answer clears "Cannot answer?", and a reason in "Cannot answer?" clears the answer.
function settle({ target }) {
  const field = target.closest(".field");
  const reason = field && $("select", field);
  if (reason && target !== reason) reason.value = "";
  else if (reason?.value) all("input:not([type=range])", field).forEach((input) => {
    input.checked = false;
    if (input.type === "text") input.value = "";
    input.dispatchEvent(new Event("input"));
  });
}

if (state === "open") {
  // A tab keeps its name when it is loaded again: its last draft may arrive after the page was made.
  const name = Math.random().toString(36).slice(2, 12);
  form.append(make("input", { type: "hidden", name: "tab", value: attempt(() => sessionStorage["heval:tab"] ||= name) || name }));
  forget(page, pathname);
  restore();
  // Load the clock of the place after the page. Until then, the server's text shows how long the place is kept.
  const place = $("#place-status");
  if (place) on(window, "load", () => setTimeout(async () => {
    renew = (await import(place.dataset.script)).watch(place, say, clock, text, answers);
  }, 1000));
  // What is typed is saved, so no link needs a tab of its own, from which "Back to the study" would open the page once more.
  all("a[target]:not(.picture)").forEach((link) => {
    link.removeAttribute("target");
    $(".heard", link)?.remove();
  });
  on(form, "input", changed);
  on(form, "change", settle);
  on(form, "submit", send);
  on(form, "keyed", ({ target }) => goTo(target));
  on(document, "keydown", (event) => {
    const { target, key, repeat } = event;
    if (key !== "Enter" || target.matches("textarea")) return;
    // A key that is held down must not run through the fields and press the button that sends.
    if (repeat) event.preventDefault();
    else if (recall("keys") && target.matches("body, main, .field")) form.requestSubmit($("[name=go]"));
  });
  on(window, "online", () => { if (typed > safe) save(); });
  on(window, "visibilitychange pagehide", () => {
    if (typed > safe && !isSent && !isStale) navigator.sendBeacon(pathname, answers());
    keep();
  });
  // Count the seconds in which the person was active.
  let stirred = Date.now();
  on(window, "pointermove pointerdown keydown scroll", () => { stirred = Date.now(); });
  setInterval(() => {
    if (!document.hidden && Date.now() - stirred < 60000) form.elements.active.value = ++seconds;
  }, 1000);
} else if (page) forget(state === "over" ? page : pathname);

// An open link names nobody. So this browser remembers what was begun by it, and the link offers that (open-link.js).
if (page) {
  const link = attempt(() => sessionStorage["heval:link"]);
  attempt(() => sessionStorage.removeItem("heval:link"));
  if (link) remember("begun:" + link, [...new Set([page, ...recall("begun:" + link) || []])].slice(0, 5));
  const place = state === "over" ? "" : $("#place")?.firstChild.textContent;
  if (link || recall("seen:" + page)) remember("seen:" + page, { at: Date.now(), place });
}

all("form:not(#answers)").forEach((other) => on(other, "submit", (event) => {
  if (other.dataset.sent) event.preventDefault();
  other.dataset.sent = 1;
}));
all("[data-copies]").forEach((button) => {
  button.hidden = false;
  on(button, "click", () => {
    getSelection().selectAllChildren($("#" + button.dataset.copies));
    document.execCommand("copy");
    button.textContent = text("copied");
  });
});
