"""Rows of the annotators of a study, from the last stored screening. Pages and REST show the same numbers; neither computes any."""

import math
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, Exists, IntegerField, Max, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from analysis.data.blinding import are_outcomes_hidden
from analysis.data.flat_rows import annotator_pseudonym
from analysis.data.frames import assignments_frame, is_counted, responses_frame, rows_where, with_plain_texts
from analysis.data.rule_input import read_test_answers
from analysis.data.snapshot import database_snapshot
from analysis.exclusions.screening import (
    AnnotatorTestCounts,
    ModelSettings,
    SimpleSettings,
    boundary_rows,
    count_by_annotator,
    fails_simple_rule,
    fit_and_screen,
    model_sentences,
    pooled_sentences,
    pooled_studies,
)
from analysis.models import AnnotatorScreening
from annotators.counting import PEOPLES_ORIGINS, Use, select
from annotators.models import Annotator, Assignment, Barring
from annotators.places.barrings import (
    MAX_REASON_LENGTH,
    active_barrings,
    bar_annotator,
    bar_flagged_annotators,
    barrings_of,
    lift_barring,
)
from studies.access import Action, check_permission_or_404, filter_allowed, get_study, is_allowed
from studies.admin.study_page import render_study_page
from studies.design.subjects import join_words, question_labels, read_words_of_sections, words_of_section
from studies.models import Item, Job, Study
from studies.models.design import REGISTRY as RULES
from studies.models.design import TEST_QUESTION_RULES
from studies.protocols import REGISTRY as PROTOCOLS
from studies.services import jobs
from studies.services.lifecycle import ActionRefused
from studies.services.series import studies_judged_together

if TYPE_CHECKING:
    from pandas import DataFrame, Series


SORT_KEYS = (
    "annotator",
    "positive",
    "negative",
    "uncounted",
    "probability",
    "flagged",
    "failed",
    "barred",
    "agreement",
    "errors",
    "competence",
    "severity",
    "minutes",
    "labels",
)


@dataclass(frozen=True, slots=True)
class OtherStudy:
    """The same person's work in another study that the viewer may see, with the pseudonym there.

    ``is_flagged``: by the last screening there; None if there is no screening.
    """

    title: str
    pk: int
    code: UUID
    annotator: str
    n_assignments: int
    is_flagged: bool | None


@dataclass(frozen=True, slots=True)
class AnnotatorRow:
    """What one screening says about an annotator. Pairs are about positive and negative questions. None: unknown.

    ``evidence``: of ``evidence_by_annotator``; empty while outcomes are hidden, and in screenings before it was computed.
    """

    annotator: str
    pk: int
    n_assignments: int
    right: tuple[int, int]
    counted: tuple[int, int]
    n_uncounted: int
    posteriors: tuple[float | None, float | None]
    is_flagged: bool | None
    is_failed: bool | None
    agreement: float | None
    agreement_n: int
    minutes: float | None
    labels: int
    share: float | None
    is_barred: bool = False
    evidence: Mapping[str, Any] = field(default_factory=dict)
    others: list[OtherStudy] = field(default_factory=list)

    @property
    def probability(self) -> float | None:
        """Return the larger of the two probabilities of being inattentive, which the cut-off applies to."""
        return max((chance for chance in self.posteriors if chance is not None), default=None)


@dataclass(frozen=True, slots=True)
class ScreenedStudy:
    """The last screening of a study's annotators, with the rows of those who did not withdraw since."""

    screening: AnnotatorScreening | None
    rows: list[AnnotatorRow]
    is_hidden: bool


def latest_screening(study: Study, origin: str) -> AnnotatorScreening | None:
    return AnnotatorScreening.objects.filter(study=study, origin=origin).select_related("by").order_by("-pk").first()


def read_screened_study(study: Study, origin: str) -> ScreenedStudy:
    """Return the last screening. Agreement is left out while outcomes are hidden."""
    is_hidden = are_outcomes_hidden(study, [origin])
    screening = latest_screening(study, origin)
    if screening is None:
        return ScreenedStudy(None, [], is_hidden)
    pks = annotators_by_pseudonym(study, Use.RESULTS, [origin])
    barred = frozenset(active_barrings(study).values_list("annotator", flat=True))
    rows = [
        _row(stored, pks[stored["annotator"]], is_hidden, barred)
        for stored in screening.result["rows"]
        if stored["annotator"] in pks
    ]
    return ScreenedStudy(screening, rows, is_hidden)


def _row(stored: Mapping[str, Any], pk: int, is_hidden: bool, barred: Container[int]) -> AnnotatorRow:
    agreement = None if is_hidden else stored["agreement"]
    return AnnotatorRow(
        annotator=stored["annotator"],
        pk=pk,
        n_assignments=stored["assignments"],
        right=tuple(stored["right"]),
        counted=tuple(stored["counted"]),
        n_uncounted=stored["n_uncounted"],
        posteriors=tuple(stored["posteriors"]),
        is_flagged=stored["is_flagged"],
        is_failed=stored["is_failed"],
        agreement=agreement["share"] if agreement else None,
        agreement_n=agreement["n"] if agreement else 0,
        minutes=stored["minutes"],
        labels=stored["labels"],
        share=stored["share"],
        is_barred=pk in barred,
        evidence={} if is_hidden else stored.get("evidence") or {},
    )


def _share_right(row: AnnotatorRow, place: int) -> float | None:
    return row.right[place] / row.counted[place] if row.counted[place] else None


_KEYS = {
    "annotator": lambda row: row.annotator,
    "positive": lambda row: _share_right(row, 0),
    "negative": lambda row: _share_right(row, 1),
    "uncounted": lambda row: row.n_uncounted,
    "probability": lambda row: row.probability,
    "flagged": lambda row: row.is_flagged,
    "failed": lambda row: row.is_failed,
    "barred": lambda row: row.is_barred,
    "agreement": lambda row: row.agreement,
    "errors": lambda row: row.evidence.get("error_rate"),
    "competence": lambda row: row.evidence.get("competence"),
    "severity": lambda row: row.evidence.get("severity"),
    "minutes": lambda row: row.minutes,
    "labels": lambda row: row.labels,
}


def sort_rows(rows: Iterable[AnnotatorRow], sort: str) -> list[AnnotatorRow]:
    """Sort by a key of ``SORT_KEYS``, downwards with a minus sign. Unknown values come last, and equal ones by pseudonym."""
    key = _KEYS[sort.removeprefix("-")]
    ordered = sorted(rows, key=lambda row: row.annotator)
    known = [row for row in ordered if key(row) is not None]
    known.sort(key=key, reverse=sort.startswith("-"))
    return known + [row for row in ordered if key(row) is None]


def add_other_studies(study: Study, rows: Sequence[AnnotatorRow], user, token=None) -> None:
    """Add to each row the work of the same person in other studies that the user may see.

    A person is the same only within one pool of annotators. Withdrawn work is left out.
    """
    by_pk = {row.pk: row for row in rows}
    people = Assignment.objects.filter(annotator__in=by_pk).exclude(study=study)
    work = select(Use.RESULTS, people, PEOPLES_ORIGINS)
    found = list(
        filter_allowed(user, work, Action.VIEW, token=token)
        .order_by("study")
        .values_list("annotator_id", "annotator__code", "study_id")
        .annotate(n=Count("pk"))
    )
    studies = Study.objects.in_bulk({study_pk for _, _, study_pk, _ in found})
    flagged = _flagged_by_study(studies)
    for annotator, code, study_pk, n in found:
        other = studies[study_pk]
        pseudonym = annotator_pseudonym(other, code)
        is_flagged = pseudonym in flagged[study_pk] if study_pk in flagged else None
        by_pk[annotator].others.append(OtherStudy(other.title, other.pk, other.code, pseudonym, n, is_flagged))


def _flagged_by_study(study_pks: Iterable[int]) -> dict[int, frozenset[str]]:
    """Return the pseudonyms that the last screening of live answers flags, for the studies that have one."""
    last = AnnotatorScreening.objects.filter(study__in=study_pks, origin="live").order_by().values("study")
    newest = AnnotatorScreening.objects.filter(pk__in=last.annotate(newest=Max("pk")).values("newest"))
    return {pk: frozenset(names) for pk, names in newest.values_list("study_id", "result__flagged")}


# How the annotators' answers to live items agree with one another. Only for studies whose outcomes are shown.


# A question with more different answers than this is about amounts, and has no matrix of errors.
MAX_CATEGORIES = 11
# Keeps annotators with few answers from errors of exactly 0 or 1.
PSEUDO_COUNT = 0.1


def given_labels(responses: "DataFrame") -> "DataFrame":
    """Return the answers of submitted work in live sections that are a value or a choice, with the answer in one column."""
    rows = responses[responses["is_submitted"] & ~responses["is_erased"]]
    rows = with_plain_texts(rows[rows["value"].notna() | (rows["choice"] != "") | rows["chosen_system"].notna()])
    turn_to_one_side(rows)
    rows["given"] = [
        f"{value:.9g}|{choice}|{chosen}"
        for value, choice, chosen in zip(rows["value"], rows["choice"], rows["chosen_system"], strict=True)
    ]
    return rows


def _kind_of_answers(rows: "DataFrame") -> "Series":
    """Return how each row's answer is compared: ``Protocol.comparable_answers``."""
    kinds = {slug: PROTOCOLS[slug].comparable_answers for slug in rows["protocol"].unique() if slug in PROTOCOLS}
    return rows["protocol"].map(kinds).fillna("")


def turn_to_one_side(rows: "DataFrame") -> None:
    """Let all answers of relative points about an item be about the same system, in place.

    Such an answer is about the output shown first, and annotators see the two outputs in either order. The system whose
    name comes first is taken, so a value of 0.8 about the other system becomes 0.2.
    """
    is_relative = (_kind_of_answers(rows) == "points_toward_first") & rows["item"].notna() & rows["system"].notna()
    first = rows[is_relative].groupby("item")["system"].transform("min")
    is_other = is_relative & (rows["system"] != first.reindex(rows.index))
    rows.loc[is_other, "value"] = (1 - rows.loc[is_other, "value"]).round(9)
    rows.loc[is_relative, "system"] = first
    # An item shows one sample of each system, so it alone says which texts were compared.
    rows.loc[is_relative, "sample"] = None


def agreement_by_annotator(labels: "DataFrame") -> dict[str, dict[str, Any]]:
    """Return how often each annotator's answer equals another annotator's answer to the same question about the same text.

    ``share`` of ``n`` pairs of answers. Annotators whose questions no other annotator answered are missing.
    """
    rows = labels[labels["item"].notna()].fillna({"system": "", "sample": -1, "label": ""})
    rows = rows.drop_duplicates(["annotator", "item", "question", "system", "sample", "part"])
    key = ["item", "question", "system", "sample", "part"]
    if rows.empty:
        return {}
    n_others = rows.groupby(key)["annotator"].transform("size") - 1
    n_equal = rows.groupby([*key, "given"])["annotator"].transform("size") - 1
    sums = rows.assign(n_others=n_others, n_equal=n_equal).groupby("annotator")[["n_others", "n_equal"]].sum()
    return {
        str(annotator): {"share": int(equal) / int(others), "n": int(others)}
        for annotator, others, equal in sums.itertuples()
        if others
    }


def name_questions(study: Study) -> dict[tuple[int, str], str]:
    """Return the words for each live question by its section's position and its key: "Rating, with 8 prompts, fluency"."""
    sections = list(study.sections.filter(purpose="live").prefetch_related("questions__x", "questions__y", "arms"))
    read_words_of_sections(sections)
    return {
        (section.position, key): join_words(words_of_section(section).name, label)
        for section in sections
        for key, label in question_labels(section.questions.all()).items()
    }


def evidence_by_annotator(
    labels: "DataFrame", names: Mapping[tuple[int, str], str]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return what models of all answers say about each annotator, and why some questions have none.

    ``names``: of the questions, as ``name_questions`` returns them.
    ``error_rate`` (Dawid and Skene) and ``competence`` are means over the questions, weighted by ``error_n`` answers.
    ``severity`` is in shares of the rating scale, over ``severity_n`` ratings that others gave, too.
    """
    from analysis.stats.annotator_models import competence_model, dawid_skene, severity

    rows = labels[labels["item"].notna()].fillna({"system": "", "sample": -1})
    rows = rows.drop_duplicates(["annotator", "item", "question", "system", "sample", "part"])
    rows = rows.assign(
        subject=[
            f"{item}|{question}|{system}|{sample:.0f}|{part}"
            for item, question, system, sample, part in zip(
                rows["item"], rows["question"], rows["system"], rows["sample"], rows["part"], strict=True
            )
        ]
    )
    sums: dict[str, dict[str, float]] = defaultdict(lambda: {"n": 0, "wrong": 0.0, "intended": 0.0})
    reasons = []
    for (section, question), own in rows[_kind_of_answers(rows) != ""].groupby(["section", "question"]):
        if own["given"].nunique() > MAX_CATEGORIES:
            continue
        columns = (own["subject"].to_list(), own["annotator"].to_list(), own["given"].to_list())
        errors = dawid_skene(*columns, pseudo_count=PSEUDO_COUNT)
        competence = competence_model(*columns, pseudo_count=PSEUDO_COUNT)
        if errors.status != "ok" or competence.status != "ok":
            reasons.append(f"{names[cast(int, section), cast(str, question)]}: {errors.reason or competence.reason}.")
            continue
        for one, other in zip(errors.annotators, competence.annotators, strict=True):
            total = sums[one.annotator]
            total["n"] += one.n
            total["wrong"] += one.n * (one.error_rate or 0.0)
            total["intended"] += other.n * (other.competence or 0.0)
    found: dict[str, dict[str, Any]] = {
        annotator: {
            "error_rate": total["wrong"] / total["n"],
            "competence": total["intended"] / total["n"],
            "error_n": int(total["n"]),
        }
        for annotator, total in sums.items()
    }
    rated = rows[(_kind_of_answers(rows) == "points") & rows["value"].notna()]
    for shift in severity(rated["subject"].to_list(), rated["annotator"].to_list(), rated["value"].to_numpy(float)):
        interval = shift.interval
        found.setdefault(shift.annotator, {}).update(
            severity=shift.estimate,
            severity_low=interval.low if interval else None,
            severity_high=interval.high if interval else None,
            severity_n=shift.n,
        )
    return found, reasons


# Barring from the page of annotators: by the job, for those whom the declared rules flag, and by hand on a page of
# its own.


# Imported answers come from people who cannot take another batch here.
BARRED_ORIGINS = (Assignment.Origin.LIVE, Assignment.Origin.ROBOT)
SCREENED_ORIGINS = (*BARRED_ORIGINS, Assignment.Origin.IMPORTED)
# The column of a screening's row that says whether the rule flags the annotator.
FLAG_OF_RULE = {"test_question_model": "is_flagged", "failed_tests": "is_failed"}


def annotators_by_pseudonym(
    study: Study, use: Use, origins: Iterable[str] = SCREENED_ORIGINS, *, of_series: bool = False
) -> dict[str, int]:
    """Return the ids of the annotators whose assignments count for a use, by their pseudonym in this study.

    ``of_series``: also those who only took part in other rounds of the study's board.
    """
    studies = studies_judged_together(study) if of_series else Study.objects.filter(pk=study.pk)
    people = select(use, Assignment.objects.filter(study__in=studies.values("pk"), batch__isnull=False), origins)
    codes = people.order_by().values_list("annotator__code", "annotator_id").distinct()
    return {annotator_pseudonym(study, code): pk for code, pk in codes}


def bar_annotators_flagged_by(screening: AnnotatorScreening) -> list[Barring]:
    """Bar whom the declared rules flag in this screening, if the study declares that it bars them."""
    study = screening.study
    if not study.bars_flagged_annotators or screening.origin not in BARRED_ORIGINS:
        return []
    declared = study.exclusion_rules.filter(rule__in=TEST_QUESTION_RULES).values_list("rule", flat=True)
    columns = [FLAG_OF_RULE[rule] for rule in declared]
    pks = annotators_by_pseudonym(study, Use.ROWS, [screening.origin], of_series=True)
    flagged = {
        pks[row["annotator"]]: row["assignments"]
        for row in screening.result["people"] or screening.result["rows"]
        if row["annotator"] in pks and any(row[column] for column in columns)
    }
    return bar_flagged_annotators(study, flagged, screening.pk)


def get_annotator_or_404(study: Study, pseudonym: str) -> Annotator:
    pk = annotators_by_pseudonym(study, Use.RECORD).get(pseudonym)
    if pk is None:
        raise Http404("The study has no such annotator.")
    return Annotator.objects.get(pk=pk)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def barring_page(request, pk, annotator) -> HttpResponse:
    """Show an annotator's barrings, and bar them or lift the barring with a reason."""
    study = get_study(request.user, Action.VIEW, pk=pk)
    person = get_annotator_or_404(study, annotator)
    barrings = list(
        barrings_of(study)
        .filter(annotator=person)
        .select_related("by", "lifted_by", "appeal__assignment", "appeal__answered_by")
        .order_by("-pk")
    )
    active = next((row for row in barrings if row.lifted_at is None), None)
    error = ""
    if request.method == "POST":
        try:
            if "lift" not in request.POST:
                bar_annotator(study, person, request.POST.get("reason", ""), request.user)
                messages.success(request, "Barred. A batch that the annotator has begun can still be finished.")
            elif active is None:
                raise ActionRefused("This barring is already lifted. You do not need to do anything.")
            else:
                lift_barring(active, request.POST.get("reason", ""), request.user)
                messages.success(request, "Lifted. The annotator can take further batches.")
            return redirect(reverse("study_annotator_barring", args=[study.pk, annotator]))
        except ActionRefused as refused:
            error = str(refused)
    context = {
        "study": study,
        "annotator": annotator,
        "barrings": barrings,
        "active": active,
        "error": error,
        "reason": request.POST.get("reason", "")[:20_000],
        "max_length": MAX_REASON_LENGTH,
        "may_decide": is_allowed(request.user, Action.MANAGE_ASSIGNMENTS, study),
    }
    return render_study_page(request, "report/barring.html", study, context, 422 if error else 200)


# Screen the annotators of a study: fit the model to the answers stored now, and store the result.
#
# Nothing here runs in an annotator's request. The rules screen again from the answers when an analysis runs, so a
# stored screening excludes no annotator.


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
        answers = responses_frame(study, [origin], ["live"]).rows
        labels, names = given_labels(rows_where(answers, is_counted(answers))), name_questions(study)
        model, simple = declared_settings(study)
        shows_agreement = not are_outcomes_hidden(study, [origin])
    counts = count_by_annotator(test_answers)
    screening = fit_and_screen(counts, model)
    by_pseudonym = {row.annotator: place for place, row in enumerate(counts)}
    n_labels = labels["annotator"].value_counts().to_dict()
    agreement = agreement_by_annotator(labels) if shows_agreement else {}
    evidence, no_evidence = evidence_by_annotator(labels, names) if shows_agreement else ({}, [])
    total = len(labels)
    pooled = pooled_studies(test_answers)
    rows = []

    def judged(annotator: str) -> dict[str, Any]:
        place = by_pseudonym.get(annotator)
        tested = AnnotatorTestCounts(annotator, (0, 0), (0, 0), 0) if place is None else counts[place]
        is_modelled = place is not None and screening.status == "ok"
        return {
            "annotator": annotator,
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
        }

    for annotator, own in assignments.groupby("annotator", sort=True):
        seconds = float(own["seconds"].sum(min_count=1))
        rows.append(
            {
                **judged(str(annotator)),
                "assignments": len(own),
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
            "sentences": [*model_sentences(screening), *pooled_sentences(pooled)] if counts else [],
            "boundaries": boundary_rows(screening, counts) if counts else [],
            "no_evidence": no_evidence,
            "flagged": [row["annotator"] for row in rows if row["is_flagged"]],
            "rows": rows,
            "pooled": pooled,
            "people": [
                judged(str(annotator)) | {"assignments": own["assignment"].nunique(), "rounds": own["study"].nunique()}
                for annotator, own in test_answers[test_answers["is_submitted"]].groupby("annotator", sort=True)
            ]
            if pooled
            else [],
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
