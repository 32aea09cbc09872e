// A page with images is sent only when every image has loaded, or when the annotator has ticked that it cannot be seen.
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const $ = (...where) => all(...where)[0];
const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
const text = (name, values) => JSON.parse(document.body.dataset.texts)[name].replace(/%\((\w+)\)s/g, (_, key) => values[key]);
const LOADING = "loading", LOADED = "loaded", FAILED = "failed";
const form = $("#answers"), isOpen = document.body.dataset.state === "open";
const held = make("p", { id: "held", className: "held", role: "status" });
// The button that waits for images, and whether sending was ever held back.
let waiting = null, wasHeld = false;

// Each image, with a note beside it while it is missing. On a page without questions there is no box to tick.
const images = all(".image").map((box) => {
  const picture = $("img", box), address = picture.src;
  const words = make("p"), again = make("button", { type: "button", textContent: text("again") });
  again.append(make("span", { className: "heard", textContent: ": " + picture.alt }));
  const note = make("div", { className: "said", hidden: true });
  note.append(words, again);
  $(".picture", box).after(note);
  const image = { box, note, words, again, tick: $("[type=checkbox]", box), refusal: $("[type=checkbox]", box.closest(".warned")?.nextElementSibling ?? make("p")), state: LOADING, hasFailed: false };
  let tries = 0;
  const become = (state) => {
    image.state = state;
    image.hasFailed ||= state === FAILED;
    if (state === FAILED) waiting = null;
    tell();
  };
  picture.addEventListener("load", () => become(LOADED));
  picture.addEventListener("error", () => become(FAILED));
  // Use a new address, so that the browser does not reuse its cached failure.
  again.addEventListener("click", () => {
    become(LOADING);
    picture.src = `${address}?again=${++tries}`;
  });
  image.tick?.addEventListener("change", () => {
    waiting = null;
    tell();
  });
  if (picture.complete && picture.naturalWidth) image.state = LOADED;
  // A lazy image may be "complete" before the browser has requested it.
  else if (picture.complete && picture.loading !== "lazy") Object.assign(image, { state: FAILED, hasFailed: true });
  return image;
});

// Images in a closed "Open the prompts again" were already checked on the previous page.
const missing = () => images.filter(({ box, state, tick, refusal }) => state !== LOADED && !tick?.checked && !refusal?.checked && !box.closest("details:not([open])"));

// Shows the state of each image beside it, and beside the button why the page is not sent.
function tell() {
  for (const { box, note, words, tick, state, hasFailed } of images) {
    if (state === LOADED && tick) tick.checked = false;
    note.hidden = state === LOADED || !(hasFailed || wasHeld);
    words.textContent = text(state === FAILED ? "failed_image" : "loading_image");
    box.classList.toggle("asks", !note.hidden || Boolean(tick?.checked));
  }
  const open = missing(), failed = open.filter(({ state }) => state === FAILED).length, loading = open.length - failed;
  const sentences = [];
  if (failed) sentences.push(text("failed_images", { number: failed }));
  if (loading && wasHeld) sentences.push(text("loading_images", { number: loading }));
  if (loading && waiting) sentences.push(text("sent_soon"));
  if (!open.length && wasHeld && !waiting) sentences.push(text("sendable"));
  if (held.textContent !== sentences.join(" ")) held.textContent = sentences.join(" ");
  if (waiting && !open.length) form.requestSubmit(waiting);
}

// Runs before the submit handler of annotate.js.
function hold(event) {
  const { submitter } = event, open = missing();
  if (submitter?.name !== "go" || !open.length) return;
  event.preventDefault();
  event.stopPropagation();
  const failed = open.find(({ state }) => state === FAILED);
  wasHeld = true;
  waiting = failed ? null : submitter;
  tell();
  if (!failed) return;
  // The image may be in a prompt that is hidden now.
  if (!failed.box.checkVisibility()) location.hash = (failed.tick ?? failed.refusal).id;
  failed.again.focus();
}

if (isOpen) {
  $(".go").prepend(held);
  $("[name=go]", form).setAttribute("aria-describedby", held.id);
  document.addEventListener("submit", hold, true);
  // Images in a closed box do not hold the page back; images in an open box may.
  all("details").forEach((details) => details.addEventListener("toggle", tell));
}
tell();

// The viewer: an image as large as the window, and larger. Without this script, the link opens the image in a tab of its own.
const viewer = $("#viewer"), pane = $(".pane", viewer), large = pane.appendChild(make("img", { alt: "" }));
const MOST = 8;
let scale = 1;

function zoom(factor) {
  const now = Math.min(MOST, Math.max(1, scale * factor)), grown = now / scale;
  const { clientWidth: width, clientHeight: height } = pane;
  const middle = [(pane.scrollLeft + width / 2) * grown - width / 2, (pane.scrollTop + height / 2) * grown - height / 2];
  scale = now;
  large.style.width = large.style.height = `${scale * 100}%`;
  pane.scrollTo(...middle);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest(".picture");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  Object.assign(large, { src: $("img", link).src, alt: $("img", link).alt });
  scale = 1;
  zoom(1);
  viewer.showModal();
  pane.focus();
  // The browser's Back closes the viewer and stays on the page.
  history.pushState({ viewer: true }, "");
});
viewer.addEventListener("close", () => { if (history.state?.viewer) history.back(); });
window.addEventListener("popstate", () => viewer.close());
all("button", viewer).forEach((button) => button.addEventListener("click", () => {
  if (button.dataset.zoom) zoom(+button.dataset.zoom);
  else viewer.close();
}));
viewer.addEventListener("keydown", ({ key }) => {
  if ("+=".includes(key)) zoom(1.5);
  else if (key === "-") zoom(1 / 1.5);
});
// A mouse moves the image by dragging, a finger by scrolling, the keyboard by its arrow keys.
large.addEventListener("pointermove", (event) => {
  if (event.pointerType === "mouse" && event.buttons === 1) pane.scrollBy(-event.movementX, -event.movementY);
});
large.addEventListener("dblclick", () => zoom(scale > 1 ? 0 : 2.5));
