"""Fingers on a page: where they come down, how they move, and what changed."""

from collections import Counter
from collections.abc import Iterator

from annotators.models import Assignment, PageVisit
from annotators.pages.record import full_page_state
from tests.players import answered, open_page

# All that a page would send, and what the browser keeps of it beside the server.
STATE = """() => JSON.stringify([
  [...new FormData(document.querySelector("#answers"))].filter(([name]) => name !== "active"),
  JSON.parse(localStorage["heval:" + location.pathname] ?? "{}").answers ?? null,
])"""
OPEN_ALL = """() => document.querySelectorAll("details").forEach((one) => { one.open = true; })"""
# Where a finger may come down: on each control, at both ends of each slider; or on the sliders and in steps down the page.
CONTROLS = "main :is(input[type=text], select, textarea, label, button, summary, a)"
PLACES = f"""(isFilled) => {{
  const places = [];
  for (const one of document.querySelectorAll("main [type=range]" + (isFilled ? ", {CONTROLS}" : ""))) {{
    const {{ left, top, width, height }} = one.getBoundingClientRect();
    if (!width || !height || one.closest(".heard")) continue;
    for (const part of one.type === "range" ? [0.15, 0.8] : [0.3]) places.push([left + width * part, top + scrollY + height / 2]);
  }}
  if (!isFilled) for (let y = 60, n = 0; y < document.documentElement.scrollHeight; y += 125, n += 1)
    places.push([innerWidth * [0.15, 0.5, 0.85][n % 3], y]);
  return places;
}}"""
# Scrolled so that the finger has room for its way; gives the place on the screen.
BRING = """([x, y]) => {
  scrollTo({ top: y - innerHeight / 2, behavior: "instant" });
  return [x, Math.min(Math.max(y - scrollY, 2), innerHeight - 2), scrollY];
}"""
FILL = """() => {
  const form = document.querySelector("#answers");
  const tell = (field, name) => field.dispatchEvent(new Event(name, { bubbles: true }));
  for (const field of [...form.elements].filter(({ name, disabled }) => name && !disabled)) {
    if (field.type === "radio" && field.value && !form.querySelector(`[name="${field.name}"]:checked`)) field.click();
    if (field.type === "checkbox" && !field.checked) field.click();
    if (field.type === "text" || field.matches("textarea")) { field.value = field.dataset.max ? "1" : "Some words."; tell(field, "input"); }
    if (field.matches("select") && !field.name.endsWith(".skip")) { field.selectedIndex = 1; tell(field, "input"); }
  }
  window.dispatchEvent(new Event("online")); // saves the draft at once
}"""


def pages_of(page, base: str, assignment: Assignment, *, of_each_kind: int = 1) -> Iterator[str]:
    """The pages of a study, opened: of those that differ in their texts alone, so many. One that the test does not send is answered
    behind its back."""
    kinds = Counter()
    while (key := full_page_state(assignment).next_key) is not None:
        step = full_page_state(assignment).steps[key]
        kind = (step.protocol, step.purpose, step.page.section.position, step.page.step, len(step.page.items))
        kinds[kind] += 1
        if kinds[kind] <= of_each_kind:
            page.goto(f"{base}/p/{assignment.code}/{key}/")
            yield key
        else:
            open_page(assignment, key)
        if not PageVisit.objects.filter(assignment=assignment, key=key, recorded_at__isnull=False).exists():
            assert answered(assignment, key, comment="Some words.").sent is None
        assignment = Assignment.objects.get(pk=assignment.pk)


def touch(session, kind: str, *points: tuple[float, float]) -> None:
    session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]})


def swipe(session, x: float, y: float, way: int) -> None:
    """A finger that comes down here, goes up or down the screen, and is lifted."""
    touch(session, "touchStart", (x, y))
    touch(session, "touchMove", (x, y + way))
    touch(session, "touchEnd")


def swiped(page, session, is_filled: bool) -> tuple[int, int, list[str]]:
    """Swipe from every place of the page: how often, how often the page scrolled, and where an answer changed."""
    page.evaluate(OPEN_ALL)
    before, wrong, scrolled = page.evaluate(STATE), [], 0
    places = page.evaluate(PLACES, is_filled)
    for n, place in enumerate(places):
        x, y, top = page.evaluate(BRING, place)
        swipe(session, x, y, -160 if n % 2 == 0 else 160)
        after, moved = page.evaluate(f"[({STATE})(), scrollY !== {top}]")
        scrolled += moved
        if after != before:
            wrong.append(f"{page.url} at {place}: {before} became {after}")
            before = after
    return len(places), scrolled, wrong


def touched(person, assignment) -> list[str]:
    page, wrong, places, scrolled = person.page, [], 0, 0
    session = person.context.new_cdp_session(page)
    posted = []
    page.on("request", lambda request: posted.append(request.url) if request.method == "POST" else None)
    for key in pages_of(page, person.base, assignment):
        for is_filled in (False, True):
            if is_filled and page.evaluate("document.querySelector('#answers [name^=s]') !== null"):
                page.evaluate(FILL)
                page.wait_for_selector("text=/^Saved \\d/")
            posted.clear()
            n, moved, found = swiped(page, session, is_filled)
            places, scrolled, wrong = places + n, scrolled + moved, wrong + found
            wrong += [f"{key}: a swipe sent something to {url}" for url in posted]
    assert places > 10 and scrolled > places / 4, (
        places,
        scrolled,
    )  # these were swipes, and pages that can be scrolled
    return wrong
