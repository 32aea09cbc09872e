"""Links by which people come: made, changed, stopped, opened again, deleted. The only writer of Recruitment and of what it promises.

``by`` is the person who acts; None is the site itself, or a command of its operator.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from django.db import transaction
from django.db.models.functions import Now

from annotators.models import OutcomePay, Recruitment
from annotators.pay import ledger
from annotators.pay.promises import arm_rewards, default_outcome_pays, is_pay_reduced
from annotators.recruitment.channels import REGISTRY
from studies.access import Action, check_permission
from studies.models import Study, audit
from studies.services.lifecycle import ActionRefused

Outcome, Rule = OutcomePay.Outcome, OutcomePay.Rule
Promises = Mapping[str, tuple[str, Decimal | None]]  # by outcome: the rule, and an amount where the rule names one


def create_link(recruitment: Recruitment, by) -> Recruitment:
    """Store a new link with its channel's first settings, and with what an early end usually pays."""
    study = recruitment.study
    check_permission(by, Action.RECRUIT, study)
    if study.archived_at or study.state == Study.State.CLOSED:
        raise ActionRefused(
            "The study is closed or archived: nobody comes to it by a new link. Clone it to collect more."
        )
    if form := REGISTRY[recruitment.channel].settings_form:
        blank = form()
        first = {name: blank.get_initial_for_field(field, name) for name, field in blank.fields.items()}
        recruitment.settings = {name: value for name, value in first.items() if value is not None}
    with transaction.atomic():
        recruitment.save()
        for row in default_outcome_pays():
            row.recruitment = recruitment
            row.save()
        audit.record_study_event("recruit", study, by=by, recruitment=recruitment.key, channel=recruitment.channel)
    return recruitment


def find_link_errors(recruitment: Recruitment, promises: Promises) -> dict[str, str]:
    """What forbids keeping a link as it would be, in words, by column or outcome. Once people came, pay can only rise."""
    found = {}
    if Recruitment.objects.filter(key__iexact=recruitment.key).exclude(pk=recruitment.pk).exists():
        # It may be read out, and nobody hears a capital.
        found["key"] = "A recruitment with this key already exists."
    opens, closes = recruitment.opens_at, recruitment.closes_at
    if opens and closes and closes <= opens:
        found["closes_at"] = "It must close after it opens."
    if recruitment.pk and recruitment.assignments.exclude(origin="test").exists():
        found |= _find_lowered_promises(recruitment, promises)
    return found


def _find_lowered_promises(recruitment: Recruitment, promises: Promises) -> dict[str, str]:
    found = {}
    before = Recruitment.objects.get(pk=recruitment.pk)
    told, pays = arm_rewards(recruitment, before.reward), arm_rewards(recruitment, recruitment.reward)
    if any(new < old for new, old in zip(pays, told, strict=True)):
        found["reward"] = f"People have come: pay can only rise. They were told {told[-1]}."
    if recruitment.currency != before.currency:
        found["currency"] = "People have come, and were told another currency."
    old = {row.outcome: row for row in OutcomePay.objects.filter(recruitment=recruitment)}
    for outcome in Outcome:
        rule, amount = promises.get(outcome, (None, None))
        new = OutcomePay(outcome=outcome, rule=rule, amount=amount) if rule else None
        if is_pay_reduced(new, old.get(outcome), told):
            found[outcome] = "People have come: what they were promised can only rise."
    return found


def update_link(recruitment: Recruitment, by, changed_columns: Sequence[str], promises: Promises) -> None:
    """Keep a link whose ``columns`` were set anew, and what it promises. Raises NotNow where something forbids it."""
    check_permission(by, Action.RECRUIT, recruitment.study)
    with transaction.atomic():
        if found := find_link_errors(recruitment, promises):
            raise ActionRefused(" ".join(found.values()))
        if "reward" in changed_columns:
            # Whoever is done was paid by the old one: what the panel pays them is that.
            ledger.settle_payments(Recruitment.objects.get(pk=recruitment.pk), by=by)
        recruitment.save()
        if changed_columns:
            audit.record_study_event(
                "change recruitment",
                recruitment.study,
                by=by,
                recruitment=recruitment.key,
                columns=sorted(changed_columns),
            )
        _store_promises(recruitment, by, promises)


def _store_promises(recruitment: Recruitment, by, promises: Promises) -> None:
    before = {row.outcome: (row.rule, row.amount) for row in OutcomePay.objects.filter(recruitment=recruitment)}
    if promises == before:
        return
    OutcomePay.objects.filter(recruitment=recruitment).delete()
    OutcomePay.objects.bulk_create(
        OutcomePay(recruitment=recruitment, outcome=outcome, rule=rule, amount=amount)
        for outcome, (rule, amount) in promises.items()
    )
    told = {outcome: f"{rule} {amount or ''}".strip() for outcome, (rule, amount) in promises.items()}
    audit.record_study_event("promise pay", recruitment.study, by=by, recruitment=recruitment.key, **told)


def delete_link(recruitment: Recruitment, by) -> None:
    """A link by which nobody came."""
    check_permission(by, Action.RECRUIT, recruitment.study)
    with transaction.atomic():
        if recruitment.assignments.exists():
            raise ActionRefused("People came by this link, so it stays on record. Stop it instead.")
        recruitment.recruitment_arms.all().delete()
        recruitment.outcome_pays.all().delete()
        recruitment.delete()
        audit.record_study_event("delete recruitment", recruitment.study, by=by, recruitment=recruitment.key)


def stop_link(recruitment: Recruitment, by) -> bool:
    """Nobody new comes by this link; whoever is at work finishes. False where it was stopped before."""
    return _set_stopped(recruitment, "stop link", by, was_stopped=False)


def reopen_link(recruitment: Recruitment, by) -> bool:
    """People may come by this link again. False where it was not stopped."""
    return _set_stopped(recruitment, "open link again", by, was_stopped=True)


def _set_stopped(recruitment: Recruitment, verb: str, by, was_stopped: bool) -> bool:
    check_permission(by, Action.RECRUIT, recruitment.study)
    with transaction.atomic():
        row = Recruitment.objects.filter(pk=recruitment.pk, stopped_at__isnull=not was_stopped)
        is_set = bool(row.update(stopped_at=None if was_stopped else Now()))
        if is_set:
            audit.record(verb, study=recruitment.study, by=by, recruitment=recruitment.key)
    return is_set
