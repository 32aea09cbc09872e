"""A plan takes the comparisons, corrections and conditions that the draft declares."""

from dataclasses import replace

import pytest
from django.urls import reverse

from analysis.planning import results
from analysis.planning.checklist import changed_inputs, find_plan_problems
from analysis.planning.forms import DECLARED, OF_PLAN, PlanForm
from analysis.planning.inputs import InvalidPlanInputs, PlanInputs, claim_labels, inputs_from_draft
from analysis.planning.page import live_context
from analysis.planning.results import quick_numbers
from analysis.planning.run import compute_plan
from analysis.stats.planning import study_plans
from analysis.stats.planning.comparisons import Comparisons
from studies.models import ComparisonFamily, Contrast, Study
from tests.builders import add_choice, add_rating, draft_study, humanlike_draft, user
from tests.size_plans import choose, planned_size

from .quick import inputs, words

pytestmark = pytest.mark.django_db


@pytest.fixture
def draft():
    """Three systems; two comparisons corrected by Holm, and a secondary one after them."""
    study = draft_study(owner=user("owner"), systems=("alpha", "beta", "gamma"), prompts=30, target_n=40)
    add_choice(study, m=15, stopping="none")
    alpha, _, gamma = study.systems.order_by("name")
    Contrast.objects.create(study=study, x=gamma, y=alpha, role="secondary", expected="~", margin=0.1)
    ComparisonFamily.objects.create(study=study, name="primary", adjustment="holm")
    ComparisonFamily.objects.create(study=study, name="secondary", adjustment="hommel", after="primary")
    return study


def test_a_plan_counts_a_group_of_prompts_once(draft):
    for number, prompt in enumerate(draft.prompts.order_by("key")[:24]):
        draft.prompts.filter(pk=prompt.pk).update(group=f"document {number // 4}")
    found = inputs_from_draft(draft)
    assert found.size.prompts == 6 + 6 and found.size.prompts_each <= 12


@pytest.mark.parametrize(
    ("n_grouped", "said"),
    [
        (0, ""),
        (
            24,
            "count groups of prompts in place of prompts: the 30 prompts of this study are 12 groups of prompts, of which 6 are single",
        ),
        (30, "count documents in place of prompts: the 30 prompts of this study are 8 documents."),
    ],
)
def test_the_page_says_what_a_plan_counts_in_place_of_prompts(draft, client, n_grouped, said):
    for number, prompt in enumerate(draft.prompts.order_by("key")[:n_grouped]):
        draft.prompts.filter(pk=prompt.pk).update(group=f"document {number // 4}")
    draft.group_noun = "document"
    draft.save()
    client.force_login(draft.owner)
    page = client.get(reverse("admin:studies_plan", args=[draft.pk])).content.decode()
    assert said in page and ("in place of prompts" in page) == bool(said)


def test_the_draft_says_what_is_compared_and_corrected(draft):
    found = inputs_from_draft(draft)
    assert found.target.tests == 2 and [claim.family for claim in found.comparisons.claims] == [
        "primary",
        "primary",
        "secondary",
    ]
    assert [(one.name, one.method, one.after) for one in found.comparisons.families] == [
        ("primary", "holm", ""),
        ("secondary", "hommel", "primary"),
    ]
    first, second, third = found.comparisons.claims
    assert first.x == second.y, "two comparisons of one system do not share its answers"
    assert (third.goal, third.margin, first.goal) == ("equivalence", 0.1, "difference")
    assert PlanInputs.from_json(found.as_json()) == found
    draft.contrasts.filter(role="secondary").delete()
    draft.contrasts.first().delete()
    assert inputs_from_draft(draft).comparisons == Comparisons(), "one comparison needs no correction"


def test_plans_from_before_keep_their_fingerprint(draft):
    data = inputs().as_json()
    assert "comparisons" not in data and "conditions" not in data["size"] and "baseline" not in data["target"]
    assert PlanInputs.from_json(data).comparisons == Comparisons()


def test_the_form_offers_what_is_declared_and_what_the_plan_took(draft):
    start = inputs_from_draft(draft)
    form = PlanForm(start, {}, declared=start.comparisons)
    assert form.is_valid() and form.inputs == start and form["correction"].value() == DECLARED
    assert dict(form.fields["correction"].choices)[DECLARED] == (
        "as declared: 2 in primary (Holm), 1 in secondary (Hommel, after primary)"
    )
    by_hand = PlanForm(start, {"correction": "hommel", "tests": "5"}, declared=start.comparisons)
    assert by_hand.is_valid() and by_hand.inputs.comparisons == Comparisons(method="hommel")
    assert by_hand.inputs.target.tests == 5
    ignored = PlanForm(start, {"tests": "5"}, declared=start.comparisons)
    assert ignored.is_valid() and ignored.inputs.target.tests == 2 == ignored["tests"].value()
    later = PlanForm(start, {}, declared=Comparisons(claims=start.comparisons.claims[:2]))
    assert later.is_valid() and later["correction"].value() == OF_PLAN and later.inputs == start


@pytest.mark.slow
def test_the_page_shows_each_comparison_before_and_after_the_simulation(draft, client, few_runs, monkeypatch):
    monkeypatch.setattr(study_plans, "COMPARED_RUNS", 60)
    client.force_login(draft.owner)
    address = reverse("admin:studies_plan", args=[draft.pk])
    said = words(client.get(address, {"people": 41}))
    assert (
        "primary: Holm, 2 comparisons 2.5 % " in said
        and "secondary: Hommel, 1 comparison, only if all of primary is shown" in said
    )
    assert "beta > alpha, naturalness" in said and "section 1" not in said
    plan = compute_plan(draft, draft.owner, inputs_from_draft(draft))
    found = plan.result["comparisons"]
    assert [one["family_size"] for one in found["claims"]] == [2, 2, 1]
    assert found["all_shown"] <= min(one["power"] for one in found["claims"]) <= found["any_shown"]
    said = words(client.get(address, {"plan": plan.pk}))
    assert (
        "With the correction of several comparisons, 2 in primary (Holm), 1 in secondary (Hommel, after primary), at least"
        in said
    )
    assert "Several comparisons, corrected At least one is shown in" in said
    assert "beta > alpha, naturalness" in said and "section 1" not in said
    assert found["claims"][0]["name"] == "beta > alpha on naturalness, section 1, better", "plans keep the key"


def test_comparisons_are_shown_in_words_and_stored_by_their_keys():
    study = draft_study(owner=user("owner"), systems=("alpha", "beta"), prompts=30, target_n=40)
    add_rating(study, position=1, m=4)
    add_rating(study, position=2, m=8)
    add_choice(study, position=3, stopping="none")
    first = study.contrasts.get()
    Contrast.objects.create(study=study, x=first.x, y=first.y, estimand="difference", role="secondary")
    names = [claim.name for claim in inputs_from_draft(study).comparisons.claims]
    labels = claim_labels(study)
    assert [labels[name] for name in names] == [
        "beta > alpha, with 4 prompts",
        "beta > alpha, with 8 prompts",
        "beta > alpha, naturalness (Two choices)",
        "beta > alpha, with 4 prompts (mean rating of x minus mean rating of y)",
        "beta > alpha, with 8 prompts (mean rating of x minus mean rating of y)",
    ]
    assert all(", section " in name for name in names), "a part of the fingerprint"
    start = inputs_from_draft(study)
    alone = replace(start, comparisons=Comparisons(claims=start.comparisons.claims[1:2]))
    curves = live_context(alone, "USD", labels=labels)["curves"]
    shown = {row["label"] for curve in curves for row in curve["rows"] if curve["key"] == "beside"}
    assert "rating: beta > alpha, with 8 prompts, level 5 %" in shown, "readers know m, and no number of a section"


def test_a_comparison_that_the_draft_no_longer_has_keeps_its_name(draft):
    start = inputs_from_draft(draft)
    draft.contrasts.all().delete()
    rows = live_context(start, "USD", labels=claim_labels(draft))["comparisons"]
    assert [name for row in rows for name in row["names"]] == [claim.name for claim in start.comparisons.claims]


def test_a_correction_over_rest_and_on_the_command_line(draft):
    start = inputs_from_draft(draft)
    assert changed_inputs(start, {"correction": "declared"}, None) == start
    changed = changed_inputs(start, {"correction": "holm", "tests": 3}, None)
    assert changed.comparisons == Comparisons(method="holm") and changed.target.tests == 3
    numbers = quick_numbers(changed, "USD")
    assert len(numbers["comparisons"]) == 3 and numbers["comparisons"][0]["power"] == numbers["power"]
    for before, sent, field, advice in (
        (inputs(), {"correction": "declared"}, "correction", "declares no several comparisons"),
        (start, {"tests": 3}, "tests", "Leave tests out, or give a correction"),
        (start, {"correction": "scheffe"}, "comparisons", "is not one of bonferroni, holm, hommel"),
        (start, {"panel": "nobody"}, "panel", "is not one of prolific_academic"),
        (start, {"baseline": 0.4}, "baseline", "Only comparisons between conditions have a baseline"),
        (start, {"protocol": "accuracy_between_conditions"}, "conditions", "Enter a number from 2 to"),
    ):
        with pytest.raises(InvalidPlanInputs) as refused:
            changed_inputs(before, sent, None)
        assert advice in refused.value.errors[field]


def test_the_checklist_says_if_the_correction_is_another(draft):
    def texts() -> list[str]:
        return [
            one.text for one in find_plan_problems(Study, Study.objects.get(pk=draft.pk)) if one.field == "contrasts"
        ]

    def chosen(comparisons: Comparisons, **size) -> None:
        choose(draft, planned_size(draft, target=inputs_from_draft(draft).target, comparisons=comparisons, **size))

    chosen(inputs_from_draft(draft).comparisons)
    assert texts() == []
    for method in ("holm", "bonferroni"):
        chosen(Comparisons(method=method))
        assert "comparisons or their correction" in texts()[0]
    draft.contrasts.filter(role="secondary").delete()
    draft.comparison_families.filter(name="secondary").delete()
    for method, is_warned in (("holm", False), ("bonferroni", True)):
        chosen(Comparisons(method=method), people=50)
        assert bool(texts()) == is_warned


def test_a_draft_that_compares_conditions_is_planned_between_them(few_runs):
    study = humanlike_draft(conditions=("none", "examples", "comparison"), domains=("news",), target_n=60)
    contrast = Contrast.objects.create(study=study, x_condition="examples", y_condition="none", estimand="accuracy")
    found = inputs_from_draft(study)
    assert (found.size.protocol, found.size.conditions, found.size.people) == ("accuracy_between_conditions", 3, 60)
    assert found.comparisons == Comparisons()
    Contrast.objects.filter(pk=contrast.pk).update(estimand="")
    assert inputs_from_draft(study).size.protocol == "sensitivity_between_conditions"
    said = quick_numbers(found, "USD")["sentences"]
    assert said[0].startswith("60 people in 3 conditions, 5 prompts each")
    assert said[1].startswith("Finds 60 % right answers against 50 % in another condition with ")
    plan = compute_plan(study, None, found)
    assert results.compare_sequential(found, seed=1)["designs"] == []
    assert plan.result["plan"]["planned"]["size"]["conditions"] == 3
    Contrast.objects.create(study=study, x_condition="comparison", y_condition="none")
    claims = inputs_from_draft(study).comparisons.claims
    assert len(claims) == 2 and claims[0].y == claims[1].y, "both are compared with the same people"
