"""Plans over REST and by ``heval plan``: the same names, numbers and refusals."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from analysis.planning.checklist import changed_inputs, starting_inputs
from analysis.stats import power_of_means
from analysis.stats.planning.closed_forms import quick_plan
from studies.imports.bundle_files import bundle_text
from studies.models import Job, SizePlan, Study
from studies.services import jobs
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


def printed(*arguments, code=0) -> str:
    out = StringIO()
    try:
        call_command("plan", *arguments, stdout=out)
        found = 0
    except SystemExit as ended:
        found = ended.code
    assert found == code, out.getvalue()
    return out.getvalue()


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
    assert "no such field" in errors(ask("POST", "", {"persons": 3}))["persons"]
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
    with pytest.raises(CommandError, match="--quick shows approximate numbers") as refused:
        printed("--study", str(study.code))
    assert refused.value.returncode == 2
    assert "power (approximate)" in printed("--study", str(study.code), "--quick", code=1)


# The command


@pytest.mark.slow
def test_the_command_prints_both_kinds_of_numbers_and_exits_by_the_power(few_runs):
    size = ("--people", "12", "--prompts", "20", "--each", "5")
    text = printed(*size, "--difference", ".6", "--seed", "1", code=1)
    assert text.startswith("12 people, 5 prompts each, every prompt judged 3 times")
    assert "power (approximate)" in text and "40 simulated studies" in text and "seed 1)" in text
    found = json.loads(printed(*size, "--difference", ".95", "--seed", "1", "--json"))
    assert found["has_wanted_power"] and found["simulated"]["plan"]["planned"]["power"] > 0.8
    assert found["approximate"]["inputs"]["target"]["difference"] == 0.95
    assert not SizePlan.objects.exists()


def test_the_command_reads_a_bundle_and_keeps_nothing_of_it(draft, tmp_path):
    path = tmp_path / "study.bundle.json"
    path.write_text(bundle_text(draft))
    n = Study.objects.count()
    text = printed(str(path), "--quick", code=1)
    assert text.startswith("9 people, 4 prompts each") and Study.objects.count() == n


@pytest.mark.slow
def test_the_command_stores_the_plan_of_a_draft(draft, few_runs):
    printed("--study", str(draft.code)[:8], "--people", "12", "--prompts", "20", "--each", "5", code=1)
    assert draft.size_plans.get().inputs["size"]["people"] == 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--people", "1000000"], "--people: 1000000 is more than 100000. Plan a smaller study."),
        (["--prompts", "0"], "--prompts: 0 is not a whole number of at least 1."),
        (
            ["--each", "80"],
            "--each: 80 is more than the 60 prompts. Add prompts, or let each person answer about fewer.",
        ),
        (["--sd-people", "-1"], "--sd-people: -1.0 is not a number from 0 to 10."),
        (["--difference", "60"], "--difference: 60.0 is not a probability between 0 and 1, such as 0.6."),
        (["--study", "nowhere"], "There is no study"),
        (["no.json"], "There is no file no.json. Correct the path."),
        (["no.json", "--study", "x"], "Give one of them"),
        (["--study", "x", "--seed", "1"], "Leave out --seed or --study"),
    ],
)
def test_the_command_names_the_wrong_option(arguments, message):
    with pytest.raises(CommandError) as refused:
        printed(*arguments)
    assert message in str(refused.value) and refused.value.returncode == 2
