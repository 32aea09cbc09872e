"""Barring from the page of annotators: by the job, for those whom the declared rules flag, and by hand on a page of its own."""

from collections.abc import Iterable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from analysis.data.flat_rows.selection import annotator_pseudonym
from analysis.models import AnnotatorScreening
from annotators.counting import Use, select
from annotators.models import Annotator, Assignment, Barring
from annotators.places.barrings import MAX_REASON_LENGTH, bar_annotator, bar_flagged_annotators, lift_barring
from studies.access import Action, get_study, is_allowed
from studies.models import Study
from studies.models.rules import TEST_QUESTION_RULES
from studies.services.lifecycle import ActionRefused

# Imported answers come from people who cannot take another batch here.
BARRED_ORIGINS = (Assignment.Origin.LIVE, Assignment.Origin.ROBOT)
SCREENED_ORIGINS = (*BARRED_ORIGINS, Assignment.Origin.IMPORTED)
# The column of a screening's row that says whether the rule flags the annotator.
FLAG_OF_RULE = {"test_question_model": "is_flagged", "failed_tests": "is_failed"}


def annotators_by_pseudonym(study: Study, use: Use, origins: Iterable[str] = SCREENED_ORIGINS) -> dict[str, int]:
    """Return the ids of the annotators whose assignments count for a use, by pseudonym."""
    people = select(use, Assignment.objects.filter(study=study, batch__isnull=False), origins)
    codes = people.order_by().values_list("annotator__code", "annotator_id").distinct()
    return {annotator_pseudonym(study, code): pk for code, pk in codes}


def bar_annotators_flagged_by(screening: AnnotatorScreening) -> list[Barring]:
    """Bar whom the declared rules flag in this screening, if the study declares that it bars them."""
    study = screening.study
    if not study.bars_flagged_annotators or screening.origin not in BARRED_ORIGINS:
        return []
    declared = study.exclusion_rules.filter(rule__in=TEST_QUESTION_RULES).values_list("rule", flat=True)
    columns = [FLAG_OF_RULE[rule] for rule in declared]
    pks = annotators_by_pseudonym(study, Use.ROWS, [screening.origin])
    flagged = {
        pks[row["annotator"]]: row["assignments"]
        for row in screening.result["rows"]
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
def barring_page(request, code, annotator) -> HttpResponse:
    """Show an annotator's barrings, and bar them or lift the barring with a reason."""
    study = get_study(request.user, Action.VIEW, code=code)
    person = get_annotator_or_404(study, annotator)
    barrings = list(
        Barring.objects.filter(study=study, annotator=person)
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
            return redirect(reverse("study_annotator_barring", args=[study.code, annotator]))
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
    return render(request, "report/barring.html", context, status=422 if error else 200)
