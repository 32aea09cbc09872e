"""Touch and keys on every page of every protocol, and for every kind of scale: nothing is answered that nobody meant to answer."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import parse_qs

import pytest

from annotators.models import Assignment, PageVisit, Response
from annotators.pages.record import standing_of
from studies.models import Exposure, Question
from studies.protocols import REGISTRY
from studies.protocols.base.scales import KINDS
from tests.browsing import PHONE, until
from tests.builders import (
    COMMENT,
    SCREENING,
    add_choice,
    add_rating,
    add_relative,
    add_survey,
    draft_study,
    humanlike_draft,
    launched,
)
from tests.players import answered, claimed, open_page
from tests.samples import sample_draft

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

REASONS = [{"key": "no", "label": "I would rather not say"}]
OPTIONS = [{"key": f"o{n}", "label": f"Option {n}"} for n in range(11, 0, -1)]
# What a kind of scale needs to be asked; a kind that is not named here is asked as it is.
NEEDS = {
    "choice": {"options": OPTIONS}, "multiple": {"options": OPTIONS[:2]}, "acknowledgement": {"high": "I have read it."},
    "text": {"is_long": False},
}  # fmt: skip
# Points that look alike and are not: from best to worst, from zero to ten, below zero, and those without numbers of one digit.
LIKERTS = [
    {"labels": ["bad", "fair", "good"], "is_best_first": True}, {"minimum": 0, "maximum": 10}, {"minimum": -2, "maximum": 2},
    {"minimum": 10, "maximum": 12},
]  # fmt: skip


def every_scale():
    """A survey that asks on every scale that a survey can have: required with a way out, and optional."""
    draft = draft_study(systems=("alpha",), prompts=1, instructions="", target_n=4)
    scales = [{"kind": kind} | NEEDS.get(kind, {}) for kind in KINDS if kind != "output"]  # under two choices alone
    scales += [{"kind": "likert"} | more for more in LIKERTS]
    questions = [{"key": f"q{n}", "text": f"Question on {scale}?", "scale": scale} for n, scale in enumerate(scales)]
    without = ("multiple", "acknowledgement")
    ways_out = [one | ({} if one["scale"]["kind"] in without else {"skip_reasons": REASONS}) for one in questions]
    add_survey(draft, position=1, questions=ways_out)
    add_survey(draft, position=2, questions=[one | {"required": False} for one in questions])
    return draft


def criteria():
    """Two choices by two criteria, with a tie and a way out."""
    draft = draft_study(systems=("alpha", "beta"), prompts=8, instructions="Read **both**.", target_n=4)
    section = add_choice(draft, m=1, allows_tie=True)
    Question.objects.create(section=section, position=2, key="all", text="And all in all?", scale={"kind": "output"})
    Question.objects.filter(section=section).update(skip_reasons=REASONS)
    return draft


def reasons():
    """A relative scale with a way out, and a rating between two ends."""
    draft = draft_study(systems=("alpha", "beta"), prompts=12, instructions="", target_n=4)
    section = add_relative(draft, position=1, m=1)
    Question.objects.filter(section=section).update(skip_reasons=REASONS)
    rating = add_rating(draft, position=2, m=1)
    between = {"kind": "continuous", "minimum": -50, "maximum": 50}
    Question.objects.create(
        section=rating, position=2, key="fun", text="How funny is it?", scale=between, skip_reasons=REASONS
    )
    add_survey(draft, position=3, questions=[SCREENING, COMMENT])
    return draft


def practice():
    """Human or machine after practice on pairs, whose answers are explained."""
    return humanlike_draft(conditions=("comparison",), domains=("news",), instructions="", target_n=4, m=1, texts=6)


STUDIES: dict[str, Callable] = {slug: partial(sample_draft, slug, 1, 4) for slug in REGISTRY} | {
    one.__name__: one for one in (every_scale, criteria, reasons, practice)
}

# In the browser

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
  if (!isFilled) for (let y = 60, n = 0; y < document.documentElement.scrollHeight; y += 250, n += 1)
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
    while (key := standing_of(assignment).next_key) is not None:
        step = standing_of(assignment).steps[key]
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


# Every answer with the key that is written beside it, as somebody sees it.
SEEN = """() => [...document.querySelectorAll("[role=radiogroup]")].map((group) => [...group.querySelectorAll("[type=radio]")].map((point) => {
  const label = point.labels[0];
  const keys = [...label.querySelectorAll("kbd")].filter((one) => one.checkVisibility({ visibilityProperty: true }));
  return {
    name: point.name, keys: keys.map((one) => one.innerText), shortcut: point.getAttribute("aria-keyshortcuts"),
    number: label.querySelector(".value")?.innerText ?? null,
    words: [...label.querySelectorAll("span:not(.value)")].map((one) => one.innerText).join(" "),
  };
}))"""
# What is chosen in each group, and where the focus is: the place of the question that has it, and whether it is on a chosen answer.
NOW = """() => {
  const groups = [...document.querySelectorAll("[role=radiogroup]")];
  const questions = [...document.querySelectorAll(".field")];
  const open = (one) => [...one.querySelectorAll("[type=radio], [type=checkbox]")].every((point) => !point.checked)
    && [...one.querySelectorAll("[type=text], textarea, select")].every((field) => !field.value);
  const wanted = questions.filter((one) => one.matches("[role=radiogroup]") || one.querySelector("[aria-required=true]"));
  const at = document.activeElement;
  return {
    chosen: groups.map((one) => [...one.querySelectorAll("[type=radio]")].findIndex((point) => point.checked)),
    order: wanted.map((one) => groups.indexOf(one)), open: wanted.map(open),
    required: wanted.map((one) => one.matches("[aria-required=true]") || !!one.querySelector("[aria-required=true]")), at: wanted.indexOf(at.closest(".field")), checked: !!at.checked,
    said: [...document.querySelectorAll("[role=status]")].map((one) => one.innerText).join(" "),
  };
}"""


def key_of(points: list[dict], n: int) -> list[str]:
    """What must be written beside an answer: the number that it has anyway, or its place; nothing where that takes two keys."""
    has_numbers = any(point["number"] is not None for point in points)
    said = points[n]["number"] or "" if has_numbers else str(n + 1)
    return [said] if len(said) == 1 else []


def pressed_all(page) -> tuple[int, int, list[str]]:
    """Press every key that is written on the page: how many answers there were to choose from, and how many keys."""
    wrong, n_keys = [], 0
    seen = page.evaluate(SEEN)
    for g, points in enumerate(seen):
        for n, point in enumerate(points):
            if point["keys"] != key_of(points, n) or [point["shortcut"]] != (point["keys"] or [None]):
                wrong.append(f"{page.url} {point['words']!r} has the keys {point['keys']}, {point['shortcut']}")
        for n, point in enumerate(points):
            for key in point["keys"]:
                page.locator("[role=radiogroup]").nth(g).locator("[type=radio]").first.focus()
                page.keyboard.press(key)
                now, n_keys = page.evaluate(NOW), n_keys + 1
                if now["chosen"][g] != n:
                    wrong.append(f"{page.url} {key} beside {point['words']!r} chose {now['chosen'][g]} of question {g}")
                if point["words"] not in now["said"]:
                    wrong.append(f"{page.url} a screen reader hears {now['said']!r} for {point['words']!r}")
                mine = now["order"].index(g)
                around = [*range(mine + 1, len(now["open"])), *range(mine)]
                expected = next((place for place in around if now["open"][place]), mine)
                if now["at"] != expected or now["checked"] != (expected == mine):
                    wrong.append(
                        f"{page.url} after {key} in question {mine} the focus is on {now['at']}, not {expected}"
                    )
    return sum(map(len, seen)), n_keys, wrong


# Enter is pressed on every control that takes it; what it would send is caught on its way.
CATCH = """() => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  window.caught = [];
  window.addEventListener("submit", (event) => {
    event.preventDefault();
    event.stopImmediatePropagation();
    const sent = (button) => [button.formAction, button.formMethod, ...new FormData(event.target, button)].filter(([name]) => name !== "go").join();
    window.caught.push(sent(event.submitter) === sent(document.querySelector("[name=go]")) ? "main" : event.submitter.outerHTML);
  }, true);
  return document.querySelectorAll("main form :is(input:not([type=hidden]), select)").length;
}"""
FOCUS = """(n) => {
  const one = document.querySelectorAll("main form :is(input:not([type=hidden]), select)")[n];
  one.focus();
  return [document.activeElement === one, one.type];
}"""


def entered_all(page) -> tuple[set[str], list[str]]:
    """Press Enter in every field that is not a text area: the kinds of fields, and where it did not do what the main button does."""
    wrong, kinds = [], set()
    for n in range(page.evaluate(CATCH)):
        has_focus, kind = page.evaluate(FOCUS, n)
        if not has_focus:
            wrong.append(f"{page.url} the field {n} ({kind}) takes no focus")
            continue
        page.keyboard.press("Enter")
        kinds.add(kind)
        caught = page.evaluate("window.caught.splice(0)")
        # Chromium alone opens a list or sends with Enter, as its platform does.
        if caught not in (["main"], [] if kind == "select-one" else ["main"]):
            wrong.append(f"{page.url} Enter in {kind} pressed {caught}")
            page.keyboard.press("Escape")
    return kinds, wrong


# The texts of a page by their letters.
SHOWN = """() => [...document.querySelectorAll(".cell")].map((one) =>
  [one.querySelector(".label").innerText.split(" ").pop(), one.querySelector(".exposure").innerText.split(/\\s+/).join(" ")])"""


class Walk:
    """A study done by keys alone, with the presses counted and the words of each chosen answer kept."""

    def __init__(self, page):
        self.page, self.presses, self.chosen, self.shown = page, 0, {}, {}

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)
        self.presses += 1

    def do(self, turn: int) -> tuple[int, int]:
        """One page. Gives the presses beyond one for each required answer, and how many questions had no key and were typed or ticked."""
        self.presses = n_required = n_without = 0
        page, seen = self.page, self.page.evaluate(SEEN)
        self.shown = dict(page.evaluate(SHOWN))
        nothing = page.locator(".marks [type=checkbox]")
        if nothing.count():
            n_required, n_without = 1, 1
            nothing.focus()
            self.press("Space")
        while True:
            now = page.evaluate(NOW)
            left = [place for place, is_open in enumerate(now["open"]) if is_open and now["required"][place]]
            if not left:
                break
            place = now["at"] if now["at"] in left else left[0]
            n_required += 1
            assert n_required < 100
            if now["at"] not in (place, -1):
                self._tab_to(place)
            group = now["order"][place]
            keyed = [point for point in seen[group] if point["keys"]] if group >= 0 else []
            if keyed:
                point = keyed[(turn + group) % len(keyed)]
                self.press(point["keys"][0])
                self.chosen[point["name"]] = point["words"] or point["number"]
            else:
                self._give(place)
                n_without += 1
        if page.evaluate("document.activeElement.matches('textarea')"):
            self.press("Tab")
        self.press("Enter")
        return self.presses - n_required, n_without

    def _tab_to(self, place: int) -> None:
        """Out of a question in which one types: past its slider and its way out."""
        for _ in range(4):
            self.press("Tab")
            if self.page.evaluate(NOW)["at"] == place:
                return
        raise AssertionError(f"no Tab leads to question {place} of {self.page.url}")

    def _give(self, place: int) -> None:
        """An answer that is typed or ticked counts as one press. To the first of a page one goes by hand."""
        field = (
            self.page.locator(".field:is([role=radiogroup], :has([aria-required=true]))")
            .nth(place)
            .locator("input, textarea")
            .first
        )
        if self.page.evaluate(NOW)["at"] != place:
            field.focus()
        if field.get_attribute("type") in ("checkbox", "radio"):
            self.press("Space")
            return
        self.page.keyboard.type("1" if field.get_attribute("data-max") else "Some words.")
        self.presses += 1


def stored_words(assignment: Assignment, shown: dict[str, dict[str, str]]) -> dict[str, str]:
    """The stored answers in the words of the design, by slot; an output that was chosen was shown under its letter."""
    standing, words = standing_of(assignment), {}
    rows = {row.slot: row for row in Response.objects.filter(assignment=assignment)}
    for key, step in standing.steps.items():
        for slot, ask in step.protocol.asks(step.page).items():
            row, field = rows.get(slot), ask.field
            if row is None:
                continue
            if field.kind == "scale":
                words[slot] = next(p.label or p.key for p in field.points if int(p.key) == row.value)
            elif field.kind == "choice":
                words[slot] = next(option.label for option in field.options if option.key == row.choice)
            elif field.kind == "exposure" and row.chosen_id:
                letter = next(letter for letter, pk in field.exposures if pk == row.chosen_id)
                output = Exposure.objects.select_related("output").get(pk=row.chosen_id).output
                assert shown[key][letter] == " ".join(output.text.split())
                words[slot] = f"{(step.page.section.settings.get('noun') or 'text').capitalize()} {letter}"
            elif field.kind == "exposure":
                words[slot] = field.tie
    return words


def keyed(person, first, second) -> list[str]:
    """Every key and Enter on every page of the one assignment; the other is done by keys alone, and what is stored is what was read."""
    page, wrong, n_points, n_keys, kinds = person.page, [], 0, 0, set()
    page.goto(person.base)
    page.evaluate("localStorage['heval:keys'] = 'true'")
    for _ in pages_of(page, person.base, first):
        points, keys, found = pressed_all(page)
        n_points, n_keys, wrong = n_points + points, n_keys + keys, wrong + found
        more, found = entered_all(page)
        kinds, wrong = kinds | more, wrong + found
    assert kinds and bool(n_keys) == bool(n_points)
    walk, shown = Walk(page), {}
    for turn, key in enumerate(pages_of(page, person.base, second, of_each_kind=100)):
        beyond, n_without = walk.do(turn)
        shown[key] = walk.shown
        # Out of a question in which one types, Tab leads past its slider and its way out.
        if beyond > 2 + 3 * n_without:
            wrong.append(f"{key}: {beyond} presses beyond one for each answer, {n_without} of them typed")
        page.wait_for_url(lambda url, key=key: not url.endswith(f"/{key}/"))
    assert Assignment.objects.get(pk=second.pk).submitted_at
    words = stored_words(second, shown)
    assert bool(walk.chosen) == bool(n_keys)
    wrong += [
        f"{slot}: {said!r} was chosen, {words.get(slot)!r} is stored"
        for slot, said in walk.chosen.items()
        if words.get(slot) != said
    ]
    return wrong


@pytest.fixture
def study(request, db):
    return launched(STUDIES[getattr(request, "param", "every_scale")]())


@pytest.mark.parametrize("study", STUDIES, indirect=True)
def test_touch_and_keys_change_only_what_was_meant(visit, study):
    phone, desk = visit(viewport=PHONE, has_touch=True, is_mobile=True), visit()
    wrong = touched(phone, claimed(study, "phone"))
    wrong += keyed(desk, claimed(study, "desk"), claimed(study, "walker"))
    assert not [*wrong, *phone.complaints, *desk.complaints], "\n".join(wrong)


def drafts_sent(page) -> list[dict[str, list[str]]]:
    """What is posted from now on, as it is posted."""
    posted = []
    page.on(
        "request",
        lambda request: posted.append(parse_qs(request.post_data or "")) if request.method == "POST" else None,
    )
    return posted


def test_a_finger_on_a_slider_answers_when_it_is_lifted_and_not_when_it_scrolls(visit):
    person = visit(viewport=PHONE, has_touch=True, is_mobile=True)
    page = person.open("s1")
    session, posted = person.context.new_cdp_session(page), drafts_sent(page)
    chance, other = page.locator("#s1-q1"), page.locator("#s1-q3")
    slider = chance.locator("xpath=..").locator("[type=range]")
    # A reason not to answer empties the field and leaves its slider unset.
    chance.fill("30")
    page.locator("[id='s1-q1-skip']").select_option("no")
    assert (chance.input_value(), slider.get_attribute("aria-valuetext")) == ("", "not set")
    assert page.locator("[id='s1-q1-skip']").input_value() == "no"
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    left, middle, right = ((box["x"] + box["width"] * part, box["y"] + box["height"] / 2) for part in (0.2, 0.5, 0.8))
    # It rests for longer than the pause after which a draft is sent, and another field has something to be sent.
    other.evaluate("one => { one.value = '7'; one.dispatchEvent(new Event('input', { bubbles: true })); }")
    posted.clear()
    touch(session, "touchStart", left)
    assert chance.input_value() == "18"  # what lifting the finger would answer
    until(lambda: page.evaluate("true") and any("7" in post.get("s1.q3", []) for post in posted))
    page.evaluate("window.dispatchEvent(new Event('pagehide'))")  # another way to send and to keep it
    assert page.evaluate(STATE).count('["s1.q1",""]') >= 1
    touch(session, "touchMove", (left[0], left[1] - 200))
    touch(session, "touchEnd")
    assert (chance.input_value(), slider.get_attribute("aria-valuetext")) == ("", "not set")
    assert page.locator("[id='s1-q1-skip']").input_value() == "no"
    assert posted and all(post.get("s1.q1", [""]) == [""] for post in posted)
    # A tap answers, in the very middle too, and so does a finger that goes along the slider.
    page.evaluate("scrollTo(0, 0)")
    slider.scroll_into_view_if_needed()
    y = slider.bounding_box()["y"] + box["height"] / 2
    for x, value in ((middle[0], "50"), (left[0], "18"), (right[0], "82")):
        touch(session, "touchStart", (x, y))
        touch(session, "touchEnd")
        assert (chance.input_value(), slider.get_attribute("aria-valuetext")) == (value, value)
    assert page.locator("[id='s1-q1-skip']").input_value() == ""
    touch(session, "touchStart", (left[0], y))
    for x in (left[0] + 40, middle[0], middle[0]):
        touch(session, "touchMove", (x, y))
    touch(session, "touchEnd")
    dragged = chance.input_value()
    assert 40 < int(dragged) < 60
    swipe(session, right[0], y, -200)
    assert chance.input_value() == dragged
    until(lambda: PageVisit.objects.get(key="s1").draft["s1.q1"] == [dragged])
    page.reload()
    assert (page.locator("#s1-q1").input_value(), page.locator("[type=range]").first.input_value()) == (
        dragged,
        dragged,
    )


def test_a_mouse_changes_nothing_by_its_wheel_its_other_button_or_what_it_selects(visit):
    person = visit()
    page = person.open("s1")
    page.evaluate(FILL)
    page.locator("#s1-q1").fill("")
    page.locator("[data-has-range]").first.fill("")
    before = page.evaluate(STATE)
    controls = page.locator("main form :is(input:not([type=hidden]), select)").locator("visible=true")
    assert controls.count() > 30
    for control in controls.all():
        control.evaluate("one => { one.scrollIntoView({ block: 'center' }); one.focus(); }")
        box = control.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 3, box["y"] + box["height"] / 2)
        page.mouse.wheel(0, 90)
        page.mouse.wheel(0, -40)
    page.wait_for_timeout(100)  # a wheel is handled some frames later
    slider = page.locator("[type=range]").first
    slider.scroll_into_view_if_needed()
    slider.click(button="right", position={"x": 30, "y": 20})
    slider.dispatch_event("pointerup")
    page.locator("#s1-q1-n").hover()
    page.mouse.down()
    slider.hover(position={"x": 30, "y": 20})
    page.mouse.up()
    after = page.evaluate(STATE)
    assert (
        before.split("null")[0].split("]],")[0] == after.split("]],")[0]
        and slider.get_attribute("aria-valuetext") == "not set"
    )


def test_keys_answer_only_where_they_were_switched_on_and_only_once_for_each_press(visit):
    person = visit()
    page = person.open("s1")
    groups, box = page.get_by_role("radiogroup"), page.get_by_label("Answer with number keys")
    now = lambda: page.evaluate(NOW)["chosen"]  # noqa: E731 - a short name for one question
    first = now()
    assert page.locator("kbd").count() == 0 and page.locator("[aria-keyshortcuts]").count() == 0
    page.locator("main").click(position={"x": 2, "y": 2})
    page.keyboard.press("2")
    assert now() == first == [-1] * groups.count()
    box.check()
    page.locator("main").click(position={"x": 2, "y": 2})
    page.keyboard.press("2")
    assert now()[:2] == [1, -1]
    # Held down it answers one question, and not the next ones as well.
    page.locator("main").click(position={"x": 2, "y": 2})
    for _ in range(4):
        page.keyboard.down("3")
    page.keyboard.up("3")
    assert [one for one in now() if one >= 0][1:] == [2]
    # Where somebody types, or sets a slider, a digit is what they type; with a modifier it is the browser's.
    before = now()
    for selector in ("[type=range]", "[data-max]", "[id='s1-q2-skip']"):
        page.locator(selector).first.focus()
        page.keyboard.press("1")
    groups.first.locator("input").first.focus()
    for keys in ("Control+1", "Alt+1", "Meta+1"):
        page.keyboard.press(keys)
    assert now() == before
    # A reason not to answer counts as an answer, and a key takes it back.
    page.locator("[id='s1-q2-skip']").select_option("no")
    assert now()[0] == -1
    groups.first.locator("input").first.focus()
    page.keyboard.press("4")
    assert now()[0] == 3 and page.locator("[id='s1-q2-skip']").input_value() == ""
    # The digits of other keyboards are the same keys.
    groups.first.locator("input").first.focus()
    page.evaluate("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: '٢', bubbles: true }))")
    assert now()[0] == 1
    box.uncheck()
    assert page.locator("kbd").count() == 0 and page.locator("[aria-keyshortcuts]").count() == 0
    assert page.locator(".value").all_inner_texts()[:5] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("study", ["criteria"], indirect=True)
def test_after_the_last_answer_space_changes_nothing_and_enter_sends(visit, study):
    person = visit()
    page = person.open("s1.p1")
    page.get_by_label("Answer with number keys").check()
    for key in "12":
        page.keyboard.press(key)
    now = page.evaluate(NOW)
    assert now["chosen"] == [0, 1] and now["checked"]
    page.keyboard.press("Space")
    assert page.evaluate(NOW) == now
    page.keyboard.press("Enter")
    page.wait_for_url("**/done/")


def test_without_script_enter_sends_and_more_time_keeps_what_is_typed(visit):
    person = visit(java_script_enabled=False)
    page = person.open("s1")
    page.locator("#s1-q1").fill("41")
    page.get_by_role("button", name="More time").click()
    assert page.locator("#s1-q1").input_value() == "41" and person.at.endswith("/s1/")
    assert PageVisit.objects.get(key="s1").draft["s1.q1"] == ["41"]
    page.locator("#s1-q1").press("Enter")
    page.wait_for_selector("#problems")
    assert page.locator("#s1-q1").input_value() == "41" and page.locator("kbd").count() == 0
