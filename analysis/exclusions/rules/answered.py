"""Rules about the answer to a named question: gave one of these answers, or none of them."""

import csv
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from django import forms

from studies.models.rules import register
from studies.protocols import REGISTRY as PROTOCOLS

from .. import FAIL, PASS, UNKNOWN, Flags, RuleInput

if TYPE_CHECKING:
    from studies.models import Section


def _quoted(key: str) -> str:
    return '"{}"'.format(key.replace('"', '""')) if "," in key or key.startswith('"') else key


class OptionKeysField(forms.CharField):
    """Keys of answer options, separated by commas; kept as a list. A key that has a comma in it is written in quotes."""

    def prepare_value(self, value):
        if not isinstance(value, list | tuple):
            return value
        return ", ".join(_quoted(str(key)) for key in value)

    def to_python(self, value):
        if isinstance(value, list | tuple):  # as it is stored
            return [str(key) for key in value]
        try:
            rows = list(csv.reader((super().to_python(value) or "").splitlines(), skipinitialspace=True))
        except csv.Error as error:
            raise forms.ValidationError(f"The keys cannot be read: {error}.") from None
        return [key.strip() for row in rows for key in row if key.strip()]

    def validate(self, value):
        if self.required and not value:
            raise forms.ValidationError(self.error_messages["required"], code="required")

    def run_validators(self, value):
        for key in value:
            super().run_validators(key)


class AnswerSettings(forms.Form):
    question = forms.SlugField(max_length=50, help_text="Its name in the data.")
    options = OptionKeysField(label="answers", help_text="Keys of its answers, separated by commas.")


def answer_problems(sections: Iterable["Section"], question: str, options: list[str]) -> Iterator[str]:
    """Why a rule about the answers to a question could not find what it should: the question or an answer does not exist.

    ``sections``: those of the study, with their questions.
    """
    asked = [
        (each, PROTOCOLS[section.protocol].answer_keys(section, each))
        for section in sections
        if section.protocol in PROTOCOLS
        for each in section.questions.all()
    ]
    there = dict.fromkeys(key for each, keys in asked if each.key == question for key in keys)
    if not any(each.key == question for each, _ in asked):
        choices = dict.fromkeys(each.key for each, keys in asked if keys)
        known = (
            f"Questions with answers to choose from are: {', '.join(choices)}."
            if choices
            else "The study has no question with answers to choose from."
        )
        yield f"the study has no question with the key “{question}”. {known}"
    elif not there:
        yield f"the question “{question}” has no answers to choose from."
    elif unknown := [key for key in options if key not in there]:
        keys = "keys" if len(unknown) > 1 else "key"
        yield f"the question “{question}” has no answer with the {keys} {', '.join(f'“{key}”' for key in unknown)}. Its answers have the keys: {', '.join(there)}."


def _flags_by_answer(rule_input: RuleInput, question: str, options: list[str], fails_if_chosen: bool) -> Flags:
    flags = Flags(dict.fromkeys(rule_input.submitted, UNKNOWN))
    rows = rule_input.responses
    rows = rows[(rows["question"] == question) & ~rows["is_erased"]]
    chosen: dict[int, set[str]] = {}
    for assignment, choice, value in zip(rows["assignment"], rows["choice"], rows["value"], strict=True):
        # A box of a multiple choice that was left empty is stored as 0.
        if choice and value != 0:
            chosen.setdefault(assignment, set()).add(choice)
    for assignment, keys in chosen.items():
        if assignment in flags.states:
            is_found = bool(keys & set(options))
            state = FAIL if is_found == fails_if_chosen else PASS
            flags.add(assignment, state, f"{question}: {', '.join(sorted(keys))}" if state == FAIL else "")
    return flags


@register(
    "not_native",
    "not native: the answer to a question about language is not one of those wanted",
    settings_form=AnswerSettings,
    problems=answer_problems,
    source="Ethayarajh and Jurafsky 2022, appendix A.2",
)
def not_native(rule_input: RuleInput, question: str, options: list[str]) -> Flags:
    """Finds whose answer to the named question is none of the options given. Who was not asked is unknown."""
    return _flags_by_answer(rule_input, question, options, fails_if_chosen=False)


@register(
    "answered",
    "answered: gave one of the named answers to a question",
    settings_form=AnswerSettings,
    problems=answer_problems,
)
def answered(rule_input: RuleInput, question: str, options: list[str]) -> Flags:
    """Finds who gave one of the options to the named question (of a survey, say). Who was not asked is unknown."""
    return _flags_by_answer(rule_input, question, options, fails_if_chosen=True)
