"""Keys on a page: which are written on it, and what each of them does."""

from annotators.models import Assignment, PageVisit, Response
from annotators.pages.record import full_page_state
from studies.models import Exposure
from tests.annotators.views.touching import pages_of

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
# What is chosen in each group, and where the focus is: the place of the question that has it, and whether it is on the question itself.
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
    required: wanted.map((one) => one.matches("[aria-required=true]") || !!one.querySelector("[aria-required=true]")), at: wanted.indexOf(at.closest(".field")), isOnQuestion: at.matches(".field"),
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
                if now["at"] != expected or not now["isOnQuestion"]:
                    wrong.append(
                        f"{page.url} after {key} in question {mine} the focus is on {now['at']}, not {expected}"
                    )
    return sum(map(len, seen)), n_keys, wrong


# Enter is pressed on every control that takes it; what would send the page is caught on its way.
CONTROLS = "main form :is(input:not([type=hidden]), select)"
CATCH = f"""() => {{
  document.querySelectorAll("details").forEach((one) => {{ one.open = true; }});
  window.caught = [];
  window.addEventListener("submit", (event) => {{
    if (event.submitter?.value === "next") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    window.caught.push(event.submitter?.outerHTML);
  }}, true);
  return document.querySelectorAll("{CONTROLS}").length;
}}"""
FOCUS = f"""(n) => {{
  const one = document.querySelectorAll("{CONTROLS}")[n];
  one.focus();
  window.pressed = one;
  return [document.activeElement === one, one.type];
}}"""
# Whether the focus is further down, and on a question, the button that sends, or a field that is typed: on no answer.
MOVED = """() => {
  const at = document.activeElement, isLater = window.pressed.compareDocumentPosition(at) & Node.DOCUMENT_POSITION_FOLLOWING;
  return at === window.pressed ? "here" : isLater && at.matches(".field, [name=go], [type=text], textarea") ? "" : at.outerHTML.slice(0, 200);
}"""


def entered_all(page) -> tuple[set[str], list[str]]:
    """Press Enter in every field that is not a text area: the kinds of fields, and where it did not lead to the next question."""
    wrong, kinds = [], set()
    for n in range(page.evaluate(CATCH)):
        has_focus, kind = page.evaluate(FOCUS, n)
        if not has_focus:
            wrong.append(f"{page.url} the field {n} ({kind}) takes no focus")
            continue
        page.keyboard.press("Enter")
        kinds.add(kind)
        caught, moved = page.evaluate("window.caught.splice(0)"), page.evaluate(MOVED)
        # Chromium alone opens a list with Enter, as its platform does.
        if caught or moved not in ("", "here" if kind == "select-one" else ""):
            wrong.append(f"{page.url} Enter in {kind} pressed {caught} and led to {moved}")
        page.keyboard.press("Escape")
    return kinds, wrong


# Without the page's script: where a person reads on after Enter, and whether a key could answer there.
LED = """() => [document.querySelector(":target")?.id ?? "", document.activeElement.matches("[type=radio], [type=checkbox], select")]"""


def entered_all_without_script(page, assignment: Assignment) -> tuple[int, list[str]]:
    """Press Enter in every field that is not a text area: how many there are, and where the page was sent or led to no question."""
    wrong, (address, *_) = [], page.url.split("#")
    key = address.rstrip("/").rpartition("/")[2]
    n_controls = page.locator(CONTROLS).count()
    for n in range(n_controls):
        page.goto(address)
        control = page.locator(CONTROLS).nth(n)
        control.evaluate("one => { const box = one.closest('details'); if (box) box.open = true; one.focus(); }")
        if control.evaluate("one => one.matches('select')"):
            continue
        if control.evaluate("one => one.matches('[type=text]')"):
            control.fill("1")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        led, is_on_answer = page.evaluate(LED)
        if not led or is_on_answer or PageVisit.objects.get(assignment=assignment, key=key).recorded_at:
            wrong.append(f"{address} without script, Enter in field {n} led to {page.url}, {led!r}")
    return n_controls, wrong


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
        # Out of the last field one goes on to the button that sends.
        while page.evaluate("document.activeElement.matches('input, textarea')"):
            self.press("Tab" if page.evaluate("document.activeElement.matches('textarea')") else "Enter")
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
        now = self.page.evaluate(NOW)
        if now["at"] != place:
            field.focus()
        elif now["isOnQuestion"]:
            self.press("Tab")
        if field.get_attribute("type") in ("checkbox", "radio"):
            self.press("Space")
            return
        self.page.keyboard.type("1" if field.get_attribute("data-max") else "Some words.")
        self.presses += 1


def stored_words(assignment: Assignment, shown: dict[str, dict[str, str]]) -> dict[str, str]:
    """The stored answers in the words of the design, by slot; an output that was chosen was shown under its letter."""
    standing, words = full_page_state(assignment), {}
    rows = {row.slot: row for row in Response.objects.filter(assignment=assignment)}
    for key, step in standing.steps.items():
        for slot, ask in step.page_fields().items():
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
