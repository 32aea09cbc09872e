"""Rules about attention checks and test questions."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from django import forms

from studies.models import Item
from studies.models.design import register

from .. import AssignmentFlags, RuleInput
from ..screening import (
    DEFAULT_MODEL,
    ModelSettings,
    SimpleSettings,
    counts_of_submitted,
    fails_simple_rule,
    fit_and_screen,
    flag_all_work_of_annotators,
    probability_in_words,
)

if TYPE_CHECKING:
    from studies.models import Section


# Rule about wrong answers to attention checks.


class FailedAttentionChecksSettings(forms.Form):
    failed = forms.IntegerField(
        min_value=1,
        max_value=100,
        initial=1,
        label="failed attention checks",
        help_text="Excludes annotators who answered at least this many wrongly. Two already end the assignment.",
    )


def missing_attention_check_problems(sections: Iterable["Section"], **settings) -> Iterator[str]:
    """Yield why the rule cannot work: no section has attention checks."""
    if not any(section.purpose == "attention" for section in sections):
        yield "no section has attention checks. Add one with the purpose attention."


@register(
    "failed_attention_checks",
    "failed attention checks: wrong answers to questions that say which answer to give",
    settings_form=FailedAttentionChecksSettings,
    problems=missing_attention_check_problems,
)
def flag_failed_attention_checks(rule_input: RuleInput, failed: int = 1) -> AssignmentFlags:
    """Flag submitted assignments with too many wrong answers to attention checks.

    Assignments that were not asked any are unknown. Those that the second wrong answer ended were never submitted.
    """
    flags = AssignmentFlags()
    right_keys = rule_input.attention_check_keys()
    rows = rule_input.responses
    rows = rows[(rows["purpose"] == "attention") & ~rows["is_erased"]]
    answered: Counter[int] = Counter()
    wrong: Counter[int] = Counter()
    for assignment, section, question, choice in zip(
        rows["assignment"], rows["section"], rows["question"], rows["choice"], strict=True
    ):
        answered[assignment] += 1
        wrong[assignment] += choice != right_keys.get((section, question))
    for assignment in rule_input.submitted:
        is_failed = wrong[assignment] >= failed if answered[assignment] else None
        flags.judge(assignment, is_failed, f"{wrong[assignment]} of {answered[assignment]} attention checks wrong")
    return flags


# Rules about answers to test questions: too many failed, or a model of all annotators' answers.


SIMPLE, MODEL = SimpleSettings(), ModelSettings()
# The names of ``analysis.stats.mixture.MODELS``, which needs scipy. A test compares them.
MODEL_CHOICES = [
    (DEFAULT_MODEL, "chosen by the number of answers: class_learned2, or rate_fixed2 with too few"),
    ("class_learned2", "class_learned2: not of the best of two learned classes"),
    ("class_fixed2", "class_fixed2: not of the best of two given classes"),
    ("rate_fixed2", "rate_fixed2: accuracy below the threshold, two given classes"),
    ("rate_fixed1", "rate_fixed1: accuracy below the threshold, one given class"),
    ("rate_learned2", "rate_learned2: accuracy below the threshold, two learned classes"),
    ("rate_learned1", "rate_learned1: accuracy below the threshold, one learned class"),
    ("rate_jeffreys", "rate_jeffreys: accuracy below the threshold, Jeffreys prior"),
    ("rate_uniform", "rate_uniform: accuracy below the threshold, uniform prior"),
]


class FailedTestsSettings(forms.Form):
    failed = forms.IntegerField(
        min_value=1,
        max_value=1000,
        initial=SIMPLE.failed,
        label="failed test questions",
        help_text="Excludes annotators who failed at least this many.",
    )
    counted = forms.IntegerField(
        min_value=1,
        max_value=1000,
        initial=SIMPLE.counted,
        label="counted test questions",
        help_text="Annotators with fewer counted answers to test questions are unknown.",
    )
    share = forms.FloatField(
        required=False,
        min_value=0,
        max_value=1,
        initial=SIMPLE.share,
        label="failed share",
        help_text="They must also have failed at least this share of their counted answers. Empty: no share.",
    )

    def clean(self):
        super().clean()
        values = self.cleaned_data
        if values.get("failed") and values.get("counted") and values["failed"] > values["counted"]:
            self.add_error("failed", "This is more than the counted test questions. Enter at most their number.")
        return values


class ModelSettingsForm(forms.Form):
    model = forms.ChoiceField(
        choices=MODEL_CHOICES,
        initial=MODEL.model,
        help_text="The default learns two classes from 30 annotators on who answered five questions of each type. Before, it uses rate_fixed2.",
    )
    fit = forms.ChoiceField(
        choices=[("likelihood", "maximum likelihood, bounded"), ("paper", "the EM algorithm of Khashabi et al. 2022")],
        initial=MODEL.fit,
        help_text="For learned models. The algorithm of Khashabi et al. can also flag annotators without a mistake.",
    )
    threshold = forms.FloatField(
        min_value=0.05,
        max_value=0.999,
        initial=MODEL.threshold,
        label="accuracy threshold",
        help_text="For models of the rate: an annotator with a lower accuracy is inattentive. Hard tasks need a lower one.",
    )
    cutoff = forms.FloatField(
        min_value=0.5,
        max_value=0.9999,
        initial=MODEL.cutoff,
        label="cut-off",
        help_text="Excludes annotators whose probability of being inattentive reaches this, on either type of question.",
    )
    cutoff_rule = forms.ChoiceField(
        choices=[("at_least", "at least the cut-off"), ("more_than", "more than the cut-off")],
        initial=MODEL.cutoff_rule,
        label="at the cut-off",
        help_text="Khashabi et al. 2022 say both. They differ only if a probability equals the cut-off.",
    )


def missing_test_question_problems(sections: Iterable["Section"], **settings) -> Iterator[str]:
    """Yield why the rule cannot work: no section has test questions."""
    pks = [section.pk for section in sections if section.pk]
    if not Item.objects.filter(section__in=pks, kind=Item.Kind.TEST).exists():
        yield "no section has test questions. Make some on a section's page."


@register(
    "failed_tests",
    "failed test questions: too many wrong answers to test questions",
    settings_form=FailedTestsSettings,
    problems=missing_test_question_problems,
)
def flag_failed_test_questions(
    rule_input: RuleInput,
    failed: int = SIMPLE.failed,
    counted: int = SIMPLE.counted,
    share: float | None = SIMPLE.share,
) -> AssignmentFlags:
    """Flag annotators who failed too many test questions, in number and in share. All their submitted work is flagged.

    Annotators with too few counted answers to test questions are unknown.
    """
    settings = SimpleSettings(failed, counted, share)
    judged = {
        counts.annotator: (fails_simple_rule(counts, settings), counts.in_words())
        for counts in counts_of_submitted(rule_input)
    }
    return flag_all_work_of_annotators(rule_input, judged)


@register(
    "test_question_model",
    "test question model: probably inattentive, by a model of all answers to test questions",
    settings_form=ModelSettingsForm,
    problems=missing_test_question_problems,
    source="Khashabi et al. 2022, section 5 and appendix B.1",
)
def flag_inattentive_by_model(rule_input: RuleInput, **settings) -> AssignmentFlags:
    """Flag annotators who are probably inattentive, by a model of all annotators' answers to test questions.

    Positive and other questions are fitted apart. An annotator who is inattentive on either type is flagged, with all submitted
    work. Annotators without a counted answer to a test question are unknown.
    """
    counts = counts_of_submitted(rule_input)
    screening = fit_and_screen(counts, ModelSettings.from_stored(settings)) if counts else None
    if screening is None or screening.status != "ok":
        return flag_all_work_of_annotators(rule_input, {})
    judged = {}
    for row, posteriors, is_flagged in zip(counts, screening.posteriors, screening.flagged, strict=True):
        if row.n_counted:
            chance = f"{row.in_words()}; probability of being inattentive {probability_in_words(max(posteriors))}"
            judged[row.annotator] = (is_flagged, chance)
    return flag_all_work_of_annotators(rule_input, judged)
