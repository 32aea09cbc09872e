"""The pages of a new study in a browser: from a file to the question, and what annotators will see beside it.

``HEVAL_CARDS=1 pytest -m browser tests/studies/admin/new`` takes the pictures of the cards anew, from the pages that this test sees.
"""

import io
import os

import pytest
from django.urls import reverse
from PIL import Image

from studies.models import Study
from studies.protocols import REGISTRY
from tests import ROOT
from tests.browsing import look_at, press, shot, until
from tests.builders import user

OWN = "A text of some length that a system wrote as its answer."
FILE = "question,gpt-4o,my-model\n" + "".join(f"What is asked {n} here?,{OWN} {n},{OWN} And {n}.\n" for n in range(9))
ANSWERS = {
    "ada": "They sleep to save energy. At night there is little to hunt.",
    "curie": "Sleep lets the body rest and the memory settle.",
    "human": "Nobody knows for sure, but those who are kept awake soon fall ill.",
}
SHORT = "prompt_key,prompt_text,system,text\n" + "".join(
    f'p{n},"Why do animals sleep, and what happens if they cannot?",{system},"{text}"\n'
    for n in range(12)
    for system, text in ANSWERS.items()
)
CARDS = [*(slug for slug, protocol in REGISTRY.items() if protocol.card), "judge_check"]
PICTURES, SIZE, MOST_BYTES = ROOT / "static" / "cards", (560, 420), 10_000


def opened(browser, live_server, **options):
    user()
    page = browser.new_context(viewport={"width": 1280, "height": 800}, **options).new_page()
    page.goto(f"{live_server.url}/admin/login/")
    page.fill("#id_username", user().username)
    page.fill("#id_password", "a password")
    page.locator("[type=submit]").click()
    page.wait_for_url("**/admin/")
    return page


@pytest.fixture
def media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.mark.browser
def test_from_a_file_to_the_question(browser, live_server, media):
    page = opened(browser, live_server)
    wrong = []

    def look(name):
        look_at(page, name, wrong)
        shot(page, name)

    page.goto(live_server.url + reverse("new_study"))
    look("new")
    press(page, page.get_by_role("button", name="Continue"))
    look("new-refused")
    page.get_by_label("Title").fill("Who answers better")
    page.locator("input[type=file]").set_input_files(
        {"name": "answers.csv", "mimeType": "text/csv", "buffer": FILE.encode()}
    )
    press(page, page.get_by_role("button", name="Continue"))
    look("new-check")
    press(page, page.get_by_role("button", name="Import into the study"))
    look("new-question")
    assert page.get_by_label("Human or machine?").is_disabled()
    page.get_by_label("How good is it?").check()
    shown = page.frame_locator("iframe")
    shown.get_by_text("neither good nor bad").first.wait_for()
    page.get_by_label("Criterion").select_option("fluency")
    shown.get_by_text("fluent throughout").first.wait_for()
    page.get_by_text("Add more criteria").click()
    listed = {box.get_attribute("value"): box.is_visible() for box in page.locator("[name=more]").all()}
    assert [key for key, is_shown in listed.items() if not is_shown] == [page.input_value("#id_criterion")]
    look("new-question-chosen")
    # The page that is shown is no step of the browser's history.
    assert page.evaluate("history.length") == before_and_after(page)
    press(page, page.get_by_role("button", name="Continue"))
    page.goto(live_server.url + reverse("new_study_file", args=[Study.objects.get().pk]))
    look("new-file")
    assert not wrong, "\n".join(wrong)
    page.context.close()


def before_and_after(page) -> int:
    before = page.evaluate("history.length")
    page.get_by_label("Criterion").select_option("clarity")
    page.frame_locator("iframe").get_by_text("completely clear").first.wait_for()
    assert page.evaluate("history.length") == before
    return before


@pytest.mark.browser
def test_without_scripts_a_button_shows_the_page_of_each_card(browser, live_server, media):
    page = opened(browser, live_server, java_script_enabled=False)
    page.goto(live_server.url + reverse("new_study"))
    page.get_by_label("Title").fill("Why animals sleep")
    page.get_by_text("Paste instead").click()
    page.locator("textarea").fill(SHORT)
    press(page, page.get_by_role("button", name="Continue"))
    page.get_by_label("Written by a person: human").check()
    press(page, page.get_by_role("button", name="Import into the study"))
    for card in CARDS:
        page.locator(f"#card-{card}").check()
        with page.expect_response(lambda response: response.request.method == "POST"):
            page.get_by_role("button", name="Show the page").click()
        frame = page.frame(name="page")
        frame.wait_for_load_state()
        until(lambda frame=frame: frame.locator("form").count() > 0)
        assert frame.locator("form").count(), card
        if os.environ.get("HEVAL_CARDS"):
            take_picture(browser, live_server, page, card, frame)
    page.context.close()


def take_picture(browser, live_server, page, card, frame):
    html = frame.content().replace("<head>", f'<head><base href="{live_server.url}/">')
    wide = browser.new_context(viewport={"width": 1040, "height": 780}, color_scheme="light").new_page()
    wide.goto(live_server.url + "/static/icon.svg")
    wide.goto(live_server.url + reverse("docs"))
    wide.set_content(html)
    wide.wait_for_load_state("networkidle")
    PICTURES.mkdir(exist_ok=True)
    picture = Image.open(io.BytesIO(wide.screenshot())).convert("RGB").resize(SIZE, Image.Resampling.LANCZOS)
    for quality in range(60, 5, -5):
        picture.save(PICTURES / f"{card}.webp", quality=quality, method=6)
        if (PICTURES / f"{card}.webp").stat().st_size < MOST_BYTES:
            break
    wide.context.close()


def test_each_card_has_a_small_picture():
    assert {path.stem for path in PICTURES.iterdir()} == set(CARDS)
    for card in CARDS:
        path = PICTURES / f"{card}.webp"
        assert path.stat().st_size < MOST_BYTES and Image.open(path).size == SIZE
