// Error marks by pointing: pressing a sentence's number, or selecting words, opens the next free mark. The fields alone are enough too.
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const text = (name, values) => JSON.parse(document.body.dataset.texts)[name].replace(/%\((\w+)\)s/g, (_, key) => values[key]);
const input = (row, part) => row.querySelector(`[name$=".${part}"]`);
const rows = all(".mark");
const isOpen = document.body.dataset.state === "open";
const set = document.querySelector(".marks"), full = document.querySelector(".full");
// Where the marks have no room beside the text, each one lies under its sentence.
const narrow = matchMedia("(max-width: 59.99em)");

const length = (words) => [...words].length; // code points, as the server counts them
const sentence = (number) => all(".part").find(({ dataset }) => dataset.part === number)?.querySelector(".said-here");

function put(row) {
  const where = input(row, "where").value;
  const under = narrow.matches && sentence(where)?.parentElement;
  if ((under || row.home) === row.under) return;
  row.under = under || row.home;
  const focused = row.contains(document.activeElement) && document.activeElement;
  row.under.after(row);
  if (focused) focused.focus({ preventScroll: true });
}

function show(row) {
  const where = input(row, "where").value, whole = sentence(where)?.textContent || "";
  put(row);
  const [from, to] = input(row, "words").value.split("-").map(Number);
  const words = to ? [...whole].slice(from, to).join("") : whole;
  row.quote.textContent = words && text("quote", { words });
  row.quote.hidden = !words;
  row.whole.hidden = !to;
  const names = ["category", "severity"].map((part) => input(row, part)).filter(({ value }) => value);
  const place = where === "0" ? [text("no_sentence")] : where ? [text("sentence", { number: where })] : [];
  row.caption.textContent = [row.called, [...place, ...names.map((select) => select.selectedOptions[0].text)].join(" · ")].filter(Boolean).join(": ");
  const marked = new Set(rows.map((other) => input(other, "where").value));
  all(".part").forEach((part) => part.classList.toggle("marked", marked.has(part.dataset.part)));
}

const changed = (row) => {
  show(row);
  input(row, "where").dispatchEvent(new Event("input", { bubbles: true }));
};

// Says under the sentence why nothing more can be marked.
function sayFull(number) {
  sentence(number).parentElement.after(full);
  full.textContent = "";
  setTimeout(() => {
    full.textContent = full.dataset.words;
    full.scrollIntoView({ block: "nearest" });
  });
}

function mark(number, words = "") {
  const row = rows.find((other) => !input(other, "where").value && !input(other, "category").value);
  if (!row) return sayFull(number);
  row.open = true;
  input(row, "where").value = number;
  input(row, "words").value = words;
  all("[type=checkbox]", set).forEach((none) => { none.checked = false; });
  changed(row);
  input(row, "category").focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

// Returns the selected words as "from-to" within one sentence, or null if the selection is empty or crosses sentences.
function selected() {
  const selection = getSelection();
  if (!selection.rangeCount || selection.isCollapsed) return null;
  const range = selection.getRangeAt(0);
  const part = range.startContainer.parentElement?.closest(".part");
  const words = part?.querySelector(".said-here");
  if (!words?.contains(range.startContainer) || !words.contains(range.endContainer)) return null;
  const before = document.createRange();
  before.setStart(words, 0);
  before.setEnd(range.startContainer, range.startOffset);
  const from = length(before.toString());
  return { number: part.dataset.part, words: `${from}-${from + length(range.toString())}`, text: range.toString() };
}

rows.forEach((row) => {
  row.under = row.home = document.createComment("");
  row.before(row.home);
  row.caption = row.querySelector(".set");
  row.called = row.caption.textContent;
  row.quote = Object.assign(document.createElement("p"), { className: "quote", dir: "auto" });
  row.whole = Object.assign(document.createElement("button"), { type: "button", className: "plain", textContent: text("whole") });
  input(row, "where").parentElement.after(row.quote, row.whole);
  row.whole.addEventListener("click", () => { input(row, "words").value = ""; changed(row); });
  if (isOpen) {
    const back = Object.assign(document.createElement("button"), { type: "button", className: "plain", textContent: text("remove") });
    back.addEventListener("click", () => {
      ["where", "category", "severity", "words"].forEach((part) => { input(row, part).value = ""; });
      changed(row);
      row.open = false;
      full.textContent = "";
      row.querySelector("summary").focus();
    });
    row.append(back);
  } else row.whole.remove();
  row.addEventListener("change", ({ target }) => {
    if (target === input(row, "where")) input(row, "words").value = "";
    if (target.value) all("[type=checkbox]", set).forEach((none) => { none.checked = false; });
    show(row);
  });
  show(row);
});

narrow.addEventListener("change", () => rows.forEach(put));
if (isOpen && rows.length) {
  all(".by-pointing").forEach((line) => { line.hidden = false; });
  all(".part .nr").forEach((number) => {
    const button = Object.assign(document.createElement("button"), {
      type: "button", className: "nr", textContent: number.textContent, ariaLabel: text("mark_sentence", { number: number.textContent }),
    });
    button.addEventListener("click", () => mark(number.textContent));
    number.replaceWith(button);
  });
  const offer = Object.assign(document.createElement("button"), { type: "button", className: "first offer", hidden: true });
  document.querySelector(".read").append(offer);
  let chosen = null;
  document.addEventListener("selectionchange", () => {
    chosen = selected();
    offer.hidden = !chosen;
    if (chosen) offer.textContent = text("mark_words", { words: chosen.text.slice(0, 40) + (chosen.text.length > 40 ? "…" : "") });
  });
  // Pressing the button must not clear the selection first.
  offer.addEventListener("pointerdown", (event) => event.preventDefault());
  offer.addEventListener("click", () => {
    const { number, words } = chosen;
    getSelection().removeAllRanges();
    mark(number, words);
  });
}
