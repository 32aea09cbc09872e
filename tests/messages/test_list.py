"""Every message that the code can show has a line in a table of this package, whose scenario provokes it.

A message without a line fails, so does a line whose scenario does not show its message at its place, and so does a message without the
next step. ``lines`` says how a line is written.
"""

import re
from collections import Counter

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
    found = lines.faults(area)
    assert not found, "\n".join([f"{len(found)} faults in the table of {area}:", *found])


def test_no_message_is_longer_than_25_words():
    """A value that is put in counts as one word."""
    counted = ((message, sum(1 for word in message.text.split() if WORD.search(word))) for message in collected())
    found = [f"{one.module}.py, line {one.line}: {n} words: {one.text}" for one, n in counted if n > 25]
    assert not found, "\n".join([f"{len(found)} messages are too long:", *found])


def test_the_pages_say_once_what_to_do_about_the_problems_of_a_file():
    """What ``of_file`` relies on: the next step is above the list of problems."""
    owner = builders.user()
    client = logged_in(owner)
    draft = builders.draft_study(owner=owner, systems=("alpha", "beta"), prompts=2)
    builders.add_choice(draft, strategy="any", stopping="none")
    for page in ("import", "import_answers"):
        file = SimpleUploadedFile("t.csv", b"nothing\nknown\n")
        shown = client.post(reverse(page, args=[draft.pk]), {"file": file, "columns": ""}, follow=True).content.decode()
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
        scenario.place[1:]
        for area in AREAS
        for table in lines.tables(area).values()
        for _, scenario in lines.scenarios(table)
        if isinstance(scenario, lines.At) and scenario.place[:1] == "#"
    }
    assert len(anchors) > 10 and not [anchor for anchor in anchors if f'id="{anchor}"' not in pages]


NEW = Message("report", "analysis/report/build", "_new", 7, "A new … appeared. Look up.")
OTHER = Message("report", "analysis/report/build", "_new", 9, "A new … appeared at last. Look down.")
ELSEWHERE = Message("report", "analysis/report/notices", "_old", 3, "A new … appeared. Look up.")


def shows(*texts, url=""):
    return lambda: [lines.Shown(text, url) for text in texts]


@pytest.fixture
def faults_of(monkeypatch):
    """What is wrong with these messages and this table."""

    def found(*messages, **tables):
        monkeypatch.setattr(lines, "collected", lambda: messages)
        monkeypatch.setattr(lines, "tables", lambda area: {f"{name}.py": table for name, table in tables.items()})
        return lines.faults("report")

    return found


def test_a_message_without_a_line_is_found_and_the_line_is_proposed(faults_of):
    (fault,) = faults_of(NEW)
    assert "analysis/report/build.py, line 7" in fault and "A new … appeared" in fault
    table = {"A new … appeared": shows("A new comet appeared. Look up.")}
    assert not faults_of(NEW, build=table)
    (fault,) = faults_of(NEW, OTHER, build={"appeared. Look": table["A new … appeared"]}, pages={})
    assert "line 9" in fault and "REPORT in build.py" in fault and "'A new … appeared at last'" in fault


def test_a_line_without_its_message_is_found(faults_of):
    line = shows("A new comet appeared. Look up.")
    assert "no message has the words “No new moon”" in faults_of(build={"No new moon": line})[0]
    assert "several messages have the words" in faults_of(NEW, OTHER, build={"A new …": line})[0]
    assert "2 lines are about" in faults_of(NEW, build={"A new …": line, "appeared. Look": line})[0]
    both = {"_new: A new … appeared": line, "_old: A new … appeared": line}
    assert not faults_of(NEW, ELSEWHERE, build=both)


def test_a_scenario_that_does_not_show_its_message_is_found(faults_of):
    def fails():
        raise KeyError("moon")

    right = shows("A new comet appeared. Look up.")
    for wrong in (shows(), shows("An old comet. Look up."), shows("A new comet appeared at last. Look down.")):
        assert "does not show “A new … appeared. Look up.”" in faults_of(NEW, OTHER, build={"appeared. Look": wrong})[0]
        # Each scenario of a line must show its message.
        assert "does not show" in faults_of(NEW, build={"appeared. Look": (right, shows("An old comet."))})[0]
    assert "its scenario failed: KeyError" in faults_of(NEW, build={"appeared. Look": fails})[0]


def test_a_message_at_another_place_is_found(faults_of):
    linked, in_a_row = (
        shows("A new comet appeared. Look up.", url="/there/#id_x"),
        shows("row 2, name: A new comet appeared. Look up."),
    )
    for scenario in (lines.At("#id_x", linked), lines.At("row 2, name", in_a_row), lines.At("name", in_a_row)):
        assert not faults_of(NEW, build={"A new": scenario})
    for scenario in (lines.At("#id_y", linked), lines.At("row 3, name", in_a_row)):
        assert "Nothing is shown at" in faults_of(NEW, build={"A new": scenario})[0]


def test_a_message_without_a_next_step_or_with_an_object_of_the_code_is_found(faults_of):
    bare = Message("report", "analysis/report/build", "_new", 7, "A new … appeared.")
    shown = shows("A new comet appeared.", url="/there/#id_x")
    assert "does not say what to do" in faults_of(bare, build={"A new": shown})[0]
    for scenario in (
        lines.only_informs(shown),
        lines.At("#id_x", shown),
        lambda: lines.of_file(["A new comet appeared."]),
    ):
        assert not faults_of(bare, build={"A new": scenario})
    ends_in_value = Message("report", "analysis/report/build", "_new", 7, "A new … appeared. …")
    assert not faults_of(ends_in_value, build={"A new": shows("A new comet appeared. Look up.")})
    assert (
        "does not say what to do"
        in faults_of(ends_in_value, build={"A new": shows("A new comet appeared. It shines.")})[0]
    )
    for raw in ("None", "<Comet object (2)>", "CometDoesNotExist"):
        assert "a class of the code" in faults_of(NEW, build={"A new": shows(f"A new {raw} appeared. Look up.")})[0]
