"""Rule about work that reviewers refused."""

from studies.models.rules import register

from .. import FAIL, PASS, UNKNOWN, AssignmentFlags, RuleInput


@register(
    "failed_review",
    "failed review: two reviewers found reasons to refuse the work",
    is_outcome_blind=False,
    source="Clark et al. 2021, section 2.3",
)
def flag_failed_reviews(rule_input: RuleInput) -> AssignmentFlags:
    """Flag annotators whose work reviewers refused, by the declared rule of the sample. Annotators without a review are unknown.

    Reviewers see neither the condition nor the correct answer, but they read the answers. So the rule applies only to the
    paper's estimates.
    """
    reviews = rule_input.review_reasons()
    flags = AssignmentFlags()
    for assignment in rule_input.submitted:
        reasons = reviews.get(assignment)
        flags.add(assignment, UNKNOWN if reasons is None else FAIL if reasons else PASS, reasons or "")
    return flags
