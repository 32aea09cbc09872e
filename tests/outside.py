"""What of a page lies outside the window, and what lies over the element that has the focus."""

# Everything that is in sight lies within the window, or within a box that scrolls by itself and lies within it.
_OUTSIDE = """() => {
  const width = document.documentElement.clientWidth, wrong = [];
  const name = (one) => one.outerHTML.replace(/\\s+/g, " ").slice(0, 100);
  const scrolls = (one) => /auto|scroll|hidden/.test(getComputedStyle(one).overflowX) && one.scrollWidth > one.clientWidth;
  if (document.documentElement.scrollWidth > width) wrong.push(`the page is ${document.documentElement.scrollWidth} of ${width} px wide`);
  const boxes = [...document.body.querySelectorAll("*")].filter(scrolls);
  for (const one of document.body.querySelectorAll("*")) {
    if (!one.checkVisibility() || one.closest(".heard, .jump-in") || boxes.some((box) => box !== one && box.contains(one))) continue;
    for (const { left, right, width: wide, height } of one.getClientRects())
      if (wide && height && (left < -1 || right > width + 1)) {
        wrong.push(`from ${Math.round(left)} to ${Math.round(right)} of ${width} px: ${name(one)}`);
        break;
      }
  }
  // A box that scrolls is for a keyboard too.
  for (const box of boxes)
    if (box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX !== "hidden" && box.tabIndex < 0 && box.checkVisibility())
      wrong.push(`no key scrolls ${name(box)}`);
  return wrong.slice(0, 5);
}"""

# The focus is given to each element in turn, from the first to the last and back: what comes from below meets what sticks to the top.
_COVERED = """() => {
  const name = (one) => one.outerHTML.replace(/\\s+/g, " ").slice(0, 100);
  const controls = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].filter((one) =>
    !one.disabled && one.type !== "hidden" && one.tabIndex >= 0 && one.checkVisibility({ visibilityProperty: true }) && one.getClientRects().length);
  // What is said at the foot of the page lets clicks through, and lies over what is below it all the same.
  const said = document.querySelector(".saved span");
  const before = said?.textContent;
  if (said) {
    said.textContent = "Not saved yet. Keep this page open; we will try again.";
    said.style.pointerEvents = "auto";
  }
  // What is higher than the room between what sticks above and below cannot all be in sight.
  const { scrollPaddingTop, scrollPaddingBottom } = getComputedStyle(document.documentElement);
  const length = (words) => (words.endsWith("%") || words.includes("(") || words === "auto" ? 0 : parseFloat(words));
  const padding = (words) => Math.min(length(words), innerHeight / 2.5);
  const room = innerHeight - padding(scrollPaddingTop) - padding(scrollPaddingBottom);
  window.coveredAt = (one) => {
    const own = (met) => met && (met === one || one.contains(met) || met.contains(one) || [...(one.labels ?? [])].some((label) => label.contains(met)));
    const high = innerHeight, wide = document.documentElement.clientWidth;
    // Of a link over two lines, each line.
    const rects = [...one.getClientRects()].filter(({ width, height }) => width > 2 && height > 2);
    const points = rects.flatMap(({ left, right, top, bottom }) => {
      const [l, r, t, b] = [Math.max(left, 0) + 2, Math.min(right, wide) - 2, Math.max(top, 0) + 2, Math.min(bottom, high) - 2];
      return r < l || b < t ? [] : [[l, t], [r, t], [l, b], [r, b], [(l + r) / 2, (t + b) / 2]];
    });
    if (!points.length) return "not in sight";
    const free = points.filter(([x, y]) => own(document.elementFromPoint(x, y)));
    // Of a text area the browser brings the place into sight at which one writes.
    const isTall = one.matches("textarea") || rects.reduce((sum, { height }) => sum + height, 0) > room;
    if (isTall ? free.length : free.length === points.length) return "";
    const [x, y] = points.find(([px, py]) => !own(document.elementFromPoint(px, py)));
    return `under ${name(document.elementFromPoint(x, y) ?? document.body).slice(0, 60)} at ${Math.round(y)} px`;
  };
  const wrong = [];
  // A long text has hundreds of buttons that are alike.
  const some = controls.filter((_, n) => n < 60 || n > controls.length - 60 || n % 10 === 0);
  for (const one of [...some, ...some.toReversed()]) {
    one.focus();
    if (document.activeElement !== one) continue; // it lies in a closed box
    const found = window.coveredAt(one);
    if (found) wrong.push(`${found}: ${name(one)}`);
  }
  if (said) {
    said.textContent = before;
    said.style.pointerEvents = "";
  }
  document.activeElement.blur();
  scrollTo(0, 0);
  return controls.length ? [...new Set(wrong)].slice(0, 5) : ["nothing takes the focus"];
}"""
SIZES = {
    "1280": ({"width": 1280, "height": 800}, 16),
    "768": ({"width": 768, "height": 1024}, 16),
    "375": ({"width": 375, "height": 667}, 16),
    "375, letters twice as large": ({"width": 375, "height": 667}, 32),
}


def wrong_on(page) -> list[str]:
    """At each size of SIZES, what lies outside the window or over the focus. It ends at the usual size of letters on a phone."""
    wrong = []
    for size, (viewport, letters) in SIZES.items():
        page.set_viewport_size(viewport)
        page.evaluate("px => { document.documentElement.style.fontSize = px }", f"{letters}px")
        found = page.evaluate(_OUTSIDE) + page.evaluate(_COVERED)
        wrong += [f"{size}: {one}" for one in found]
    page.evaluate("() => { document.documentElement.style.fontSize = '' }")
    return wrong


def wrong_by_links(page) -> list[str]:
    """What lies over the focus on a page that was refused, and over the fields to which the links of its list of problems lead."""
    wrong = page.evaluate(_OUTSIDE) + page.evaluate(_COVERED)
    links = page.locator("#problems a")
    for n in range(links.count()):
        href = links.nth(n).get_attribute("href")
        links.nth(n).evaluate("link => { link.closest('details')?.setAttribute('open', ''); link.click(); }")
        if found := page.evaluate("id => window.coveredAt(document.getElementById(id))", href[1:]):
            wrong.append(f"{href} leads to what lies {found}")
    return wrong
