"""Ranking in Chromium: accessible in each state at both widths, by keyboard, and without script."""

import pytest

from annotators.models import Response
from studies.models import Output, Prompt
from tests.browsing import STORY, look_at, shot, start
from tests.builders import add_ranking, draft_study, launched

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def study():
    draft = draft_study(systems=("alpha", "beta", "gamma", "delta"), prompts=6, target_n=3, instructions="")
    add_ranking(draft, m=2, noun="story", explanation="A story is **better** the more you would like to read on.")
    for n, output in enumerate(Output.objects.filter(system__study=draft).order_by("pk")):
        Output.objects.filter(pk=output.pk).update(text=STORY[: 200 + 97 * (n % 5)] + "\n\nThe end.")
    Prompt.objects.filter(study=draft).update(text="You wake on a train that has stopped in the dark.")
    return launched(draft)


def test_the_page_is_accessible_in_each_state_and_names_what_is_missing(visit):
    person, wrong = visit(), []
    page = start(person)
    shot(page, "ranking")
    look_at(page, "ranking", wrong)
    for letter, place in zip("ABC", "291", strict=True):
        page.get_by_label(f"The place of {letter}").fill(place)
    page.locator("[name=go]").click()
    page.wait_for_selector("#problems")
    said = page.locator("#problems:focus").inner_text()
    assert "Story B: The place of B" in said and "Story D: The place of D" in said and "Story A" not in said
    assert page.get_by_label("The place of A").input_value() == "2"
    shot(page, "ranking-refused")
    look_at(page, "ranking refused", wrong)
    page.locator("#problems a").first.click()
    page.wait_for_selector("[name$='.B']:focus")
    for letter in "BD":
        page.get_by_label(f"The place of {letter}").fill("3")
    person.go("s1.p2")
    page.goto(page.url.replace("s1.p2", "s1.p1"))
    look_at(page, "ranking stored", wrong)
    assert page.get_by_label("The place of D").input_value() == "3"
    assert page.get_by_label("The place of D").is_disabled()
    assert not wrong and not person.complaints
    assert sorted(str(float(r.value)) for r in Response.objects.all()) == ["1.0", "2.0", "3.5", "3.5"]


def test_a_ranking_is_given_by_keyboard_alone_and_without_script(visit):
    person = visit(java_script_enabled=False)
    page = start(person)
    page.get_by_label("The place of A").focus()
    for place in "1224":
        page.keyboard.type(place)
        page.keyboard.press("Tab")
    person.go("s1.p2")
    assert [r.text for r in Response.objects.order_by("slot")] == ["1", "2", "2", "4"]
