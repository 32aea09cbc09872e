"""Every interval, rank set and p-value of a report says what it is about, and its heading says so if that is less than people and prompts."""

from collections import Counter

import pytest

from analysis.report.build import build_report
from annotators.participation.simulate import record_simulated_answers
from studies.models import Study
from studies.services import lifecycle
from tests.analysis.report.populations import intervals_of_report, places_without_words
from tests.builders import (
    add_choice,
    add_humanlike,
    add_marks,
    add_ranking,
    add_rating,
    add_relative,
    add_section,
    add_spa,
    draft_study,
    humanlike_draft,
    launched,
)
from tests.golden_site.hashes import stored
from tests.players import play

pytestmark = pytest.mark.django_db
PEOPLE = 12
WORTH = {"alpha": 0.0, "beta": 0.4, "gamma": 0.2}


def rated(study, **options):
    add_rating(study, position=1, **options)
    x, y = study.systems.order_by("name")[:2]
    study.contrasts.create(x=x, y=y, expected=">")


def best_worst(study, **options):
    add_section(study, "best_worst", position=1, **options)
    x, y = study.systems.order_by("name")[:2]
    study.contrasts.create(x=x, y=y, expected=">")


PROTOCOLS = {
    "rating": rated,
    "two_choice": lambda study, **options: add_choice(study, stopping="none", strategy="any", **options),
    "two_choice_anytime": lambda study, **options: add_choice(study, stopping="anytime", strategy="any", **options),
    "ranking": add_ranking,
    "relative": add_relative,
    "best_worst": best_worst,
    "marks": add_marks,
    "spa": add_spa,
}


def closed(study, people=PEOPLE):
    study = launched(study)
    record_simulated_answers(study, people, WORTH)
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    return Study.objects.get(pk=study.pk)


def reports(study):
    """The reports of the same answers under each population that a design can declare. Only the analysis is tested, so the guard is lifted."""
    from django.db.models import QuerySet

    for population in ("people_and_prompts", "people", ""):
        QuerySet(study.contrasts.model).filter(study=study).update(population=population)
        report = build_report(study, {"resamples": 99, "origins": ["robot"]})
        assert not report["problems"], report["problems"]
        yield population, report


@pytest.mark.slow
@pytest.mark.parametrize("prompts", [12, 3])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_interval_has_its_population_and_its_heading_says_what_is_fixed(protocol, prompts, same_orders):
    study = draft_study(
        systems=("alpha", "beta", "gamma"), prompts=prompts, target_n=PEOPLE, annotators_per_batch=2, instructions=""
    )
    PROTOCOLS[protocol](study, m=min(4, prompts))
    for population, report in reports(closed(study)):
        assert places_without_words(report) == []
        check_systems(report, population, prompts, protocol)


def check_systems(report, population, prompts, protocol):
    """Means and rank sets of systems are about the declared population, or have no interval and a reason."""
    about = {
        one["analysis"]: one for one in intervals_of_report(report, with_undefined=True) if "system" in one["settings"]
    }
    fixed = population == "people" or protocol == "two_choice_anytime"
    for name, one in about.items():
        if one["mode"] == "paper" or name.startswith(("choice.replay", "spa.")):
            continue
        if fixed or (not population and prompts < 5):
            assert one["population"] == "people", name
        elif one["estimate"] is not None:
            assert one["population"] == "people and prompts", name
            assert (one["interval"] is None) == (prompts < 5), name
            assert prompts >= 5 or "too few for an interval about prompts like these" in one["reason"], name


@pytest.mark.slow
def test_human_or_machine_has_populations_too(same_orders):
    study = humanlike_draft(machines=("gpt2", "gpt3"), texts=12, target_n=16)
    add_humanlike(study, position=5)
    study = launched(study)
    for n in range(16):
        play(study, n)
    study = Study.objects.get(pk=study.pk)
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    study = Study.objects.get(pk=study.pk)
    report = build_report(study, {"resamples": 99})
    assert places_without_words(report) == [] and not report["problems"]


def test_the_stored_reports_name_a_population_for_every_interval():
    seen, missing = Counter(), set()
    for study, parts in stored().items():
        for one in intervals_of_report(parts, with_sensitivity=True):
            seen[one["population"]] += 1
            if not one["population"]:
                missing.add((study, one["analysis"]))
    assert missing == set()
    assert sum(seen.values()) > 2000 and seen["people and prompts"] > 500 and len(seen) >= 8, seen
