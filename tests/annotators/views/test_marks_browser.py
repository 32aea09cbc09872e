"""Error marks in Chromium: accessible in each state, by pointing, by keyboard, on a phone, and without script."""

import pytest

from annotators.models import PageVisit, Response
from studies.models import Output, Prompt
from tests.browsing import PHONE, look_at, press, shot, start, until
from tests.builders import add_marks, draft_study, launched

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
TEXT = (
    "The train stop between two stations, and nobody has spoke at first. “Is it the snow?” asked a woman in a green coat.\n\n"
    "The conductor came by. He said 𝒉e did not know. Outside it was summer, and the snow lay deep. "
) + "Then a child laughed, and then another, until the whole carriage was loud with it and nobody could say why. " * 4


@pytest.fixture
def study():
    draft = draft_study(systems=("alpha", "beta"), prompts=3, target_n=3, instructions="")
    add_marks(draft, m=1, max_marks=3, explanation="An **error** is what a careful editor would change.")
    Output.objects.filter(system__study=draft).update(text=TEXT)
    Prompt.objects.filter(study=draft).update(text="You wake on a train that has stopped in the dark.")
    return launched(draft)


def pick(page, number, where, category, severity):
    """The fields of one mark, as they are reached without pointing at the text."""
    row = page.locator(".mark").nth(number - 1)
    if row.get_attribute("open") is None:
        row.locator("summary").click()
    for name, value in (("where", where), ("category", category), ("severity", severity)):
        row.locator(f"[name$='.{name}']").select_option(value)


def test_the_page_is_accessible_in_each_state(visit):
    person, wrong = visit(), []
    page = start(person)
    shot(page, "marks")
    look_at(page, "marks", wrong)
    assert page.locator(".mark:visible").count() == 1, "of the marks that nobody opened only the next is there"
    page.get_by_label("How good is it as a whole?", exact=True).fill("70")
    page.locator("[name=go]").click()
    page.wait_for_selector("#problems")
    said = page.locator("#problems").inner_text()
    assert "Please mark an error, or tick that there is no error." in said and "Story A" in said
    page.get_by_role("button", name="Mark an error in sentence 2").click()
    page.locator("[name=go]").click()
    page.wait_for_selector(".mark .wrong")
    assert "its category and its severity" in page.locator("#problems").inner_text()
    page.get_by_text("What the categories and severities mean").click()
    shot(page, "marks-refused")
    look_at(page, "marks refused", wrong)
    pick(page, 1, "2", "style", "minor")
    person.go("s1.p2")
    page.goto(page.url.replace("s1.p2", "s1.p1"))
    look_at(page, "marks stored", wrong)
    shot(page, "marks-stored")
    assert page.locator(".mark").count() == 1 and page.locator(".mark [name$='.where']").is_disabled()
    assert not wrong and not person.complaints


def test_words_are_marked_by_selecting_them_and_a_mark_is_taken_back(visit):
    person = visit(viewport=PHONE)
    page = start(person)
    page.evaluate("""() => {
        const said = document.querySelector("[data-part='4'] .said-here").firstChild, at = said.data.indexOf("𝒉e");
        getSelection().setBaseAndExtent(said, at, said, at + "𝒉e did".length);
    }""")
    page.get_by_role("button", name="Mark “𝒉e did”").click()
    assert page.locator(".mark .quote").first.inner_text() == "“𝒉e did”"
    assert page.locator(".part.marked").count() == 1
    row = page.locator(".mark").first
    row.locator("[name$='.category']").select_option("fluency")
    row.locator("[name$='.severity']").select_option("major")
    assert row.locator("summary").inner_text() == "Error 1: sentence 4 · Fluency · Major"
    # Each mark opens under its sentence, so that the page hardly moves; one more than there are says why it does nothing.
    for number in ("3", "1", "5"):
        button = page.get_by_role("button", name=f"Mark an error in sentence {number}", exact=True)
        button.scroll_into_view_if_needed()
        before = page.evaluate("scrollY")
        button.click()
        assert abs(page.evaluate("scrollY") - before) < 450
    under = "[data-part='3'] + .mark, [data-part='1'] + .mark, [data-part='4'] + .mark"
    assert page.locator(under).count() == page.locator(".mark").count() == 3
    page.locator("[data-part='5'] + .full", has_text="All 3 marks are in use.").wait_for()
    page.locator("[data-part='3'] + .mark").get_by_role("button", name="Remove this error").click()
    assert page.locator(".part.marked").count() == 2 and page.locator(".marks > .mark").count() == 1
    page.locator("[data-part='1'] + .mark").get_by_role("button", name="Remove this error").click()
    assert page.locator(".part.marked").count() == 1
    shot(page, "marks-words")
    until(lambda: (PageVisit.objects.get(key="s1.p1").draft or {}).get("s1.q1.i1.A.p1.words") == ["8-14"])
    page.reload()
    assert page.locator(".mark .quote").first.inner_text() == "“𝒉e did”"
    page.get_by_label("How good is it as a whole?", exact=True).fill("40")
    person.go("s1.p2")
    (mark,) = Response.objects.exclude(choice="")
    assert (mark.part, mark.choice, mark.value) == ("4:8-14", "fluency", 5) and TEXT.find("𝒉e did") > 0
    assert not person.complaints


def test_errors_are_marked_by_keyboard_and_without_script(visit):
    person = visit(java_script_enabled=False)
    page = start(person)
    page.locator(".mark summary").first.focus()
    page.keyboard.press("Enter")
    pick(page, 1, "1", "fluency", "minor")
    pick(page, 2, "0", "task", "major")
    press(page, page.get_by_role("button", name="Save for later"))
    assert page.locator(".mark[open]").count() == 2 and page.locator(".mark:visible").count() == 3
    pick(page, 2, "", "", "major")
    page.get_by_label("How good is it as a whole?", exact=True).fill("55")
    person.go("s1.p2")
    page.get_by_label("There is no error").check()
    page.get_by_label("How good is it as a whole?", exact=True).fill("100")
    person.go("done")
    marks = Response.objects.filter(question__key="errors").order_by("received_at")
    assert [(r.part, r.choice, r.value) for r in marks] == [("1", "fluency", 1), ("", "", 0)]
