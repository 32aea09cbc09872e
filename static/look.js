// Under a question about two labels, shows once more what these two wrote. Without this script, the page opens whole prompts.
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const text = (name, values) => JSON.parse(document.body.dataset.texts)[name].replace(/%\((\w+)\)s/g, (_, key) => values[key]);
const blank = document.querySelector("#looked");

// Copies of a prompt and of its outputs with these labels. Their fields and names stay with the originals.
function copies(labels) {
  return all(".again > details").flatMap((prompt) => {
    const found = labels.map((label) => prompt.querySelector(`.cell[id$="-${label}"]`)).filter(Boolean);
    const cells = Object.assign(document.createElement("div"), { className: "cells" });
    cells.append(...found.map((cell) => cell.cloneNode(true)));
    return found.length ? [prompt.querySelector(".prompt").cloneNode(true), cells] : [];
  });
}

all(".look").forEach((button) => {
  const labels = button.dataset.labels.split(" "), [first, second] = labels;
  button.append(Object.assign(document.createElement("span"), { className: "wide-only", textContent: text("show", { first, second }) }));
  button.dataset.short = labels.join(" · ");
  const question = button.parentElement;
  const box = blank.content.firstElementChild.cloneNode(true);
  const toggle = () => {
    const isOpen = !box.isConnected;
    button.ariaExpanded = isOpen;
    if (!isOpen) {
      box.remove();
      button.focus();
      question.scrollIntoView({ block: "start" });
      return;
    }
    box.firstElementChild.replaceChildren(...copies(labels));
    all(".jump, .unseen, .said", box.firstElementChild).forEach((part) => part.remove());
    all("[id], [aria-labelledby]", box).forEach((part) => ["id", "aria-labelledby", "role", "tabindex"].forEach((name) => part.removeAttribute(name)));
    question.append(box);
    box.ariaLabel = button.innerText;
    box.focus({ preventScroll: true });
    box.scrollIntoView({ block: "nearest" });
  };
  Object.assign(button, { hidden: false, ariaExpanded: false });
  // Beside a number, behind the slider that another script adds, the button takes no room from the question.
  document.addEventListener("DOMContentLoaded", () => question.querySelector(".chance")?.append(button));
  button.addEventListener("click", toggle);
  box.querySelector("button").addEventListener("click", toggle);
});
