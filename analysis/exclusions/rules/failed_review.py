"""Work that two reviewers found reasons to refuse."""

from studies.models.rules import register

from .. import FAIL, PASS, UNKNOWN, Flags, RuleInput


@register(
    "failed_review",
    "failed review: two reviewers found reasons to refuse the work",
    is_outcome_blind=False,
    source="Clark et al. 2021, section 2.3",
)
def failed_review(rule_input: RuleInput) -> Flags:
    """Finds annotators whose work reviewers refused, by the rule declared with their sample. Who was not reviewed is unknown.

    Reviewers know neither condition nor truth, but they read the answers: estimates after it are the paper's.
    """
    reviews = rule_input.review_reasons()
    flags = Flags()
    for assignment in rule_input.submitted:
        reasons = reviews.get(assignment)
        flags.add(assignment, UNKNOWN if reasons is None else FAIL if reasons else PASS, reasons or "")
    return flags
