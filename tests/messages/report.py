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
from tools.proofs.calibration.studies import answer_rows, drafted, import_and_report
from tools.proofs.calibration.study_cells import StudyCell

from .lines import Shown, only_informs


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


def imported_from_an_archive(study):
    audit.record("import archive", study=study, by=None)


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


REPORT = {
    "Prompts that follow": notices(make=with_similar_neighbours, closes=False, origins=["imported"]),
    "prompts share their source": notices(make=with_shared_sources),
    "The exclusion rule “…” excludes": notices(make=hurried),
    "This analysis uses": only_informs(notices(origins=["robot"])),
    "The design was amended": only_informs(notices(amended)),
    "item… retired by an amendment": only_informs(notices(retired)),
    "page… answered by annotators": only_informs(notices(make=with_unseen_image)),
    "of … submitted": only_informs(notices(make=by_open_link)),
    "assignment… withdrawn by the annotator": only_informs(notices(withdrawn)),
    "annotator… excluded after": only_informs(notices(excluded_later)),
    "The stopping rule": only_informs(notices(decided)),
    "This study was imported": only_informs(notices(imported_from_an_archive)),
    "The study has … of its target": only_informs(notices()),
    "The exclusion rules": notices(left_out),
    "The rule “…” uses": only_informs(notices(make=with_tau)),
    "The estimates as in Ethayarajh": notices(make=with_tau),
    "Some pairs were": only_informs(notices(make=one_order)),
    "Arms were filled": notices(make=filled_in_turn),
    "No planned comparison could be estimated: no annotator has submitted": why(submitted=0, kept=0),
    "No planned comparison could be estimated: the exclusion": why(kept=0),
    "No planned comparison could be estimated: the analysis": why(problems=[{"row": "protocol spa"}]),
    "No planned comparison could be estimated: no submitted": why(),
    "No planned comparison could be estimated: no annotator judged": why(answers=["alpha", "beta"]),
    "No planned comparison could be estimated: the live": why(answers=["alpha", "beta"], together=True),
}
