"""Claim, release and revive places.

Only this module, ``batch_plan`` and ``annotators.imports`` create Assignments. All code takes locks in the same
order: annotator, the link's plan, batch, assignment. Code that holds an assignment and needs its batch must end the transaction and
start again. ``FOR NO KEY UPDATE`` does not block other requests that insert foreign keys.
"""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from django.core.cache import cache
from django.db import connection, transaction
from django.db.models import Count, F, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Now
from django.utils import timezone

from annotators.counting import Use, select
from annotators.fast_path import (
    CompiledSelect,
    CompiledUpdate,
    columns_in_model_order,
    insert_and_read_back,
    insert_missing,
    instance_from_row,
)
from annotators.models import Annotator, Assignment, QualificationAttempt, Recruitment, new_code
from annotators.models.identity import external_ids_without_person, keyed_hash, store_person_id
from studies.design.wording import frozen_wording
from studies.models import Batch, Design, Study

from .barrings import is_barred, is_kept_out_by_other_study
from .places import (
    NowPlusSeconds,
    can_places_become_free_or_be_added,
    channel_min_reserved_seconds,
    claimable_batches,
    expired_place_condition,
    extended_deadline_expression,
    is_for_one_annotator,
    open_batches,
)
from .steps import lock_and_read_steps

# Who skips the test before the work, or may take part, because they passed it lately in a study with the same qualification.


def find_valid_pass(study: Study, annotator: Annotator, design: Design | None) -> QualificationAttempt | None:
    """Return the newest passed attempt that this design accepts. No query if the design has no qualification."""
    test = frozen_wording(design.pk).test if design else None
    if test is None or test.valid_days is None:
        return None
    passed = QualificationAttempt.objects.filter(
        assignment__annotator=annotator,
        assignment__withdrawn_at=None,
        section__qualification__sections__study=study,
        is_passed=True,
        at__gt=timezone.now() - timedelta(days=test.valid_days),
    )
    return passed.order_by("-at").first()


def has_required_pass(study: Study, annotator_id: int, at: datetime | None = None) -> bool:
    """Return whether the annotator had passed the test that the study asks for, by now or at a moment. No query if it asks for none."""
    if not study.required_qualification:
        return True
    at = at or timezone.now()
    passed = QualificationAttempt.objects.filter(
        assignment__annotator=annotator_id,
        assignment__withdrawn_at=None,
        section__qualification__name=study.required_qualification,
        section__qualification__owner__owned_studies=study,
        is_passed=True,
        at__lte=at,
    ).values_list("at", "section__qualification__valid_days")
    return any(passed_at > at - timedelta(days=valid_days) for passed_at, valid_days in passed)


def count_qualification_results(study: Study) -> dict[str, int | str | None] | None:
    """Return how many annotators passed, failed and skipped the test of a study, or None without a test.

    People who withdrew are not counted.
    """
    test = study.sections.filter(pass_mark__isnull=False).select_related("qualification").first()
    if test is None:
        return None
    attempts = select(
        Use.ROWS, QualificationAttempt.objects.filter(section=test), [Assignment.Origin.LIVE], path="assignment"
    )
    counts = attempts.aggregate(
        passed=Count("assignment__annotator", filter=Q(is_passed=True), distinct=True),
        failed=Count("assignment__annotator", filter=Q(is_passed=False, number=2), distinct=True),
    )
    skipped = select(Use.ROWS, study.assignments.filter(qualified_by__isnull=False), [Assignment.Origin.LIVE])
    return {
        "section": test.position,
        "pass_mark": test.pass_mark,
        "qualification": test.qualification.name if test.qualification else None,
        **counts,
        "skipped": skipped.values("annotator").distinct().count(),
    }


logger = logging.getLogger("heval.annotators")

Released = Assignment.Released
# The outcomes of a claim, besides "claimed". BARRED: the person left, or the study could not include them. NO_FURTHER: a
# researcher or a rule decided that they get no further batch.
WAIT, FULL, DONE, BARRED, NO_FURTHER = "wait", "full", "done", "barred", "no_further"
CLOSED, PAUSED = "closed", "paused"
# Like FULL, but the person lacks the required qualification. They can come again with it.
UNQUALIFIED = "unqualified"
REVIVABLE_REASONS = (Released.EXPIRED, Released.RETURNED)
FINAL_RELEASE_REASONS = (Released.WITHDRAWN, Released.SCREENED_OUT, Released.FAILED_CHECKS, Released.FAULT)
# More places than both limits do not expire within one minute, unless a clock was changed or everybody left.
MASS_EXPIRY_PLACES, MASS_EXPIRY_SHARE = 10, 0.2
CLOCK_RECHECK_SECONDS, CLOCK_DOUBT_SECONDS = 300, 900  # seconds
CLOCK_DOUBT_CACHE_KEY = "heval:places:first-look"


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The result of a claim. ``outcome`` is "claimed" or one of the constants above. FULL and UNQUALIFIED also have an assignment."""

    outcome: str
    assignment: Assignment | None = None


def is_place_revivable(assignment: Assignment) -> bool:
    return bool(
        assignment.batch_id
        and assignment.released_reason in REVIVABLE_REASONS
        and not assignment.submitted_at
        and not assignment.withdrawn_at
    )


def claim_batch(
    study: Study,
    annotator: Annotator,
    recruitment: Recruitment | None = None,
    arms=(),
    origin: str = Assignment.Origin.LIVE,
    external_ids=None,
    trust: str = Assignment.Trust.CLAIMED,
    is_consented: bool = False,
    shares_preferences: bool = False,
    code: str = "",
    design: Design | None = None,
    is_in_steps: bool = False,
    device: str = "",
) -> ClaimResult:
    """Give the annotator a batch, or return their live assignment. Create the annotator if they are new.

    Never FULL while a place is free or may become free for them.

    ``external_ids``: the ids from the address. The person's own id is stored encrypted, and only together with a new
    assignment: nothing is stored about people who get no assignment. ``shares_preferences``: the answer to this question, which
    holds for the person's later batches, too. ``code``: of a new assignment. ``design``: the newest, if it was read with the
    study just now. Then a person whom the site has never met needs no further look at the study.
    """
    details = {
        "recruitment": recruitment,
        "origin": origin,
        "external_ids": external_ids,
        "trust": trust,
        "is_consented": is_consented,
        "shares_preferences": shares_preferences,
        "code": code,
        "device": device,
    }
    is_known_alone = annotator._state.adding and design is not None and not is_in_steps
    asks_for_pass = bool(study.required_qualification) and origin == Assignment.Origin.LIVE
    may_take_at_once = is_known_alone and not asks_for_pass and not is_for_one_annotator(study)
    if may_take_at_once and (assignment := _claim_for_new_annotator(study, design, annotator, arms, details)):
        return ClaimResult("claimed", assignment)
    with transaction.atomic():
        is_new = _lock_or_create_annotator(annotator)
        study, design = _read_study_and_newest_design(study.pk)
        history = [] if is_new else _past_assignments(study, annotator)
        live = next((row for row in history if not row.released_at and not row.submitted_at), None)
        if live is not None:
            return ClaimResult("claimed", update_external_ids(live, external_ids))
        if study.state != Study.State.LAUNCHED:
            return ClaimResult(PAUSED if study.state == Study.State.PAUSED else CLOSED)
        if any(row.withdrawn_at or row.released_reason in FINAL_RELEASE_REASONS for row in history):
            return ClaimResult(BARRED)
        if sum(bool(row.submitted_at) for row in history) >= study.batches_per_annotator:
            return ClaimResult(DONE, next(row for row in history if row.submitted_at))
        own = {row.batch_id: row for row in history if is_place_revivable(row)}
        has_begun = any(row.batch_id for row in history)
        # A batch that was given back is not a further one: it may be finished.
        is_kept_out = not is_new and is_barred(study, annotator.pk)
        if is_kept_out and not own:
            return ClaimResult(NO_FURTHER)
        # A person who only found no place here has not taken part here.
        if not is_new and not has_begun and is_kept_out_by_other_study(study, annotator):
            return ClaimResult(DONE)
        # Who has begun was admitted: a pass that ends later does not end the work.
        if asks_for_pass and not has_begun and (is_new or not has_required_pass(study, annotator.pk)):
            turned_away = _record_turned_away(
                history, study, design, annotator, recruitment, origin, external_ids, trust
            )
            return ClaimResult(UNQUALIFIED, turned_away)
        steps = lock_and_read_steps(recruitment) if is_in_steps and recruitment and not has_begun else None
        if steps and not steps.free:
            if steps.at_work:
                return ClaimResult(WAIT)
            turned_away = _record_turned_away(
                history, study, design, annotator, recruitment, origin, external_ids, trust
            )
            return ClaimResult(FULL, turned_away)
        is_newcomer = is_for_one_annotator(study) and not any(row.batch_id and not row.released_at for row in history)
        may_take = not has_begun and not is_newcomer and not (may_take_at_once and is_new)
        if may_take and (batch_pk := _take_first_open_batch(study, arms)):
            return ClaimResult("claimed", _create_assignment(study, design, annotator, batch_pk, history, **details))
        first_arm = next((row.batch.arm_id for row in history if row.batch_id), None)
        choose = claimable_batches(study, annotator, [first_arm] if first_arm else list(arms), own)
        if is_kept_out:
            choose = choose.filter(pk__in=[pk for pk in own if pk])
        # If one annotator does all batches, the holder of the first batch holds the study, so newcomers lock the first
        # batch.
        batch = _lock_first_open_batch(choose.filter(number=0) if is_newcomer else choose)
        if batch is not None and batch.pk in own:
            if not _revive(batch, own[batch.pk].pk):
                return ClaimResult(WAIT)
            revived = Assignment.objects.select_related("annotator").get(pk=own[batch.pk].pk)
            return ClaimResult("claimed", update_external_ids(revived, external_ids))
        if batch is not None:
            Batch.objects.filter(pk=batch.pk).update(claimed=F("claimed") + 1)
            return ClaimResult("claimed", _create_assignment(study, design, annotator, batch.pk, history, **details))
        if is_kept_out:
            return ClaimResult(NO_FURTHER)
        if can_places_become_free_or_be_added(study) or (is_newcomer and choose.exists()):
            return ClaimResult(WAIT)
        # A person who once had a place was not turned away: their own assignment shows how it ended.
        last_begun = next((row for row in reversed(history) if row.batch_id), None)
        return ClaimResult(
            FULL,
            last_begun
            or _record_turned_away(history, study, design, annotator, recruitment, origin, external_ids, trust),
        )


def _claim_for_new_annotator(
    study: Study, design: Design | None, annotator: Annotator, arms, details
) -> Assignment | None:
    """Create the annotator with a place of the first open batch that no other request holds.

    Change nothing and return None if the annotator exists meanwhile, or if there is no such batch. The end of the
    transaction then gives back the locks of batches that became full meanwhile.
    """
    with transaction.atomic():
        pk = insert_missing(Annotator, NEW_ANNOTATOR_COLUMNS, annotator)
        batch_pk = pk and _take_open_batch_of_arms(len(arms)).key_of_changed_row(study.pk, *arms)
        if batch_pk is None:
            transaction.set_rollback(True)
            return None
        annotator.pk, annotator._state.adding = pk, False
        return _create_assignment(study, design, annotator, batch_pk, [], **details)


def record_turned_away_annotator(
    study: Study,
    annotator: Annotator,
    recruitment: Recruitment,
    external_ids=None,
    trust: str = Assignment.Trust.CLAIMED,
) -> Assignment:
    """Record that a waiting person gave up. Idempotent per link.

    If the person has got a place meanwhile, they keep it, and its assignment is returned.
    """
    with transaction.atomic():
        _lock_or_create_annotator(annotator)
        history = _past_assignments(study, annotator)
        placed_assignments = [row for row in history if row.batch_id]
        if placed_assignments:
            return placed_assignments[-1]
        _, design = _read_study_and_newest_design(study.pk)
        return _record_turned_away(
            history, study, design, annotator, recruitment, Assignment.Origin.LIVE, external_ids, trust
        )


NEW_ANNOTATOR_COLUMNS = ("code", "pool", "external_id")
_lock_annotator = CompiledSelect(
    lambda pk: Annotator.objects.select_for_update(no_key=True, of=("self",)).filter(pk=pk).values_list("pk"), int
)


def _lock_or_create_annotator(annotator: Annotator) -> bool:
    """Lock the annotator until the transaction ends. Return whether it has created them: then they have no past anywhere.

    A second request of the same new person waits at the insertion.
    """
    if annotator._state.adding:
        pk = insert_missing(Annotator, NEW_ANNOTATOR_COLUMNS, annotator)
        if pk is not None:
            annotator.pk, annotator._state.adding = pk, False
            return True
        found = Annotator.objects.get(pool=annotator.pool, external_id=annotator.external_id)
        annotator.pk, annotator.code, annotator._state = found.pk, found.code, found._state
    if not _lock_annotator(annotator.pk):
        raise Annotator.DoesNotExist
    return False


CLAIM_COLUMNS = columns_in_model_order(  # of a study
    Study,
    "id",
    "state",
    "batches_per_annotator",
    "exclusion_group",
    "clone_of_id",
    "keeps_origin_out",
    "required_qualification",
    "open_to",
    "start_window_seconds",
)


def newest_design_column(name: str, study: str = "pk") -> Subquery:
    return Subquery(Design.objects.filter(study=OuterRef(study)).order_by("-version").values(name)[:1])


_select_study_and_newest_design = CompiledSelect(
    lambda pk: Study.objects.filter(pk=pk).values_list(
        *CLAIM_COLUMNS, newest_design_column("pk"), newest_design_column("version")
    ),
    int,
)


def _read_study_and_newest_design(study_pk: int) -> tuple[Study, Design | None]:
    """Return both as they are now, with the columns that a claim needs. Other columns are loaded on access."""
    (row,) = _select_study_and_newest_design(study_pk)
    *columns, design_pk, version = row
    return instance_from_row(Study, CLAIM_COLUMNS, columns), design_from_row(design_pk, version)


def design_from_row(pk: int | None, version: int | None) -> Design | None:
    return instance_from_row(Design, ("id", "version"), (pk, version)) if pk else None


_has_past = CompiledSelect(
    lambda study, annotator: Assignment.objects.filter(study=study, annotator=annotator).values_list("pk")[:1], int, int
)


def _past_assignments(study: Study, annotator: Annotator) -> list[Assignment]:
    if not _has_past(study.pk, annotator.pk):
        return []
    assignments = Assignment.objects.filter(study=study, annotator=annotator).exclude(origin="test")
    return list(assignments.select_related("batch", "annotator").order_by("pk"))


@lru_cache(maxsize=64)
def _take_open_batch_of_arms(n_arms: int) -> CompiledUpdate:
    def build(study, *arms):
        batches = open_batches(study, arms).filter(study__state=Study.State.LAUNCHED)
        batches = batches.select_for_update(of=("self",), no_key=True, skip_locked=True)
        return Batch.objects.filter(pk=Subquery(batches.values("pk")[:1])), {"claimed": F("claimed") + 1}

    return CompiledUpdate(build, int, *[int] * n_arms)


def _take_first_open_batch(study: Study, arms) -> int | None:
    """Take a place of the first open batch that no other request holds, for a person who was given nothing here."""
    take = _take_open_batch_of_arms(len(arms)).key_of_changed_row
    if not connection.features.has_select_for_update:
        return take(study.pk, *arms)
    point = transaction.savepoint()  # it ends with the transaction, which saves a statement
    batch_pk = take(study.pk, *arms)
    if batch_pk is None:
        transaction.savepoint_rollback(point)
    return batch_pk


def _lock_first_open_batch(choose: QuerySet[Batch]) -> Batch | None:
    """Return the first open batch, locked. Skip locked batches first; return None only after a wait for them.

    A transaction locks at most one batch. PostgreSQL keeps the lock of a row that fails the re-check after a wait. A
    query that waits and goes on to the next row would hold both locks, and two such queries in different order would
    deadlock.
    """
    while True:
        batch = _lock_first_batch(choose, skip_locked=True)
        if batch is not None:
            return batch
        busy = choose.values_list("pk", flat=True).first()
        if busy is None:
            return None
        # Another request holds it. After that request, this batch has a free place, or the loop tries the others again.
        batch = _lock_first_batch(choose.filter(pk=busy))
        if batch is not None:
            return batch


def _lock_first_batch(choose: QuerySet[Batch], **lock_options) -> Batch | None:
    point = transaction.savepoint()
    batch = choose.select_for_update(of=("self",), no_key=True, **lock_options).first()
    if batch is None:
        transaction.savepoint_rollback(point)
    return batch


def _create_assignment(
    study: Study,
    design: Design | None,
    annotator: Annotator,
    batch_pk: int,
    history: list[Assignment],
    *,
    recruitment: Recruitment | None,
    origin: str,
    external_ids,
    trust: str,
    is_consented: bool,
    shares_preferences: bool,
    code: str,
    device: str,
) -> Assignment:
    """``shares_preferences``: as the person answered now; an earlier yes holds, too."""
    ordinals = {row.ordinal for row in history if not row.released_at}
    assignment = Assignment(
        code=code if code and code not in {row.code for row in history} else new_code(),
        study=study,
        batch_id=batch_pk,
        annotator=annotator,
        recruitment=recruitment,
        origin=origin,
        design=design,
        external_ids=_store_and_mask_ids(annotator, external_ids),
        trust=trust,
        ordinal=_lowest_free(ordinals),
        reserved_until=NowPlusSeconds(max(study.start_window_seconds, channel_min_reserved_seconds(recruitment))),
        consent_version=design.version if design and is_consented else None,
        consented_at=Now() if is_consented else None,
        shares_preferences=is_consented and (shares_preferences or any(row.shares_preferences for row in history)),
        device=device,
        qualified_by=find_valid_pass(study, annotator, design),
    )
    insert_and_read_back(assignment, "claimed_at", "reserved_until", "consented_at")
    return assignment


def _record_turned_away(history, study, design, annotator, recruitment, origin, external_ids, trust) -> Assignment:
    """Return the person's row for "no place" by this link; create it if needed.

    Each link has its own row, panel and pay.
    """
    for assignment in history:
        if assignment.released_reason == Released.FULL and assignment.recruitment_id == (
            recruitment and recruitment.pk
        ):
            return update_external_ids(assignment, external_ids)
    return Assignment.objects.create(
        study=study,
        annotator=annotator,
        recruitment=recruitment,
        origin=origin,
        external_ids=_store_and_mask_ids(annotator, external_ids),
        trust=trust,
        design=design,
        released_at=Now(),
        released_reason=Released.FULL,
    )


def update_external_ids(assignment: Assignment, external_ids) -> Assignment:
    """Store new panel ids for the same work.

    A person who returns a panel's task and takes it again comes with new ids.
    """
    stored_ids = _store_and_mask_ids(assignment.annotator, external_ids)
    if external_ids and stored_ids != assignment.external_ids:
        Assignment.objects.filter(pk=assignment.pk).update(external_ids=stored_ids)
        assignment.external_ids = stored_ids
    return assignment


def _store_and_mask_ids(annotator: Annotator, external_ids) -> dict[str, str]:
    """Encrypt and store the person's own id, and return the other ids, which an assignment may hold."""
    ids = external_ids or {}
    store_person_id(annotator, ids.get("person", ""))
    return external_ids_without_person(annotator, ids)


def _lowest_free(ordinals: set[int]) -> int:
    return next(n for n in range(1, len(ordinals) + 2) if n not in ordinals)


@transaction.atomic
def release_assignment(assignment_pk: int, reason: str, only_if_expired: bool = False) -> bool:
    """Release the place.

    Return False if it was already released or submitted or, with ``only_if_expired``, has not expired.
    """
    batch_id = Assignment.objects.values_list("batch_id", flat=True).get(pk=assignment_pk)
    if batch_id:
        Batch.objects.select_for_update(no_key=True, of=("self",)).get(pk=batch_id)
    live = Assignment.objects.filter(pk=assignment_pk, released_at=None, submitted_at=None)
    if only_if_expired:
        live = live.filter(expired_place_condition())
    if not live.update(released_at=Now(), released_reason=reason):
        return False
    if batch_id:
        Batch.objects.filter(pk=batch_id, claimed__gt=0).update(claimed=F("claimed") - 1)
    return True


def has_failed_test(assignment: Assignment) -> bool:
    """Return whether the second attempt at the test before the work failed, too."""
    return assignment.qualification_attempts.filter(number=2, is_passed=False).exists()


def has_ended_by_wrong_answers(assignment: Assignment) -> bool:
    """Return whether wrong answers to attention checks or to a test ended the work, also if an objection was upheld since."""
    if assignment.released_reason == Released.SCREENED_OUT:
        return has_failed_test(assignment)
    return assignment.released_reason in (Released.FAILED_CHECKS, Released.FAULT)


def change_failed_checks_to_fault(assignment_pk: int) -> str:
    """Change how the assignment ended, because its answers were not wrong by the annotator's fault. The place stays free.

    Return how it had ended before, or "" if nothing was changed.
    """
    failed = Assignment.objects.filter(
        pk=assignment_pk, released_reason__in=(Released.FAILED_CHECKS, Released.SCREENED_OUT)
    )
    before = failed.values_list("released_reason", flat=True).first() or ""
    return before if failed.update(released_reason=Released.FAULT) else ""


@transaction.atomic
def revive_assignment(assignment_pk: int) -> bool:
    """Take the place again. Return False if the place is no longer free or the person holds another one."""
    annotator_id, batch_id = Assignment.objects.values_list("annotator_id", "batch_id").get(pk=assignment_pk)
    Annotator.objects.select_for_update(no_key=True, of=("self",)).get(pk=annotator_id)
    if not batch_id:
        return False
    batch = Batch.objects.select_for_update(no_key=True, of=("self",)).get(pk=batch_id)
    return _revive(batch, assignment_pk)


def _revive(batch: Batch, pk: int) -> bool:
    """Take the place again. The caller has locked the annotator and the batch."""
    assignment = Assignment.objects.select_for_update(no_key=True, of=("self",)).select_related("study").get(pk=pk)
    if not assignment.released_at:
        return True
    study = assignment.study
    if not is_place_revivable(assignment) or batch.claimed >= batch.wanted or study.state not in Study.RUNNING:
        return False
    held_assignments = Assignment.objects.filter(
        study=study, annotator=assignment.annotator_id, released_at=None
    ).exclude(origin="test")
    if held_assignments.filter(submitted_at=None).exists():
        return False
    Batch.objects.filter(pk=batch.pk).update(claimed=F("claimed") + 1)
    Assignment.objects.filter(pk=pk).update(
        released_at=None,
        released_reason="",
        ordinal=_lowest_free(set(held_assignments.values_list("ordinal", flat=True))),
        reserved_until=NowPlusSeconds(
            max(study.idle_lease_seconds, channel_min_reserved_seconds(assignment.recruitment))
        ),
    )
    return True


def release_expired_places(limit: int = 500) -> int:
    """Release the places whose time is over, in one transaction each. Return their number.

    If a large share expires at once, the clock may have been set forward. Then the places stay until a second check.
    """
    live = Assignment.objects.filter(released_at=None, submitted_at=None).exclude(origin="test")
    expired = live.filter(expired_place_condition())
    if _is_clock_doubtful(live):
        expired = live.filter(study__state=Study.State.CLOSED)
    expired_pks = list(expired.order_by("reserved_until").values_list("pk", flat=True)[:limit])
    return sum(release_assignment(pk, Released.EXPIRED, only_if_expired=True) for pk in expired_pks)


def _is_clock_doubtful(live: QuerySet[Assignment]) -> bool:
    """Return whether many places expired together and the first check was less than CLOCK_RECHECK_SECONDS ago."""
    in_time = ~Q(study__state=Study.State.CLOSED)
    counts = live.aggregate(
        places=Count("pk"), over=Count("pk", filter=Q(reserved_until__lt=Now()) & in_time), now=Max(Now())
    )
    if counts["over"] <= max(MASS_EXPIRY_PLACES, MASS_EXPIRY_SHARE * counts["places"]):
        cache.delete(CLOCK_DOUBT_CACHE_KEY)
        return False
    first_doubt = cache.get(CLOCK_DOUBT_CACHE_KEY)
    # Ignore a first check that is too old or in the future.
    if first_doubt is None or not 0 <= (waited := counts["now"].timestamp() - first_doubt) <= CLOCK_DOUBT_SECONDS:
        cache.set(CLOCK_DOUBT_CACHE_KEY, counts["now"].timestamp(), CLOCK_DOUBT_SECONDS)
        logger.warning(
            "%d of %d places expired together. Was the clock changed? They are kept until a second check in %d minutes.",
            counts["over"],
            counts["places"],
            CLOCK_RECHECK_SECONDS // 60,
        )
        return True
    return waited < CLOCK_RECHECK_SECONDS


def mark_started_and_extend_deadline(assignment: Assignment) -> None:
    """Mark the assignment as started when its first page is shown.

    From now on the idle time applies, not the start window.
    """
    seconds = assignment.study.idle_lease_seconds
    reserved = Assignment.objects.filter(pk=assignment.pk, started_at=None)
    if not reserved.update(started_at=Now(), reserved_until=extended_deadline_expression(seconds)):
        # Another tab was faster.
        assignment.refresh_from_db(fields=["started_at", "reserved_until"])
        return
    # The page compares the deadline with this machine's clock. Use the same clock here, which saves a query.
    now = timezone.now()
    assignment.started_at = now
    assignment.reserved_until = max(assignment.reserved_until or now, now + timedelta(seconds=seconds))


def find_miscounted_batches() -> list[tuple[int, int, int]]:
    """Return (batch id, claimed places, assignments that hold one) where the counts differ.

    Empty unless something is broken.
    """
    held = Count("assignments", filter=Q(assignments__released_at=None))
    return list(Batch.objects.annotate(held=held).exclude(claimed=F("held")).values_list("pk", "claimed", "held"))


def hash_person_id(pool: str, person_id: str) -> str:
    """Return the keyed hash under which a pool's person is stored."""
    return keyed_hash("person", pool, person_id)


_select_annotator = CompiledSelect(
    lambda pool, external_id: Annotator.objects.filter(pool=pool, external_id=external_id).values_list("pk", "code"),
    str,
    str,
)


def find_annotator(pool: str, person_id: str, form_token: str = "") -> Annotator:
    """Return the annotator of this person id in the pool, unsaved if they are new.

    '' makes a new anonymous annotator, or finds the one whom this copy of the entry page's form made at its first press.
    """
    external_id = hash_person_id(pool, person_id) if person_id else keyed_hash("nobody", form_token or new_code())
    rows = _select_annotator(pool, external_id) if person_id or form_token else []
    for pk, code in rows:
        return instance_from_row(Annotator, ("id", "code", "pool", "external_id"), (pk, code, pool, external_id))
    return Annotator(pool=pool, external_id=external_id)


def get_or_create_annotator(pool: str, person_id: str) -> Annotator:
    """Return the annotator of this person id in the pool; create it if needed."""
    annotator = find_annotator(pool, person_id)
    if annotator._state.adding:
        with transaction.atomic():
            _lock_or_create_annotator(annotator)
    return annotator
