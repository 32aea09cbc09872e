"""Rule about answers to questions about an image that the annotator could not see."""

from studies.models.rules import register

from .. import PASS, UNKNOWN, AssignmentFlags, RuleInput


@register("unseen", "unseen: answers about an image that the annotator reported as not seen")
def flag_answers_about_unseen_images(rule_input: RuleInput) -> AssignmentFlags:
    """Leave out answers that were given about an image beside the tick "I cannot see this image". It excludes no annotator.

    Applied to every study with images that was launched since this rule exists, unless the study declares it otherwise.
    """
    found, flags = rule_input.unseen_answers(), AssignmentFlags()
    for assignment in rule_input.submitted:
        answers = found.get(assignment, [])
        evidence = f"{len(answers)} answer{'' if len(answers) == 1 else 's'} about unseen images" if answers else ""
        flags.add(assignment, UNKNOWN if answers else PASS, evidence)
    for answers in found.values():
        flags.answers.update(answers)
    return flags
