"""What a design declares a comparison to be about decides the method of its claim, in each protocol that can do both."""

import pytest

from analysis.protocols import REGISTRY
from analysis.report.build import analysis_contexts, build_report, validate_parameters
from analysis.report.report_data import read_report_data
from annotators.participation.simulate import record_simulated_answers
from studies.models import Study
from studies.services import lifecycle
from tests.builders import (
    add_choice,
    add_marks,
    add_ranking,
    add_rating,
    add_relative,
    add_spa,
    choice_study,
    draft_study,
    launched,
)

pytestmark = pytest.mark.django_db
PEOPLE = 12


def rated(study, **options):
    add_rating(study, position=1, **options)
    beta, alpha = study.systems.get(name="beta"), study.systems.get(name="alpha")
    study.contrasts.create(x=beta, y=alpha, expected=">")


# The protocol's section, its block of claims, and the analysis about people only beside the claim about both.
PROTOCOLS = {
    "rating": (rated, "rating.superiority", "rating.superiority.by_annotator"),
    "two choices": (
        lambda study, **options: add_choice(study, stopping="none", strategy="any", **options),
        "choice.preference",
        "choice.preference.by_annotator",
    ),
    "ranking": (add_ranking, "ranking.share", "ranking.share.by_annotator"),
    "relative": (add_relative, "relative.score", "relative.score.by_annotator"),
    "marks": (add_marks, "marks.score", "marks.score.by_annotator"),
    "spa": (add_spa, "spa.pairs", "spa.pair.by_annotator"),
}


def answered_study(add, *, prompts, m=2) -> Study:
    study = draft_study(
        systems=("alpha", "beta"), prompts=prompts, target_n=PEOPLE, annotators_per_batch=2, instructions=""
    )
    add(study, m=m)
    study = launched(study)
    record_simulated_answers(study, PEOPLE, {"alpha": 0.0, "beta": 0.4})
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    return Study.objects.get(pk=study.pk)


def report_with(study, population):
    """The report of the same answers under a design that declares this. Only the analysis is tested, so the guard is lifted."""
    from django.db.models import QuerySet

    QuerySet(type(study.contrasts.first())).filter(study=study).update(population=population)
    report = build_report(study, {"resamples": 99, "origins": ["robot"]})
    assert not report["problems"], report["problems"]
    return report


def claim_of(report, name):
    block = next(block for block in report["blocks"] if block["name"] == name and block["mode"] == "recommended")
    return block["estimates"][0]


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_comparison_about_people_takes_annotators_as_clusters_only(protocol, same_orders):
    add, name, by_annotator = PROTOCOLS[protocol]
    study = answered_study(add, prompts=30)
    undeclared, both, people = (
        claim_of(report_with(study, population), name) for population in ("", "people_and_prompts", "people")
    )
    assert [one["settings"]["contrast"]["population"] for one in (undeclared, both, people)] == [
        "",
        "people_and_prompts",
        "people",
    ]
    assert undeclared["settings"]["population"] == both["settings"]["population"] == "people and prompts"
    assert (both["interval"], both["test"]) == (undeclared["interval"], undeclared["test"])
    beside = next(one for one in both["sensitivity"] if one["analysis"] == by_annotator)
    assert people["settings"]["population"] == "people"
    assert people["interval"] == beside["interval"] and people["estimate"] == both["estimate"]
    assert people["interval"] != both["interval"]
    assert_plans_read_the_same_answers(study, both)


def assert_plans_read_the_same_answers(study, claim):
    """What a plan takes from a pilot is what the report's claim is the mean of. A stated chance has a row for each prompt that was read."""
    data = read_report_data(study, ["robot"])
    (context,) = analysis_contexts(data, validate_parameters({"origins": ["robot"]}), "", [])
    found = REGISTRY[context.protocol].headline_answers(context)
    assert found[0].comparison.key == claim["settings"]["contrast"]["key"]
    assert found[0].values.mean() == pytest.approx(claim["estimate"])
    assert len(set(found[0].annotators)) == PEOPLE
    if context.protocol == "spa":
        rows = list(zip(found[0].annotators.tolist(), found[0].prompts.tolist(), strict=True))
        assert len(rows) == len(set(rows)) == 2 * PEOPLE, "each person reads two prompts"
    else:
        assert len(set(found[0].prompts)) == claim["detail"]["n_prompts"]


@pytest.mark.slow
def test_the_sentence_says_what_the_design_declared_if_the_claim_is_another(same_orders):
    add, _, _ = PROTOCOLS["ranking"]
    study = answered_study(add, prompts=30)
    reports = [report_with(study, population) for population in ("", "people_and_prompts", "people")]
    (undeclared,), (both,), (people,) = (report["conclusions"] for report in reports)
    assert undeclared["claim"] == both["claim"] and "for prompts like these" in both["claim"]
    assert undeclared["text"] == both["text"], "the page says it once, and not in each sentence"
    said = (
        "The design does not declare for which people and prompts its results hold, so each sentence says what its numbers allow. "
        "In a new study, declare it with each comparison."
    )
    assert [report["summary"].count(said) for report in reports] == [1, 0, 0]
    n_prompts = claim_of(report_with(study, "people"), "ranking.share")["detail"]["n_prompts"]
    assert people["claim"].endswith(f", for exactly these {n_prompts} prompts.")
    assert "declare" not in people["text"]


@pytest.mark.slow
def test_a_design_that_wanted_more_than_its_prompts_can_show_says_what_helps(same_orders):
    add, _, _ = PROTOCOLS["ranking"]
    study = answered_study(add, prompts=3)
    (both,), (people,) = (report_with(study, one)["conclusions"] for one in ("people_and_prompts", "people"))
    assert both["claim"] == people["claim"] and "for exactly these 3 prompts" in both["claim"]
    assert both["text"].removeprefix(people["text"]) == (
        " The design declared prompts like these, but 3 prompts cannot show that. A study with five prompts or more can."
    )


@pytest.mark.slow
def test_sets_of_prompts_and_a_stopping_rule_have_sentences_of_their_own(same_orders):
    study = answered_study(add_spa, prompts=3)
    (said,) = report_with(study, "people_and_prompts")["conclusions"]
    assert said["text"].endswith(
        "batches that share prompts cannot show that. A study with five sets that share no prompt can."
    )
    study = choice_study(target_n=12, prompts=60, m=5, margin=0.1)
    record_simulated_answers(study, 12, {"alpha": 0.0, "beta": 4.0})
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    (said,) = report_with(Study.objects.get(pk=study.pk), "people_and_prompts")["conclusions"]
    assert ", for exactly these " in said["claim"]
    assert said["text"].endswith("its stopping rule counts people only. A study without a stopping rule can show more.")


def test_a_report_concludes_once_about_a_pair_that_is_planned_on_all_criteria_and_on_one():
    def twice(study, **options):
        section = add_choice(study, stopping="none", strategy="any", **options)
        section.questions.update(criterion="fluency")
        planned = study.contrasts.get()
        study.contrasts.create(x=planned.x, y=planned.y, criterion="fluency", level=0.01)

    study = answered_study(twice, prompts=6)
    report = build_report(study, {"resamples": 99, "origins": ["robot"]})
    assert not report["problems"], report["problems"]
    (claim,) = next(block for block in report["blocks"] if block["name"] == "choice.preference")["estimates"]
    assert claim["settings"]["contrast"]["level"] == 0.01 and claim["test"]["family_size"] == 1
