"""What a link promises: for the last page its reward, for each other end a rule. Proposed, checked, told; nothing here is written."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from typing import Any

from annotators.places.offers import offer_of
from studies.design.wording import Wording, frozen_wording, wording_of
from studies.models import Arm, Design, Expected, Section, Study
from studies.protocols import Problem

from ..models import OutcomePay, Recruitment

Rule, Outcome = OutcomePay.Rule, OutcomePay.Outcome
ZERO = Decimal(0)
CENT = Decimal("0.01")

# Nobody is refused by default. What being turned away is worth depends on how long that takes: the researcher says so.
DEFAULT_RULES = {Outcome.FAILED_CHECKS: Rule.ALL, Outcome.FAULT: Rule.ALL, Outcome.WITHDRAWN: Rule.SHARE}
# As somebody reads it who is about to start: the end of "… if".
OUTCOME_CONDITIONS = {
    Outcome.SCREENED_OUT: "the first answers show that the study looks for other people",
    Outcome.FAILED_CHECKS: "answers to questions with a known answer are not as expected",
    Outcome.FULL: "no place is left",
    Outcome.FAULT: "we have to end the study while you are at work",
    Outcome.WITHDRAWN: "you leave part-way",
}


def default_outcome_pays() -> list[OutcomePay]:
    """The rows that a new link begins with."""
    return [OutcomePay(outcome=outcome, rule=rule) for outcome, rule in DEFAULT_RULES.items()]


def arm_rewards(recruitment: Recruitment, reward: Decimal | None) -> list[Decimal]:
    """What each of the link's arms would pay if the link paid ``reward`` (None: what arm and study say), from the least."""
    study = recruitment.study
    arms = list(recruitment.arms.all()) if recruitment.pk else []
    arms = arms or list(Arm.objects.filter(study=study))
    found = [next((one for one in (reward, arm.reward, study.reward) if one is not None), ZERO) for arm in arms]
    return sorted(found) or [ZERO]


def undeclared_outcomes(recruitment: Recruitment) -> list[Outcome]:
    """Outcomes of a link that pays, of which nobody has said what they pay."""
    if not arm_rewards(recruitment, recruitment.reward)[-1]:
        return []
    said = set(OutcomePay.objects.filter(recruitment=recruitment).values_list("outcome", flat=True))
    return [outcome for outcome in Outcome if outcome not in said]


def undeclared_outcome_labels(recruitment: Recruitment) -> list[str]:
    """The same, as they are called."""
    return [str(outcome.label) for outcome in undeclared_outcomes(recruitment)]


def pay_obstacles(recruitment: Recruitment) -> list[str]:
    """What must be said, or agree, before people are paid by this link."""
    found = []
    if words := undeclared_outcome_labels(recruitment):
        found.append(f"What is paid to people who end so is not said: {', '.join(words)}.")
    by_panel = recruitment.settings.get("screen_out_pay")
    said = OutcomePay.objects.filter(recruitment=recruitment, outcome=Outcome.SCREENED_OUT).first()
    if by_panel and said and (said.rule != Rule.AMOUNT or said.amount != Decimal(str(by_panel))):
        found.append(
            f"The panel pays {by_panel} to who is screened out, and the first page promises them something else."
        )
    return found


def is_outcome_paid(recruitment: Recruitment, outcome: str) -> bool:
    """Whether a link pays those who end so before they have sent a page."""
    terms = terms_of(recruitment)
    reward = terms.reward_of(None, None)
    return reward > ZERO and terms.promised_pay(outcome, reward, 0, 0) > ZERO


def find_pay_problems(study: Study, **kwargs: object) -> Iterator[Problem]:
    """For the checklist before launch: links that pay, and do not say what an early end pays."""
    for recruitment in study.recruitments.order_by("pk"):
        recruitment.study = study
        for words in pay_obstacles(recruitment):
            yield Problem(f"{recruitment}: {words}", "", False, f"outcome_pay_{recruitment.pk}")


def is_pay_reduced(new: OutcomePay | None, old: OutcomePay | None, rewards: list[Decimal]) -> bool:
    """Whether somebody could get less by the new rule than by the old one, among people of these rewards."""
    if old is None or old.rule == Rule.NOTHING:
        return False
    if new is None:
        return True
    return any(_least(new, reward) < _most(old, reward) for reward in rewards) and (new.rule, old.rule) != (
        Rule.SHARE,
        Rule.SHARE,
    )


def _least(one: OutcomePay, reward: Decimal) -> Decimal:
    return {Rule.ALL: reward, Rule.AMOUNT: one.amount or ZERO}.get(Rule(one.rule), ZERO)


def _most(one: OutcomePay, reward: Decimal) -> Decimal:
    return {Rule.ALL: reward, Rule.SHARE: reward, Rule.AMOUNT: one.amount or ZERO}.get(Rule(one.rule), ZERO)


@dataclass(frozen=True, slots=True)
class PromiseLine:
    """Ends that pay the same, for a page: how much, and when."""

    pays: str
    when: tuple[str, ...]


def promise_lines(recruitment: Recruitment, currency: str, wording: Wording) -> list[PromiseLine]:
    """What an early end pays, in the order of the rules; empty where nothing is promised or the link is not kept yet.

    Ends that this study cannot come to are left out: nobody asks there what would end it.
    """
    if not recruitment.pk:
        return []
    rows = {row.outcome: row for row in OutcomePay.objects.filter(recruitment=recruitment)}
    if not any(section.purpose == Section.Purpose.SCREENING for section in wording.sections):
        rows.pop(Outcome.SCREENED_OUT, None)
    if Outcome.FAILED_CHECKS in rows and not _asks_what_is_known(recruitment.study):
        del rows[Outcome.FAILED_CHECKS]
    told: dict[str, list[str]] = {}
    for rule in Rule:
        for outcome in Outcome:
            if outcome in rows and rows[outcome].rule == rule:
                told.setdefault(_pays(rows[outcome], currency), []).append(OUTCOME_CONDITIONS[outcome])
    return [PromiseLine(pays, tuple(when)) for pays, when in told.items()]


def _asks_what_is_known(study: Study) -> bool:
    """Whether some question has a known answer, other than those of practice."""
    known = Expected.objects.filter(item__study=study)
    return known.exclude(item__section__purpose=Section.Purpose.TRAINING).exists()


def _pays(row: OutcomePay, currency: str) -> str:
    return {
        Rule.ALL: "All of it",
        Rule.AMOUNT: f"{row.amount} {currency}",
        Rule.SHARE: "A share, by the pages that you have sent",
        Rule.NOTHING: "Nothing",
    }[Rule(row.rule)]


@dataclass(frozen=True, slots=True)
class PayTerms:
    """What holds for a link's people: pay only rises, so for each the better of what they were told and what is told now."""

    study: Study
    reward: Decimal | None
    currency: str
    arms: frozenset[str]
    rules: Mapping[str, OutcomePay]
    newest_wording: Wording

    def reward_of(self, design_id: int | None, arm: str | None) -> Decimal:
        """For the last page. ``arm`` None: of somebody for whom there was no place, the least that the door named."""
        words = [self.newest_wording, *([frozen_wording(design_id)] if design_id else [])]
        return max(self._told(one, arm) for one in words)

    def _told(self, words: Wording, arm: str | None) -> Decimal:
        if arm is not None:
            return offer_of(words, words.arms[arm], self.reward).reward or ZERO
        arms: list[Mapping[str, Any]] = [one for name, one in words.arms.items() if not self.arms or name in self.arms]
        return min((offer_of(words, one, self.reward).reward or ZERO for one in arms), default=ZERO)

    def listed(self, design_id: int | None) -> Decimal:
        """What the panel's own page names, where it was written there by hand: what the study told when this person came."""
        words = frozen_wording(design_id) if design_id else self.newest_wording
        first = next((one for one in (self.reward, words.study["reward"]) if one is not None), ZERO)
        return Decimal(first)

    def promised_pay(self, outcome: str, reward: Decimal, sent_pages: int, total_pages: int) -> Decimal:
        """What ``outcome`` pays to who sent so many of so many pages; a share of a cent is a cent."""
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


def terms_of(recruitment: Recruitment) -> PayTerms:
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
