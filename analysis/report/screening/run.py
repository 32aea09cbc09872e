"""Screen the annotators of a study: fit the model to the answers stored now, and store the result.

Nothing here runs in an annotator's request. The rules screen again from the answers when an analysis runs, so a stored
screening excludes no annotator.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.db.models import Count, Exists, IntegerField, OuterRef, Subquery
from django.db.models.functions import Coalesce

from analysis.data.blinding import are_outcomes_hidden
from analysis.data.frames import assignments_frame, responses_frame
from analysis.data.snapshot import database_snapshot
from analysis.data.test_answers import read_test_answers
from analysis.exclusions.screening import (
    AnnotatorTestCounts,
    ModelSettings,
    SimpleSettings,
    boundary_rows,
    count_by_annotator,
    fails_simple_rule,
    fit_and_screen,
    model_sentences,
)
from analysis.models import AnnotatorScreening
from annotators.counting import Use, select
from annotators.models import Assignment
from studies.access import Action, check_permission_or_404
from studies.models import Item, Job, Study
from studies.models.rules import REGISTRY as RULES
from studies.models.rules import TEST_QUESTION_RULES
from studies.services import jobs

from .agreement import agreement_by_annotator, evidence_by_annotator, given_labels

KIND = "screen_annotators"
# A running study is screened again after this many new submissions, or after this share of those already screened.
MIN_NEW, NEW_SHARE = 5, 0.1


def request_screening(study: Study, by, origin: str, request_token: str | None = None) -> Job:
    """Submit the job. ``origin``: whose answers. Raise PermissionDenied or Http404 without the permission."""
    check_permission_or_404(by, Action.ANALYSE, study)
    return jobs.submit(KIND, study=study, by=by, request_token=request_token, origin=origin)


def submit_due_screenings() -> int:
    """Submit the job for studies with enough new answers to test questions. Return the number of waiting jobs.

    A running study is due after some new submissions. A closed study is due until its last screening has all its answers
    and, because outcomes are then visible, the agreement between annotators.
    """
    live = select(Use.RESULTS, Assignment.objects.filter(study=OuterRef("pk")), [Assignment.Origin.LIVE])
    n_submitted = live.order_by().values("study").annotate(n=Count("pk")).values("n")
    last = AnnotatorScreening.objects.filter(study=OuterRef("pk"), origin=Assignment.Origin.LIVE).order_by("-pk")
    studies = Study.objects.filter(
        Exists(Item.objects.filter(study=OuterRef("pk"), kind=Item.Kind.TEST)),
        launched_at__isnull=False,
        archived_at=None,
    ).annotate(
        n_submitted=Coalesce(Subquery(n_submitted, output_field=IntegerField()), 0),
        last_pk=Subquery(last.values("pk")[:1]),
        last_n=Subquery(last.values("n_assignments")[:1]),
        last_agreement=Subquery(last.values("has_agreement")[:1]),
    )
    n = 0
    for study in studies.filter(n_submitted__gt=0):
        if _is_due(study.n_submitted, study.last_n, study.last_agreement, is_blind=study.is_blind):
            # The token names what was screened last, so that a withdrawal does not bring back the token of an earlier job.
            token = f"screen-{study.pk}-{study.last_pk or 0}-{study.n_submitted}-{study.is_blind:d}"
            job = jobs.submit(KIND, study=study, by=None, request_token=token, origin=Assignment.Origin.LIVE)
            n += job.state == Job.State.WAITING
    return n


def _is_due(n_submitted: int, last_n: int | None, has_agreement: bool | None, *, is_blind: bool) -> bool:
    if last_n is None or n_submitted < last_n:
        return True
    if is_blind:
        return n_submitted - last_n >= max(MIN_NEW, NEW_SHARE * last_n)
    return n_submitted > last_n or not has_agreement


def screen_annotators(study: Study, origin: str, by) -> AnnotatorScreening:
    """Fit the model to the answers stored now and store the result of every annotator with submitted work.

    ``by`` is None if the site itself asks.
    """
    with database_snapshot():
        study = Study.objects.get(pk=study.pk)
        assignments = assignments_frame(study, [origin]).rows
        assignments = assignments[assignments["is_submitted"]]
        test_answers = read_test_answers(study, [origin])
        labels = given_labels(responses_frame(study, [origin], ["live"]).rows)
        model, simple = declared_settings(study)
        shows_agreement = not are_outcomes_hidden(study, [origin])
    counts = count_by_annotator(test_answers)
    screening = fit_and_screen(counts, model)
    by_pseudonym = {row.annotator: place for place, row in enumerate(counts)}
    n_labels = labels["annotator"].value_counts().to_dict()
    agreement = agreement_by_annotator(labels) if shows_agreement else {}
    evidence, no_evidence = evidence_by_annotator(labels) if shows_agreement else ({}, [])
    total = len(labels)
    rows = []
    for annotator, own in assignments.groupby("annotator", sort=True):
        place = by_pseudonym.get(str(annotator))
        tested = AnnotatorTestCounts(str(annotator), (0, 0), (0, 0), 0) if place is None else counts[place]
        is_modelled = place is not None and screening.status == "ok"
        seconds = float(own["seconds"].sum(min_count=1))
        rows.append(
            {
                "annotator": annotator,
                "assignments": len(own),
                "right": tested.right,
                "counted": tested.counted,
                "n_uncounted": tested.n_uncounted,
                "posteriors": [
                    float(chance) if is_modelled and n else None
                    for chance, n in zip(
                        screening.posteriors[place] if is_modelled else (0, 0), tested.counted, strict=True
                    )
                ],
                "is_flagged": bool(screening.flagged[place]) if is_modelled and tested.n_counted else None,
                "is_failed": fails_simple_rule(tested, simple),
                "minutes": None if math.isnan(seconds) else round(seconds / 60, 2),
                "labels": int(n_labels.get(annotator, 0)),
                "share": n_labels.get(annotator, 0) / total if total else None,
                "agreement": agreement.get(str(annotator)),
                "evidence": evidence.get(str(annotator)),
            }
        )
    return AnnotatorScreening.objects.create(
        study=study,
        origin=origin,
        by=by,
        n_assignments=len(assignments),
        n_answers=sum(row.n_counted for row in counts),
        has_agreement=shows_agreement,
        rule_settings={"model": asdict(model), "simple": asdict(simple)},
        result={
            "status": screening.status,
            "reason": screening.reason,
            "model": screening.model,
            "sentences": model_sentences(screening) if counts else [],
            "boundaries": boundary_rows(screening, counts) if counts else [],
            "no_evidence": no_evidence,
            "flagged": [row["annotator"] for row in rows if row["is_flagged"]],
            "rows": rows,
        },
    )


def declared_settings(study: Study) -> tuple[ModelSettings, SimpleSettings]:
    """Return the settings of the study's rules about test questions; the default ones if a rule is not declared."""
    cleaned: dict[str, Mapping[str, Any]] = {}
    for row in study.exclusion_rules.filter(rule__in=TEST_QUESTION_RULES):
        form = RULES[row.rule].bound_form(row.settings or {})
        if form is not None and form.is_valid():
            cleaned[row.rule] = form.cleaned_data
    return (
        ModelSettings.from_stored(cleaned.get("test_question_model", {})),
        SimpleSettings.from_stored(cleaned.get("failed_tests", {})),
    )
