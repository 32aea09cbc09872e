"""The pages of the import can be used by everybody, on narrow screens too."""

import os

import pytest
from django.urls import reverse

from tests.accessibility import TAGS, violations
from tests.builders import draft_study, user
from tests.studies.admin.imports.uploaded import BAD

WIDTHS = [1280, 375]
OWN = "A text of some length that a system wrote as its answer."


@pytest.mark.browser
@pytest.mark.parametrize("width", WIDTHS)
def test_the_pages_can_be_used_by_everybody(live_server, browser, settings, tmp_path, width):
    settings.MEDIA_ROOT = tmp_path / "media"
    study = draft_study(owner=user(), prompts=2)
    context = browser.new_context(viewport={"width": width, "height": 900}, java_script_enabled=True)
    page = context.new_page()
    _log_in(page, live_server)
    shots = os.environ.get("HEVAL_SHOTS")

    def look_at(name):
        if shots:
            page.screenshot(path=f"{shots}/{name}-{width}.png", full_page=True)
        found = violations(page, *TAGS, "best-practice")
        assert not found, f"{name}: {found}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than the screen"

    page.goto(f"{live_server.url}{reverse('import', args=[study.pk])}")
    look_at("import")
    rows = [
        f"p{n},Prompt {n},{system},{'``so``' if system == 'beta' else 'So'} it went {n}.\n"
        for n in range(30)
        for system in ("alpha", "beta")
    ]
    head = "prompt_key,prompt_text,system,text,note\n"
    for name, data in (
        ("report", head + "".join(row.replace("\n", ",\n") for row in rows)),
        (
            "columns",
            "question,gpt-4o,my-model,note\n" + "".join(f"What is asked {n} here?,{OWN},{OWN},x\n" for n in range(9)),
        ),
        ("problems", BAD.decode() + "p9\n,,,\n"),
    ):
        page.goto(f"{live_server.url}{reverse('import', args=[study.pk])}")
        page.set_input_files(
            "input[type=file]", {"name": "stories.csv", "mimeType": "text/csv", "buffer": data.encode()}
        )
        page.get_by_role("button", name="Check the file").click()
        page.wait_for_url("**/import/*/")
        look_at(name)
        if name == "report":
            for summary in page.locator("summary").all():
                summary.click()
            look_at("report-open")
            page.get_by_role("button", name="Import into the study").click()
            page.get_by_text("The whole file was imported").wait_for()
            look_at("written")
    page.goto(f"{live_server.url}{reverse('import_preparation', args=[study.pk])}")
    page.get_by_label("Replace a tokeniser's quotes by quotation marks").check()
    page.get_by_role("button", name="Preview the changes").click()
    page.get_by_text("This would change").wait_for()
    look_at("preparation")
    page.goto(f"{live_server.url}{reverse('bundle_upload')}")
    look_at("bundle")
    context.close()


def _log_in(page, live_server):
    page.goto(f"{live_server.url}/admin/login/")
    page.fill("#id_username", user().username)
    page.fill("#id_password", "a password")
    page.locator("[type=submit]").click()
    page.wait_for_url("**/admin/")
