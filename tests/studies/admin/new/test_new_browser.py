"""The pages of a new study in a browser, without scripts: from a file to the question."""

import pytest
from django.urls import reverse

from tests.browsing import look_at, press, shot
from tests.builders import user

OWN = "A text of some length that a system wrote as its answer."
FILE = "question,gpt-4o,my-model\n" + "".join(f"What is asked {n} here?,{OWN} {n},{OWN} And {n}.\n" for n in range(9))


@pytest.fixture
def page(live_server, browser, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    user()
    context = browser.new_context(viewport={"width": 1280, "height": 800}, java_script_enabled=True)
    page = context.new_page()
    page.goto(f"{live_server.url}/admin/login/")
    page.fill("#id_username", user().username)
    page.fill("#id_password", "a password")
    page.locator("[type=submit]").click()
    page.wait_for_url("**/admin/")
    yield page
    context.close()


@pytest.mark.browser
def test_from_a_file_to_the_question(page, live_server):
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
    page.goto(live_server.url + page.url.removeprefix(live_server.url).replace("question", "file"))
    look("new-file")
    assert not wrong, "\n".join(wrong)
