"""Rules about what people answered."""

import csv
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from django import forms

from annotators.counting import UNSEEN
from studies.models.design import register
from studies.protocols import REGISTRY as PROTOCOLS

from .. import FAIL, PASS, UNKNOWN, AssignmentFlags, RuleInput

if TYPE_CHECKING:
    from pandas import DataFrame

    from studies.models import Section


# Rules about the answer to one question: the annotator gave one of the named answers, or none of them.


def _quoted(key: str) -> str:
    return '"{}"'.format(key.replace('"', '""')) if "," in key or key.startswith('"') else key


class OptionKeysField(forms.CharField):
    """A list of answer keys, written with commas. A key that has a comma is written in quotes."""

    def prepare_value(self, value):
        if not isinstance(value, list | tuple):
            return value
        return ", ".join(_quoted(str(key)) for key in value)

    def to_python(self, value):
        if isinstance(value, list | tuple):  # the stored form
            return [str(key) for key in value]
        try:
            rows = list(csv.reader((super().to_python(value) or "").splitlines(), skipinitialspace=True))
        except csv.Error as error:
            raise forms.ValidationError(f"The keys cannot be read ({error}). Separate them by commas.") from None
        return [key.strip() for row in rows for key in row if key.strip()]

    def validate(self, value):
        if self.required and not value:
            raise forms.ValidationError(self.error_messages["required"], code="required")

    def run_validators(self, value):
        for key in value:
            super().run_validators(key)


class AnswerSettings(forms.Form):
    question = forms.SlugField(max_length=50, help_text="The key of the question in the data.")
    options = OptionKeysField(label="answers", help_text="Keys of the question's answers, separated by commas.")


def answer_settings_problems(sections: Iterable["Section"], question: str, options: list[str]) -> Iterator[str]:
    """Yield why the rule cannot work: the question or an answer does not exist.

    ``sections``: the sections of the study, with their questions.
    """
    questions = [
        (candidate, PROTOCOLS[section.protocol].answer_keys(section, candidate))
        for section in sections
        if section.protocol in PROTOCOLS
        for candidate in section.questions.all()
    ]
    answer_keys = dict.fromkeys(key for candidate, keys in questions if candidate.key == question for key in keys)
    if not any(candidate.key == question for candidate, _ in questions):
        choices = dict.fromkeys(candidate.key for candidate, keys in questions if keys)
        known = (
            f"Questions with answers to choose from are: {', '.join(choices)}."
            if choices
            else "The study has no question with answers to choose from."
        )
        yield f"the study has no question with the key “{question}”. {known}"
    elif not answer_keys:
        yield f"the question “{question}” has no answers to choose from."
    elif unknown := [key for key in options if key not in answer_keys]:
        keys = "keys" if len(unknown) > 1 else "key"
        yield f"the question “{question}” has no answer with the {keys} {', '.join(f'“{key}”' for key in unknown)}. Its answers have the keys: {', '.join(answer_keys)}."


def _flags_by_answer(
    rule_input: RuleInput, question: str, options: list[str], fails_if_chosen: bool
) -> AssignmentFlags:
    flags = AssignmentFlags(dict.fromkeys(rule_input.submitted, UNKNOWN))
    rows = rule_input.responses
    rows = rows[(rows["question"] == question) & ~rows["is_erased"]]
    chosen: dict[int, set[str]] = {}
    for assignment, choice, value in zip(rows["assignment"], rows["choice"], rows["value"], strict=True):
        # An unticked box of a multiple choice is stored as 0.
        if choice and value != 0:
            chosen.setdefault(assignment, set()).add(choice)
    for assignment, keys in chosen.items():
        if assignment in flags.states:
            is_chosen = bool(keys & set(options))
            flags.judge(assignment, is_chosen == fails_if_chosen, f"{question}: {', '.join(sorted(keys))}")
    return flags


@register(
    "not_native",
    "not native: the answer to a question about language is not one of the accepted answers",
    settings_form=AnswerSettings,
    problems=answer_settings_problems,
    source="Ethayarajh and Jurafsky 2022, appendix A.2",
)
def flag_unaccepted_answers(rule_input: RuleInput, question: str, options: list[str]) -> AssignmentFlags:
    """Flag annotators whose answer to the question is not one of the options. Annotators who were not asked are unknown."""
    return _flags_by_answer(rule_input, question, options, fails_if_chosen=False)


@register(
    "answered",
    "answered: gave one of the named answers to a question",
    settings_form=AnswerSettings,
    problems=answer_settings_problems,
)
def flag_chosen_answers(rule_input: RuleInput, question: str, options: list[str]) -> AssignmentFlags:
    """Flag annotators who gave one of the options to the question. Annotators who were not asked are unknown."""
    return _flags_by_answer(rule_input, question, options, fails_if_chosen=True)


# Rule about explanations that copy the shown texts.


COPIED_TOKENS, COPIED_SHARE = 8, 0.8


@register(
    "copied_text", "copied text: the explanation is copied from a text that was shown", source="Clark et al. 2021"
)
def flag_copied_texts(rule_input: RuleInput) -> AssignmentFlags:
    """Flag explanations with at least 8 consecutive words, and 80 % of all words, copied from a text that was shown.

    A text that annotators were asked to rewrite keeps words of the original, so it is left out.
    """
    flags = AssignmentFlags(dict.fromkeys(rule_input.submitted, UNKNOWN))
    rows = rule_input.responses
    rows = rows[(rows["text"] != "") & ~rows["is_erased"]]
    if not len(rows):
        return flags
    shown_texts, rewritten = rule_input.texts_by_batch(), rule_input.rewriting_questions()
    tokens: dict[int, list[list[str]]] = {}
    columns = ("assignment", "batch", "text", "section", "question")
    for assignment, batch, text, *asked in zip(*(rows[name] for name in columns), strict=True):
        if assignment not in flags.states or tuple(asked) in rewritten:
            continue
        if flags.states[assignment] == UNKNOWN:
            flags.states[assignment] = PASS
        words = tokenize_casefolded(text[:20_000])
        if len(words) < COPIED_TOKENS:
            continue
        if batch not in tokens:
            tokens[batch] = [tokenize_casefolded(output) for output in shown_texts.get(batch, [])]
        longest = max((longest_qualifying_copied_run(words, output) for output in tokens[batch]), default=0)
        if longest >= COPIED_TOKENS and longest >= COPIED_SHARE * len(words):
            flags.add(assignment, FAIL, f"{longest} of {len(words)} words in a row are copied")
    return flags


def tokenize_casefolded(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def longest_qualifying_copied_run(tokens: list[str], source_tokens: list[str]) -> int:
    """Return the length of the longest run of tokens that is in both, or 0 if it is below ``COPIED_TOKENS``."""
    size = COPIED_TOKENS
    starts: dict[tuple, list[int]] = {}
    for position in range(len(source_tokens) - size + 1):
        starts.setdefault(tuple(source_tokens[position : position + size]), []).append(position)
    longest = 0
    for position in range(len(tokens) - size + 1):
        if len(tokens) - position <= longest:
            break
        for start in starts.get(tuple(tokens[position : position + size]), ())[:50]:
            length = size
            while (
                position + length < len(tokens)
                and start + length < len(source_tokens)
                and tokens[position + length] == source_tokens[start + length]
            ):
                length += 1
            longest = max(longest, length)
    return longest


# Rule about two answers to one pair that contradict each other: their chances add up to much more than 100 %.


class TauSettings(forms.Form):
    tau = forms.DecimalField(
        min_value=0,
        max_value=2,
        decimal_places=2,
        initial=1.1,
        label="largest sum of two answers (tau)",
        help_text="Excludes annotators whose two answers to a pair add up to more than this. 2 excludes no annotator.",
    )
    symmetric = forms.BooleanField(
        required=False,
        initial=False,
        label="also exclude sums that are too small",
        help_text="Also excludes annotators whose two answers add up to less than 2 minus tau.",
    )

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        # Settings are stored as JSON, which has no decimals.
        if cleaned.get("tau") is not None:
            cleaned["tau"] = float(cleaned["tau"])
        return cleaned


@register(
    "incoherent",
    "incoherent: two answers to one pair add up to too much (tau)",
    settings_form=TauSettings,
    is_outcome_blind=False,
    source="Ethayarajh and Jurafsky 2022, section 5.2",
)
def flag_incoherent_sums_of_both_orders(
    rule_input: RuleInput, tau: float = 1.1, symmetric: bool = False
) -> AssignmentFlags:
    """Flag annotators whose answers P[x > y] and P[y > x] add up to more than tau for at least one pair.

    The rule selects on the answers themselves, so one-order estimates after it are biased downwards. The recommended estimates
    ignore it and show its effect as a sensitivity analysis.
    """
    limit = round(100 * float(tau))
    flags = AssignmentFlags(dict.fromkeys(rule_input.submitted, UNKNOWN))
    rows = rule_input.responses
    rows = rows[rows["x"].notna() & rows["value"].notna() & (rows["purpose"] == "live")]
    answers: dict[tuple, int] = {}
    columns = ("assignment", "section", "criterion", "x", "y", "value")
    for assignment, section, criterion, x, y, value in zip(*(rows[name] for name in columns), strict=True):
        percent = round(100 * value)
        answers[assignment, section, criterion, x, y] = percent
        reverse = answers.get((assignment, section, criterion, y, x))
        if reverse is None or flags.states.get(assignment) is None:
            continue
        total = percent + reverse
        if total > limit or (symmetric and total < 200 - limit):
            flags.add(assignment, FAIL, f"{x} over {y} and {y} over {x} add up to {total} %")
        elif flags.states[assignment] == UNKNOWN:
            flags.states[assignment] = PASS
    return flags


# Rule about giving the same answer to all questions although the answers contradict each other.


MIN_CONSTANT = 8
MIN_RUN, RUN_SHARE = 10, 0.8


@register("straight_lining", "straight lining: the same answer to contradicting questions", is_outcome_blind=False)
def flag_contradictory_straight_lining(rule_input: RuleInput) -> AssignmentFlags:
    """Flag long runs of one answer that contradict themselves: the same answer to both directions of a pair, except 50 %.

    A long run of equal ratings is unknown, with its length as evidence. It may be the person's opinion, so it never excludes.
    """
    flags = AssignmentFlags(dict.fromkeys(rule_input.submitted, PASS))
    rows = rule_input.responses
    rows = rows[rows["value"].notna() & (rows["purpose"] == "live") & (rows["choice"] == "")]
    rows = rows.sort_values(["assignment", "received_at", "section", "position", "id"], kind="stable")
    for group, own_rows in rows.groupby("assignment", sort=False):
        assignment = cast(int, group)  # the stubs of pandas do not know the type of a column
        if assignment not in flags.states:
            continue
        for _, part in own_rows.groupby("section", sort=False):
            values = [round(value, 6) for value in part["value"]]
            value, longest = max(
                ((value, len(list(run))) for value, run in groupby(values)),
                key=lambda value_and_length: value_and_length[1],
            )
            is_long = longest >= max(MIN_RUN, RUN_SHARE * len(values))
            is_constant = len(set(values)) == 1 and len(values) >= MIN_CONSTANT
            if not (is_long or is_constant):
                continue
            pairs = set(zip(part["x"], part["y"], strict=True))
            asks_both_directions = any(isinstance(x, str) and (y, x) in pairs for x, y in pairs)
            evidence = f"{longest} times {value:g} of the scale in a row, of {len(values)} answers"
            if asks_both_directions and value != 0.5:
                flags.add(assignment, FAIL, evidence)
            elif not asks_both_directions and flags.states[assignment] == PASS:
                flags.add(assignment, UNKNOWN, evidence)
    return flags


# Rule about answers to questions about an image that the annotator could not see.


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


# Rule about annotators who answered too few of their questions.


class IncompleteSettings(forms.Form):
    share = forms.FloatField(
        min_value=0.01,
        max_value=1,
        initial=1.0,
        label="answered at least",
        help_text="Minimum share of the annotator's questions, from 0.01 to 1.",
    )


@register("incomplete", "incomplete: too few questions answered", settings_form=IncompleteSettings)
def flag_incomplete(rule_input: RuleInput, share: float = 1.0) -> AssignmentFlags:
    """Flag annotators who answered less than the given share of the questions that their arm was asked in live sections.

    Skipped, erased and unreadable answers count as not given; questions about unseen images count as answered. Optional texts are not counted, and all error marks in one text
    are one answer. Annotators with fewer items (one was retired, or third labels were needed) are compared only with each other.
    """
    flags = AssignmentFlags()
    rows = rule_input.responses
    rows = rows[rows["purpose"] == "live"]
    is_text = (rows["text"] != "") & rows["value"].isna() & (rows["choice"] == "") & rows["chosen_system"].isna()
    voluntary = set(rows.loc[is_text, "question"])
    rows = rows[~rows["question"].isin(voluntary)]
    is_given = rows["value"].notna() | (rows["choice"] != "") | rows["chosen_system"].notna()
    # An image that was not shown is no fault of the annotator.
    given = rows[(is_given & (rows["skip_reason"] == "")) | (rows["skip_reason"] == UNSEEN)]
    fewer = rule_input.live_item_counts()
    counts = _question_counts(given)
    submitted = rule_input.assignments[rule_input.assignments["is_submitted"]]
    group_by_assignment = {
        assignment: (arm, fewer.get(assignment))
        for assignment, arm in zip(rule_input.assignments["assignment"], rule_input.assignments["arm"], strict=True)
    }
    n_asked_by_group: dict[Any, int] = {}
    for assignment, n in _question_counts(rows).items():
        if assignment in group_by_assignment:
            n_asked_by_group[group_by_assignment[assignment]] = max(
                n, n_asked_by_group.get(group_by_assignment[assignment], 0)
            )
    for assignment in submitted["assignment"]:
        n_asked = n_asked_by_group.get(group_by_assignment[assignment], 0)
        n = counts.get(assignment, 0)
        is_short = n < share * n_asked - 1e-9 if n_asked else None
        flags.judge(assignment, is_short, f"answered {n} of {n_asked}")
    return flags


def _question_counts(rows: "DataFrame") -> dict[int, int]:
    """Count the questions of each assignment. A question about an item, or about one of its outputs, counts once."""
    keys = ["assignment", "section", "question", "item", "system", "sample"]
    counts = rows[keys].drop_duplicates().groupby("assignment").size().to_dict()
    return cast("dict[int, int]", counts)  # the stubs of pandas do not know the type of a column
