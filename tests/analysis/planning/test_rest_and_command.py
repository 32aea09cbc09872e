"""Plans over REST and by ``heval study plan``: the same names, numbers and refusals."""

import json

import pytest

from analysis.planning.checklist import HELP, changed_inputs, starting_inputs
from analysis.stats import power_of_means
from analysis.stats.planning.closed_forms import quick_plan
from heval_site.management.commands.study import Command
from studies.models import Job, SizePlan, Study
from studies.services import jobs
from tests import study_command
from tests.analysis.api.rest import api_of, body_of
from tests.builders import add_choice, choice_study, draft_study, user
from tests.size_plans import planned_size

pytestmark = pytest.mark.django_db
FAST = {"people": 12, "prompts": 20, "prompts_each": 5}


@pytest.fixture
def draft():
    study = draft_study(owner=user("owner"), systems=("alpha", "beta"), target_n=9)
    add_choice(study, m=4, stopping="none")
    return study


def api(study):
    client = api_of(study.owner)
    return lambda method, path, body=None: client.send(method, f"studies/{study.code}/plans/{path}", body)


def answer(response, status=200):
    assert response.status_code == status, body_of(response)
    return json.loads(body_of(response))


def errors(response) -> dict[str, str]:
    return {one["field"]: one["message"] for one in answer(response, 400)["errors"]}


# REST


@pytest.mark.parametrize("share", [0.55, 0.58, 0.62])
def test_accuracy_against_chance_is_planned_for_fifteen_cells(draft, share):
    """Clark et al. 2021: 130 people with five texts in each cell, a t test of each cell against .5, corrected for all cells."""
    asked = "protocol=humanlike&people=130&prompts=50&prompts_each=5&population=people&sd_people=0&sd_prompts=0"
    one, all_cells = (
        answer(api(draft)("GET", f"numbers/?{asked}&difference={share}&tests={cells}")) for cells in (1, 15)
    )
    effect = (share - 0.5) / (share * (1 - share) / 5) ** 0.5
    for found, cells in ((one, 1), (all_cells, 15)):
        exact = power_of_means.t_test_power(effect, 130, significance=0.05 / cells)
        assert found["power"] == pytest.approx(exact, abs=0.02)
    assert all_cells["power"] < one["power"] and 0.57 < all_cells["smallest_difference"] < 0.58


def test_numbers_come_at_once_and_start_with_the_draft(draft):
    found = answer(api(draft)("GET", "numbers/"))
    assert found["inputs"]["size"] == {
        "protocol": "two_choice",
        "people": 9,
        "prompts": 12,
        "prompts_each": 4,
        "points": 5,
    }
    larger = answer(api(draft)("GET", "numbers/?people=90&difference=0.7&prior=choices_neighbours"))
    inputs = changed_inputs(
        starting_inputs(draft), {"people": 90, "difference": 0.7, "prior": "choices_neighbours"}, None
    )
    assert larger["power"] == quick_plan(inputs.size, inputs.target, inputs.variation).power > found["power"]
    assert larger["inputs"]["variation"]["sd_prompts"] == 0.75 and larger["is_approximate"]
    assert larger["sentences"][0].startswith("90 people, 4 prompts each") and not draft.size_plans.exists()


def test_wrong_values_are_named_over_rest(draft):
    ask = api(draft)
    assert "more than 100000. Plan a smaller study" in errors(ask("GET", "numbers/?people=1000000"))["people"]
    assert "0 is not a whole number of at least 1" in errors(ask("POST", "", {"prompts": 0}))["prompts"]
    assert (
        "Add prompts, or let each person answer about fewer"
        in errors(ask("POST", "", {"prompts_each": 40}))["prompts_each"]
    )
    assert "elsewhere" in errors(ask("POST", "", {"prior": "elsewhere"}))["prior"]
    assert "You can read no study with this code" in errors(ask("POST", "", {"prior": "pilot:none"}))["prior"]
    assert "You can read no study with this code" in errors(ask("POST", "pilots/", {"pilot": "none"}))["pilot"]
    assert "this goal needs a margin" in errors(ask("GET", "numbers/?goal=equivalence"))["margin"]
    assert "decimal number" in errors(ask("GET", "numbers/?difference=nan"))["difference"]
    assert "no such field. Remove it." in errors(ask("POST", "", {"persons": 3}))["persons"]
    assert not Job.objects.exists()


@pytest.mark.slow
def test_a_plan_is_simulated_read_and_chosen(draft, few_runs):
    ask = api(draft)
    job = answer(ask("POST", "", FAST | {"excluded_share": 0.05}), 202)
    jobs.run_waiting_jobs()
    (plan,) = answer(ask("GET", ""))["results"]
    assert Job.objects.get(code=job["code"]).result["plan"] == plan["id"]
    assert plan == answer(ask("GET", f"{plan['id']}/")) and not plan["is_chosen"]
    assert plan["result"]["plan"]["planned"]["size"]["people"] == 12 and len(plan["sentences"]) == 5
    chosen = answer(ask("POST", f"{plan['id']}/choose/", {"sets_target": True}))
    assert chosen["is_chosen"] and "The target is 13." in chosen["changed"]
    assert Study.objects.get(pk=draft.pk).size_plan_id == plan["id"]
    assert ask("GET", f"{planned_size(draft_study(title='Another')).pk}/").status_code == 404


def test_a_launched_study_is_not_planned():
    study = choice_study(by=user("owner"))
    assert api(study)("POST", "", {"people": 12}).status_code == 409
    code, said = study_command.refusal("plan", study.code)
    assert code == 1 and "409" in said
    code, said = study_command.run("plan", study.code, "--quick")
    assert code == 10 and "power (approximate)" in said


# The command


@pytest.mark.slow
def test_the_command_prints_both_kinds_of_numbers_and_exits_by_the_power(draft, few_runs):
    size = ("plan", str(draft.code)[:8], "--people", "12", "--prompts", "20", "--prompts-each", "5")
    code, said = study_command.run(*size, "--difference", ".6")
    assert code == 10 and said.startswith("12 people, 5 prompts each, every prompt judged 3 times")
    assert "power (approximate)" in said and "the share of 40 simulated studies" in said
    code, said = study_command.run(*size, "--difference", ".95", "--json")
    found = json.loads(said)
    assert code == 0 and found["has_wanted_power"] and found["plan"]["result"]["plan"]["planned"]["power"] > 0.8
    assert found["approximate"]["inputs"]["target"]["difference"] == 0.95
    assert [plan.inputs["size"]["people"] for plan in draft.size_plans.all()] == [12, 12]


def test_each_value_of_rest_is_an_option_and_a_wrong_one_is_named(draft):
    parser = Command().create_parser("heval", "study")
    help_text = parser._subparsers._group_actions[0].choices["plan"].format_help()
    assert not [name for name in HELP if f"--{name.replace('_', '-')} " not in help_text]
    code, said = study_command.refusal("plan", draft.code, "--people", "1000000", "--quick")
    assert code == 2 and "people: 1000000 is more than 100000. Plan a smaller study." in said
    assert (
        "sd_people: This parameter must be a decimal number of at least 0"
        in study_command.refusal("plan", draft.code, "--sd-people", "-1")[1]
    )
    assert not SizePlan.objects.exists()
