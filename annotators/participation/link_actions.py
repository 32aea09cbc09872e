"""Create, change, stop, reopen and delete recruitment links. Only this module writes Recruitment and OutcomePay.

``by`` is the user who acts; None is the site itself or a command of its operator.
"""

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal

from django.db import transaction
from django.db.models.functions import Now

from annotators.models import OutcomePay, Recruitment
from annotators.pay import ledger
from annotators.pay.promises import build_default_outcome_pays, is_pay_reduced
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.links import sorted_arm_rewards
from studies.access import Action, check_permission_or_404
from studies.models import Arm, Study, audit
from studies.services.lifecycle import ActionRefused

Outcome = OutcomePay.Outcome
Promises = Mapping[str, tuple[str, Decimal | None]]  # by outcome: the rule, and its amount if the rule has one


def create_link(recruitment: Recruitment, by) -> Recruitment:
    """Store a new link with the default settings of its channel and the default pay for early ends."""
    study = recruitment.study
    check_permission_or_404(by, Action.RECRUIT, study)
    if study.archived_at or study.state == Study.State.CLOSED:
        raise ActionRefused("The study is closed or archived, so it cannot have a new link. Clone it to collect more.")
    if form := REGISTRY[recruitment.channel].settings_form:
        blank = form()
        first = {name: blank.get_initial_for_field(field, name) for name, field in blank.fields.items()}
        recruitment.settings = {name: value for name, value in first.items() if value is not None}
    with transaction.atomic():
        recruitment.save()
        OutcomePay.objects.bulk_create(build_default_outcome_pays(recruitment, by))
        audit.record_study_event("recruit", study, by=by, recruitment=recruitment.key, channel=recruitment.channel)
    return recruitment


def find_link_errors(recruitment: Recruitment, pay_promises: Promises) -> dict[str, str]:
    """Return the errors of a changed link, by column or outcome. After people have come, pay can only rise."""
    errors = {}
    if Recruitment.objects.filter(key__iexact=recruitment.key).exclude(pk=recruitment.pk).exists():
        # A key may be read aloud, so it must be unique without regard to case.
        errors["key"] = "Another link already has this name. Choose another name."
    opens, closes = recruitment.opens_at, recruitment.closes_at
    if opens and closes and closes <= opens:
        errors["closes_at"] = "The link would close before it opens. Enter a later time, or leave this empty."
    if recruitment.pk and recruitment.assignments.exclude(origin="test").exists():
        errors |= _find_lowered_promises(recruitment, pay_promises)
    return errors


def _find_lowered_promises(recruitment: Recruitment, promises: Promises) -> dict[str, str]:
    errors = {}
    stored = Recruitment.objects.get(pk=recruitment.pk)
    promised, pays = sorted_arm_rewards(recruitment, stored.reward), sorted_arm_rewards(recruitment, recruitment.reward)
    if any(new < old for new, old in zip(pays, promised, strict=True)):
        errors["reward"] = f"People have come, so pay can only rise. Enter at least {promised[-1]}, as promised."
    if recruitment.currency != stored.currency:
        errors["currency"] = "People have come, so the currency cannot change. Enter the earlier currency again."
    old = {row.outcome: row for row in OutcomePay.objects.filter(recruitment=recruitment)}
    for outcome in Outcome:
        rule, amount = promises.get(outcome, (None, None))
        new = OutcomePay(outcome=outcome, rule=rule, amount=amount) if rule else None
        if is_pay_reduced(new, old.get(outcome), promised):
            errors[outcome] = (
                "People have come, so the promised pay can only rise. Choose the earlier rule, or a better one."
            )
    return errors


def update_link(
    recruitment: Recruitment,
    by,
    changed_columns: Sequence[str],
    new_pay_promises: Promises,
    arms: Collection[Arm] | None = None,
) -> None:
    """Store a link with its ``changed_columns`` and its promises. Raises ActionRefused if there are errors.

    ``arms``: the only arms into which people come by it; none: all. None changes nothing.
    """
    check_permission_or_404(by, Action.RECRUIT, recruitment.study)
    with transaction.atomic():
        if errors := find_link_errors(recruitment, new_pay_promises):
            raise ActionRefused(" ".join(errors.values()))
        if "reward" in changed_columns:
            # The panel pays people who have finished by the old reward, so their payments are settled first.
            ledger.update_ledger(Recruitment.objects.get(pk=recruitment.pk), by=by)
        recruitment.save()
        if arms is not None:
            recruitment.arms.set(arms)
        if changed_columns:
            audit.record_study_event(
                "change recruitment",
                recruitment.study,
                by=by,
                recruitment=recruitment.key,
                columns=sorted(changed_columns),
            )
        _store_promises(recruitment, by, new_pay_promises)


def _store_promises(recruitment: Recruitment, by, promises: Promises) -> None:
    old_promises = {row.outcome: (row.rule, row.amount) for row in OutcomePay.objects.filter(recruitment=recruitment)}
    if promises == old_promises:
        return
    OutcomePay.objects.filter(recruitment=recruitment).delete()
    OutcomePay.objects.bulk_create(
        OutcomePay(recruitment=recruitment, outcome=outcome, rule=rule, amount=amount)
        for outcome, (rule, amount) in promises.items()
    )
    pay_by_outcome = {outcome: f"{rule} {amount or ''}".strip() for outcome, (rule, amount) in promises.items()}
    audit.record_study_event("promise pay", recruitment.study, by=by, recruitment=recruitment.key, **pay_by_outcome)


def delete_link(recruitment: Recruitment, by) -> None:
    """Delete a link by which no person has come. Raises ActionRefused."""
    check_permission_or_404(by, Action.RECRUIT, recruitment.study)
    with transaction.atomic():
        if recruitment.assignments.exists():
            raise ActionRefused("People came by this link, so it stays on record. Stop it instead.")
        recruitment.recruitment_arms.all().delete()
        recruitment.outcome_pays.all().delete()
        recruitment.delete()
        audit.record_study_event("delete recruitment", recruitment.study, by=by, recruitment=recruitment.key)


def stop_link(recruitment: Recruitment, by) -> bool:
    """Stop a link: no new people can come by it, but people who have started can finish.

    Return False if already stopped.
    """
    return _set_stopped(recruitment, "stop link", by, was_stopped=False)


def reopen_link(recruitment: Recruitment, by) -> bool:
    """Reopen a stopped link. Return False if it was not stopped."""
    return _set_stopped(recruitment, "open link again", by, was_stopped=True)


def _set_stopped(recruitment: Recruitment, verb: str, by, was_stopped: bool) -> bool:
    check_permission_or_404(by, Action.RECRUIT, recruitment.study)
    with transaction.atomic():
        row = Recruitment.objects.filter(pk=recruitment.pk, stopped_at__isnull=not was_stopped)
        is_set = bool(row.update(stopped_at=None if was_stopped else Now()))
        if is_set:
            audit.record(verb, study=recruitment.study, by=by, recruitment=recruitment.key)
    return is_set
