"""A page walked by the Tab key alone, as somebody without a mouse meets it."""

AT_ONCE = 8
# Everything that a pointer could operate and that is in sight; radio buttons of one group are one stop, moved in by arrows.
_PREPARE = """() => {
  const isThere = (one) => one.checkVisibility({ visibilityProperty: true }) && !one.closest("[inert]") && one.getClientRects().length;
  const look = (one) => {
    const all = [one, one.parentElement, one.parentElement?.parentElement].filter(Boolean);
    return all.map((each) => getComputedStyle(each)).map((s) =>
      [s.outlineStyle === "none" ? "" : s.outlineWidth + s.outlineColor, s.boxShadow, s.borderColor, s.backgroundColor, s.textDecorationLine].join()).join("|");
  };
  const name = (one) => one.outerHTML.replace(/\\s+/g, " ").slice(0, 120);
  const controls = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].filter((one) =>
    !one.disabled && one.type !== "hidden" && one.tabIndex >= 0 && isThere(one));
  // Tab goes on from where one last was: from the very top, as on a page just opened.
  const top = document.createElement("i");
  top.tabIndex = -1;
  document.body.prepend(top);
  document.activeElement?.blur();
  window.walked = { look, name, top, last: null, before: new Map(controls.map((one) => [one, look(one)])), seen: new Set(), wrong: [] };
  const clickable = [...document.querySelectorAll("[onclick], [role=button], [role=link], [role=tab], [role=checkbox]")].filter((one) => isThere(one) && one.tabIndex < 0);
  window.walked.wrong.push(...clickable.map((one) => "no key reaches " + name(one)));
  // Looked at before the next key moves on: all that the last one brought about has happened by then.
  window.walked.step = () => {
    const { look, name, before, seen, wrong } = window.walked, one = document.activeElement;
    if (one === window.walked.top) return "";
    if (!one || one === document.body || one === document.documentElement) return "out";
    if (one === window.walked.last) return ""; // the parts of a date
    window.walked.last = one;
    // Where the browser has nothing else to offer it begins anew.
    if (seen.has(one)) return one === [...seen][0] ? "out" : "back";
    seen.add(one);
    if (before.has(one) && look(one) === before.get(one)) wrong.push("nobody sees the focus on " + name(one));
    const boxes = [one, ...(one.labels ?? [])].map((each) => each.getBoundingClientRect());
    const isShown = boxes.some(({ left, right, top, bottom }) => [[0.5, 0.5], [0.05, 0.1], [0.95, 0.9], [0.05, 0.9], [0.95, 0.1]].some(([x, y]) => {
      const met = document.elementFromPoint(left + (right - left) * x, top + (bottom - top) * y);
      return met && (met === one || one.contains(met) || met.contains(one) || [...(one.labels ?? [])].some((label) => label.contains(met)));
    }));
    if (!isShown) wrong.push("something lies over " + name(one));
    return "";
  };
  window.walked.press = () => { window.walked.over ||= window.walked.step(); };
  window.addEventListener("keydown", window.walked.press, true);
  top.focus();
  return controls.length;
}"""
_END = """() => {
  const { name, top, before, seen, wrong } = window.walked;
  top.remove();
  // What is in sight only while it has the focus would move the page under the next click.
  document.activeElement?.blur();
  window.removeEventListener("keydown", window.walked.press, true);
  const group = (one) => one.type === "radio" && one.name ? (one.form?.id ?? "") + "/" + one.name : null;
  const groups = new Set([...seen].map(group).filter(Boolean));
  for (const one of before.keys())
    if (!seen.has(one) && !(group(one) && groups.has(group(one))) && one.isConnected) wrong.push("no key reaches " + name(one));
  return wrong;
}"""


def unreached(page) -> list[str]:
    """What of a page a keyboard does not reach, where its focus is not seen or lies under something, and where Tab does not lead out."""
    n_controls = page.evaluate(_PREPARE)
    said = ""
    for _ in range(0, 3 * n_controls + 5, AT_ONCE):
        for _ in range(AT_ONCE):
            page.keyboard.press("Tab")
        if said := page.evaluate("window.walked.over"):
            break
    found = page.evaluate(_END)
    return found if said == "out" else [*found, "Tab does not lead through the page and out of it"]
