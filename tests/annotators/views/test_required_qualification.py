"""A study that asks for a qualification gives places only to people who passed its test in another study: a gate over several visits."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from annotators.models import Annotator, Assignment
from annotators.participation.simulate import record_simulated_answers
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.pay.ledger import compute_amount_owed
from annotators.pay.promises import get_pay_terms
from annotators.places.assign import claim_batch, find_annotator
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.links import LinkState, recruitment_link_state
from studies.design.serialization import serialize_design
from studies.imports.bundle_files import bundle_text, create_draft_from_bundle
from studies.models import Qualification, Study
from studies.services.copying import clone_study
from studies.services.lifecycle import NotReady
from tests import builders
from tests.admin_pages import changed, form_of, logged_in
from tests.annotators.pages.quizzes import attempt, quiz_study
from tests.players import claimed
from tests.samples import blocking

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]

REFUSED = "This study asks for a test that you have not passed"


def work_study(owner, name, **columns) -> Study:
    return builders.launched(work_draft(owner, name, **columns), owner)


def work_draft(owner, name, **columns) -> Study:
    return builders.spa_draft(owner=owner, target_n=6, required_qualification=name, **columns)


@pytest.fixture
def owner():
    return builders.user("owner")


@pytest.fixture
def training(owner):
    """A study whose test gives the qualification "trained"."""
    return quiz_study(
        qualification=Qualification.objects.create(owner=owner, name="trained", valid_days=30), owner=owner
    )


def start(link, person="ann"):
    return Client().post(f"/e/{link.key}/?who={person}&session=1", {"start": "1", "agree": "1"})


def test_a_chain_of_visits_admits_only_who_passed_each_test(owner, training):
    second = Qualification.objects.create(owner=owner, name="trained twice", valid_days=30)
    later = quiz_study(qualification=second, owner=owner, required_qualification="trained")
    visits = [builders.panel(study) for study in (training, later, work_study(owner, "trained twice"))]
    assert REFUSED in start(visits[1]).content.decode() and REFUSED in start(visits[2]).content.decode()
    for number, link in enumerate(visits):
        assert start(link).status_code == 302, number
        if number < 2:
            assignment = Assignment.objects.get(study=link.study, annotator__pool="panel", batch__isnull=False)
            attempt(assignment, 0)
            # One pass opens the next visit alone.
            assert (start(visits[2]).status_code == 302) is (number == 1)
    failed = claimed(training, "bob", visits[0])
    attempt(failed, 2)
    assert REFUSED in start(visits[1], "bob").content.decode()


def test_who_is_not_admitted_reads_why_and_gets_what_people_without_a_place_get(owner, training):
    study = work_study(owner, "trained", reward="3.00")
    link = builders.promised(builders.panel(study), full="0.20")
    landing = Client().get(f"/e/{link.key}/?who=ann&session=1").content.decode()
    assert "people who lately passed a test in another study" in landing
    assert "<b>0.20 USD</b>: if no place is left, or you have not passed the test of another study" in landing
    page = start(link).content.decode()
    assert REFUSED in page and "FULL-9" in page and "trained" not in landing + page
    turned_away = study.assignments.get()
    assert (turned_away.batch, turned_away.released_reason) == (None, "full")
    assert str(compute_amount_owed(turned_away, 0, get_pay_terms(link)).amount) == "0.20"
    done = Client().get(f"/p/{turned_away.code}/done/").content.decode()
    assert "This study asks for a test that you had not passed" in done and "all places were taken" not in done
    start(link)
    assert study.assignments.get() == turned_away
    # With the pass, the same link gives a place, and the earlier visit stays as it was.
    attempt(claimed(training, "ann"), 0)
    assert start(link).status_code == 302 and study.assignments.filter(released_at=None).count() == 1
    assert "had not passed" in Client().get(f"/p/{turned_away.code}/done/").content.decode()


def test_a_pass_counts_while_it_is_valid_and_its_person_has_not_withdrawn(owner, training, monkeypatch):
    study, real = work_study(owner, "trained"), timezone.now
    for person in ("ann", "bea"):
        attempt(claimed(training, person), 0)
    withdraw_annotator_and_erase_texts(training.assignments.get(annotator=find_annotator("panel", "bea")))
    ann, bea = (find_annotator("panel", person) for person in ("ann", "bea"))
    assert claim_batch(study, bea).outcome == "unqualified"
    monkeypatch.setattr(timezone, "now", lambda: real() + timedelta(days=31))
    assert claim_batch(study, ann).outcome == "unqualified"
    monkeypatch.undo()
    assert claim_batch(study, ann).outcome == "claimed"
    # A pass that ends later does not end the work.
    monkeypatch.setattr(timezone, "now", lambda: real() + timedelta(days=31))
    assert claim_batch(study, ann).outcome == "claimed"


def test_a_pass_of_another_owner_does_not_count(owner, training):
    study = work_study(owner, "trained")
    stranger = builders.user("stranger")
    theirs = Qualification.objects.create(owner=stranger, name="trained", valid_days=30)
    attempt(claimed(quiz_study(qualification=theirs, owner=stranger), "ann"), 0)
    assert claim_batch(study, find_annotator("panel", "ann")).outcome == "unqualified"


def test_the_requirement_costs_one_statement_and_robots_need_no_pass(owner, training):
    for person in ("ann", "bea"):
        attempt(claimed(training, person), 0)
    counts = []
    for name, person in (("", "ann"), ("trained", "bea")):
        link = builders.panel(work_study(owner, name))
        start(link, "warm")
        with CaptureQueriesContext(connection) as seen:
            assert start(link, person).status_code == 302
        counts.append(len(seen))
    assert counts[1] == counts[0] + 1, counts
    assert Annotator.objects.filter(external_id=find_annotator("panel", "warm").external_id).exists()
    study = work_study(owner, "trained")
    record_simulated_answers(study, 1)
    assert study.assignments.filter(origin="robot", submitted_at__isnull=False).exists()


def test_the_checklist_refuses_a_qualification_that_nobody_can_have(owner, training):
    nobody = "Nobody can have the qualification"
    assert any(nobody in text for text in blocking(work_draft(owner, "training")))
    assert any(nobody in text for text in blocking(work_draft(builders.user("stranger"), "trained")))
    assert not blocking(work_draft(owner, "trained", exclusion_group="tales"))
    own = clone_study(training, owner)
    Study.objects.filter(pk=own.pk).update(required_qualification="trained")
    own.refresh_from_db()
    assert any(nobody in text for text in blocking(own))  # the clone keeps the people of its origin out
    Study.objects.filter(pk=own.pk).update(keeps_origin_out=False)
    assert not blocking(Study.objects.get(pk=own.pk))
    grouped = quiz_study(
        qualification=Qualification.objects.create(owner=owner, name="grouped", valid_days=9),
        owner=owner,
        exclusion_group="tales",
    )
    assert any(nobody in text for text in blocking(work_draft(owner, "grouped", exclusion_group="tales")))
    draft = clone_study(grouped, owner)
    chained = work_draft(owner, "only in a draft")
    draft.sections.filter(pass_mark__isnull=False).update(
        qualification=Qualification.objects.create(owner=owner, name="only in a draft", valid_days=9)
    )
    assert not blocking(chained) and "nobody_is_qualified_yet" in builders.warnings_of(chained)


@pytest.mark.parametrize("slug", sorted(slug for slug, channel in REGISTRY.items() if not channel.knows_people_again))
def test_a_link_that_does_not_know_people_again_admits_nobody(slug, owner, training):
    draft = work_draft(owner, "trained")
    link = builders.recruitment(draft, slug, settings={"people": 3} if slug == "invitation" else {})
    assert any("does not know them again" in text for text in blocking(draft))
    with pytest.raises(NotReady):
        builders.launched(draft, owner)
    link.stopped_at = timezone.now()
    link.save()
    study = builders.launched(Study.objects.get(pk=draft.pk), owner)
    late = builders.recruitment(study, slug, settings={"people": 3} if slug == "invitation" else {})
    assert recruitment_link_state(study, late) is LinkState.INCOMPLETE
    assert any("does not know them again" in text for text in REGISTRY[slug].obstacles(late))
    visit = REGISTRY[slug].rehearsal_entry(late, f"/e/{late.key}/", 1)[0]
    assert "This link is not open yet" in Client().post(visit, {"start": "1", "agree": "1"}).content.decode()
    assert not study.assignments.exists()


def test_the_page_and_rest_set_it_and_bundles_and_clones_keep_it(owner, training):
    draft = work_draft(owner, "")
    assert "required_qualification" not in serialize_design(draft)["study"]  # older designs keep their hash
    client = logged_in(owner)
    url = f"/admin/studies/study/{draft.pk}/change/?part=study"
    form = form_of(client.get(url), "study_form")
    assert client.post(url, changed(form, required_qualification="trained")).status_code == 302
    draft.refresh_from_db()
    assert serialize_design(draft)["study"]["required_qualification"] == "trained"
    for copy in (clone_study(draft, owner), create_draft_from_bundle(bundle_text(draft), owner)):
        assert copy.required_qualification == "trained" and not blocking(copy)
    api = APIClient()
    api.force_authenticate(owner)
    sent = api.patch(f"/api/v1/studies/{draft.code}/", {"required_qualification": "trained twice"}, format="json")
    assert sent.status_code == 200 and sent.json()["required_qualification"] == "trained twice"
