// Shows how long the place is kept. The server sends a text and a duration; the time of day is computed here, because clocks differ.
const SHOWN = 600, WARN = 300, LOOK_EACH = 300, LOOK_WHEN_OVER = 60; // seconds
const find = (html, selector) => new DOMParser().parseFromString(html, "text/html").querySelector(selector);

// Returns a function that takes the server's response to a saved draft.
export function watch(line, say, clock, text, answers) {
  const place = line.parentElement;
  const button = line.nextElementSibling;
  let end, looked, isCalm;
  const left = () => (end - Date.now()) / 1000;
  const isOver = () => place.classList.contains("over");
  // The time is over and the server did not answer.
  const isUnsure = () => !end && line.dataset.seconds;

  function show() {
    const { seconds, until } = line.dataset;
    looked = Date.now();
    end = seconds ? looked + seconds * 1000 : 0;
    isCalm = seconds > WARN;
    if (end && until) line.textContent = until.replace("%(time)s", clock(end));
  }

  // Returns false if the response contains no place. A change is announced once.
  function renew(html) {
    const fresh = find(html, "#place-status");
    if (!fresh) return false;
    const isNew = fresh.dataset.state !== line.dataset.state;
    Object.assign(line.dataset, fresh.dataset);
    line.textContent = fresh.textContent;
    place.className = fresh.parentElement.className;
    place.hidden = fresh.parentElement.hidden;
    button.hidden = fresh.nextElementSibling.hidden;
    show();
    if (isNew) say(line.textContent, isOver());
    return true;
  }

  async function look() {
    looked = Date.now();
    const reply = await fetch(location.pathname).catch(() => null);
    if (reply?.ok && !renew(await reply.text()) && reply.redirected) say(text("part_ended"), true);
  }

  async function tick() {
    if (end && left() <= SHOWN) place.classList.remove("calm");
    if (end && left() <= 0) {
      // This is true whatever the server says, and also if it cannot be reached.
      line.textContent = text("was_kept", { time: clock(end) });
      end = 0;
      await look();
    } else if (isCalm && left() <= WARN) {
      isCalm = false;
      await look();
      const minutes = Math.ceil(left() / 60);
      if (isCalm || minutes < 1) return;
      say(text("minutes_left", { minutes }) + (button.hidden ? "" : " " + text("keep_place")), true);
    } else if (!document.hidden && Date.now() - looked > (isOver() || isUnsure() ? LOOK_WHEN_OVER : LOOK_EACH) * 1000) await look();
  }

  // The server's duration was right when it made the page, so subtract the age of the page.
  const age = Math.round(performance.now() / 1000);
  if (line.dataset.seconds) line.dataset.seconds = Math.max(0, line.dataset.seconds - age);
  show();
  setInterval(tick, 5000);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
  button.addEventListener("click", async (event) => {
    event.preventDefault();
    const reply = await fetch(button.formAction, { method: "POST", body: answers() }).catch(() => null);
    const html = await reply?.text().catch(() => "") || "";
    if (!reply?.ok) say(find(html, "#refused")?.textContent || text("failed"), true);
    else if (!renew(html)) say(text("part_ended"), true);
    else if (isOver()) say(`${text("no_more_time")} ${line.textContent}`, true);
    else say(text("more_time"));
  });
  return renew;
}
