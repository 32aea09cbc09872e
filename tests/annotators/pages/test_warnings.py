"""Outputs with a warning: read before they are opened, left out without an answer, and limited for each person."""

import re

import pytest
from django.test import Client

from annotators.models import Response
from annotators.pages.record import full_page_state
from studies.design.serialization import canonical_json, serialize_design, sha256_of
from studies.imports.bundle_files import bundle_text, create_draft_from_bundle, serialize_bundle
from studies.models import Output, Study
from studies.services.lifecycle import NotReady
from tests.builders import SYSTEMS, add_rating, draft_study, launched, user

from .sender import Sender

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
WARNING = "Describes a death."


@pytest.fixture
def draft() -> Study:
    study = draft_study(owner=user("owner"), target_n=2)
    add_rating(study, position=1, m=2)
    return study


def warn(study: Study) -> None:
    Output.objects.filter(system__study=study, system__name=SYSTEMS[0]).update(warning=WARNING)


def test_a_warned_output_is_closed_until_chosen_and_need_not_be_judged(draft):
    warn(draft)
    one = Sender(launched(draft))
    one.send()  # the instructions
    key = full_page_state(one.assignment).next_key
    html = Client().get(f"/p/{one.assignment.code}/{key}/").content.decode()
    names = re.findall(r'name="(unseen\.[^"]+)"', html)
    assert html.count(WARNING) == html.count('<details class="warned">') == len(names) > 0
    assert "<details open" not in html and "I cannot see this image" not in html
    warned = {name.removeprefix("unseen.") for name in names}
    slots = set(re.findall(r'name="(s[^"]+)"', html))
    left_out = {slot: "" for slot in slots if any(re.search(rf"\b{re.escape(name)}\b", slot) for name in warned)}
    assert len(slots) > len(left_out) > 0
    assert one.send(**dict.fromkeys(names, "1"), **left_out).status_code == 302
    about = Response.objects.filter(assignment=one.assignment, slot__in=left_out)
    assert {row.skip_reason for row in about} == {"unseen"}
    assert one.visit(key).unseen == ";".join(name.removeprefix("unseen.") for name in names)
    shown = Client().get(f"/p/{one.assignment.code}/{key}/").content.decode()
    assert "You said that you did not want to look at this." in shown


def test_a_launch_that_could_show_too_many_is_refused_and_leaves_nothing(draft):
    warn(draft)
    Study.objects.filter(pk=draft.pk).update(warning_limit=1)
    draft.refresh_from_db()
    with pytest.raises(NotReady, match="A person could get 2 outputs with a warning; the limit is 1"):
        launched(draft)
    draft.refresh_from_db()
    assert draft.is_draft and not draft.batches.exists()
    Study.objects.filter(pk=draft.pk).update(warning_limit=2)
    draft.refresh_from_db()
    assert launched(draft).state == "launched"


def test_a_design_without_warnings_keeps_its_hash_and_a_bundle_carries_them(draft):
    before = sha256_of(canonical_json(serialize_design(draft)))
    assert "warning" not in bundle_text(draft).replace("content_warning", "")
    warn(draft)
    assert sha256_of(canonical_json(serialize_design(draft))) != before
    copy = create_draft_from_bundle(serialize_bundle(draft), user("other"))
    warned = Output.objects.filter(system__study=copy).exclude(warning="")
    assert set(warned.values_list("system__name", "warning")) == {(SYSTEMS[0], WARNING)}
