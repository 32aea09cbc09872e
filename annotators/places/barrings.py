"""Barrings: who gets no further batch of a study. The only writer of Barring.

A barring takes effect when the annotator asks for another batch: a batch that they have begun is always finished and paid
as promised. It applies to the study and to its exclusion group, and in a round of a board to all rounds. Nothing is sent
to a panel.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import reduce
from operator import or_

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from annotators.models import Annotator, Assignment, Barring
from studies.access import Action, check_permission_or_404
from studies.models import Study, audit
from studies.services.events import record_attention
from studies.services.lifecycle import ActionRefused
from studies.services.series import is_in_series, studies_judged_together
from studies.stimuli.texts import TextRefused, clean_text, is_blank

MAX_REASON_LENGTH = 2000


def is_kept_out_by_other_study(study: Study, annotator: Annotator) -> bool:
    """Return whether the annotator took part in the study from which this one was cloned, or in its exclusion group."""
    others = []
    if study.clone_of_id and study.keeps_origin_out:
        others.append(Q(study=study.clone_of_id))
    if study.exclusion_group:
        others.append(Q(study__exclusion_group=study.exclusion_group))
    if not others:
        return False
    elsewhere = (
        Assignment.objects.filter(annotator=annotator).exclude(study=study).exclude(origin=Assignment.Origin.TEST)
    )
    return elsewhere.exclude(released_reason=Assignment.Released.FULL).filter(reduce(or_, others)).exists()


def _of_study_or_board(study: Study) -> Q:
    return Q(study=study.pk) | Q(scope=Barring.Scope.BOARD, study__in=studies_judged_together(study).values("pk"))


def barrings_of(study: Study) -> QuerySet[Barring]:
    """Return the barrings of a study and of its board, lifted ones too. Its members can lift them."""
    return Barring.objects.filter(_of_study_or_board(study))


def applicable_barrings(study: Study) -> QuerySet[Barring]:
    """Return the barrings that keep people from the study, lifted ones too: also those of its exclusion group."""
    applies = _of_study_or_board(study)
    if study.exclusion_group:
        applies |= Q(study__exclusion_group=study.exclusion_group)
    return Barring.objects.filter(applies)


def active_barrings(study: Study) -> QuerySet[Barring]:
    return applicable_barrings(study).filter(lifted_at=None)


def lifted_at_by_annotator(study: Study, annotators: Iterable[int] | None = None) -> dict[int, datetime | None]:
    """Return when the newest barring of each annotator was lifted, of those in the studies judged together with this one.

    None: it is not lifted. Annotators who were never barred are missing.
    """
    rows = Barring.objects.filter(study__in=studies_judged_together(study).values("pk"))
    rows = rows if annotators is None else rows.filter(annotator__in=annotators)
    return dict(rows.order_by("pk").values_list("annotator", "lifted_at"))


def _scope(study: Study) -> Barring.Scope:
    return Barring.Scope.BOARD if is_in_series(study) else Barring.Scope.STUDY


def is_barred(study: Study, annotator_id: int) -> bool:
    return active_barrings(study).filter(annotator=annotator_id).exists()


def bar_annotator(study: Study, annotator: Annotator, reason: str, by) -> Barring:
    """Give the annotator no further batch, by a researcher's decision. Raises ActionRefused."""
    check_permission_or_404(by, Action.MANAGE_ASSIGNMENTS, study)
    reason = _clean_reason(reason)
    with transaction.atomic():
        _lock_annotators([annotator.pk])
        code = _newest_codes(study, [annotator.pk]).get(annotator.pk)
        if code is None:
            raise ActionRefused("This person has no batch of this study. Choose an annotator who has taken part.")
        if barrings_of(study).filter(annotator=annotator, lifted_at=None).exists():
            raise ActionRefused("This annotator is already barred. You do not need to do anything.")
        barring = Barring.objects.create(
            study=study, annotator=annotator, ground=Barring.Ground.HAND, scope=_scope(study), reason=reason, by=by
        )
        audit.record("bar annotator", study=study, by=by, assignment_code=code, reason=reason)
    return barring


def bar_flagged_annotators(study: Study, n_assignments: Mapping[int, int], screening: int) -> list[Barring]:
    """Bar the annotators whom a screening flags. Idempotent.

    ``n_assignments``: the submitted assignments that the screening read, by annotator. An annotator whose barring was
    lifted is barred again only if the screening read work that they submitted since.
    """
    with transaction.atomic():
        _lock_annotators(n_assignments)
        lifted_at = lifted_at_by_annotator(study, n_assignments)
        scope = _scope(study)
        # On a board, a screening does not read what they answered before.
        judged_again = lifted_at if scope == Barring.Scope.STUDY else {}
        work = Assignment.objects.filter(study=study, annotator__in=judged_again, submitted_at__isnull=False)
        n_before = dict.fromkeys(lifted_at, 0)
        for annotator, submitted_at in work.values_list("annotator", "submitted_at"):
            lifted = lifted_at[annotator]
            n_before[annotator] += lifted is not None and submitted_at <= lifted
        due = [
            pk
            for pk, n in sorted(n_assignments.items())
            if pk not in lifted_at or (lifted_at[pk] is not None and n > n_before[pk])
        ]
        barrings = Barring.objects.bulk_create(
            Barring(study=study, annotator_id=pk, ground=Barring.Ground.RULE, scope=scope, screening=screening)
            for pk in due
        )
        codes = _newest_codes(study, due)
        events = [{"assignment_code": codes.get(pk, ""), "screening": screening} for pk in due]
        audit.bulk_record("bar annotator", events, by=None, study=study)
        if due:
            record_attention(study, "annotators are barred", screening, people=len(due))
    return barrings


def lift_barring(barring: Barring, reason: str, by) -> None:
    """Let the annotator have further batches again. Raises ActionRefused."""
    check_permission_or_404(by, Action.MANAGE_ASSIGNMENTS, barring.study)
    reason = _clean_reason(reason)
    with transaction.atomic():
        _lock_annotators([barring.annotator_id])
        rows = Barring.objects.filter(pk=barring.pk, lifted_at=None)
        if not rows.update(lifted_at=Now(), lifted_by=by, lift_reason=reason):
            raise ActionRefused("This barring is already lifted. You do not need to do anything.")
        code = _newest_codes(barring.study, [barring.annotator_id]).get(barring.annotator_id, "")
        audit.record("lift barring", study=barring.study, by=by, assignment_code=code, reason=reason)


def _clean_reason(text: str) -> str:
    try:
        reason = clean_text(text).strip()
    except TextRefused as refused:
        raise ActionRefused(str(refused)) from None
    if is_blank(reason):
        raise ActionRefused("The reason is empty. Write why, for your colleagues.")
    if len(reason) > MAX_REASON_LENGTH:
        raise ActionRefused(f"The reason is too long. Use at most {MAX_REASON_LENGTH} characters.")
    return reason


def _lock_annotators(pks) -> None:
    """Wait for claims of these people, and let later claims wait."""
    list(Annotator.objects.select_for_update(no_key=True, of=("self",)).filter(pk__in=list(pks)).order_by("pk"))


def _newest_codes(study: Study, pks) -> dict[int, str]:
    """Return the code of each annotator's newest assignment with a batch, for the log."""
    rows = Assignment.objects.filter(study=study, annotator__in=pks, batch__isnull=False)
    return dict(rows.exclude(origin=Assignment.Origin.TEST).order_by("pk").values_list("annotator", "code"))
