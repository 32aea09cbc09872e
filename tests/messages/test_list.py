"""Every message that the checklist, a study's pages, the forms and the importers can show is in a list, and is provoked from there.

A message without its line in the list fails, so does a line whose scenario does not show its message, and so does a text that lacks its
cause or the next step. The list of an area is the module of its name beside this file; ``lines`` says how a line is written.
"""

import re
from collections import Counter
from importlib import import_module

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from tests import builders
from tests.admin_pages import logged_in, study_url

from . import lines
from .collected import AREAS, Message, collected

pytestmark = pytest.mark.django_db
WORD = re.compile(r"[\w…]")


@pytest.mark.slow
def test_the_collection_finds_messages_in_every_area():
    n = Counter(message.area for message in collected())
    assert set(n) == set(AREAS) and sum(n.values()) > 150, n


@pytest.mark.slow
@pytest.mark.parametrize("area", AREAS)
def test_each_message_is_shown_with_its_cause_and_the_next_step(area):
    found = lines.faults(area, import_module(f"tests.messages.{area}").LINES)
    assert not found, "\n".join([f"{len(found)} faults in the list of {area}:", *found])


def test_no_message_is_longer_than_25_words():
    """A value that is put in counts as one word."""
    counted = ((message, sum(1 for word in message.text.split() if WORD.search(word))) for message in collected())
    found = [f"{one.module}.py, line {one.line}: {n} words: {one.text}" for one, n in counted if n > 25]
    assert not found, "\n".join([f"{len(found)} messages are too long:", *found])


def test_the_pages_say_once_what_to_do_about_the_problems_of_a_file():
    """What the lines mark with FILE: the next step stands above the list of problems."""
    owner = builders.user()
    client = logged_in(owner)
    draft = builders.draft_study(owner=owner, systems=("alpha", "beta"), prompts=2)
    builders.add_choice(draft, strategy="any", stopping="none")
    for page in ("import", "import_answers"):
        file = SimpleUploadedFile("t.csv", b"nothing\nknown\n")
        shown = client.post(
            reverse(page, args=[draft.code]), {"file": file, "columns": ""}, follow=True
        ).content.decode()
        assert "nothing was written" in shown and "Correct the file and <a" in shown and "upload it again" in shown, (
            page
        )
    file = SimpleUploadedFile("t.json", b'{"schema": "heval.bundle/1"}')
    shown = client.post(reverse("bundle_upload"), {"file": file}).content.decode()
    assert "study: is missing" in shown and "Correct the file and choose it again." in shown


@pytest.mark.slow
def test_the_places_to_which_problems_are_linked_are_on_the_pages():
    owner = builders.user()
    client = logged_in(owner)
    draft = builders.spa_draft(owner=owner)
    addresses = [study_url(draft), *(f"/admin/studies/section/{one.pk}/change/" for one in draft.sections.all())]
    pages = "".join(client.get(address).content.decode() for address in addresses)
    anchors = {
        following[1:]
        for area in AREAS
        for mine in import_module(f"tests.messages.{area}").LINES.values()
        for _, following, _ in mine
        if following[:1] == "#"
    }
    assert len(anchors) > 10 and not [anchor for anchor in anchors if f'id="{anchor}"' not in pages]


def test_a_message_without_a_line_and_a_line_without_its_message_are_found(monkeypatch):
    new = Message("report", "analysis/report/build", "_new", 7, "A new … appeared.")
    monkeypatch.setattr(lines, "collected", lambda: (new,))
    (fault,) = lines.faults("report", {})
    assert "analysis/report/build.py, line 7" in fault and "A new … appeared." in fault

    def shown():
        return [lines.Shown("A new comet appeared.", "/there/#id_x")]

    for following in ("comet", "#id_x", lines.NOTHING):
        assert not lines.faults("report", {new.where: [("comet", following, shown)]})
    assert "does not say the next step" in lines.faults("report", {new.where: [("comet", "Look up", shown)]})[0]
    assert "leads to" in lines.faults("report", {new.where: [("comet", "#id_y", shown)]})[0]
    assert "does not show “moon”" in lines.faults("report", {new.where: [("moon", "comet", shown)]})[0]
    assert (
        "no message is made there" in lines.faults("report", {"analysis/report/build:old": [("comet", "x", shown)]})[0]
    )
