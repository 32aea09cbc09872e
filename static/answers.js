// Sliders beside number fields, counts below texts, and answers by number keys. Pages with questions load this script and work without it.
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const $ = (...where) => all(...where)[0];
const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
const on = (target, names, act) => names.split(" ").forEach((name) => target.addEventListener(name, act));
const text = (name, values) => JSON.parse(document.body.dataset.texts)[name].replace(/%\((\w+)\)s/g, (_, key) => values[key]);
const form = $("#answers");

// Parse numbers exactly as studies/protocols/base/fields.py does.
const SIGNS = { "−": "-", "﹣": "-", "－": "-", "＋": "+", "％": "%", "٪": "%", "．": ".", "，": ",", "٫": "," };
const isDigit = (code) => /\p{Nd}/u.test(String.fromCodePoint(code));

// Returns a character as an English keyboard types it. In Unicode, the ten digits of each script are consecutive, from zero.
function plain(character) {
  if (/[\u061c\u200e\u200f]/.test(character)) return "";
  if (/[\p{Zs}\t]/u.test(character)) return " ";
  const code = character.codePointAt();
  if (!isDigit(code)) return SIGNS[character] ?? character;
  let zero = code;
  while (isDigit(zero - 1)) zero -= 1;
  return String((code - zero) % 10);
}

function numberIn(typed, { min, max, unit = "" }) {
  const [, sign, digits, end] = [...typed].map(plain).join("").trim()
    .match(/^([+-]?)(\d{1,9})(?:[.,](?:00?|0{4,}))?(?: *(%))?$/) || [];
  const number = sign === "-" ? -digits : +digits;
  const isTaken = !Object.is(number, -0) && number >= +min && number <= +max && (!end || end === unit);
  return isTaken ? number : null;
}

// A slider has no position until it is used.
function addSlider(field) {
  const { min, max } = field.dataset;
  const slider = make("input", { type: "range", min, max, ariaLabel: text("slider", { question: $(".lines", field.labels[0]).textContent }) });
  // The field's value from before a finger touched the slider; null otherwise. The finger may only scroll the page.
  let before = null;
  let isScrolling = false;
  const follow = () => {
    const number = numberIn(field.value, field.dataset);
    slider.classList.toggle("unset", number === null);
    slider.value = number ?? "";
    slider.ariaValueText = number ?? text("unset");
  };
  const lead = () => {
    if (isScrolling) return follow();
    field.value = slider.value;
    if (before === null) ["input", "change"].forEach((name) => field.dispatchEvent(new Event(name, { bubbles: true })));
    else follow();
  };
  const release = () => { before = null; };
  on(field, "input", follow);
  on(slider, "pointerdown", ({ pointerType }) => {
    isScrolling = false;
    before = pointerType === "mouse" ? null : field.value;
  });
  on(slider, "pointercancel", () => {
    if (before !== null) field.value = before;
    isScrolling = true;
    release();
    follow();
  });
  // After a scroll, the browser moves the slider once more when the finger is lifted.
  on(slider, "touchend touchcancel", () => setTimeout(() => { isScrolling = false; }, 100));
  on(slider, "pointerup", () => {
    const isNew = before !== null && before !== slider.value;
    release();
    if (isNew) lead();
  });
  // An unset slider is drawn in the middle. A press exactly there does not move it, so the click event counts as the answer.
  on(slider, "input change click", (event) => {
    event.stopPropagation();
    lead();
  });
  // Anything that is sent or saved during a touch contains the earlier answer.
  on(form, "formdata", ({ formData }) => { if (before !== null) formData.set(field.name, before); });
  const box = make("div", { className: "slide" });
  box.append(slider, ...[min, (+min + +max) / 2, max].map((n) => make("i", { textContent: n, ariaHidden: "true" })));
  field.parentElement.append(box);
  follow();
}

// The key of an answer is the number that is shown with it, or its position if answers have no numbers. "" if one key is not enough.
function keysOf(points) {
  const written = points.map((point) => $(".value", point.parentElement)?.textContent);
  const keys = written.some(Boolean) ? written : points.map((_, n) => `${n + 1}`);
  return keys.map((key) => (/^\d$/.test(key) ? key : ""));
}

function addKeys(groups, setting) {
  const box = make("input", { type: "checkbox", checked: setting.get() });
  const line = make("label", { className: "keys" });
  line.append(box, text("keys"));
  $(".go").before(line);
  const announcement = make("p", { className: "heard", role: "status" });
  line.after(announcement);
  const answers = groups.flatMap((group) => {
    const points = all("[type=radio]", group), keys = keysOf(points);
    return points.map((point, n) => ({ group, point, key: keys[n] })).filter(({ key }) => key);
  });
  const show = () => answers.forEach(({ point, key }) => {
    const value = $(".value", point.parentElement);
    point.parentElement.querySelector("kbd")?.remove();
    point.removeAttribute("aria-keyshortcuts");
    if (value) value.textContent = key;
    if (!box.checked) return;
    point.setAttribute("aria-keyshortcuts", key);
    const label = make("kbd", { textContent: key });
    if (value) return value.replaceChildren(label);
    // Screen readers must still read the name of the answer, such as "Story B", without the key.
    label.ariaHidden = "true";
    point.after(label);
  });
  on(box, "change", () => { setting.set(box.checked); show(); });
  show();
  const isOpen = (question) => !all("input, select, textarea", question).some((input) =>
    /radio|checkbox/.test(input.type) ? input.checked : input.type !== "range" && input.value.trim());
  const questions = all(".field").filter((field) => groups.includes(field) || $("[aria-required]", field));
  const next = (group) => {
    const place = questions.indexOf(group);
    return [...questions.slice(place + 1), ...questions.slice(0, place)].find(isOpen);
  };
  on(document, "keydown", (event) => {
    const { target, key, repeat, ctrlKey, altKey, metaKey } = event;
    if (!box.checked || repeat || ctrlKey || altKey || metaKey || target.matches("select") || [...key].length > 1) return;
    // If the focus is in another kind of question, the key is input for that question.
    const group = target.closest("[role=radiogroup]") || (!target.closest(".field, .marks") && groups.find(isOpen));
    const chosen = answers.find((answer) => answer.group === group && answer.key === plain(key));
    if (!chosen) return;
    event.preventDefault();
    chosen.point.click();
    announcement.textContent = text("chosen", { answer: all("span", chosen.point.parentElement).map((span) => span.textContent).join(" ") });
    // The focus goes to a question and never onto an answer, which the next key could change.
    (next(group) ?? group).dispatchEvent(new Event("keyed", { bubbles: true }));
  });
}

// Counts what is typed. Nothing is cut off: what is too long says so, and can be shortened.
function addCount(field) {
  const most = Number(field.dataset.most);
  const line = document.getElementById(field.id + "-c") || make("p", { className: "count" });
  const allowed = line.textContent;
  const show = () => {
    const n = [...field.value].length, isOver = n > most;
    line.classList.toggle("wrong", isOver);
    line.role = isOver ? "alert" : null;
    const count = allowed ? `${n} · ${allowed}` : text("count", { number: n, most });
    line.textContent = isOver ? text("too_long", { count }) : count;
  };
  on(field, "input", show);
  field.after(line);
  show();
}

all("textarea[data-most]").forEach(addCount);
all("[data-has-range]").forEach(addSlider);
const groups = all("[role=radiogroup]");
// In a panel's frame the browser may forbid storage. Then the setting lasts only for this page.
if (groups.length) addKeys(groups, {
  get() { try { return localStorage["heval:keys"] === "true"; } catch { return false; } },
  set(isOn) { try { localStorage["heval:keys"] = isOn; } catch { /* the setting is not kept */ } },
});
