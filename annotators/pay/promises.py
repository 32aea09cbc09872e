"""Promised pay of a link: the reward for the last page, and a rule for each early end. This module writes nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from typing import Any

from annotators.places.places import arm_offer
from annotators.recruitment.links import (
    outcomes_missing_required_pay_rule,
    possible_early_ends,
    sorted_arm_rewards,
)
from studies.design.wording import Wording, frozen_wording, wording_of
from studies.language import format_amount, gettext, gettext_noop
from studies.models import Design, ResearcherFacts, Section, Study
from studies.protocols import Problem

from ..models import OutcomePay, Recruitment

Rule = OutcomePay.Rule
Outcome = OutcomePay.Outcome
ZERO = Decimal(0)
CENT = Decimal("0.01")

# No default is a rejection. A fair payment for screened-out people depends on the time, so the researcher decides.
DEFAULT_RULES = {Outcome.FAILED_CHECKS: Rule.ALL, Outcome.FAULT: Rule.ALL, Outcome.WITHDRAWN: Rule.SHARE}
# As read by a person who is about to start, after the pay.
OUTCOME_CONDITIONS = {
    # Translators: this and the next ones say when a part ends early. They follow the pay: "All of it: if no place is left"
    Outcome.SCREENED_OUT: gettext_noop("if the first answers show that the study looks for other people"),
    Outcome.FAILED_CHECKS: gettext_noop("if two of your answers are wrong to questions that say which answer to give"),
    Outcome.FULL: gettext_noop("if no place is left"),
    Outcome.FAULT: gettext_noop("if we have to end the study while you are at work"),
    Outcome.WITHDRAWN: gettext_noop("if you leave before the end"),
}
SCREENED_OUT_BY_TEST = gettext_noop(
    "if you do not pass the test at the beginning in two attempts, or the first answers show that the study looks for "
    "other people"
)
FULL_OR_UNQUALIFIED = gettext_noop(
    "if no place is left, or you have not passed the test of another study that this one asks for"
)


def build_default_outcome_pays(recruitment: Recruitment, by: Any) -> list[OutcomePay]:
    """Return the first rows of a new link: no early end is a rejection, and ``by`` has said once what the others get."""
    facts = ResearcherFacts.objects.filter(user=by).first() if by is not None else None
    amounts = {Outcome.SCREENED_OUT: facts.screened_out_pay, Outcome.FULL: facts.full_pay} if facts else {}
    possible = possible_early_ends(recruitment)
    said = [
        OutcomePay(recruitment=recruitment, outcome=outcome, rule=Rule.AMOUNT, amount=amount)
        if amount
        else OutcomePay(recruitment=recruitment, outcome=outcome, rule=Rule.NOTHING)
        for outcome, amount in amounts.items()
        if amount is not None and outcome in possible
    ]
    usual = [OutcomePay(recruitment=recruitment, outcome=outcome, rule=rule) for outcome, rule in DEFAULT_RULES.items()]
    return [*usual, *said]


def outcome_labels_missing_required_pay_rule(recruitment: Recruitment) -> list[str]:
    """Return the labels of the outcomes without a pay rule, for a link that pays."""
    return [str(outcome.label) for outcome in outcomes_missing_required_pay_rule(recruitment)]


def pay_obstacles(recruitment: Recruitment) -> list[str]:
    """Return the problems to fix before this link may pay people."""
    problems = []
    if labels := outcome_labels_missing_required_pay_rule(recruitment):
        problems.append(
            f"The link is closed to visitors: no pay is set for {', '.join(labels)}. Set it in the link's form."
        )
    by_panel = recruitment.settings.get("screen_out_pay")
    screen_out_rule = OutcomePay.objects.filter(recruitment=recruitment, outcome=Outcome.SCREENED_OUT).first()
    if (
        by_panel
        and screen_out_rule
        and (screen_out_rule.rule != Rule.AMOUNT or screen_out_rule.amount != Decimal(str(by_panel)))
    ):
        problems.append(
            f"The panel pays {by_panel} to screened-out people, but the first page promises another amount. Use "
            "the same amount in both."
        )
    if _is_failing_checks_unpaid(recruitment):
        problems.append(
            "People who fail attention checks have worked until then, but get nothing or less than screened-out people. "
            "Promise them at least that amount."
        )
    return problems


def _is_failing_checks_unpaid(recruitment: Recruitment) -> bool:
    """Return whether a paying link could pay for failed attention checks nothing, or less than for screening out."""
    if not recruitment.study.sections.filter(purpose=Section.Purpose.ATTENTION).exists():
        return False
    rewards = sorted_arm_rewards(recruitment, recruitment.reward)
    if not rewards[-1]:
        return False
    rows = {row.outcome: row for row in OutcomePay.objects.filter(recruitment=recruitment)}
    failed, screened_out = rows.get(Outcome.FAILED_CHECKS), rows.get(Outcome.SCREENED_OUT)
    if failed is None or failed.rule == Rule.SHARE:
        return False  # a missing rule is a problem of its own; a share grows with the work
    return not _highest_pay(failed, rewards[-1]) or bool(
        screened_out and screened_out.rule == Rule.AMOUNT and is_pay_reduced(failed, screened_out, rewards)
    )


def is_outcome_paid_before_first_page(recruitment: Recruitment, outcome: str) -> bool:
    """Return whether a link pays people who end in this way before they have sent a page."""
    terms = get_pay_terms(recruitment)
    reward = terms.reward_of(None, None)
    return reward > ZERO and terms.promised_pay(outcome, reward, 0, 0) > ZERO


def find_pay_problems(study: Study, **signal_kwargs: object) -> Iterator[Problem]:
    """Return paying links without rules for early ends, for the checklist before launch."""
    for recruitment in study.recruitments.order_by("pk"):
        recruitment.study = study
        for obstacle in pay_obstacles(recruitment):
            yield Problem(f"{recruitment}: {obstacle}", "", False, f"outcome_pay_{recruitment.pk}")


def is_pay_reduced(new_pay: OutcomePay | None, old_pay: OutcomePay | None, rewards: list[Decimal]) -> bool:
    """Return whether a person could get less by the new rule than by the old one, at these rewards."""
    if old_pay is None or old_pay.rule == Rule.NOTHING:
        return False
    if new_pay is None:
        return True
    return any(_lowest_pay(new_pay, reward) < _highest_pay(old_pay, reward) for reward in rewards) and (
        new_pay.rule,
        old_pay.rule,
    ) != (
        Rule.SHARE,
        Rule.SHARE,
    )


def _lowest_pay(outcome_pay: OutcomePay, reward: Decimal) -> Decimal:
    return {Rule.ALL: reward, Rule.AMOUNT: outcome_pay.amount or ZERO}.get(Rule(outcome_pay.rule), ZERO)


def _highest_pay(outcome_pay: OutcomePay, reward: Decimal) -> Decimal:
    return {Rule.ALL: reward, Rule.SHARE: reward, Rule.AMOUNT: outcome_pay.amount or ZERO}.get(
        Rule(outcome_pay.rule), ZERO
    )


@dataclass(frozen=True, slots=True)
class PromiseLine:
    """Early ends with the same pay, for a page: how much, and when."""

    pays: str
    when: tuple[str, ...]


def early_end_pay_lines(recruitment: Recruitment, currency: str, wording: Wording) -> list[PromiseLine]:
    """Return the pay for early ends, in the order of the rules; empty if nothing is promised or the link is not saved.

    Ends that cannot happen in this study are left out.
    """
    if not recruitment.pk:
        return []
    rows = {row.outcome: row for row in OutcomePay.objects.filter(recruitment=recruitment)}
    purposes = {section.purpose for section in wording.sections}
    conditions = dict(OUTCOME_CONDITIONS)
    if wording.study["required_qualification"]:
        conditions[Outcome.FULL] = FULL_OR_UNQUALIFIED
    if wording.test:
        conditions[Outcome.SCREENED_OUT] = SCREENED_OUT_BY_TEST
    elif Section.Purpose.SCREENING not in purposes:
        rows.pop(Outcome.SCREENED_OUT, None)
    if Section.Purpose.ATTENTION not in purposes:
        rows.pop(Outcome.FAILED_CHECKS, None)
    conditions_by_pay: dict[str, list[str]] = {}
    for rule in Rule:
        for outcome in Outcome:
            if outcome in rows and rows[outcome].rule == rule:
                when = gettext(conditions[outcome])
                conditions_by_pay.setdefault(_pay_text(rows[outcome], currency), []).append(when)
    return [PromiseLine(pays, tuple(when)) for pays, when in conditions_by_pay.items()]


def _pay_text(row: OutcomePay, currency: str) -> str:
    return {
        # Translators: of the pay, before a condition such as "if you leave before the end"
        Rule.ALL: gettext("All of it"),
        Rule.AMOUNT: format_amount(row.amount or ZERO, currency),
        Rule.SHARE: gettext("A share for the pages that you have sent"),
        Rule.NOTHING: gettext("Nothing"),
    }[Rule(row.rule)]


@dataclass(frozen=True, slots=True)
class PayTerms:
    """Return the better of the promise that the person saw and the current promise, because pay only rises."""

    study: Study
    reward: Decimal | None
    currency: str
    arms: frozenset[str]
    rules: Mapping[str, OutcomePay]
    newest_wording: Wording

    def reward_of(self, design_id: int | None, arm: str | None) -> Decimal:
        """Return the pay for the last page.

        ``arm`` None: for a person without a place, the lowest amount on the first page.
        """
        wordings = [self.newest_wording, *([frozen_wording(design_id)] if design_id else [])]
        return max(self._promised_reward(wording, arm) for wording in wordings)

    def _promised_reward(self, wording: Wording, arm: str | None) -> Decimal:
        if arm is not None:
            return arm_offer(wording, wording.arms[arm], self.reward).reward or ZERO
        arms: list[Mapping[str, Any]] = [
            row for name, row in wording.arms.items() if not self.arms or name in self.arms
        ]
        return min((arm_offer(wording, row, self.reward).reward or ZERO for row in arms), default=ZERO)

    def reward_listed_at_panel(self, design_id: int | None) -> Decimal:
        """Return the pay stated by the panel for tasks made there by hand: the study's amount when this person came."""
        wording = frozen_wording(design_id) if design_id else self.newest_wording
        first = next((value for value in (self.reward, wording.study["reward"]) if value is not None), ZERO)
        return Decimal(first)

    def promised_pay(self, outcome: str, reward: Decimal, sent_pages: int, total_pages: int) -> Decimal:
        """Return the pay for ``outcome`` after this number of sent pages, rounded up to whole cents."""
        if outcome == "complete":
            return reward
        row = self.rules.get(outcome)
        if row is None or row.rule == Rule.NOTHING:
            return ZERO
        if row.rule == Rule.ALL:
            return reward
        if row.rule == Rule.AMOUNT:
            return row.amount or ZERO
        return (reward * min(sent_pages, total_pages) / total_pages).quantize(CENT, ROUND_UP) if total_pages else ZERO


def get_pay_terms(recruitment: Recruitment) -> PayTerms:
    study = recruitment.study
    newest = Design.objects.filter(study=study).order_by("version").values_list("pk", flat=True).last()
    rows = OutcomePay.objects.filter(recruitment=recruitment)
    return PayTerms(
        study,
        recruitment.reward,
        recruitment.currency or study.currency,
        frozenset(recruitment.arms.values_list("name", flat=True)),
        {row.outcome: row for row in rows},
        wording_of(study, newest),
    )
