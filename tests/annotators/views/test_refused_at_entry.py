"""A person whom another study of the group has barred is refused at entry, and can object there without a page of that study."""

import re
from html import unescape

import pytest
from django.test import Client

from annotators.models import Appeal
from annotators.pay.decisions import answer_appeal
from annotators.places import assign
from annotators.places.barrings import bar_annotator
from studies.models import StudyMember
from tests.builders import launched, panel, spa_draft, user
from tests.players import claimed

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
WHY = "I did not copy."


@pytest.fixture
def barred():
    """A person barred by a study, and the link of another study of its group."""
    owner = user("owner")
    first, second = (
        launched(spa_draft(owner=owner, title=title, exclusion_group="tales"), owner) for title in ("first", "second")
    )
    done = claimed(first, "anna", panel(first))
    return bar_annotator(first, done.annotator, "Copies.", owner), panel(second), done


def start(link, person="anna"):
    return Client().post(f"/e/{link.key}/?who={person}&session=1", {"start": "1", "agree": "1"})


def test_the_refused_person_objects_and_reads_the_answer(barred):
    barring, link, done = barred
    refused = start(link).content.decode()
    assert "No further part for you" in refused and done.code not in refused
    (address,) = re.findall(r'href="(/e/[^"]+/appeal/[^"]+)"', refused)
    page = Client().get(address)
    assert page.status_code == 200 and not page.cookies
    assert "a group of studies, and this study belongs to it" in unescape(page.content.decode())
    assert Client().post(address, {"text": " "}).status_code == 422
    assert Client().post(address, {"text": WHY})["Location"] == address
    made = Appeal.objects.get()
    assert (made.barring, made.work, made.rejected_by, made.text) == (barring, done, barring.by, WHY)
    assert Client().post(address, {"text": WHY}).status_code == 302 and Appeal.objects.count() == 1
    again = Client().post(address, {"text": "Again!"})
    assert again.status_code == 422 and "already sent an objection" in again.content.decode()
    assert "Again!" in again.content.decode()
    assert "You objected on" in Client().get(address).content.decode() and done.code not in again.content.decode()
    second = user("second")
    StudyMember.objects.create(study=barring.study, user=second, role="editor")
    answer_appeal(made, "You are right.", True, second)
    page = Client().get(address).content.decode()
    assert "You are right." in page and "whether you can take part" in page
    assert "No further part for you" not in start(link).content.decode()


def test_the_address_is_only_for_the_person_and_the_link_that_refused_them(barred):
    barring, link, _ = barred
    (address,) = re.findall(r'href="(/e/[^"]+/appeal/[^"]+)"', start(link).content.decode())
    other = assign.get_or_create_annotator(link.pool, "bob")
    key, token = address.split("/")[2], address.split("/")[4]
    for wrong in (
        address.replace(str(barring.annotator.code), str(other.code)),
        address.replace(key, panel(barring.study).key),
        f"/e/none/appeal/{token}/",
    ):
        assert wrong != address and Client().get(wrong).status_code == 404
    assert "/appeal/" not in start(link, "bob").content.decode()
