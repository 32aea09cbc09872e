// The page Question: what annotators will see follows the form, and fields that the chosen card does not need are away.
const form = document.getElementById("question-form");
const button = document.getElementById("show-page");
let waiting = 0;

const show = () => {
  // In a new frame the page is no step of the browser's history.
  const frame = form.querySelector("iframe");
  frame.replaceWith(frame.cloneNode());
  form.requestSubmit(button);
};

const adapt = () => {
  const card = form.querySelector("[name=card]:checked");
  const criteria = Number(card?.dataset.criteria ?? 1);
  form.querySelector("[data-for=criteria]").hidden = criteria < 1;
  form.querySelector("[data-for=more]").hidden = criteria < 2;
  form.querySelector("[data-for=compares]").hidden = card?.dataset.compares === "no";
  if (form.elements.criterion.value === "own") document.getElementById("own").open = true;
  form.querySelectorAll("[name=more]").forEach((box) => {
    // The criterion that is chosen above needs no second tick.
    const isChosen = box.value === form.elements.criterion.value;
    if (criteria < 2 || isChosen) box.checked = false;
    box.closest(".box").hidden = isChosen;
  });
  if (card) show();
};

if (form) {
  button.hidden = true;
  form.addEventListener("change", () => {
    clearTimeout(waiting);
    waiting = setTimeout(adapt, 150);
  });
  adapt();
}
