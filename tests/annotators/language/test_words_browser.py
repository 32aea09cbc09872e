"""In Chromium: what scripts write is in the study's language too, pages are accessible, and Arabic ones are mirrored."""

import pytest
from django.conf import settings

from annotators.models import Assignment
from studies.models import Output, Prompt, Study
from tests.accessibility import violations
from tests.annotators.language.foreign import launched_abroad
from tests.annotators.language.seen import SeenTexts, latin_words
from tests.annotators.language.walking import WORDS, answer_all, next_key, path_of
from tests.annotators.places.passing_time import pass_time
from tests.browsing import DESKTOP, PHONE, overflow, press, until
from tests.builders import add_marks, add_spa, add_survey, draft_study, painted, panel, promised, recruitment
from tests.illustrated import Line
from tests.players import claimed
from tests.samples import sample_draft

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ENDS = {"low": "worst", "high": "best"}
# The middles of the first button and of its text beside it: in a page from right to left, the button lies on the right.
SIDES = """() => [...document.querySelectorAll("label.point")].filter((one) => one.checkVisibility()).map((one) => {
  const middle = (found) => { const { left, right } = found.getBoundingClientRect(); return Math.round((left + right) / 2); };
  return [one.querySelector("input"), one.querySelector("span:not(.heard)")].map(middle);
}).filter(([button, text]) => Math.abs(button - text) > 8).slice(0, 1)"""


class Reader:
    """Somebody who reads pages of this language. ``wrong``: what is wrong with them."""

    def __init__(self, browser, base: str, language: str):
        self.context = browser.new_context(viewport=DESKTOP)
        self.page, self.base, self.language = self.context.new_page(), base, language
        self.wrong: list[str] = []
        self.page.set_default_timeout(8000)
        self.page.on("pageerror", lambda error: self.wrong.append(f"script: {error}"))
        self.line = Line(self.page)

    def launched(self, draft: Study) -> Study:
        return launched_abroad(draft, language=self.language)

    def begin(self, draft: Study, person: str = "anna", until: str | None = None) -> Assignment:
        """Answer all pages before this one."""
        study = self.launched(draft)
        one = claimed(study, person, promised(panel(study), withdrawn="share"), is_consented=True)
        if until:
            answer_all(one, until)
        return one

    def open(self, one: Assignment, key: str = "") -> None:
        self.page.goto(self.base + path_of(one, f"{key or next_key(one)}/"))

    def look(self, name: str) -> None:
        for size in (PHONE, DESKTOP):
            self.page.set_viewport_size(size)
            where = f"{name}, {self.language}, {size['width']}"
            self.wrong += [f"{where}: {found}" for found in violations(self.page)]
            if overflow(self.page) > 0:
                self.wrong.append(f"{where}: {overflow(self.page)} px too wide")
        html = self.page.evaluate("document.documentElement.outerHTML")
        self.wrong += [f"{where}: {word} in {text!r}" for text in SeenTexts(html).texts for word in latin_words(text)]
        if self.language == "ar":
            self.wrong += [f"{name}: {side} is not mirrored" for side in self.page.evaluate(SIDES) if side[0] < side[1]]


@pytest.fixture(params=["el", "ar"])
def reader(request, browser, live_server):
    made = Reader(browser, live_server.url, request.param)
    yield made
    made.context.close()


def number_draft() -> Study:
    draft = draft_study(systems=("alpha", "beta", "gamma"), prompts=8, target_n=4, instructions="", consent="")
    add_spa(draft, m=2)
    scales = (
        {"kind": "continuous"} | ENDS,
        {"kind": "likert", "maximum": 7} | ENDS,
        {"kind": "text", "maximum_length": 90},
    )
    scales += (
        {"kind": "number"},
        {"kind": "choice", "options": [{"key": "a", "label": "One"}, {"key": "b", "label": "Two"}]},
    )
    add_survey(
        draft, position=2, questions=[{"key": f"q{n}", "text": "How?", "scale": one} for n, one in enumerate(scales)]
    )
    return draft


def test_numbers_texts_and_links(reader):
    page, study = reader.page, reader.launched(number_draft())
    link = f"{reader.base}/e/{recruitment(study, 'open_link').key}/"
    page.goto(link)
    reader.look("first page")
    press(page, page.locator("[name=start]"))
    reader.look("reading")
    press(page, page.locator("[name=go]"))
    page.locator(".own-address summary").click()
    page.locator("[data-copies=own-address]").click()
    fields = page.locator("[data-has-range]")
    fields.first.fill("30")
    fields.last.fill("300")
    page.locator("button.look:visible").first.click()
    page.locator(".saved span:not(:empty)").wait_for()
    reader.look("questions")
    press(page, page.locator("[name=go]"))
    page.locator("#problems").wait_for()
    reader.look("questions refused")
    page.goto(link)
    page.locator("#places a").wait_for()
    reader.look("open link again")
    one = Assignment.objects.get()
    answer_all(one, "s2")
    reader.open(one, "s2")
    page.locator("textarea").fill(WORDS * 9)
    page.locator("main").click(position={"x": 2, "y": 2})
    page.keyboard.press("3")
    page.locator(".saved span:not(:empty)").wait_for()
    reader.look("survey")
    answer_all(one)
    reader.open(one, "done")
    reader.look("last page")
    assert reader.wrong == []


def test_marks(reader):
    draft = draft_study(systems=("alpha",), prompts=2, target_n=2, instructions="")
    add_marks(draft, m=1, max_marks=1)
    Output.objects.filter(system__study=draft).update(text="Nobody spoke at first. The snow lay deep.")
    one, page = reader.begin(draft), reader.page
    reader.open(one)
    page.evaluate("""() => {
        const said = document.querySelector("[data-part='1'] .said-here").firstChild;
        getSelection().setBaseAndExtent(said, 0, said, 6);
    }""")
    page.locator(".offer:visible").wait_for()
    reader.look("words selected")
    page.locator("button.nr").first.click()
    page.locator(".mark [name$='.category']").first.select_option("style")
    page.locator(".mark [name$='.severity']").first.select_option("minor")
    page.locator("button.nr").last.click()
    page.locator(".full:not(:empty)").wait_for()
    reader.look("marks")
    direction = page.locator("details.mark").first.evaluate("one => getComputedStyle(one).direction")
    assert direction == ("rtl" if reader.language == "ar" else "ltr")
    assert reader.wrong == []


def test_images_and_a_choice(reader):
    draft = sample_draft("two_choice", 2, 1)
    ((first, second),) = painted((40, 90), 1, settings.MEDIA_ROOT)
    Prompt.objects.filter(study=draft).update(media=first)
    Output.objects.filter(system__study=draft).update(text="", media=second)
    one, page = reader.begin(draft), reader.page
    reader.line.mode = "fails"
    reader.open(one)
    page.locator("main").click(position={"x": 2, "y": 2})
    page.keyboard.press("1")
    page.locator("[name=go]").click()
    until(lambda: page.locator("#held").inner_text())
    reader.look("images that failed")
    reader.line.mode = "loads"
    for again in page.locator(".image .said button").all():
        again.click()
    until(lambda: not page.locator(".image .said:visible").count())
    page.locator(".picture").first.click()
    page.locator("#viewer[open]").wait_for()
    reader.look("image enlarged")
    assert reader.wrong == []


def test_time_of_the_place(reader):
    one, page = reader.begin(sample_draft("rating", 2, 1)), reader.page
    reader.open(one)
    pass_time(one, minutes=32)
    page.reload()
    until(lambda: ":" in page.locator("#place-status").inner_text())  # the script has put the time of day there
    reader.look("little time left")
    page.locator("button[formaction*=time]").click()
    page.locator(".saved span:not(:empty)").wait_for()
    reader.look("more time")
    page.context.set_offline(True)
    page.locator("label.point").first.click()
    page.locator(".saved.unsaved").wait_for()
    page.context.set_offline(False)
    reader.look("not saved")
    assert reader.wrong == []
