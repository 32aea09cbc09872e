"""The tutorial of boards is followed, click by click, in a browser: what it prints in bold is what is clicked and filled in here."""

import re

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.core.management import call_command
from django.urls import reverse

from boards.models import Board
from heval_site.views import docs
from studies.models import Study
from studies.services import jobs
from tests import ROOT
from tests.tutorial_reader import Reader

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
TEXT = docs.read_pages()["tutorial/a-board-in-twenty-minutes"].text
STEPS = TEXT.partition("## Next steps")[0]
BOLD = set(re.findall(r"\*\*([^*]+)\*\*", STEPS)) - {"bold"}
FILES = ROOT / "static" / "docs"


def run_jobs_and_periodic_functions():
    """Do what the worker of a site does within some minutes."""
    for _ in range(3):
        # Another test of this process may have had the turn within the minute.
        cache.clear()
        jobs.run_due_functions_and_record_heartbeat()
        jobs.run_waiting_jobs()


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
    reader.follow("New study from a template")
    reader.press("Make a draft of Board: answers rated in five categories")
    page.get_by_role("heading", name="Design", exact=True).first.wait_for()
    template = Study.objects.get()
    reader.follow("Import", reverse("import", args=[template.pk]))
    page.get_by_label("File", exact=True).set_input_files(str(FILES / "board-prompts.csv"))
    reader.done.add("File")
    reader.press("Check the file")
    reader.wait_for("Check, then confirm")
    reader.press("Import into the study")
    reader.wait_for("Imported")
    assert (template.systems.count(), template.prompts.count()) == (1, 20)
    reader.follow("Back to the study")
    reader.fill("Consent text", "You take part of your own free will.")
    reader.fill("Contact", "me@example.org")
    page.get_by_role("heading", name="Times", exact=True).click()
    reader.fill("Time to finish after closing, in seconds", "0")
    reader.press("Save")

    reader.go("/boards/new/")
    reader.fill("Title", "My board")
    reader.fill("Address", "my-board")
    page.get_by_label("Visibility").select_option(label="public: everybody can see results without a login")
    page.get_by_label("Template").select_option(label="Answers rated in five categories")
    reader.done |= {"Visibility", "Template"}
    reader.fill("Labels per output", "2")
    reader.press("Make the board")
    assert page.url.endswith("/boards/my-board/manage/")
    reader.press("Go on without test questions")
    reader.press("Open the board")
    reader.wait_for("Next round")
    board = Board.objects.get()
    assert board.state == "open" and len(board.sample_keys) == 20

    reader.fill("Name of the team or person", "Night owls")
    reader.press("Make a team")
    link = page.locator("pre").first.inner_text()
    guest = Reader(browser.new_context(viewport={"width": 375, "height": 740}).new_page(), live_server.url)
    for name in ("brief", "vague"):
        guest.page.goto(link)
        guest.fill("Name of the system", name)
        guest.page.get_by_label("File with the outputs").set_input_files(str(FILES / f"board-{name}.jsonl"))
        guest.done.add("File with the outputs")
        guest.press("Submit")
        guest.page.get_by_role("heading", name=name).wait_for()
    assert set(board.submissions.values_list("name", flat=True)) == {"human", "brief", "vague"}

    reader.go("/boards/my-board/manage/")
    assert "2 new submissions and 1 anchor" in page.locator("main").inner_text()
    assert "12 places" in page.locator("main").inner_text()
    reader.press("Open the round now")
    run_jobs_and_periodic_functions()
    study = board.rounds.get().study
    assert study.state == "launched"
    command = re.search(r"cli (study simulate .*)$", TEXT, re.MULTILINE)[1]
    assert study.title == command.split('"')[1]
    call_command("study", "simulate", study.title, *command.split('"')[2].split())
    run_jobs_and_periodic_functions()
    study.refresh_from_db()
    assert study.state == "closed"
    reader.go("/boards/my-board/manage/")
    reader.press("Compute the results again")
    run_jobs_and_periodic_functions()
    assert board.snapshots.count() == 1

    guest.go("/boards/my-board/")
    found = guest.page.locator("main").inner_text()
    assert "Robots gave these answers" in found and "brief" in found and "Night owls" in found
    guest.page.get_by_text("Share and download").click()
    for name in ("CSV", "JSON", "LaTeX"):
        assert guest.page.get_by_role("link", name=name, exact=True).count(), name
    reader.done |= guest.done
    context.close()
    guest.page.context.close()
    assert not reader.lost, "the tutorial speaks of links that are not there"
    assert reader.done == BOLD, "what is bold in the tutorial is not what was done"
