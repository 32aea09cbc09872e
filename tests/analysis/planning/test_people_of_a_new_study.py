"""The page of a new study about its people and their pay: proposals, numbers, refusals, and what it stores."""

import re
from decimal import Decimal

import pytest
from django.urls import reverse

from analysis.planning.checklist import forecast_inputs
from analysis.stats.planning.closed_forms import quick_plan
from studies.design.checklist import find_design_problems
from studies.design.workload import estimate_stored_or_trial_batch_workloads, median_workload
from studies.models import AuditEvent, Study
from studies.services.questions import ask_about_ai_tools
from tests.admin_pages import changed, errors_of, form_of, logged_in
from tests.builders import add_choice, add_rating, draft_study, launched, user

pytestmark = pytest.mark.django_db
URL = "/admin/studies/study/{}/new/people/"


@pytest.fixture
def owner():
    return user("owner")


def fresh(owner, prompts=40, systems=("alpha", "beta"), m=10, **settings) -> Study:
    """A draft with texts and a question, but without a size or pay."""
    study = draft_study(owner=owner, prompts=prompts, systems=systems, target_n=None, reward=None, minutes=None)
    add_choice(study, m=m, **settings)
    return study


def sent(client, study, **changes):
    url = URL.format(study.pk)
    return client.post(url, changed(form_of(client.get(url), "plan-form"), **changes))


def test_the_proposed_size_reaches_the_wanted_power_in_batches_that_fill(owner):
    study, client = fresh(owner, strategy="any"), logged_in(owner)
    page = client.get(URL.format(study.pk))
    form = page.context["form"]
    target = int(form["target_n"].value())
    # 40 prompts in batches of 10: each round of four batches shows every prompt once.
    assert target % 4 == 0
    inputs, _ = forecast_inputs(form.instance)
    assert quick_plan(inputs.size, inputs.target, inputs.variation).power >= 0.8
    form.instance.target_n = target // 2
    smaller, _ = forecast_inputs(form.instance)
    assert quick_plan(smaller.size, smaller.target, smaller.variation).power < 0.8
    assert "The size is enough" in page.content.decode()
    # Nothing is stored before the form is sent.
    assert Study.objects.get(pk=study.pk).target_n is None


@pytest.mark.parametrize("m", range(5, 13))
def test_the_proposed_pay_also_covers_the_question_that_the_next_page_adds(owner, m):
    study, client = fresh(owner, strategy="any", m=m), logged_in(owner)
    sent(client, study)
    study.refresh_from_db()
    ask_about_ai_tools(study, owner, True)
    burden = median_workload(estimate_stored_or_trial_batch_workloads(Study.objects.get(pk=study.pk)))
    assert burden.per_hour >= 12, burden


def test_pay_below_the_aim_is_said_at_once_and_before_the_launch(owner):
    study, client = fresh(owner, strategy="any"), logged_in(owner)
    words = "0.50 USD for 10 minutes is 3.00 USD an hour, less than the 12.00 that you aim at."
    for reward, is_said in (("0.5", True), ("2", False), ("0", False)):
        page = sent(client, study, minutes=10, reward=reward, show="1").content.decode()
        assert (words in page) == is_said, reward
        sent(client, study, minutes=10, reward=reward)
        problems = [problem.text for problem in find_design_problems(Study.objects.get(pk=study.pk))]
        assert any(words in text for text in problems) == is_said, reward


@pytest.mark.parametrize(("systems", "said"), [(("alpha", "beta", "gamma"), True), (("alpha", "beta"), False)])
def test_how_often_a_person_judges_a_prompt_is_said_beside_the_prompts_of_each(owner, systems, said):
    page = logged_in(owner).get(URL.format(fresh(owner, systems=systems, m=9, strategy="any").pk))
    answer = page.content.decode().partition('class="plan-said"')[2].partition("What is short?")[0]
    assert ("A person judges each of these prompts 3 times" in answer) == said
    assert (", 3 prompts each" in page.context["size_sentence"]) == said


def test_an_untouched_form_leaves_nothing_of_size_and_pay_missing(owner):
    study, client = fresh(owner, strategy="any"), logged_in(owner)
    missing = {"target_n", "reward", "minutes", "annotators_per_batch"}
    assert missing & {problem.field for problem in find_design_problems(study)}
    response = sent(client, study)
    assert response.status_code == 302, errors_of(response)
    study.refresh_from_db()
    assert not missing & {problem.field for problem in find_design_problems(study)}
    assert study.reward * 60 / study.minutes >= study.wage_per_hour == 12
    event = AuditEvent.objects.get(verb="edit")
    assert event.data["columns"] == ["minutes", "reward", "target_n", "wage_per_hour"]
    # The page shows what is stored, and sending it again changes nothing.
    assert sent(client, study).status_code == 302 and AuditEvent.objects.filter(verb="edit").count() == 1


def test_a_strategy_that_needs_people_per_batch_is_never_refused_later(owner):
    study, client = fresh(owner, strategy="majority", workers=5), logged_in(owner)
    page = client.get(URL.format(study.pk))
    assert "annotators_per_batch" not in page.context["form"].fields and "to 5 people" in page.content.decode()
    assert sent(client, study).status_code == 302
    study.refresh_from_db()
    assert study.annotators_per_batch == 5 and study.target_n % 5 == 0 and study.target_n <= 20
    assert not [p.text for p in find_design_problems(study) if p.field in ("annotators_per_batch", "target_n")]
    # 40 pairs in batches of ten, five times each: there are 20 places.
    refused = sent(client, study, target_n=21)
    assert refused.status_code == 422 and "Enter at most 20" in errors_of(refused)


def test_one_worker_may_take_all_batches(owner):
    study, client = fresh(owner, strategy="fixed"), logged_in(owner)
    assert sent(client, study, target_n=4).status_code == 302
    study.refresh_from_db()
    assert (study.target_n, study.batches_per_annotator) == (4, 4)
    assert not [p for p in find_design_problems(study) if p.field == "batches_per_annotator" and p.is_blocking]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"target_n": ""}, "required"),
        ({"target_n": 0}, "The target is 0"),
        ({"reward": "-1"}, "greater than or equal to 0"),
        ({"reward": "much"}, "Enter a number"),
        ({"currency": "euro"}, "at most 3 characters"),
        ({"minutes": 10_000}, "less than or equal to 1440"),
    ],
)
def test_what_is_wrong_is_named_and_what_was_typed_is_kept(owner, change, words):
    study, client = fresh(owner, strategy="any"), logged_in(owner)
    response = sent(client, study, wage_per_hour="13.70", **change)
    assert response.status_code == 422 and words in errors_of(response)
    assert form_of(response, "plan-form")["wage_per_hour"] == ["13.70"]
    study.refresh_from_db()
    assert study.target_n is None and study.wage_per_hour is None


def test_the_numbers_follow_without_storing_and_are_those_of_the_checklist_page(owner):
    study, client = fresh(owner, strategy="any"), logged_in(owner)
    shown = sent(client, study, target_n=8, reward="3", minutes=9, show="1")
    assert shown.status_code == 200 and "8 people" in shown.context["size_sentence"]
    live = client.get(
        URL.format(study.pk),
        {
            "part": "live",
            "target_n": 8,
            "reward": 3,
            "minutes": 9,
            "wage_per_hour": 12,
            "currency": "USD",
            "annotators_per_batch": 1,
        },
    )
    assert live.status_code == 200 and shown.context["size_sentence"] in live.content.decode()
    assert client.get(URL.format(study.pk), {"part": "live", "target_n": "x"}).status_code == 422
    study.refresh_from_db()
    assert study.target_n is None
    sent(client, study, target_n=8, reward="3")
    design = client.get(f"/admin/studies/study/{study.pk}/change/").content.decode()
    assert shown.context["finding_sentence"] in design


@pytest.mark.parametrize("reward", ["0", "1"])
def test_a_study_without_pay_speaks_of_no_money(owner, reward):
    study, client = draft_study(owner=owner, prompts=8, target_n=None, reward=None, minutes=None), logged_in(owner)
    add_rating(study, position=1, m=8)
    page = sent(client, study, reward=reward, target_n=24, show="1").content.decode()
    answer = page.partition('<section class="plan-answer"')[2].partition("</section>")[0]
    money = [word for word in ("paid", " fees", "At the same money", " EUR", " USD", "Each gets") if word in answer]
    assert bool(money) == (reward != "0"), answer
    assert "If you expect one as large, you can launch the study as it is." in answer and " label" not in answer
    assert not re.search(r"power (is|stays below) \.", answer), "a power is a percentage"


def test_what_a_percentage_of_ratings_is_and_who_reads_what(owner):
    study = draft_study(owner=owner, prompts=12, systems=("alpha", "beta"), target_n=None, reward=None, minutes=None)
    add_rating(study, position=1, m=12)
    page = logged_in(owner).get(URL.format(study.pk)).content.decode()
    # Everybody judges every prompt, so nothing is to be said of batches.
    assert "how often a rating of the better system is higher" in page and "annotators_per_batch" not in page
    assert "reads other texts" not in page
    pairs = logged_in(owner).get(URL.format(fresh(owner, strategy="any").pk)).content.decode()
    assert "how often people prefer the better system" in pairs and "annotators_per_batch" in pairs


def test_a_lower_cap_gives_way_to_the_new_target(owner):
    study, client = fresh(owner, strategy="any"), logged_in(owner)
    Study.objects.filter(pk=study.pk).update(target_n=4, target_cap=5)
    assert sent(client, study, target_n=12).status_code == 302
    study.refresh_from_db()
    assert (study.target_n, study.target_cap, study.cap) == (12, None, 18)


def test_without_a_question_the_page_leads_to_it_and_a_launched_study_to_its_page(owner):
    client = logged_in(owner)
    empty = draft_study(owner=owner)
    page = client.get(URL.format(empty.pk))
    assert page.status_code == 200 and "no question yet" in page.content.decode()
    running = draft_study(owner=owner)
    add_rating(running, position=1)
    running = launched(running, owner)
    assert client.get(URL.format(running.pk)).url == reverse("admin:studies_study_change", args=[running.pk])
    assert logged_in(user("stranger")).get(URL.format(empty.pk)).status_code == 404


def test_pay_of_a_draft_stays_as_it_is(owner):
    study, client = fresh(owner, strategy="any"), logged_in(owner)
    Study.objects.filter(pk=study.pk).update(reward=Decimal("1.05"), wage_per_hour=9, currency="EUR")
    sent(client, study)
    study.refresh_from_db()
    assert (study.reward, study.wage_per_hour, study.currency) == (Decimal("1.05"), 9, "EUR")
