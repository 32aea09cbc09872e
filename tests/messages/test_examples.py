"""Messages that once named a cause that was not the true one. Each case shows the message as a researcher meets it."""

import io
import json
import re
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone

from analysis.protocols.blocks import Block, ConclusionPhrases, build_planned_conclusions
from analysis.protocols.blocks.sentences import build_conclusion_sentences
from analysis.report.runs import run_analysis
from analysis.stats.results import Estimate, Interval
from studies.design.checklist import find_design_problems
from studies.design.draw import draw_batches
from studies.imports.bundle_files import bundle_text, serialize_bundle
from studies.models import Arm, Batch, Output, Study
from studies.services import lifecycle
from tests import builders, players
from tests.admin_pages import logged_in, study_url
from tests.analysis.protocols.answers import answer

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return builders.user()


def blocking(study) -> list[str]:
    return [problem.text for problem in find_design_problems(study) if problem.is_blocking]


# What the draw refuses, the checklist names


def with_arm(study, *names):
    arm = Arm.objects.create(study=study, name="second")
    arm.systems.set(study.systems.filter(name__in=names))
    return study


def choice_draft(systems=("alpha", "beta"), m=2, **columns):
    study = builders.draft_study(systems=systems, **columns)
    builders.add_choice(study, m=m)
    return study


def _without_outputs(study, system, but):
    Output.objects.filter(system__study=study, system__name=system).exclude(prompt__key__in=but).delete()
    return study


def _independent(study):
    study.coverage = Study.Coverage.INDEPENDENT
    study.save()
    return study


def _humanlike_with_three_prompts():
    """Human and machine wrote on the same three prompts: each is enough alone, and a batch of four prompts is not."""
    study = builders.draft_study(systems=("human", "gpt"), prompts=3, target_n=4)
    builders.add_humanlike(study, m=4)
    return study


DRAWS = {
    "one system": (lambda: choice_draft(("alpha",)), r"A pair needs two systems, but the study has 1\. Add a system"),
    "one system in an arm": (
        lambda: with_arm(choice_draft(), "alpha"),
        r"Batch \d of arm second cannot be filled: for section 1 \(.*\) two systems are needed .* there is 1\. Add another system",
    ),
    "no planned pair in an arm": (
        lambda: with_arm(_chosen_pairs(), "alpha", "gamma"),
        r"arm second .* none of the pairs that the section shows .* Plan a comparison of two of the arm's systems",
    ),
    "too few prompts": (
        lambda: choice_draft(m=5, prompts=4),
        r"A batch needs 5 prompts .* there are 4\. Import more prompts",
    ),
    "too few prompts in an arm": (
        lambda: _domain_arm(choice_draft(m=3)),
        r"A batch of arm news needs 3 prompts .* there are 0\. Import more prompts",
    ),
    "too few outputs": (
        lambda: _without_outputs(choice_draft(m=3), "beta", ["p000", "p001"]),
        r"A batch needs 3 prompts with an output of every system; there are 2",
    ),
    "prompts shared by two sources": (
        _humanlike_with_three_prompts,
        r"1 more prompt is needed and 0 are left besides|for section 1 \(.*\) 1 more prompt is needed and 0 are left",
    ),
    "independent coverage": (
        lambda: _independent(_humanlike_with_three_prompts()),
        r"1 more prompt is needed and 0 are left",
    ),
}


def _chosen_pairs():
    study = builders.draft_study(systems=("alpha", "beta", "gamma"))
    builders.add_choice(study, pairs="chosen")
    return study


def _domain_arm(study):
    Arm.objects.create(study=study, name="news", domain="news")
    return study


@pytest.mark.parametrize("name", DRAWS)
def test_what_the_draw_refuses_is_named_before_launch(name):
    make, words = DRAWS[name]
    study = make()
    found = blocking(study)
    assert any(re.search(words, text) for text in found), found
    with pytest.raises(lifecycle.NotReady, match=words):
        lifecycle.request_launch(study, None, builders.warnings_of(study))


def test_arms_that_show_some_systems_need_outputs_of_these_alone():
    """The checklist once asked every prompt for an output of every system of the study."""
    study = choice_draft(("alpha", "beta", "gamma"), m=2)
    study.arms.all().delete()
    with_arm(study, "alpha", "beta")
    Output.objects.filter(system__study=study, system__name="gamma").delete()
    study.contrasts.filter(x__name="gamma").delete()
    assert not any("prompts" in text for text in blocking(study))
    assert draw_batches(study, 0, 1)


def test_the_page_says_that_there_is_one_system_and_not_that_the_study_is_complete(owner):
    study = choice_draft(("alpha",), owner=owner)
    page = logged_in(owner).get(study_url(study)).content.decode()
    assert "Nothing is missing" not in page and "A pair needs two systems" in page
    preview = logged_in(owner).get(reverse("admin:annotators_preview", args=[study.pk]), follow=True).content.decode()
    assert "There is nothing to preview yet. Section 1 (Two choices): A pair needs two systems" in preview


def test_more_batches_than_items_names_what_is_missing(owner):
    study = builders.draft_study(
        systems=("alpha", "beta"), prompts=6, target_n=9, target_cap=90, annotators_per_batch=3
    )
    builders.add_choice(study, m=2, strategy="any")
    study = builders.launched(study)
    with pytest.raises(
        lifecycle.ActionRefused,
        match=r"capped at 90 places; 9 are open\. You can open at most 81 more\..*Clone the study",
    ):
        lifecycle.open_more_places(study, 100, by=None)


# The report


def _report_page(study, owner) -> str:
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    run_analysis(Study.objects.get(pk=study.pk), {"resamples": 99}, by=owner)
    client = logged_in(owner)
    return client.get(reverse("analysis", args=[study.pk, 1])).content.decode()


@pytest.mark.slow
def test_a_report_says_why_it_estimates_no_comparison(owner):
    study = builders.draft_study(systems=("alpha", "beta"), prompts=4, owner=owner, target_n=6)
    builders.add_rating(study, position=1, m=2)
    for system in study.systems.all():
        arm = Arm.objects.create(study=study, name=f"only {system.name}")
        arm.systems.set([system])
    study.arms.filter(name="all").delete()
    alpha, beta = study.systems.order_by("name")
    study.contrasts.create(x=alpha, y=beta)
    study = builders.launched(study, owner)
    answer(study, 6)
    page = _report_page(study, owner)
    assert "nobody answered what it needs" not in page
    cause = "no annotator judged both systems of a planned pair (alpha and beta)"
    # Where a comparison of systems that nobody judged side by side is estimated, there is an estimate instead.
    assert cause in page or "No planned comparison could be estimated" not in page


def test_a_report_of_which_the_rules_left_nobody_says_so(owner):
    study = builders.spa_draft(owner=owner, target_n=3, with_surveys=False, with_rating=False)
    study = builders.launched(study, owner)
    done = answer(study, 3)
    from annotators.places.exclusions import exclude_assignments

    exclude_assignments(list(study.assignments.all()), "too_fast", owner)
    page = _report_page(study, owner)
    assert "nobody answered what it needs" not in page
    assert "The exclusion rules exclude every annotator" in page, done


@pytest.mark.parametrize("kind", ["percent", "number"])
def test_an_interval_in_words_has_two_ends(kind):
    contrast = {"key": "k", "x": "a", "y": "b", "section": 1, "role": "primary", "criterion": "", "is_planned": True, "margin": None, "expected": ""}  # fmt: skip
    estimate = Estimate(
        analysis="x",
        estimand="e",
        unit="annotator",
        n=9,
        estimate=0.552,
        interval=Interval(0.95, 0.551, 0.554, "t"),
        settings={"contrast": contrast, "key": "k"},
    )
    wording = ConclusionPhrases(
        above_claim="a.", below_claim="b.", same="c", open="It is open.", before="The share is", symbol="P", kind=kind
    )
    block = Block("x", "", "recommended", (estimate,), build_planned_conclusions([estimate], lambda one: wording))
    (said,) = build_conclusion_sentences([block])
    ends = {
        "percent": "55.2 %; 95 % confidence interval 55.1 % to 55.4 %",
        "number": "0.552; 95 % confidence interval 0.551 to 0.554",
    }
    assert said["text"].startswith(f"The share is {ends[kind]}; n = 9 annotators."), said["text"]


# A bundle on one line


@pytest.mark.parametrize("is_sorted", [False, True])
def test_a_bundle_on_one_line_is_a_bundle(owner, tmp_path, is_sorted):
    study = builders.spa_draft(owner=owner, prompts=4)
    path = tmp_path / "study.json"
    path.write_text(json.dumps(serialize_bundle(study), sort_keys=is_sorted), encoding="utf-8")
    out = io.StringIO()
    call_command("import_study", "new", str(path), owner=owner.username, stdout=out)
    assert Study.objects.filter(title=study.title).count() == 2
    for data in (path.read_bytes(), bundle_text(study).encode()):
        client = logged_in(owner)
        address = reverse("import", args=[study.pk])
        page = client.post(address, {"file": SimpleUploadedFile("study.json", data)}, follow=True).content.decode()
        assert "This is a bundle" in page and "New study from a bundle" in page and "prompt_key" not in page
    with pytest.raises((CommandError, SystemExit)):
        call_command("import_study", str(study.code), str(path), stdout=out)
    assert "This is a bundle" in out.getvalue()


# Excluded places and closing


def _excluded(study, owner, **fields) -> str:
    done = players.submitted(study, str(timezone.now()))
    data = {"code": [str(done.code)], "reason": "too_fast", **fields}
    return logged_in(owner).post(reverse("admin:annotators_exclude"), data, follow=True).content.decode()


@pytest.mark.slow
def test_who_excludes_reads_what_happened_to_the_place(owner):
    study = builders.spa_study(owner, target_n=4, target_cap=5, with_surveys=False, with_rating=False)
    assert (
        "1 excluded. Its place stays taken: no other annotator gets it. To let another annotator answer"
        in _excluded(study, owner)
    )
    assert "1 excluded. Its place is open again for other annotators." in _excluded(study, owner, reopen="on")
    assert "The cap of 5 places is reached" in _excluded(study, owner)
    study = builders.spa_study(
        owner, target_n=4, target_cap=5, replaces_excluded=True, with_surveys=False, with_rating=False
    )
    assert "Its place is opened again within a few minutes, up to the cap of 5 places" in _excluded(study, owner)


@pytest.mark.slow
def test_a_closing_study_says_until_when_and_how_many_are_inside(owner):
    study = builders.spa_study(owner, target_n=4, grace_seconds=7200, with_surveys=False, with_rating=False)
    players.claimed(study, "inside")
    client = logged_in(owner)
    page = client.post(study_url(study, "close/do/"), {"reason": ""}, follow=True)
    study.refresh_from_db()
    until = f"until {study.closing_at + timedelta(seconds=7200):%d %B %Y at %H:%M} UTC"
    pages = [page, client.get(study_url(study)), client.get(reverse("admin:annotators_collecting", args=[study.pk]))]
    for each in pages:
        assert f"1 annotator is still answering and may finish {until}" in each.content.decode()
    study.assignments.update(released_at=timezone.now(), released_reason="expired")
    page = client.get(study_url(study)).content.decode()
    assert "No annotators are still answering. The study closes in a minute." in page


def test_a_link_leads_to_the_page_where_the_problem_is_changed(owner):
    """The target of a study is on the study's page, also where a section's problem is about it."""
    from studies.admin import workflow

    study = builders.draft_study(systems=("alpha", "beta"), prompts=4, target_n=90)
    builders.add_choice(study, m=2, strategy="one")
    found = [
        problem for problem in workflow.check_linked_design(study)[0] if "places with this strategy" in problem.text
    ]
    assert [problem.url for problem in found] == [f"{study_url(study)}?part=target#id_target_n"]
    assert Batch.objects.count() == 0
