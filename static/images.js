// Images: a page is sent when each of its images has loaded, or when the person has said which of them cannot be seen.
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const $ = (...where) => all(...where)[0];
const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
const LOADING = "loading", LOADED = "loaded", FAILED = "failed";
const form = $("#answers"), isOpen = document.body.dataset.state === "open";
const held = make("p", { id: "held", className: "held", role: "status" });
// The button that waits for images, and whether a press was ever held back.
let waiting = null, wasHeld = false;

// An image with what is said beside it while it is not there. Without an answer to give there is no box to tick.
const images = all(".image").map((box) => {
  const picture = $("img", box), address = picture.src;
  const words = make("p"), again = make("button", { type: "button", textContent: "Try again" });
  again.append(make("span", { className: "heard", textContent: ": " + picture.alt }));
  const note = make("div", { className: "said", hidden: true });
  note.append(words, again);
  $(".picture", box).after(note);
  const image = { box, note, words, again, tick: $("[type=checkbox]", box), state: LOADING, hasFailed: false };
  let tries = 0;
  const become = (state) => {
    image.state = state;
    image.hasFailed ||= state === FAILED;
    if (state === FAILED) waiting = null;
    tell();
  };
  picture.addEventListener("load", () => become(LOADED));
  picture.addEventListener("error", () => become(FAILED));
  // Another address, so that the browser cannot answer with what it kept of the failed one.
  again.addEventListener("click", () => {
    become(LOADING);
    picture.src = `${address}?again=${++tries}`;
  });
  image.tick?.addEventListener("change", () => {
    waiting = null;
    tell();
  });
  if (picture.complete && picture.naturalWidth) image.state = LOADED;
  // An image that is loaded when it comes into sight may be complete before it was asked for.
  else if (picture.complete && picture.loading !== "lazy") Object.assign(image, { state: FAILED, hasFailed: true });
  return image;
});

// What lies in a closed "To look at again" was asked for on the page before.
const missing = () => images.filter(({ box, state, tick }) => state !== LOADED && !tick?.checked && !box.closest("details:not([open])"));
const counted = (number, one, many) => (number === 1 ? `One image ${one}` : `${number} images ${many}`);

// Says beside each image whether it is there, and beside the button why the page is not sent.
function tell() {
  for (const { box, note, words, tick, state, hasFailed } of images) {
    if (state === LOADED && tick) tick.checked = false;
    note.hidden = state === LOADED || !(hasFailed || wasHeld);
    words.textContent = state === FAILED ? "This image did not load." : "This image is still loading.";
    box.classList.toggle("asks", !note.hidden || Boolean(tick?.checked));
  }
  const open = missing(), failed = open.filter(({ state }) => state === FAILED).length, loading = open.length - failed;
  const said = [];
  if (failed) said.push(`${counted(failed, "did", "did")} not load. Try again beside the image, or tick “I cannot see this image” there.`);
  if (loading && wasHeld) said.push(`${counted(loading, "is", "are")} still loading.`);
  if (loading && waiting) said.push("The page is sent when everything is there.");
  if (!open.length && wasHeld && !waiting) said.push("You can send the page now.");
  if (held.textContent !== said.join(" ")) held.textContent = said.join(" ");
  if (waiting && !open.length) form.requestSubmit(waiting);
}

// Before the page's own script hears of it.
function hold(event) {
  // The button without a name that Enter presses sends the page too.
  const { submitter } = event, open = missing();
  if (!/^(go)?$/.test(submitter?.name) || !open.length) return;
  event.preventDefault();
  event.stopPropagation();
  const failed = open.find(({ state }) => state === FAILED);
  wasHeld = true;
  waiting = failed ? null : submitter;
  tell();
  if (!failed) return;
  // It may lie in a prompt that is not the one in sight.
  if (!failed.box.checkVisibility()) location.hash = failed.tick.id;
  failed.again.focus();
}

if (isOpen) {
  $(".go").prepend(held);
  $("[name=go]", form).setAttribute("aria-describedby", held.id);
  document.addEventListener("submit", hold, true);
  // A closed box holds nothing back, and an open one may.
  all("details").forEach((one) => one.addEventListener("toggle", tell));
}
tell();
