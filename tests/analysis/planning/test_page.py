"""The page Plan: live numbers without numpy, the form, simulated plans and their choice."""

import re
import subprocess
import sys
from hashlib import sha256

import pytest
from django.urls import reverse

from analysis.planning.forms import PlanForm
from analysis.planning.inputs import PlanInputs, inputs_from_draft
from studies.design.serialization import canonical_json
from studies.models import SizePlan, StudyMember
from studies.services import jobs
from tests.builders import add_choice, choice_study, draft_study, launched, user
from tests.size_plans import choose, planned_size

from .quick import inputs, words

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return user("owner")


@pytest.fixture
def draft(owner):
    study = draft_study(owner=owner)
    add_choice(study, m=6, stopping="none")
    return study


@pytest.fixture
def asking(client, owner, draft):
    client.force_login(owner)

    def ask(study=draft, **sent):
        return client.get(reverse("admin:studies_plan", args=[study.pk]), sent)

    return ask


def test_a_draft_is_linked_to_its_plan_and_shows_what_it_can_find(draft, asking):
    said = words(asking())
    assert "6 people, 2 prompts each, every prompt judged once, " in said
    assert "Finds 60 % against 50 % with " in said and " power (approximate). Expected interval: ± " in said
    assert "An inconclusive result would not mean that the systems are equal" in said
    assert "Simulate this plan" in said


def test_an_empty_draft_has_a_plan_too(owner, asking):
    said = words(asking(draft_study(owner=owner, systems=(), prompts=0, target_n=None, reward=None)))
    assert "36 people, 20 prompts each, every prompt judged 12 times, 35.3 minutes, 254 USD." in said


def test_the_script_gets_the_numbers_alone(asking):
    response = asking(part="live", people="40", prompts="60", prompts_each="20")
    assert "<html" not in response.content.decode()
    assert "40 people, 20 prompts each" in words(response)


@pytest.mark.parametrize(
    "sent, field, advice",
    [
        ({"people": "1000000"}, "people", "less than or equal to 100000"),
        ({"prompts": "0"}, "prompts", "greater than or equal to 1"),
        ({"prompts_each": "13"}, "prompts_each", "more than the 12 prompts"),
        ({"sd_prompts": "-1", "prior": ""}, "sd_prompts", "greater than or equal to 0"),
        ({"goal": "equivalence"}, "margin", "Declare the largest difference that does not matter"),
        ({"goal": "equivalence", "margin": "0.5"}, "margin", "as large as the largest difference"),
        ({"points": "4.5", "protocol": "rating"}, "points", "whole number"),
        ({"prior": "nobody"}, "prior", "nobody is not one of the available choices"),
    ],
)
def test_a_wrong_number_is_named_with_what_to_change(sent, field, advice, asking):
    response = asking(part="live", **sent)
    assert response.status_code == 422
    assert f'href="#plan-{field}"' in response.content.decode()
    assert advice in words(response)


def test_a_public_prior_counts_before_the_numbers_beside_it():
    form = PlanForm(inputs(), {"prior": "choices_neighbours", "sd_prompts": "3"})
    assert form.is_valid() and form.inputs.variation.sd_prompts == 0.75
    assert form["sd_prompts"].value() == 0.75, "the page shows other numbers than those that count"
    assert PlanForm(inputs(), {"prior": "", "sd_prompts": "3"}).is_valid()


def test_the_form_returns_the_inputs_that_it_shows(draft):
    start = inputs_from_draft(draft)
    form = PlanForm(start, {})
    assert form.is_valid(), form.errors
    assert form.inputs == start and form.inputs.fingerprint() == start.fingerprint()
    assert PlanInputs.from_json(start.as_json()) == start


@pytest.mark.slow
def test_a_plan_is_simulated_shown_and_chosen(draft, owner, client, asking, few_runs):
    page = asking(people="12", prompts_each="4").content.decode()
    address = reverse("admin:studies_plan_simulate", args=[draft.pk])
    form = page.partition(f'action="{address}"')[2].partition("</form>")[0]
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))
    assert hidden["people"] == "12"
    response = client.post(address, hidden)
    assert "/job/" in response.url
    jobs.run_waiting_jobs()
    plan = draft.size_plans.get()
    ended = client.get(response.url)
    assert f"?plan={plan.pk}" in ended.content.decode()
    said = words(asking(plan=plan.pk))
    assert "heval simulated 40 studies with these settings" in said
    assert "Use this plan" in said and "Simulate this plan" not in said
    assert "Fixed or sequential" in said and "After every person" in said
    client.post(reverse("admin:studies_plan_choose", args=[draft.pk]), {"plan": plan.pk, "sets_target": "on"})
    draft.refresh_from_db()
    assert draft.size_plan == plan and draft.target_n == plan.result["budget"]["finishing"]
    assert client.post(reverse("admin:studies_plan_simulate", args=[draft.pk]), hidden).url.endswith(f"?plan={plan.pk}")


@pytest.mark.parametrize(
    ("goal", "margin", "is_outdated"), [("noninferiority", 0.1, True), ("difference", None, False)]
)
def test_only_plans_by_a_margin_are_outdated_by_the_count_of_claims_of_the_opposite(
    goal, margin, is_outdated, draft, owner, asking
):
    """The fingerprints of other plans are as they were."""
    asked = inputs(goal=goal, margin=margin)
    fingerprint = sha256(canonical_json({"inputs": asked.as_json(), "method_version": 2}).encode()).hexdigest()
    assert (fingerprint != asked.fingerprint()) == is_outdated
    now = planned_size(draft_study(), target=asked.target).result | {
        "sequential": {"reason": "", "designs": []},
        "advice": [],
    }
    settings = now["plan"]["settings"] | {"method_version": 2}
    columns = {"inputs": asked.as_json(), "seed": 1, "result": now | {"plan": now["plan"] | {"settings": settings}}}
    stored = SizePlan.objects.create(study=draft, fingerprint=fingerprint, **columns)
    assert ("Simulate this plan" in words(asking(plan=stored.pk))) == is_outdated, "the question is computed again"
    choose(draft, stored)
    assert ("An older method computed these numbers" in words(asking(launched(draft)))) == is_outdated


def test_the_plan_of_another_study_cannot_be_chosen(draft, client, asking):
    for sent in ("", "999", "x" * 30):
        client.post(reverse("admin:studies_plan_choose", args=[draft.pk]), {"plan": sent})
    draft.refresh_from_db()
    assert draft.size_plan is None
    assert "This study has no such plan." in words(asking())


def test_after_the_launch_the_page_is_read_only(owner, client, asking):
    study = choice_study(by=owner)
    said = words(asking(study))
    assert "No plan was chosen before the launch." in said and "Simulate" not in said
    response = client.post(reverse("admin:studies_plan_simulate", args=[study.pk]), {})
    assert response.status_code == 302 and not study.jobs.filter(kind="plan_size").exists()


def test_viewers_see_the_numbers_and_no_button(draft, client, asking):
    viewer = user("viewer")
    StudyMember.objects.create(study=draft, user=viewer, role="viewer")
    client.force_login(viewer)
    said = words(asking())
    assert "Finds 60 %" in said and "Simulate" not in said
    assert client.post(reverse("admin:studies_plan_simulate", args=[draft.pk]), {}).status_code == 403


def test_the_page_costs_the_same_queries_whatever_is_stored(draft, asking, django_assert_max_num_queries):
    with django_assert_max_num_queries(35):
        asking()


@pytest.mark.slow
def test_live_numbers_load_no_numpy():
    code = (
        "import sys, django; django.setup()\n"
        "from analysis.planning.page import live_context\n"
        "from analysis.planning.results import panel_rows\n"
        "from analysis.planning.inputs import PlanInputs\n"
        "from analysis.stats.planning.comparisons import Comparisons\n"
        "from analysis.stats.planning.inputs import StudySize, Target\n"
        "size = StudySize(protocol='rating', people=12, prompts=20, prompts_each=5)\n"
        "inputs = PlanInputs(size, Target(tests=3), comparisons=Comparisons(method='holm'))\n"
        "live_context(inputs, 'USD')\n"
        "panel_rows(inputs, 'USD', {})\n"
        "print(sorted({'numpy', 'scipy', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
