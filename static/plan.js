// The page Plan, and the page of a new study about people: the numbers follow the form while one types, and a slider moves the smallest difference that matters.
const form = document.getElementById("plan-form");
const live = document.getElementById("live");
const difference = document.getElementById("plan-difference");
const slider = document.getElementById("plan-slider");
let waiting = 0;
let asked = 0;

const ask = async () => {
  const number = ++asked;
  const sent = new URLSearchParams(new FormData(form));
  for (const name of ["file", "pilot", "file_protocol", "csrfmiddlewaretoken"]) sent.delete(name);
  sent.set("part", "live");
  live.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(`${location.pathname}?${sent}`, { headers: { Accept: "text/html" } });
    const isOfThisPage = !response.redirected && [200, 422].includes(response.status);
    // A later question has been asked meanwhile: its answer counts.
    if (number === asked && isOfThisPage) {
      const open = [...live.querySelectorAll("details")].map((one) => one.open);
      live.innerHTML = await response.text();
      live.querySelectorAll("details").forEach((one, place) => (one.open = open[place] ?? false));
    }
  } catch {
    // The server did not answer. The button still asks for the numbers.
  }
  if (number === asked) live.removeAttribute("aria-busy");
};

form.addEventListener("input", (event) => {
  if (event.target === slider) difference.value = slider.value;
  if (event.target === difference) slider.value = difference.value;
  clearTimeout(waiting);
  waiting = setTimeout(ask, 250);
});

// The numbers follow by themselves.
document.getElementById("show-numbers")?.setAttribute("hidden", "");

if (slider) {
  slider.value = difference.value;
  slider.hidden = false;
}
