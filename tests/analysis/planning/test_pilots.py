"""Pilots of plans: a study on the same site, and a file of answers."""

import json
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import Http404
from django.urls import reverse

from analysis.planning import pilots, run
from analysis.planning.advice import live_power, percent
from analysis.planning.inputs import InvalidPlanInputs, PlanInputs
from analysis.planning.pilots import AnswersRefused, read_answers_file
from analysis.protocols import REGISTRY, ProtocolAnalysis, planned_protocols
from analysis.stats.planning import pilot_estimates, simulated_studies
from analysis.stats.planning.closed_forms import quick_assurance, quick_plan
from analysis.stats.planning.inputs import StudySize, Target, Variation
from annotators.participation.simulate import record_simulated_answers
from studies.models import Job, PilotFile, Study, StudyMember, StudyPilot
from studies.models.guards import AppendOnlyViolation
from studies.services import copying, jobs, lifecycle
from studies.services.lifecycle import ActionRefused
from tests import study_command
from tests.analysis.api.rest import api_of, body_of
from tests.builders import add_choice, add_section, add_spa, add_survey, choice_study, draft_study, launched, user

from .quick import words

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return user("owner")


def closed(study, people=0):
    if people:
        record_simulated_answers(study, people, {"alpha": 0.0, "beta": 0.4})
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    return Study.objects.get(pk=study.pk)


@pytest.fixture
def pilot(owner, monkeypatch):
    """A closed study of two choices. Robots answered, and count as people here."""
    monkeypatch.setattr(pilots, "ORIGINS", ("robot",))
    study = draft_study(
        systems=("alpha", "beta"),
        prompts=20,
        target_n=10,
        annotators_per_batch=5,
        instructions="",
        owner=owner,
        title="Pilot",
    )
    add_choice(study, m=10, stopping="none", strategy="any")
    return closed(launched(study), 10)


@pytest.mark.slow
def test_a_closed_study_is_a_pilot_of_those_who_may_read_it(pilot, owner, same_orders, monkeypatch):
    with pytest.raises(InvalidPlanInputs, match="prior: The answers of this study are not read yet"):
        pilots.resolve_prior(f"pilot:{pilot.code}", owner)
    stored = pilots.estimate_study(pilot, owner)
    resolved = pilots.resolve_prior(f"pilot:{pilot.code}", owner)
    assert resolved.variation.source == resolved.label
    assert resolved.label == "study “Pilot”, beta > alpha, naturalness, 10 people, 20 prompts, 100 answers"
    assert len(resolved.draws) == pilot_estimates.DRAWS and len({draw.sd_people for draw in resolved.draws}) > 10
    with monkeypatch.context() as without_computation:
        without_computation.setattr(pilot_estimates, "estimate_pilot", None)
        assert pilots.estimate_study(pilot, None) == stored and stored.by == owner
    monkeypatch.setattr(pilots, "VERSION", 99)
    again = pilots.estimate_study(pilot, owner)
    assert again != stored and again.estimate == stored.estimate, "the draws change"
    with pytest.raises(AppendOnlyViolation):
        StudyPilot.objects.update(comparison="x")
    assert list(pilots.pilot_studies(owner)) == [pilot] == list(pilots.pilot_studies(user("root", is_superuser=True)))
    inputs = PlanInputs(
        StudySize(protocol="two_choice", people=12, prompts=20, prompts_each=5), prior=f"pilot:{pilot.code}"
    )
    assert pilots.draws_of(replace(inputs, variation=resolved.variation), owner) == resolved.draws
    with pytest.raises(InvalidPlanInputs, match="prior: The answers of the pilot have changed. Choose the pilot again"):
        pilots.draws_of(inputs, owner)
    assert pilots.draws_of(replace(inputs, prior="typical"), owner) == ()
    stranger, coder = user("stranger"), user("coder")
    StudyMember.objects.create(study=pilot, user=coder, role=StudyMember.Role.CODER)
    for other, refusal in ((stranger, Http404), (coder, PermissionDenied)):
        assert not pilots.pilot_studies(other).exists()
        with pytest.raises(refusal):
            pilots.estimate_study(pilot, other)
        with pytest.raises(InvalidPlanInputs, match="prior: You can read no study with this code"):
            pilots.resolve_prior(f"pilot:{pilot.code}", other)


def test_a_study_that_still_collects_is_no_pilot(owner):
    study = choice_study(by=owner)
    record_simulated_answers(study, 6, {"alpha": 0.0, "beta": 0.4})
    study.assignments.update(origin="live")
    assert not pilots.pilot_studies(owner).exists()
    with pytest.raises(PermissionDenied, match="still collecting"):
        pilots.estimate_study(study, owner)
    lifecycle.unblind(study, owner, "a pilot")
    assert list(pilots.pilot_studies(owner)) == [study]


def test_a_study_that_says_too_little_is_refused_with_advice(owner):
    study = closed(choice_study(by=owner))
    with pytest.raises(ActionRefused, match="cannot be a pilot. It has no answers about pairs"):
        pilots.estimate_study(study, owner)


def answers(size=None, variation=None):
    size = size or StudySize(protocol="two_choice", people=10, prompts=15, prompts_each=10)
    rng = np.random.default_rng(1)
    people, prompts = simulated_studies.assign_prompts(size, rng)
    values = simulated_studies.simulate_answers(
        size, Target(), variation or Variation(), people, prompts, runs=1, rng=rng
    )[0]
    return people, prompts, values


def csv_of(rows, header="annotator,prompt,preferred"):
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]).encode()


def test_a_file_of_answers_is_a_pilot_of_its_study(owner):
    draft = draft_study(owner=owner)
    people, prompts, values = answers()
    data = csv_of((f"a{i}", j, "x" if v else "y") for i, j, v in zip(people, prompts, values, strict=True))
    stored = pilots.store_answers_file(draft, owner, "pilot.csv", data)
    assert pilots.store_answers_file(draft, owner, "again.csv", data) == stored
    json.dumps(stored.estimate, allow_nan=False)
    assert "a1" not in json.dumps(stored.estimate), "names of annotators are stored"
    resolved = pilots.resolve_prior(f"file:{stored.sha256}", owner)
    expected = pilot_estimates.estimate_pilot(
        values, people, prompts, protocol="two_choice", rng=np.random.default_rng(0)
    )
    assert resolved.variation.sd_prompts == pytest.approx(expected.variation.sd_prompts)
    assert (resolved.label, len(resolved.draws)) == ("file “pilot.csv”, 100 answers", pilot_estimates.DRAWS)
    for key, who in ((f"file:{stored.sha256}", user("stranger")), ("file:0", owner)):
        with pytest.raises(InvalidPlanInputs, match="prior: No such file is stored"):
            pilots.resolve_prior(key, who)
    with pytest.raises(Http404):
        pilots.store_answers_file(draft, user("stranger"), "pilot.csv", data)
    with pytest.raises(AppendOnlyViolation):
        PilotFile.objects.update(name="x")
    assert copying.delete_or_archive_draft(draft, owner) == "deleted" and not PilotFile.objects.exists()


def test_files_of_ratings_and_of_values_are_read_on_their_own_scales():
    rated = read_answers_file("a.csv", csv_of([("a", 1, 5, 3), ("a", 2, 2, 2), ("b", 1, 1, 4)], "annotator,prompt,x,y"))
    assert (rated.protocol, rated.values) == ("rating", [1.0, 0.5, 0.0])
    points = read_answers_file("a.csv", csv_of([("a", 1, -2)], "annotator,prompt,value"), protocol="relative")
    assert (points.protocol, points.values) == ("relative", [-2.0])
    chosen = read_answers_file("a.jsonl", b'{"annotator": 1, "prompt": "p", "preferred": "Tie"}')
    assert (chosen.values, chosen.people) == ([0.5], ["1"])
    same = csv_of([("a", 1, 0.5)], "annotator,prompt,value")
    assert read_answers_file("a.csv", same).sha256 != read_answers_file("a.csv", same, protocol="rating").sha256


def test_all_faults_of_a_file_are_listed_with_their_rows():
    rows = [("a", 1, "x"), ("a", 1, "y"), ("", 2, "x"), ("b", "", "x"), ("b", 3, "left")]
    with pytest.raises(AnswersRefused) as refused:
        read_answers_file("a.csv", csv_of(rows))
    assert [(p.row, p.column, p.text) for p in refused.value.problems] == [
        (3, None, "Row 2 already has an answer of this annotator about this prompt. Keep one."),
        (4, "annotator", "The annotator is empty. Enter a name or number."),
        (5, "prompt", "The prompt is empty. Enter a name or number."),
        (6, "preferred", "“left” is not x, y or tie."),
    ]


@pytest.mark.parametrize(
    ("data", "protocol", "text"),
    [
        (b"annotator,prompt,preferred\n", "", "The file has no row below the header."),
        (csv_of([("a", 1, "x", 1)], "annotator,prompt,preferred,value"), "", "Name the answer in one way"),
        (csv_of([("a", 1, 3)], "annotator,prompt,value"), "two_choice", "3 is outside of the scale from 0 to 1."),
        (
            csv_of([("a", 1, "good", 2)], "annotator,prompt,x,y"),
            "",
            "“good” is not a number. Enter a number, or leave",
        ),
        (csv_of([("a", "x")], "annotator,preferred"), "", "prompt"),
        (csv_of([("a", 1, 1)], "annotator,prompt,value"), "other", "“other” is not a protocol. Use rating, two_choice"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(data, protocol, text):
    with pytest.raises(AnswersRefused, match=text):
        read_answers_file("a.csv", data, protocol=protocol)


def test_a_file_of_two_people_is_refused_with_advice(owner):
    draft = draft_study(owner=owner)
    data = csv_of([(person, prompt, "x" if prompt % 2 else "y") for person in "ab" for prompt in range(6)])
    with pytest.raises(
        AnswersRefused, match="column “annotator”: a pilot with 2 people does not say how much people vary"
    ):
        pilots.store_answers_file(draft, owner, "pilot.csv", data)
    assert not PilotFile.objects.exists()


@pytest.fixture
def page(client, owner):
    client.force_login(owner)

    def post(draft, name="studies_plan_pilot", **sent):
        return client.post(reverse(f"admin:{name}", args=[draft.pk]), sent, follow=True)

    return post


def planned_draft(owner):
    draft = draft_study(owner=owner, title="Main study")
    add_choice(draft, m=6)
    return draft


@pytest.mark.slow
def test_the_page_plans_with_a_study_and_the_job_uses_its_draws(pilot, owner, client, page, monkeypatch, same_orders):
    draft = planned_draft(owner)
    waiting = page(draft, pilot=str(pilot.code), people="31")
    assert waiting.templates[0].name == "admin/studies/job.html"
    jobs.run_waiting_jobs()
    job = Job.objects.get()
    assert (job.kind, job.state) == (pilots.KIND, Job.State.DONE), job.error
    shown = client.get(job.result["url"])
    assert shown.context["form"].inputs.size.people == 31
    text = shown.content.decode()
    assert (
        "Standard deviations: people " in text and "The smallest difference that matters stays your decision." in text
    )
    estimate = pilots.resolve_prior(f"pilot:{pilot.code}", owner)
    form = shown.context["form"]
    assert (form.inputs.prior, form.inputs.variation.sd_people) == (f"pilot:{pilot.code}", estimate.variation.sd_people)
    computed = []
    monkeypatch.setattr(run, "compute_plan", lambda *given, **options: computed.append(given) or SimpleNamespace(pk=1))
    # Other numbers beside a chosen pilot do not count.
    page(draft, "studies_plan_simulate", **dict(shown.context["hidden"]) | {"sd_people": "2"})
    jobs.run_waiting_jobs()
    ((study, by, inputs, draws),) = computed
    assert (study, by, inputs.variation, draws) == (draft, owner, estimate.variation, estimate.draws)


@pytest.mark.slow
def test_rest_reads_a_pilot_as_a_job_and_then_plans_with_it(pilot, owner, same_orders):
    draft, prior = planned_draft(owner), f"pilot:{pilot.code}"

    def ask(method, path, body=None, status=200):
        response = api_of(owner).send(method, f"studies/{draft.code}/plans/{path}", body)
        assert response.status_code == status, body_of(response)
        return json.loads(body_of(response))

    for method, path, body in (("GET", f"numbers/?prior={prior}", None), ("POST", "", {"prior": prior})):
        (error,) = ask(method, path, body, 400)["errors"]
        assert error["field"] == "prior" and "are not read yet" in error["message"]
    job = ask("POST", "pilots/", {"pilot": str(pilot.code)}, 202)
    assert job["kind"] == pilots.KIND and not StudyPilot.objects.exists(), "read in the request"
    jobs.run_waiting_jobs()
    found = json.loads(body_of(api_of(owner).send("GET", f"studies/{draft.code}/jobs/{job['code']}/")))
    assert found["state"] == "done" and found["result"]["prior"] == prior
    numbers = ask("GET", f"numbers/?prior={prior}&people=40")
    stored = StudyPilot.objects.get()
    assert numbers["inputs"]["variation"] == stored.estimate["variation"]
    assert numbers["power_low"] < numbers["power"] < numbers["power_high"]
    lines = {line["protocol"]: line["comparison"] for line in numbers["power_by_people"]}
    assert lines["two_choice"].startswith("beta > alpha") and set(lines) == {"two_choice", "rating", "spa"}
    assert ask("POST", "", {"prior": prior}, 202)["kind"] == run.KIND
    assert ask("GET", "numbers/")["power_low"] is None


@pytest.mark.slow
def test_the_command_reads_the_pilot_itself(pilot, same_orders):
    draft = planned_draft(pilot.owner)
    _, said = study_command.run("plan", draft.code, "--prior", f"pilot:{str(pilot.code)[:8]}", "--quick")
    assert "This power is averaged over what the pilot leaves open" in said
    assert StudyPilot.objects.get().study == pilot
    code, said = study_command.refusal("plan", draft.code, "--prior", "pilot:none", "--quick")
    assert code == 2 and "There is no study none" in said


def test_the_live_numbers_are_the_assurance_of_the_stored_draws(owner, client):
    draft = planned_draft(owner)
    people, prompts, values = answers()
    data = csv_of((i, j, "x" if v else "y") for i, j, v in zip(people, prompts, values, strict=True))
    stored = pilots.store_answers_file(draft, owner, "pilot.csv", data)
    variation, draws = pilots.estimate_from_json(stored.estimate)
    inputs = PlanInputs(StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20), variation=variation)
    shown, all_draws = live_power(inputs, draws), quick_assurance(inputs.size, inputs.target, draws)
    exact = quick_plan(inputs.size, inputs.target, variation).power
    assert shown.power == pytest.approx(all_draws.power, abs=0.01) and exact > shown.power + 0.01
    assert shown.half_width == pytest.approx(all_draws.half_width, rel=0.05)
    client.force_login(owner)
    sizes = {"people": 36, "prompts": 60, "prompts_each": 20, "part": "live", "prior": f"file:{stored.sha256}"}
    page = client.get(reverse("admin:studies_plan", args=[draft.pk]), sizes)
    text, power = words(page), live_power(page.context["form"].inputs, draws).power
    assert f"with {percent(power)} power (approximate)" in text
    assert "This power is averaged over what the pilot leaves open" in text and "Standard deviations: people" in text


@pytest.mark.parametrize(("protocol", "points"), [("two_choice", 5), ("relative", 5), ("relative", 21), ("rating", 9)])
def test_the_live_average_stays_far_below_a_fifth_of_a_second(protocol, points):
    size = StudySize(protocol=protocol, people=36, prompts=60, prompts_each=20, points=points)
    draws = [Variation(sd_people=0.01 * n, sd_prompts=0.02 * n) for n in range(100)]
    live_power(PlanInputs(size), draws)
    began = time.process_time()
    live_power(PlanInputs(size), draws)
    assert time.process_time() - began < 0.15


@pytest.mark.slow
def test_the_page_plans_with_a_file_and_lists_its_faults(owner, page):
    draft = planned_draft(owner)
    refused = page(draft, file=SimpleUploadedFile("a.csv", csv_of([("a", 1, "left"), ("", 2, "x")])))
    assert refused.status_code == 422 and not PilotFile.objects.exists()
    for problem in ("row 2, column “preferred”: “left” is not x, y or tie.", "row 3, column “annotator”"):
        assert problem in refused.content.decode()
    people, prompts, values = answers()
    rows = [(i, j, "x" if v else "y") for i, j, v in zip(people, prompts, values, strict=True)]
    shown = page(draft, file=SimpleUploadedFile("a.csv", csv_of(rows)))
    stored = PilotFile.objects.get()
    assert shown.context["form"].inputs.variation == pilots.resolve_prior(f"file:{stored.sha256}", owner).variation
    assert shown.context["form"].inputs.size.people == 6
    assert (
        page(draft, file=SimpleUploadedFile("a.csv", csv_of(rows)), people="31").context["form"].inputs.size.people
        == 31
    )
    unknown = page(draft, pilot="0")
    assert unknown.status_code == 422 and "You can read no study with this code." in unknown.content.decode()
    StudyMember.objects.filter(study=draft).update(role=StudyMember.Role.VIEWER)
    assert page(draft, pilot="0").status_code == 403


def add_best_worst(study, m):
    return add_section(study, "best_worst", m=m, settings={"noun": "story"})


def test_every_protocol_that_is_planned_can_be_a_pilot():
    without = ProtocolAnalysis.headline_answers
    assert not [slug for slug in planned_protocols() if type(REGISTRY[slug]).headline_answers is without]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("add", "rows"), [(add_spa, "60 readings"), (add_best_worst, "60 answers")], ids=["stated chances", "best-worst"]
)
def test_stated_chances_and_best_worst_choices_are_pilots(owner, monkeypatch, same_orders, add, rows):
    monkeypatch.setattr(pilots, "ORIGINS", ("robot",))
    study = draft_study(
        systems=("alpha", "beta", "gamma"),
        prompts=10,
        target_n=30,
        annotators_per_batch=5,
        instructions="",
        owner=owner,
    )
    add(study, m=2)
    study = launched(study)
    record_simulated_answers(study, 30, {"alpha": 0.0, "beta": 0.4, "gamma": 0.1})
    stored = pilots.estimate_study(closed(study), owner)
    resolved = pilots.resolve_prior(f"pilot:{study.code}", owner)
    label = resolved.label
    assert len({one.comparison for one in resolved.own}) > 1, "each comparison has its own variation"
    assert resolved.own[0].variation == resolved.variation and len({one.variation for one in resolved.own}) > 1
    assert label.endswith(f"30 people, 10 prompts, {rows}"), label
    assert len(stored.estimate["draws"]) == pilot_estimates.DRAWS


def test_a_study_that_cannot_be_a_pilot_says_why_and_what_to_do(owner):
    study = choice_study(by=owner)
    cases = [(study, "No answers of people are submitted in this study. Wait for them")]
    survey = draft_study(owner=owner, title="Survey")
    add_survey(survey, position=1)
    cases.append((survey, "This study compares no systems"))
    answered = choice_study(by=owner)
    record_simulated_answers(answered, 6, {"alpha": 0.0, "beta": 0.4})
    answered.assignments.update(origin="live")
    cases.append((answered, "The outcomes of this study are still hidden. Close it, or unblind it"))
    for one, text in cases:
        with pytest.raises(InvalidPlanInputs, match=text):
            pilots.find_pilot_study(str(one.code), owner)


def test_a_public_prior_has_no_draws(owner):
    assert pilots.resolve_prior("typical", owner).draws == ()
    with pytest.raises(InvalidPlanInputs, match="prior: 'other' is not one of typical"):
        pilots.resolve_prior("other", owner)
