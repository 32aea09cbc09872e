"""Human or machine in Chromium: practice with one text and with a pair, judging, reasons; with and without script, by keyboard."""

import os
from pathlib import Path

import pytest

from annotators.models import Assignment, Response
from studies.models import Expected, Output, Question
from tests.browsing import DESKTOP, PHONE, look_at
from tests.builders import add_humanlike, add_practice, humanlike_draft, launched, panel
from tests.players import claimed

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
STORY = (
    "Once upon a time a miller lived at the edge of the wood with two daughters and a mill that would not turn. "
    "The older one read the weather, the younger one read the river, and neither told the other what she had read. "
)


@pytest.fixture
def study():
    """One arm that practises with a text and with a pair, then judges two texts."""
    study = humanlike_draft(conditions=("examples",), domains=("stories",), target_n=3, m=2)
    first = study.sections.get(purpose="training")
    first.m = 1
    first.save()
    study.sections.filter(purpose="live").update(position=9)
    pair = add_humanlike(study, position=2, m=1, purpose="training", arms=study.arms.all(), keys=("source",))
    prompt = study.prompts.filter(key__startswith="examples").last()
    add_practice(pair, list(Output.objects.filter(prompt=prompt).order_by("-system__is_human")))
    words = "Machines like “the younger one read the river”: three things of one shape in a row."
    Expected.objects.filter(item__section__study=study).update(explanation=words)
    for n, output in enumerate(Output.objects.filter(system__study=study).order_by("pk")):
        Output.objects.filter(pk=output.pk).update(text=STORY * (2 + n % 3) + f"\n\nThe end, for the {n}th time.")
    return launched(study)


@pytest.fixture
def opened(browser, live_server, study):
    contexts = []

    def make(**options):
        contexts.append(browser.new_context(**{"viewport": DESKTOP} | options))
        page = contexts[-1].new_page()
        page.set_default_timeout(8000)
        page.goto(f"{live_server.url}/e/{panel(study).key}/?who=anna&session=s")
        page.locator("#agree").check()
        page.get_by_role("button", name="Start").click()
        page.wait_for_url("**/start/")
        go(page, "s1.p1")
        return page

    yield make
    for context in contexts:
        context.close()


def go(page, key):
    page.locator("[name=go]").click()
    page.wait_for_url(f"**/{key}/")


def look(page, name, wrong):
    look_at(page, name, wrong)
    if folder := os.environ.get("HEVAL_TEST_SHOTS"):
        for size in (DESKTOP, PHONE):
            page.set_viewport_size(size)
            page.screenshot(path=Path(folder) / f"{name}-{size['width']}.png", full_page=True)
        page.set_viewport_size(DESKTOP)


def answer_pages(page, seen=lambda name: None):
    """From the first practice page to the end."""
    seen("practice")
    page.get_by_label("Possibly machine-generated").check()
    go(page, "s1.p1t")
    seen("told")
    go(page, "s2.p1")
    seen("pair")
    page.get_by_role("radio", name="Text B").check()
    go(page, "s2.p1t")
    seen("pair told")
    go(page, "s3.p1")
    seen("judge")
    page.get_by_label("Definitely human-written").check()
    go(page, "s3.p1f")
    seen("why")
    page.locator("textarea").fill("The river reads like something somebody has seen.")
    go(page, "s3.p2")
    page.get_by_label("Definitely machine-generated").check()
    go(page, "s3.p2f")
    seen("change")
    page.locator("textarea").fill("Fewer things in rows of three.")
    go(page, "done")


def test_no_page_has_an_accessibility_violation_or_scrolls_sideways(opened):
    page, wrong = opened(), []
    page.locator("[name=go]").click()
    page.wait_for_selector("#problems")
    look(page, "practice refused", wrong)
    answer_pages(page, lambda name: look(page, name, wrong))
    base = page.url.removesuffix("done/")
    for key in ("s1.p1", "s3.p1f"):
        page.goto(f"{base}{key}/")
        look(page, f"stored {key}", wrong)
    assert not wrong, "\n".join(wrong)


def test_what_the_explanation_quotes_is_marked_in_the_text(opened):
    page = opened()
    page.get_by_label("Possibly human-written").check()
    go(page, "s1.p1t")
    marks = page.locator("mark").all_inner_texts()
    assert marks and set(marks) == {"the younger one read the river"}
    assert page.get_by_text("You answered: Possibly human-written.").count() == 1


def test_a_whole_run_works_without_script(opened):
    answer_pages(opened(java_script_enabled=False))
    assert Assignment.objects.get().submitted_at and Response.objects.count() == 6


def test_a_whole_run_works_by_keyboard_alone(opened):
    page = opened()
    keys = iter(["s1.p1t", "s2.p1", "s2.p1t", "s3.p1", "s3.p1f", "s3.p2", "s3.p2f", "done"])
    for key in keys:
        for _ in range(40):
            page.keyboard.press("Tab")
            kind, name = page.evaluate("[document.activeElement.type || '', document.activeElement.name || '']")
            if kind == "radio":
                page.keyboard.press("Space")
            elif kind == "textarea":
                page.keyboard.type("because it is so")
            elif name == "go":
                page.keyboard.press("Enter")
                break
        page.wait_for_url(f"**/{key}/")
    assert Assignment.objects.get().submitted_at


@pytest.mark.parametrize("has_script", [True, False], ids=["script", "no script"])
def test_a_text_is_rewritten_on_a_phone_by_keyboard(browser, live_server, has_script):
    study = humanlike_draft(domains=("stories",), instructions="", target_n=1, m=1)
    Output.objects.filter(system__study=study).update(text=STORY * 3)
    words = "Rewrite the text so that it seems to be written by a person."
    section = study.sections.get()
    Question.objects.create(section=section, position=9, key="rewrite", text=words, scale={"kind": "rewrite"})
    assignment = claimed(launched(study), "w")
    context = browser.new_context(viewport=PHONE, java_script_enabled=has_script)
    page, wrong = context.new_page(), []
    page.set_default_timeout(8000)
    page.goto(f"{live_server.url}{assignment.path}s1.p1/")
    page.get_by_label("Definitely machine-generated").check()
    go(page, "s1.p1f")
    change, rewrite = page.get_by_label("What would you change"), page.get_by_label(words)
    assert rewrite.input_value() == STORY * 3
    change.fill("The miller.")
    page.locator("[name=go]").click()
    page.get_by_text("This is the text as it was shown. Please change it, then go on.").first.wait_for()
    if has_script:
        look(page, "rewrite refused", wrong)
    rewrite.focus()
    page.keyboard.press("Control+Home")
    page.keyboard.type("They say that ")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/done/")
    context.close()
    assert not wrong, "\n".join(wrong)
    assert Response.objects.get(question__key="rewrite").text.startswith("They say that Once upon a time")
