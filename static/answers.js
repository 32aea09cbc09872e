// Sliders beside number fields, and answers by number keys. Pages that ask something load this; all of them work without it.
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const $ = (...where) => all(...where)[0];
const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
const on = (target, names, act) => names.split(" ").forEach((name) => target.addEventListener(name, act));
const form = $("#answers");

// Numbers are read here exactly as studies/protocols/base/fields.py reads them.
const SIGNS = { "−": "-", "﹣": "-", "－": "-", "＋": "+", "％": "%", "٪": "%", "．": ".", "，": ",", "٫": "," };
const isDigit = (code) => /\p{Nd}/u.test(String.fromCodePoint(code));

// A character as it is typed on an English keyboard. Unicode keeps the ten digits of every script side by side, from zero on.
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
  const slider = make("input", { type: "range", min, max, ariaLabel: "Slider: " + field.labels[0].innerText });
  // While a finger is on the slider: what the field held before. The finger may turn out to scroll the page.
  let before = null;
  let isScrolling = false;
  const follow = () => {
    const number = numberIn(field.value, field.dataset);
    slider.classList.toggle("unset", number === null);
    slider.value = number ?? "";
    slider.ariaValueText = number ?? "not set";
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
  // The browser moves the slider once more when the finger that scrolled is lifted.
  on(slider, "touchend touchcancel", () => setTimeout(() => { isScrolling = false; }, 100));
  on(slider, "pointerup", () => {
    const isNew = before !== null && before !== slider.value;
    release();
    if (isNew) lead();
  });
  // Pressed in the very middle, where an unset slider is already, it does not move: the click says that it was meant.
  on(slider, "input change click", (event) => {
    event.stopPropagation();
    lead();
  });
  // Whatever is sent or kept meanwhile holds the answer from before.
  on(form, "formdata", ({ formData }) => { if (before !== null) formData.set(field.name, before); });
  const box = make("div", { className: "slide" });
  box.append(slider, ...[min, (+min + +max) / 2, max].map((n) => make("i", { textContent: n, ariaHidden: "true" })));
  field.parentElement.append(box);
  follow();
}

// The key of an answer is the number written at it; where answers are not numbered, its place. "" where one key cannot say it.
function keysOf(points) {
  const written = points.map((point) => $(".value", point.parentElement)?.textContent);
  const keys = written.some(Boolean) ? written : points.map((_, n) => `${n + 1}`);
  return keys.map((key) => (/^\d$/.test(key) ? key : ""));
}

function addKeys(groups, kept) {
  const box = make("input", { type: "checkbox", checked: kept.get() });
  const line = make("label", { className: "keys" });
  line.append(box, "Answer with number keys; Enter sends the page");
  $(".go").before(line);
  const said = make("p", { className: "heard", role: "status" });
  line.after(said);
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
    const written = make("kbd", { textContent: key });
    if (value) return value.replaceChildren(written);
    // A name such as "Story B" stays what it is.
    written.ariaHidden = "true";
    point.after(written);
  });
  on(box, "change", () => { kept.set(box.checked); show(); });
  show();
  const isOpen = (question) => !all("input, select, textarea", question).some((one) =>
    /radio|checkbox/.test(one.type) ? one.checked : one.type !== "range" && one.value.trim());
  const questions = all(".field").filter((one) => groups.includes(one) || $("[aria-required]", one));
  const next = (group) => {
    const place = questions.indexOf(group);
    return [...questions.slice(place + 1), ...questions.slice(0, place)].find(isOpen);
  };
  on(document, "keydown", (event) => {
    const { target, key, repeat, ctrlKey, altKey, metaKey } = event;
    if (!box.checked || repeat || ctrlKey || altKey || metaKey || target.matches("select") || [...key].length > 1) return;
    // In another question the key belongs to what is typed there.
    const group = target.closest("[role=radiogroup]") || (!target.closest(".field, .marks") && groups.find(isOpen));
    const chosen = answers.find((one) => one.group === group && one.key === plain(key));
    if (!chosen) return;
    event.preventDefault();
    chosen.point.click();
    said.textContent = `Chosen: ${all("span", chosen.point.parentElement).map((one) => one.textContent).join(" ")}`;
    const open = next(group);
    (open ? $("input, textarea", open) : chosen.point).focus();
  });
}

all("[data-has-range]").forEach(addSlider);
const groups = all("[role=radiogroup]");
// Storage may be forbidden in a panel's frame: then the choice lasts as long as the page.
if (groups.length) addKeys(groups, {
  get() { try { return localStorage["heval:keys"] === "true"; } catch { return false; } },
  set(isOn) { try { localStorage["heval:keys"] = isOn; } catch { /* it is not kept */ } },
});
