"""Rules about the answer to one question: the annotator gave one of the named answers, or none of them."""

import csv
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from django import forms

from studies.models.rules import register
from studies.protocols import REGISTRY as PROTOCOLS

from .. import FAIL, PASS, UNKNOWN, AssignmentFlags, RuleInput

if TYPE_CHECKING:
    from studies.models import Section


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
            state = FAIL if is_chosen == fails_if_chosen else PASS
            flags.add(assignment, state, f"{question}: {', '.join(sorted(keys))}" if state == FAIL else "")
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
