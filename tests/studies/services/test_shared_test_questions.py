"""Test questions of sections that share their items: made in the first one, shown and counted in each."""

import random
from collections import Counter

import pytest

from analysis.data.rule_input import read_test_answers
from annotators.models import Response
from annotators.participation.simulate import CrowdSettings, record_simulated_answers
from studies.design.workload import estimate_stored_or_trial_batch_workloads
from studies.imports.bundle_files import bundle_text, create_draft_from_bundle
from studies.models import Batch, Expected, Item, Question
from studies.services import drafts
from studies.services.copying import clone_study
from studies.services.known_answers import KnownAnswerRequest as Request
from studies.services.known_answers import make_test_questions_and_delete_test_runs, questions_about_items
from studies.services.lifecycle import ActionRefused
from tests import builders
from tests.admin_pages import logged_in
from tests.known_answers import draft

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
SHARES = {"positive_share": 0.2, "negative_share": 0.2}


def two_parts(*, m=5, again=5, counts=(("positive", 6), ("negative", 6))):
    """A draft in which a second section asks about the pairs of the first one, with test questions about its question."""
    study, first, researcher = draft("relative", m=m, **SHARES)
    second = builders.add_section(study, "relative", position=2, m=again, reuses=first)
    facts = second.questions.get()
    Question.objects.filter(pk=facts.pk).update(key="facts")
    facts.refresh_from_db()
    request = Request(facts, dict(counts), study.systems.get(name="human"))
    make_test_questions_and_delete_test_runs(first, request, by=researcher)
    return study, first, second, researcher


@pytest.mark.parametrize("again", [5, 2])
def test_both_sections_show_the_planted_items_and_the_known_answer_is_that_of_the_chosen_question(again):
    study, first, second, researcher = two_parts(again=again)
    study = builders.launched(study, researcher)
    record_simulated_answers(study, 6, rng=random.Random(3), crowd=CrowdSettings(screened_out=0, acquiescent=0))
    shown = Counter(Response.objects.values_list("assignment", "question__section__position", "item__kind"))
    n_tests = Counter(Batch.objects.filter(placements__item__kind="test").values_list("assignments", flat=True))
    assert sum(n_tests.values()) >= 6
    for person in set(Response.objects.values_list("assignment", flat=True)):
        assert (shown[person, 1, "live"], shown[person, 2, "live"]) == (5, again)
        assert shown[person, 1, "test"] == shown[person, 2, "test"] == n_tests[person]
    answers = read_test_answers(study, ("robot",))
    assert set(answers["question"]) == {"facts"} and len(answers) == sum(n_tests.values())
    assert answers["is_right"].dropna().astype(bool).mean() > 0.7
    asked = Counter(Response.objects.values_list("assignment__batch__number", flat=True))
    assert {int(one.batch): one.questions for one in estimate_stored_or_trial_batch_workloads(study)} == asked


def test_an_archive_and_a_copy_keep_which_section_asks_the_question():
    study, _, _, researcher = two_parts()
    copies = [create_draft_from_bundle(bundle_text(study), researcher), clone_study(study, by=researcher)]
    for copy in copies:
        known = Expected.objects.filter(item__study=copy, item__section__position=1)
        assert set(known.values_list("question__section__position", "question__key")) == {(2, "facts")}
        assert known.count() == 12 and not known.exclude(question__section__study=copy).exists()


def test_the_page_offers_the_questions_of_both_and_the_second_section_links_to_it():
    study, first, second, researcher = two_parts()
    client = logged_in(researcher)
    url = f"/admin/studies/section/{first.pk}/test-questions/"
    page = client.get(url)
    assert list(page.context["form"].fields["question"].widget.choices)[1:] == [
        (str(row.pk), str(row)) for row in questions_about_items(first)
    ]
    assert "about facts" in page.text
    other = client.get(f"/admin/studies/section/{second.pk}/change/")
    assert url in other.text and "whose items it repeats" in other.text
    assert client.get(f"/admin/studies/section/{second.pk}/test-questions/").status_code == 404


def test_a_repeating_section_makes_none_itself_and_a_key_of_both_means_the_first():
    study, first, second, researcher = two_parts()
    with pytest.raises(ActionRefused, match="repeats the items of section 1"):
        make_test_questions_and_delete_test_runs(second, Request(second.questions.get(), {"damaged": 1}), by=researcher)
    second.questions.update(key=first.questions.get().key)
    assert questions_about_items(first) == [first.questions.get()]


def test_a_repeating_section_is_deleted_with_the_test_questions_about_it():
    study, first, second, researcher = two_parts()
    drafts.delete_section_and_test_runs(second, researcher)
    assert not Item.objects.filter(section=first, kind="test").exists()
    assert list(Question.objects.filter(section__study=study)) == [first.questions.get()]
