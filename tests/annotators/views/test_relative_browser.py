"""The relative scale, and images under going-on letters, in Chromium: accessible, no sideways scrolling, by keyboard, without script."""

import pytest
from django.conf import settings

from annotators.models import Response
from studies.models import Output, Question
from tests.browsing import PHONE, STORY, look_at, overflow, shot, start
from tests.builders import add_relative, draft_study, exposures_draft, launched

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def study():
    draft = draft_study(systems=("alpha", "beta"), prompts=6, target_n=3, instructions="")
    section = add_relative(draft, m=2)
    Question.objects.filter(section=section).update(
        skip_reasons=[{"key": "cannot_judge", "label": "I cannot judge this"}],
        help="**Better**: what you would rather read on.",
    )
    for n, output in enumerate(Output.objects.filter(system__study=draft).order_by("pk")):
        Output.objects.filter(pk=output.pk).update(text=STORY[: 300 + 97 * (n % 5)] + "\n\nThe end.")
    return launched(draft)


def test_the_page_is_accessible_in_each_state_and_answered_by_keyboard(visit):
    person, wrong = visit(), []
    page = start(person)
    shot(page, "relative")
    look_at(page, "relative", wrong)
    page.locator("[name=go]").click()
    page.wait_for_selector("#problems")
    assert "Story A" not in page.locator("#problems").inner_text(), "the question is about both"
    look_at(page, "relative refused", wrong)
    page.get_by_label("They are about the same").focus()
    page.keyboard.press("ArrowLeft")
    assert page.get_by_label("Story A is better").is_checked()
    person.go("s1.p2")
    page.goto(page.url.replace("s1.p2", "s1.p1"))
    look_at(page, "relative stored", wrong)
    assert page.locator("input[value='4']").is_checked() and page.locator("input[value='4']").is_disabled()
    assert not wrong and not person.complaints
    assert Response.objects.get().value == 4


def test_it_works_without_script_on_a_phone(visit):
    person = visit(java_script_enabled=False, viewport=PHONE)
    page = start(person)
    page.get_by_label("Story B is much better").check()
    page.locator("select").select_option("cannot_judge")
    page.locator("[name=go]").click()
    assert "not both" in page.locator("#problems:focus").inner_text(), (
        "what was refused has the focus, without script too"
    )
    page.locator("select").select_option("")
    page.locator("[name=go]").click()
    page.wait_for_url("**/s1.p2/")
    assert (Response.objects.get().value, Response.objects.get().label) == (1, "A")


def test_images_under_letters_that_go_on_fit_a_phone(visit):
    person, wrong = visit(), []
    person.study = launched(exposures_draft(settings.MEDIA_ROOT, levels=(1, 4), target_n=2))
    page = person.open("s2.read")
    assert page.locator(".label").all_inner_texts() == ["Artist C", "Artist D"] * 4
    shot(page, "images-read")
    look_at(page, "images", wrong)
    person.go("s2.ask")
    page.locator("summary").first.click()
    shot(page, "images-ask")
    look_at(page, "images asked", wrong)
    page.set_viewport_size(PHONE)
    assert overflow(page) <= 0 and page.locator("details[open] img").first.bounding_box()["width"] > 250
    assert not wrong and not person.complaints
