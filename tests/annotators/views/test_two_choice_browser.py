"""Two choices and the evidence on the collecting page in Chromium: accessible, no sideways scrolling, by keyboard, without script."""

import pytest

from annotators.models import Response
from studies.models import Output, Prompt, Question
from studies.services import jobs
from tests.browsing import DESKTOP, STORY, look_at, shot, start, until
from tests.builders import add_choice, choice_study, draft_study, launched, user
from tests.players import many

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def study():
    draft = draft_study(systems=("alpha", "beta"), prompts=6, target_n=3, instructions="")
    section = add_choice(draft, m=2, allows_tie=True, noun="story")
    Question.objects.filter(section=section).update(
        skip_reasons=[{"key": "cannot_judge", "label": "I cannot judge this"}],
        text="Which story is more natural?",
        help="**Natural** means: a native speaker could have written it.",
    )
    for n, output in enumerate(Output.objects.filter(system__study=draft).order_by("pk")):
        Output.objects.filter(pk=output.pk).update(text=STORY[: 300 + 97 * (n % 5)] + "\n\nThe end.")
    Prompt.objects.filter(study=draft).update(text="You wake on a train that has stopped in the dark.")
    return launched(draft)


def test_the_page_is_accessible_in_each_state_and_its_boxes_are_equal(visit):
    person, wrong = visit(), []
    page = start(person)
    shot(page, "choice")
    look_at(page, "choice", wrong)
    left, right = (box.bounding_box() for box in page.locator(".cell").all())
    assert left["width"] == right["width"] and left["height"] == right["height"] and left["y"] == right["y"]
    page.locator("[name=go]").click()
    page.wait_for_selector("#problems")
    shot(page, "choice-refused")
    look_at(page, "choice refused", wrong)
    page.get_by_label("Story B").check()
    person.go("s1.p2")
    page.goto(page.url.replace("s1.p2", "s1.p1"))
    look_at(page, "choice stored", wrong)
    assert page.locator("input[value=B]").is_checked() and page.locator("input[value=B]").is_disabled()
    assert not wrong and not person.complaints


def test_several_criteria_and_images_are_accessible_too(visit):
    draft = draft_study(systems=("alpha", "beta"), prompts=4, target_n=2, instructions="")
    section = add_choice(draft, m=2)
    Question.objects.create(
        section=section,
        position=2,
        key="overall",
        text="And all in all?",
        scale={"kind": "output"},
        help="Whatever matters to you.",
    )
    Prompt.objects.filter(study=draft).update(text="")
    person, wrong = visit(), []
    person.study = launched(draft)
    page = person.open("s1.p1")
    shot(page, "choice-criteria")
    look_at(page, "criteria", wrong)
    assert not wrong and page.get_by_role("radiogroup").count() == 2


def test_the_criterion_stays_in_sight_while_long_texts_scroll(visit):
    person = visit(viewport={"width": 375, "height": 740})
    page = start(person)
    page.locator("[name=go]").scroll_into_view_if_needed()
    page.mouse.wheel(0, -200)
    page.wait_for_timeout(200)
    box = page.locator(".asked").bounding_box()
    assert 0 <= box["y"] < 40 and box["height"] < 200


def test_a_choice_is_made_by_keyboard_alone(visit):
    person = visit()
    page = start(person)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.type") == "radio":
            break
    page.keyboard.press("ArrowRight")
    assert page.locator("input[value=B]").is_checked()
    page.keyboard.press("ArrowLeft")
    assert page.locator("input[value=A]").is_checked()
    page.keyboard.press("ArrowLeft")
    assert page.locator("input[value=tie]").is_checked()
    page.get_by_label("Answer with number keys").check()
    page.locator("body").click(position={"x": 5, "y": 5})
    page.locator("input[value=tie]").focus()
    page.keyboard.press("2")
    assert page.locator("input[value=B]").is_checked()
    person.go("s1.p2")
    until(lambda: Response.objects.filter(label="B").count() == 1)


def test_a_choice_and_its_taking_back_work_without_script(visit):
    person = visit(java_script_enabled=False)
    page = start(person)
    page.get_by_label("Story A").check()
    page.locator("select").select_option("cannot_judge")
    page.locator("[name=go]").click()
    assert "not both" in page.locator("#problems").inner_text()
    page.get_by_label("Remove my choice").check()
    page.locator("[name=go]").click()
    page.wait_for_url("**/s1.p2/")
    assert Response.objects.get().skip_reason == "cannot_judge"
    page.get_by_label("They are equally good").check()
    person.go("done")
    assert set(Response.objects.values_list("choice", flat=True)) == {"", "tie"}


def test_the_evidence_on_the_collecting_page_is_accessible(browser, live_server):
    study = choice_study(target_n=60, prompts=300, m=5)
    many(study, 12, 0.6)
    jobs.submit("stopping_check", study=study, by=None)
    jobs.run_waiting_jobs()
    owner = user("owner", is_superuser=True)
    context = browser.new_context(viewport=DESKTOP)
    page = context.new_page()
    page.goto(f"{live_server.url}/admin/login/?next=/admin/studies/study/{study.pk}/collecting/")
    page.fill("#id_username", owner.username)
    page.fill("#id_password", "a password")
    page.get_by_role("button", name="Log in").click()
    page.wait_for_selector("#stopping")
    assert page.locator("section:has(#stopping) figure.evidence svg").bounding_box()["width"] > 200
    shot(page, "evidence")
    wrong = []
    look_at(page, "evidence", wrong)
    context.close()
    assert not wrong
