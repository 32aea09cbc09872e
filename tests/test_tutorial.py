"""The tutorial is followed, click by click, in a browser: what it prints in bold is what is clicked and filled in here."""

import re

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.core.management import call_command
from django.urls import NoReverseMatch, reverse

from heval_site.views import docs
from studies.models import Study
from studies.services import jobs
from tests import ROOT
from tests.tutorial_reader import Reader

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
TEXT = docs.read_pages()["tutorial/first-study"].text
BOLD = set(re.findall(r"\*\*([^*]+)\*\*", TEXT)) - {"bold"}


def address(name, *args):
    try:
        return reverse(name, args=args)
    except NoReverseMatch:
        return ""


def test_the_tutorial_can_be_followed(browser, live_server, settings):
    settings.SITE_URL = live_server.url
    get_user_model().objects.create_superuser("admin", password="a password")
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    reader = Reader(context.new_page(), live_server.url)
    page = reader.page

    reader.go("/admin/")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill("a password")
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="New study", exact=True).wait_for()
    reader.done.add("New study")
    reader.follow("Empty study")
    reader.fill("Title", "My first study")
    reader.fill("Public title", "Reading short fables")
    reader.press("Save")
    study = Study.objects.get()
    home = reverse("admin:studies_study_change", args=[study.pk])

    reader.follow("Import", address("import", study.pk))
    page.get_by_label("File", exact=True).set_input_files(str(ROOT / "static" / "docs" / "first-study.jsonl"))
    reader.done.add("File")
    assert page.get_by_label("Add systems that the study does not have yet").is_checked()
    reader.press("Check the file")
    reader.wait_for("Check, then confirm")
    assert study.prompts.count() == 0
    reader.press("Import into the study")
    reader.wait_for("Imported")
    assert (study.systems.count(), study.prompts.count()) == (3, 12)
    reader.follow("Back to the study")

    for group in ("Texts for annotators", "Times"):
        page.get_by_role("heading", name=group, exact=True).click()
    for label, text in re.findall(r"^\| \*\*([^*]+)\*\* \| `([^`]+)`", TEXT, re.MULTILINE):
        reader.fill(label, text)
    reader.fill("Contact", "me@example.org")
    reader.press("Save")
    assert page.locator("#checklist li").count() == 2

    reader.follow("Add a section")
    reader.tick("SPA: system-level probabilistic assessment")
    reader.press("Save")
    reader.fill("Prompts for each annotator (m)", "4")
    reader.press("Save and continue editing")
    reader.press("Generate questions")
    reader.press("Save")
    assert "Nothing is missing." in page.locator("#checklist").inner_text()
    assert study.contrasts.count() == 2

    reader.follow("Preview")
    reader.follow("Next →")
    reader.follow("Back to the study")

    reader.follow("Launch…")
    reader.press("Launch")
    page.locator("#job").wait_for()
    jobs.run_waiting_jobs()
    page.get_by_role("heading", name="Your link").wait_for()
    reader.follow("Make a link")
    reader.tick("Open link")
    reader.press("Save")
    link = page.get_by_label("Link for annotators").input_value()

    guest = Reader(browser.new_context(viewport={"width": 375, "height": 740}).new_page(), live_server.url)
    guest.page.goto(link)
    guest.page.get_by_label("I have read this and agree to take part.").check()
    guest.press("Start")
    guest.page.get_by_role("heading", name="Please read").wait_for()
    while (onward := guest.page.get_by_role("link", name="Next prompt").locator("visible=true")).count():
        onward.first.click()
    guest.press("I have read them: go to the questions")
    guest.page.get_by_role("heading", name="Your judgement").wait_for()
    for box in guest.page.locator("[data-has-range]").all():
        box.fill("70")
    guest.press("Send these answers and finish")
    guest.page.get_by_role("heading", name="Thank you").wait_for()
    reader.done |= guest.done

    command = re.search(r"cli (simulate .*)$", TEXT, re.MULTILINE)[1]
    call_command("simulate", "My first study", *command.split('"')[2].split())
    reader.go(home)
    reader.follow("Close")
    reader.press("Close")
    # Another test of this process may have had the turn within the minute.
    cache.clear()
    jobs.run_due_functions_and_record_heartbeat()
    study.refresh_from_db()
    assert study.state == "closed"

    reader.go(home)
    reader.follow("Analyse", address("analyses", study.pk))
    page.wait_for_load_state()
    if not page.get_by_label("Robot").count():
        reader.lost.append("Analyse (leads elsewhere)")
        reader.go(address("analyses", study.pk))
    reader.tick("Robot")
    page.get_by_label("Resamples").fill("199")  # a reader waits longer
    reader.press("Run the analysis")
    reader.wait_for("The analysis is running")
    jobs.run_waiting_jobs()
    page.get_by_role("heading", name="Results", exact=True).wait_for()
    found = page.locator("main").inner_text()
    assert "Results" in found and "n = 11 annotators" in found and "came by an open link" in found
    context.close()
    guest.page.context.close()
    assert not reader.lost, "the tutorial speaks of links that are not there"
    assert reader.done == BOLD, "what is bold in the tutorial is not what was done"
