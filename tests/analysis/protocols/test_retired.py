"""An item that an amendment retires: what was said of it counts in every protocol, and nobody later owes an answer to it."""

import io

import pandas as pd
import pytest

from analysis.data.exports import csv_blocks
from analysis.data.flat_rows import Selection
from analysis.data.planned_labels import read_planned_labels_of_claimed_batches
from analysis.report.build import build_report
from analysis.report.stopping import compute_stopping_state
from annotators.places import monitor
from studies.models import Item, Study
from studies.services import lifecycle
from tests.builders import add_choice, add_rating, choice_study, draft_study, launched
from tests.players import MAX_THREE, choosing, submitted

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_orders")]


def retire(study, item):
    lifecycle.amend(
        Study.objects.get(pk=study.pk), {"item": {item.pk: {"retired": True}}}, reason="a broken text", by=None
    )


def closed(study):
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    return Study.objects.get(pk=study.pk)


def exported(study):
    return pd.read_csv(io.BytesIO(b"".join(csv_blocks("responses", Selection(study)))), keep_default_na=False)


@pytest.mark.slow
def test_answers_about_it_count_in_every_protocol_and_the_report_says_so():
    study = draft_study(systems=("alpha", "beta"), prompts=8, target_n=6, instructions="", annotators_per_batch=3)
    add_choice(study, position=1, m=2, stopping="none", strategy="any")
    add_rating(study, position=2, m=2)
    launched(study)
    for n in range(3):
        submitted(study, f"early {n}")
    for section in study.sections.all():
        retire(study, study.items.filter(section=section, placements__batch__number=0).order_by("number").first())
    for n in range(3):
        submitted(study, f"late {n}")
    report = build_report(closed(study), {"resamples": 99})
    assert not report["problems"]
    rows = exported(study)
    retired = {
        f"s{i.section.position}.{i.number}"
        for i in study.items.filter(retired_in__isnull=False).select_related("section")
    }
    about = rows[rows["item"].isin(retired)]
    assert len(retired) == 2 and {1, 2} == set(about["section"])
    (notice,) = [one for one in report["notices"] if one["code"] == "retired"]
    assert "2 items were retired" in notice["text"] and f"{about['assignment'].nunique()} submitted" in notice["text"]
    choices = rows[rows["section"] == 1]
    (share,) = [
        e
        for b in report["blocks"]
        if (b["name"], b["mode"]) == ("choice.preference", "recommended")
        for e in b["estimates"]
    ]
    own = choices.assign(x=choices["chosen_system"] == "beta").groupby("annotator")["x"].mean()
    assert share["estimate"] == pytest.approx(own.mean()) and share["n_rows"] == len(choices)
    means = {
        e["settings"]["system"]: e for b in report["blocks"] if b["name"] == "rating.means" for e in b["estimates"]
    }
    for system, one in means.items():
        assert one["n_rows"] == len(rows[(rows["section"] == 2) & (rows["system"] == system)])


def test_a_plan_holds_it_for_those_alone_who_are_asked():
    study = choice_study(prompts=4, m=2, target_n=4, annotators_per_batch=2, settings={"strategy": "any"})
    choosing(study, "a", lambda item: "beta")
    first = Item.objects.filter(study=study, placements__batch__assignments__isnull=False).order_by("number").first()
    retire(study, first)
    choosing(study, "b", lambda item: "beta"), choosing(study, "c", lambda item: "beta")
    (batch,) = first.placements.values_list("batch", flat=True)
    claims = read_planned_labels_of_claimed_batches(study).rows
    assert claims["is_given"].all(), "who was not asked owes nothing"
    assert claims.groupby("claim").size().tolist() == [2, 2, 1]
    assert claims["is_retired"].tolist().count(True) == 1
    (look,) = compute_stopping_state(Study.objects.get(pk=study.pk)).statuses
    assert look.estimate.estimate == 1.0


@pytest.mark.slow
def test_in_disagreement_it_keeps_no_later_item_waiting():
    settings = MAX_THREE["settings"] | {"stopping": "first"}
    study = choice_study(prompts=4, m=4, target_n=2, **MAX_THREE | {"settings": settings})
    items = list(Item.objects.filter(study=study).order_by("number"))
    choosing(study, "a", lambda item: "beta")
    choosing(study, "b", lambda item: "alpha" if item == items[1].pk else "beta")
    (look,) = compute_stopping_state(Study.objects.get(pk=study.pk)).statuses
    assert len(look.evidence) == 1, "the second item wants a third label"
    retire(study, items[1])
    assert monitor.settle_or_top_up_study_items(study) == 0
    (look,) = compute_stopping_state(Study.objects.get(pk=study.pk)).statuses
    assert len(look.evidence) == 3
    report = build_report(closed(study), {"resamples": 99})
    (effort,) = [
        e
        for b in report["blocks"]
        if b["name"] == "choice.effort"
        for e in b["estimates"]
        if e["analysis"] == "choice.effort.labels"
    ]
    assert effort["detail"] | {"items": 4, "items_answered": 3, "items_open": 0, "labels": 8} == effort["detail"]


def test_one_that_nobody_answered_changes_nothing():
    study = choice_study(prompts=4, m=4, target_n=1, settings={"stopping": "first", "strategy": "one"})
    retire(study, Item.objects.filter(study=study).order_by("number").first())
    choosing(study, "a", lambda item: "beta")
    (look,) = compute_stopping_state(Study.objects.get(pk=study.pk)).statuses
    assert len(look.evidence) == 3
