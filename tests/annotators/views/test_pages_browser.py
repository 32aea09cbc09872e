"""Annotators' pages in Chromium: how they work for people with and without script, mouse, eyes and connection."""

from io import BytesIO

import pytest
from django.conf import settings
from PIL import Image

from annotators.models import Assignment, PageVisit
from studies.models import Output, Prompt
from studies.stimuli.images import encode_image, store_image
from tests.accessibility import violations
from tests.annotators.views.visit import stored
from tests.browsing import PHONE, look_at, press, shot, until
from tests.builders import add_survey, launched, spa_draft
from tests.players import claimed

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_no_page_has_an_accessibility_violation_or_scrolls_sideways(visit):
    person, wrong = visit(), []
    page = person.page
    page.goto(person.door)
    look_at(page, "landing", wrong)
    press(page, page.get_by_role("button", name="Start"))
    look_at(page, "landing refused", wrong)
    page.locator("#agree").check()
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/s1/")
    page.locator("[name=go]").click()
    page.wait_for_selector("#problems")
    look_at(page, "screening refused", wrong)
    page.get_by_label("Yes").check()
    person.go("start")
    look_at(page, "instructions", wrong)
    person.go("s2.read")
    look_at(page, "reading", wrong)
    page.get_by_role("button", name="one prompt at a time").click()
    page.wait_for_selector(".items.one")
    look_at(page, "reading one at a time", wrong)
    page.get_by_role("button", name="side by side").click()
    page.wait_for_selector(".items.side")
    person.go("s2.ask")
    page.locator("summary").first.click()
    look_at(page, "chances", wrong)
    person.give_chances()
    page.locator("[data-has-range]").first.fill("101")
    page.locator("[name=go]").click()
    page.wait_for_selector("#problems")
    look_at(page, "chances refused", wrong)
    page.locator("[data-has-range]").first.fill("100")
    person.go("s3.p1")
    look_at(page, "rating", wrong)
    person.rate()
    person.go("s4")
    look_at(page, "comment", wrong)
    base = page.url.removesuffix("s4/")
    for name in ("s2.ask", "s3.p1", "consent", "question", "withdraw"):
        page.goto(f"{base}{name}/")
        look_at(page, f"{name} looked at", wrong)
    page.goto(f"{base}s4/")
    person.go("done")
    look_at(page, "done", wrong)
    page.goto(person.door.replace("anna", "bert"))
    press(page, page.get_by_role("button", name="I do not agree"))
    look_at(page, "declined", wrong)
    assert not wrong
    assert not person.complaints


def test_who_finds_no_place_and_cannot_wait_presses_one_button(visit, study):
    for n in range(study.target_n):
        claimed(study, f"inside {n}")
    person, wrong = visit(), []
    page = person.page
    page.goto(person.door)
    page.locator("#agree").check()
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="I cannot wait").wait_for()
    look_at(page, "no place right now", wrong)
    page.get_by_role("button", name="I cannot wait").click()
    page.wait_for_url("**/done/")
    assert "FULL-9" in page.inner_text("main")
    look_at(page, "left without waiting", wrong)
    assert not wrong and not person.complaints


def test_every_kind_of_field_and_of_output_is_accessible_and_stays_in_its_box(visit):
    draft = spa_draft(systems=("alpha", "beta", "gamma", "delta", "epsilon"), prompts=5, with_surveys=False)
    refusal = {"skip_reasons": [{"key": "no", "label": "I would rather not say"}]}
    options = {"options": [{"key": "a", "label": "One"}, {"key": "b", "label": "Another"}]}
    scales = [
        {"kind": "multiple"} | options,
        {"kind": "choice"} | options,
        {"kind": "number", "minimum": 18, "maximum": 120},
        {"kind": "likert", "maximum": 7, "low": "not at all", "high": "very much"},
        {"kind": "acknowledgement"},
        {"kind": "continuous", "minimum": -10, "maximum": 10, "low": "unsure"},
        {"kind": "text", "is_long": False},
    ]
    questions = [
        {"key": f"q{n}", "text": f"Question {scale['kind']}?", "scale": scale} for n, scale in enumerate(scales)
    ]
    add_survey(
        draft,
        position=9,
        questions=[question | (refusal if n > 1 else {"required": False}) for n, question in enumerate(questions)],
    )
    image = encode_image(picture())
    store_image(settings.MEDIA_ROOT, image)
    kinds = {
        "alpha": {"text": "\u0627\u0633\u062a\u064a\u0642\u0638\u062a\n\nThen English.", "language": "ar"},
        "beta": {"text": "# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |", "format": "markdown"},
        "gamma": {"text": "Human: Hello\nBot: Good day", "format": "turns"},
        "delta": {"text": "", "is_empty": True},
        "epsilon": {"text": "", "media": image.name},
    }
    for system, columns in kinds.items():
        Output.objects.filter(system__study=draft, system__name=system).update(**columns)
    Prompt.objects.filter(study=draft).update(source="w" * 300 + " A long document." * 100)
    person, wrong = visit(), []
    person.study = launched(draft)
    for key in ("s1.read", "s3"):
        look_at(person.open(key, person=key), key, wrong)
    person.page.locator("[name=go]").click()
    person.page.wait_for_selector("#problems")
    look_at(person.page, "s3 refused", wrong)
    assert not wrong
    page = person.open("s1.read", person="painter")
    box = page.locator(".cell .picture").first.bounding_box()
    assert abs(box["width"] - box["height"]) < 1
    assert page.locator(".cell img").first.evaluate("e => getComputedStyle(e).objectFit") == "contain"
    page.locator(".cell .picture").first.focus()
    page.keyboard.press("Enter")
    image = page.locator("#viewer img")
    assert page.locator("#viewer").bounding_box()["width"] == 1280 and image.bounding_box()["height"] > 700
    assert violations(page) == []
    shot(page, "viewer")
    page.keyboard.press("+")
    before = image.bounding_box()
    assert before["width"] > 1900
    page.keyboard.press("ArrowRight")
    until(lambda: image.bounding_box()["x"] < before["x"])
    page.get_by_role("button", name="Smaller").click()
    page.go_back()
    assert not page.locator("#viewer").is_visible() and person.at.endswith("/s1.read/")
    page.locator(".cell .picture").first.press("Enter")
    page.keyboard.press("Escape")
    page.locator("#viewer").wait_for(state="hidden")


def picture() -> bytes:
    image = BytesIO()
    Image.new("RGB", (300, 120), "#a33").save(image, "PNG")
    return image.getvalue()


def test_a_run_asks_this_host_alone_sets_no_cookie_and_breaks_no_policy(visit):
    person = visit()
    person.play(until=None)
    assert person.at.endswith("/done/")
    assert {url.split("/")[2] for url in person.requests} == {person.base.split("/")[2]}
    assert person.cookies == [] and person.context.cookies() == []
    assert person.complaints == []


def test_an_item_page_needs_two_further_requests_at_most(visit):
    person = visit()
    page = person.open("s2.read")
    person.requests.clear()
    page.reload()
    page.wait_for_load_state("networkidle")
    # The icon is that of the pages before; where none is named, a browser asks for one that is not there. The page is ready before
    # annotate.js imports place.js, of this visit or still of the one before.
    needed = [url for url in person.requests if not url.endswith((".read/", "icon.svg", "/place.js"))]
    assert sorted(url.rpartition("/")[2] for url in needed) == ["annotate.js", "heval.css", "tokens.css"]


def test_a_whole_run_works_without_script(visit):
    person = visit(java_script_enabled=False)
    page = person.play(until="s2.ask")
    assert page.locator("input[type=range]").count() == 0
    person.give_chances()
    page.locator("[data-has-range]").nth(2).fill("much")
    press(page, page.locator("[name=go]"))
    assert page.locator("#problems a").count() == 1
    page.locator("#problems a").click()
    assert page.locator("input:focus").input_value() == "much"
    page.locator("[data-has-range]").nth(2).fill("20")
    person.go("s3.p1")
    person.rate()
    press(page, page.get_by_role("button", name="Save for later"))
    assert page.locator("input:checked").count() == 5
    person.go("s4")
    person.go("done")
    values = [int(r.value) for slot, r in sorted(stored().items()) if slot.startswith("s2.")]
    assert values == [0, 10, 20, 30, 40, 50, 60, 70]
    assert [int(r.value) for slot, r in stored().items() if slot.startswith("s3.")] == [4] * 5


def test_a_whole_run_works_by_keyboard_alone(visit):
    person = visit()
    page = person.page

    def press(*keys):
        for key in keys:
            page.keyboard.press(key)

    def tab_to(selector):
        for _ in range(120):
            if page.evaluate("s => document.activeElement.matches(s)", selector):
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"no Tab leads to {selector}")

    def send(key):
        tab_to("[name=go]")
        press("Enter")
        page.wait_for_url(f"**/{key}/")

    page.goto(person.door)
    tab_to("#agree")
    press("Space")
    tab_to("[name=start]")
    press("Enter")
    page.wait_for_url("**/s1/")
    tab_to("[type=radio]")
    press("Space")
    send("start")
    send("s2.read")
    send("s2.ask")
    for n in range(8):
        tab_to(f"#s2-q{n + 1}")
        page.keyboard.type(str(11 * n))
    send("s3.p1")
    for label in "ABCDE":
        tab_to(f"[name='s3.q1.i1.{label}']")
        press("Space", "ArrowDown", "ArrowDown")
    send("s4")
    tab_to("textarea")
    page.keyboard.type("By keys.")
    send("done")
    answers = stored()
    assert [int(answers[f"s2.q{n + 1}"].value) for n in range(8)] == [11 * n for n in range(8)]
    assert {int(answers[f"s3.q1.i1.{label}"].value) for label in "ABCDE"} == {3}
    assert answers["s4.q1"].text == "By keys."
    assert Assignment.objects.get().submitted_at


def test_what_has_the_focus_is_in_sight_and_covered_by_nothing(visit):
    person = visit(viewport={"width": 1000, "height": 600})
    page = person.open("s3.p1")
    covered = """() => {
      const box = document.activeElement.getBoundingClientRect();
      if (!box.width || document.activeElement === document.body) return null;
      const on = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
      return on && (document.activeElement.contains(on) || on.contains(document.activeElement)) ? null : document.activeElement.outerHTML.slice(0, 120);
    }"""
    page.locator("body").click(position={"x": 1, "y": 1})
    for _ in range(20):
        page.keyboard.press("Tab")
        assert page.evaluate(covered) is None
    for _ in range(20):
        page.keyboard.press("Shift+Tab")
        assert page.evaluate(covered) is None


# Reading


def test_side_by_side_all_columns_are_equal_and_prompt_and_labels_stay(visit):
    page = visit().open("s2.read")
    cells = page.locator("#i1 .cell")
    boxes = [cell.bounding_box() for cell in cells.all()]
    assert len(boxes) == 5
    assert len({round(box["y"]) for box in boxes}) == 1
    assert max(box["width"] for box in boxes) - min(box["width"] for box in boxes) < 1
    assert max(box["height"] for box in boxes) - min(box["height"] for box in boxes) < 1
    page.mouse.wheel(0, boxes[0]["y"] + 300)
    until(lambda: page.evaluate("scrollY") > 250)
    prompt, label = page.locator("#i1 .prompt").bounding_box(), page.locator("#i1 .label").first.bounding_box()
    assert 0 <= prompt["y"] < 40 and 0 <= label["y"] < 5


def test_nothing_sticks_on_a_low_screen(visit):
    page = visit().open("s2.read")
    page.set_viewport_size({"width": 1000, "height": 400})
    for selector in (".label", ".prompt", ".saved"):
        assert page.locator(selector).first.evaluate("e => getComputedStyle(e).position") == "static"


@pytest.mark.parametrize("has_script", [True, False], ids=["with script", "without"])
def test_on_a_phone_prompts_come_one_at_a_time_and_reload_returns_to_the_open_one(visit, has_script):
    person = visit(viewport=PHONE, java_script_enabled=has_script)
    page = person.open("s2.read")
    in_sight = lambda: [item.get_attribute("id") for item in page.locator(".item").all() if item.is_visible()]  # noqa: E731 - a short name for one question
    assert in_sight() == ["i1"]
    assert not page.locator("[name=go]").is_visible()
    page.locator("#i1").get_by_role("link", name="Next prompt").click()
    assert in_sight() == ["i2"] and person.at.endswith("#i2")
    page.reload()
    assert in_sight() == ["i2"]
    page.locator("#i2 .jump a").nth(3).click()
    assert in_sight() == ["i2"]
    assert -5 <= page.locator("#i2-D").bounding_box()["y"] < 120
    page.locator("#i2").get_by_role("link", name="Previous prompt").click()
    assert in_sight() == ["i1"]
    person.to_last_prompt()
    assert in_sight() == ["i4"] and page.locator("[name=go]").is_visible()
    person.go("s2.ask")
    assert "#" not in person.at


def test_the_layout_is_kept_for_the_pages_that_follow(visit):
    person = visit()
    page = person.open("s2.read")
    page.get_by_role("button", name="one prompt at a time").click()
    page.wait_for_selector(".items.one")
    assert [item.is_visible() for item in page.locator(".item").all()] == [True, False, False, False]
    person.to_last_prompt()
    person.go("s2.ask")
    person.give_chances()
    person.go("s3.p1")
    assert page.locator(".items.one").count() == 1
    assert set(PageVisit.objects.filter(layout="one").values_list("key", flat=True)) == {"s2.read", "s2.ask", "s3.p1"}


# The end


def test_the_end_can_be_reopened_and_leaves_no_copy_behind(visit):
    person = visit()
    page = person.play(until=None)
    address = page.url
    page.goto(address.replace("done/", ""))
    assert page.url == address
    assert "Thank you" in page.locator("h1").inner_text()
    assert (
        page.get_by_role("link", name="Return to the panel").get_attribute("href")
        == "https://panel.example.org/done?cc=C1&s=s1"
    )
    kept = page.evaluate("Object.keys(localStorage)")
    assert [key for key in kept if "/p/" in key] == []
