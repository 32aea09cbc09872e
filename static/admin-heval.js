// Conveniences for researchers. Every page works without this script.

// Show only the fields that the chosen kind of scale uses.
const parts = (select) =>
  Object.fromEntries(select.dataset.parts.split(" ").map((pair) => [pair.split(":")[0], pair.split(":")[1].split(",")]));

const fit = (select) => {
  const shown = parts(select)[select.value] ?? [];
  const row = select.closest(".inline-related");
  if (!row) return;
  const numbers = JSON.parse(select.dataset.whereEmpty ?? "{}")[select.value] ?? {};
  for (const field of row.querySelectorAll(".scale-parts input[type=number]")) {
    const value = numbers[field.name.split("scale_")[1]];
    field.placeholder = value === undefined ? "" : `${value} (default)`;
  }
  for (const field of row.querySelectorAll(".scale-parts [class*='field-scale_']")) {
    const name = [...field.classList].find((word) => word.startsWith("field-scale_"));
    const holder = field.classList.contains("fieldBox") ? field.parentElement : field;
    if (field.classList.contains("form-row")) {
      const names = [...field.classList].filter((word) => word.startsWith("field-scale_")).map((word) => word.slice(12));
      field.classList.toggle("part-away", !names.some((word) => shown.includes(word)));
    } else {
      holder.classList.toggle("part-away", !shown.includes(name.slice(12)));
    }
  }
};
const fitAll = () => document.querySelectorAll("select[data-parts]").forEach(fit);
document.addEventListener("change", (event) => event.target.matches("select[data-parts]") && fit(event.target));
document.addEventListener("formset:added", fitAll);
fitAll();

// Running jobs: update them in place. When a job ends, open its result, its page if it failed, or this page again.
let hasInput = false;
document.addEventListener("input", () => (hasInput = true));
const showEnd = (job, url) => {
  if (!hasInput) return url ? location.assign(url) : location.reload();
  const link = Object.assign(document.createElement("a"), { href: url || location.href, textContent: "Open it" });
  job.querySelector(".doing").replaceChildren("It has ended. ", link);
  job.querySelector(".then").textContent = "What you entered on this page is not sent yet.";
};
for (const job of document.querySelectorAll(".job[data-url]")) {
  job.querySelector(".then").textContent = "The result opens by itself.";
  const renew = async () => {
    try {
      const now = await (await fetch(job.dataset.url, { headers: { Accept: "application/json" } })).json();
      if (!["waiting", "running"].includes(now.state)) return showEnd(job, now.state === "done" ? now.url : job.dataset.page);
      if (now.doing) job.querySelector(".doing").textContent = now.doing;
      if (now.total) {
        Object.assign(job.querySelector("progress"), { max: now.total, value: now.done });
        job.querySelector(".count").textContent = `${now.done} of ${now.total}`;
      }
    } catch {
      // The server did not answer. Try again.
    }
    setTimeout(renew, 2000);
  };
  setTimeout(renew, 1000);
}

// Buttons that copy a link.
for (const button of document.querySelectorAll("button[data-copies]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copies).value);
    button.textContent = "Copied";
  });
}

// A link to a text or a figure copies it. Without a clipboard it is a link.
const says = (link, word) => {
  const before = link.textContent;
  link.textContent = word;
  setTimeout(() => (link.textContent = before), 2000);
};
const imageOf = async (url) => {
  const picture = new Image();
  picture.src = url;
  await picture.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * picture.width, 2 * picture.height];
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
};
for (const link of navigator.clipboard ? document.querySelectorAll("a[data-copy], a[data-copy-image]") : []) {
  link.title = "Copy";
  link.addEventListener("click", async (event) => {
    event.preventDefault();
    try {
      if ("copyImage" in link.dataset) await navigator.clipboard.write([new ClipboardItem({ "image/png": imageOf(link.href) })]);
      else await navigator.clipboard.writeText(await (await fetch(link.href)).text());
      says(link, "copied");
    } catch {
      location.assign(link.href);
    }
  });
}

// A link to a part of the page opens the folds around it, and the fold of a group. A browser alone opens only those around it.
const unfold = () => {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  const own = target.querySelector(".module.collapse > details");
  if (own) own.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();
