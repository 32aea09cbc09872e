"""What an amended study comes to without the earlier versions: what its report says where those answers are not there at all."""

import pytest

from analysis.report import report_data
from analysis.report.build import build_report
from annotators.models import Assignment
from studies.models import Contrast, Question, Study
from studies.services import lifecycle
from tests.builders import (
    add_choice,
    add_marks,
    add_ranking,
    add_rating,
    add_relative,
    add_spa,
    draft_study,
    humanlike_draft,
    launched,
)
from tests.players import play

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_orders")]
CHOICE = {"strategy": "any", "allows_tie": True}
SECTIONS = [
    (add_spa, {}),
    (add_rating, {}),
    (add_relative, {}),
    (add_ranking, {}),
    (add_marks, {}),
    *((add_choice, CHOICE | {"stopping": rule}) for rule in ("none", "first", "anytime")),
]
# Five people of the first version, seven of the second: no half that would look like the other.
EARLY, LATE = 5, 7


def plan(study, x=None, y=None, **columns):
    Contrast.objects.create(study=study, x=x, y=y, **columns)


def amended(study):
    question = Question.objects.filter(section__study=study).order_by("pk").first()
    lifecycle.amend(
        Study.objects.get(pk=study.pk), {"question": {question.pk: {"help": "Slowly."}}}, reason="a hint", by=None
    )


def collected(study, early=EARLY, late=LATE):
    for n in range(early):
        play(study, n)
    amended(study)
    for n in range(early, early + late):
        play(study, n)
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    return Study.objects.get(pk=study.pk)


def reported(study):
    report = build_report(study, {"resamples": 99})
    assert not report["problems"], report["problems"]
    return report


def estimates(report):
    return [e for b in report["blocks"] if b["name"] == report_data.NAME for e in b["estimates"]]


CONCLUDED = {
    "spa.pairs",
    "rating.superiority",
    "relative.score",
    "ranking.share",
    "marks.score",
    "marks.penalty",
    "choice.preference",
}
CONCLUDED |= {f"humanlike.{estimand}" for estimand in ("sensitivity", "criterion", "accuracy")}


def planned(report):
    """(contrast, what its estimand is called) > estimate, of everything that was planned and is said in sentences."""
    return {
        (e["settings"]["contrast"]["section"], e["settings"]["contrast"]["key"], e["estimand"]): e
        for b in report["blocks"]
        if b["mode"] == "recommended" and b["name"] in CONCLUDED
        for e in b["estimates"]
        if (e["settings"].get("contrast") or {}).get("is_planned")
    }


def is_what_they_alone_say(study):
    whole = reported(study)
    mine = estimates(whole)
    Assignment.objects.filter(study=study, design__version=1).update(origin="test")
    alone = reported(study)
    assert not estimates(alone), "one version is left"
    assert len(mine) == len(planned(whole)) == len(planned(alone)) > 0
    before = planned(whole)
    for (section, key, estimand), one in planned(alone).items():
        (same,) = [
            e
            for e in mine
            if (e["settings"]["contrast"]["section"], e["settings"]["contrast"]["key"]) == (section, key)
            and e["estimand"].startswith(f"{estimand}, from annotators of the newest")
        ]
        assert same["estimate"] == pytest.approx(one["estimate"])
        for field in ("n", "n_clusters", "n_rows", "unit", "status", "reason"):
            assert same[field] == one[field], field
        assert same["detail"]["all_versions"]["n"] == before[section, key, estimand]["n"] and same["test"] is None


@pytest.mark.parametrize(("add", "settings"), SECTIONS)
def test_every_protocol_has_it(add, settings):
    study = draft_study(prompts=60, target_n=EARLY + LATE, instructions="")
    add(study, position=1, m=2, **settings)
    if add is add_rating:
        plan(study, *study.systems.order_by("name")[:2])
    is_what_they_alone_say(collected(launched(study)))


@pytest.mark.slow
def test_human_or_machine_has_it():
    study = humanlike_draft(
        conditions=("none", "examples"), domains=("news", "stories"), machines=("gpt2", "gpt3"), texts=30, target_n=20
    )
    for columns in ({"x_condition": "examples", "y_condition": "none"}, {"estimand": "accuracy"}):
        plan(study, **columns)
    plan(study, study.systems.get(name="gpt2"), study.systems.get(name="gpt3"))
    is_what_they_alone_say(collected(launched(study), early=8, late=12))
