"""The lines of a report: what a reader must know before the numbers, and why nothing was concluded."""

from datetime import timedelta
from types import SimpleNamespace

import numpy as np
from django.utils import timezone

from analysis.report import build
from analysis.report.build import build_report
from annotators.models import PageVisit
from annotators.places.exclusions import exclude_assignments
from studies.models import Arm, Study, audit
from studies.services import lifecycle
from tests import builders
from tests.analysis.protocols.answers import answer
from tests.calibration.studies import answer_rows, drafted, import_and_report
from tests.calibration.study_cells import StudyCell

from .lines import NOTHING, Shown

REPORT = "analysis/report"


def study_of(n=3, seconds=1200, **columns):
    study = builders.spa_draft(target_n=6, with_surveys=False, with_rating=False, **columns)
    study = builders.launched(study)
    answer(study, n, seconds=seconds)
    return study


def notices(*changes, make=study_of, closes=True, **parameters):
    def scenario():
        study = make()
        for change in changes:
            change(study)
        if closes:
            lifecycle.start_closing(study, by=None)
            lifecycle.end_grace_period(study, by=None)
        found = build_report(Study.objects.get(pk=study.pk), {"resamples": 99, **parameters})
        return [Shown(notice["text"]) for notice in found["notices"]] + [Shown(found["no_conclusion"])]

    return scenario


def amended(study):
    lifecycle.amend(study, {"study": {None: {"contact": "other@example.org"}}}, reason="A new address.", by=None)


def retired(study):
    item = study.items.order_by("pk").first()
    lifecycle.amend(study, {"item": {item.pk: {"retired": True}}}, reason="It is broken.", by=None)


def withdrawn(study):
    study.assignments.filter(pk=study.assignments.first().pk).update(withdrawn_at=timezone.now())


def decided(study):
    audit.record("decide", study=study, by=None)


def left_out(study):
    exclude_assignments(list(study.assignments.all()), "too_fast", builders.user("administrator", is_superuser=True))


def excluded_later(study):
    first = study.assignments.order_by("pk").first()
    study.assignments.filter(pk=first.pk).update(judged_at=timezone.now())
    exclude_assignments([first], "own_wish", builders.user("administrator", is_superuser=True))


def by_open_link():
    study = study_of(0)
    answer(study, 2, recruitment=builders.recruitment(study), trust="open")
    return study


def hurried():
    """Everybody took one second."""
    return study_of(6, rules=[("too_fast", {})], seconds=1)


def with_unseen_image():
    study = study_of()
    PageVisit.objects.create(
        assignment=study.assignments.first(), key="s1.read", recorded_at=timezone.now(), shown_at=None, unseen="i1.A"
    )
    return study


def filled_in_turn():
    """All people of one arm arrive, then all of the other."""
    study = builders.spa_draft(target_n=12, with_surveys=False, with_rating=False, prompts=20)
    Arm.objects.create(study=study, name="longer")
    study = builders.launched(study)
    answer(study, 12)
    for assignment in study.assignments.filter(batch__arm__name="longer"):
        study.assignments.filter(pk=assignment.pk).update(claimed_at=assignment.claimed_at + timedelta(hours=3))
    return study


def with_tau():
    return study_of(6, both=True, rules=[("incoherent", {"tau": 0.1})])


def one_order():
    return study_of(6, both=False)


def rows(*named, kept=True):
    """Answers about these systems, each by one annotator."""
    import pandas as pd

    found = [
        {"annotator": n, "system": name, "chosen_system": None, "x": None, "y": None, "is_kept": kept}
        for n, name in enumerate(named)
    ]
    return pd.DataFrame(found, columns=["annotator", "system", "chosen_system", "x", "y", "is_kept"])


def why(submitted=6, kept=6, answers=(), problems=(), together=False):
    def scenario():
        pair = [SimpleNamespace(x_id=1, x=SimpleNamespace(name="alpha"), y=SimpleNamespace(name="beta"))]
        found = rows(*answers)
        if together:
            found["annotator"] = 1
        return [Shown(build.explain_no_conclusion(pair, submitted, kept, found, problems))]

    return scenario


def with_shared_sources():
    study = builders.spa_draft(target_n=6, with_surveys=False, with_rating=False)
    study.prompts.filter(key__lt="p004").update(source="One report.")
    study = builders.launched(study)
    answer(study, 3)
    return study


def with_similar_neighbours():
    """Documents of eight prompts, of which the file does not tell."""
    cell = StudyCell("rating", 8, 32, group_size=8, sd_prompts=2.0)
    study = drafted(cell)
    study.prompts.update(group="")
    import_and_report(study, answer_rows(np.random.default_rng(4), cell, study))
    return study


LINES = {
    f"{REPORT}:build_dependence_notices": [
        (
            "Prompts that follow each other got similar answers",
            "Next time, give prompts of one document a group",
            notices(make=with_similar_neighbours, closes=False, origins=["imported"]),
        ),
        (
            "4 prompts share their source with another one",
            "In a new study, give prompts of one source a group",
            notices(make=with_shared_sources),
        ),
    ],
    f"{REPORT}:_strict_rule_notices": [
        ("excludes 6 of 6 annotators who submitted", "Check its settings", notices(make=hurried)),
    ],
    f"{REPORT}:_origin_notices": [
        ("This analysis uses only answers of robots", NOTHING, notices(origins=["robot"])),
    ],
    f"{REPORT}:_amendment_notices": [
        ("The design was amended (version 1: 3 assignments; version 2: 0 assignments)", NOTHING, notices(amended)),
        ("1 item was retired by an amendment", NOTHING, notices(retired)),
    ],
    f"{REPORT}:_people_notices": [
        (
            "1 page was answered by annotators who reported an unseen image",
            NOTHING,
            notices(make=with_unseen_image),
        ),
        ("2 of 2 submitted assignments came by an open link", NOTHING, notices(make=by_open_link)),
        ("1 assignment was withdrawn by the annotator and not included", NOTHING, notices(withdrawn)),
        (
            "1 annotator was excluded after the stopping rule had counted them",
            "its sensitivity analysis leaves them out",
            notices(excluded_later),
        ),
    ],
    f"{REPORT}:_target_notices": [
        (
            "The stopping rule closed the study after 3 annotators; the maximum was 6",
            NOTHING,
            notices(decided),
        ),
        ("The study has 3 of its target of 6 annotators", "intervals are wider", notices()),
        (
            "The exclusion rules exclude every annotator, so nothing can be estimated",
            "shows how many each rule flags",
            notices(left_out),
        ),
    ],
    f"{REPORT}:_outcome_notices": [
        ("uses outcomes, so it applies only to the estimates as published", NOTHING, notices(make=with_tau)),
        ("They are biased downwards", "do not base a claim on them", notices(make=with_tau)),
        ("Some pairs were asked in only one order", NOTHING, notices(make=one_order)),
    ],
    f"{REPORT}:_arrival_notices": [
        ("Arms were filled at different times", "See the table “Arrival by arm”", notices(make=filled_in_turn)),
    ],
    f"{REPORT}:explain_no_conclusion": [
        ("no annotator has submitted answers", "Run the analysis again", why(submitted=0, kept=0)),
        ("the exclusion rules exclude all 6 submitted assignments", "Check the rules' settings", why(kept=0)),
        ("the analysis of the protocol spa failed", "gives the reason", why(problems=[{"row": "protocol spa"}])),
        (
            "no submitted assignment has answers of a live section",
            "Check in the list of assignments",
            why(),
        ),
        (
            "no annotator judged both systems of a planned pair (alpha and beta)",
            "Show both to the same annotators",
            why(answers=["alpha", "beta"]),
        ),
        (
            "do not estimate the planned quantities",
            "Plan the quantities",
            why(answers=["alpha", "beta"], together=True),
        ),
    ],
}
