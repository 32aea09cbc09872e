"""Apply the rules of a study: the result of each rule, and the kept assignments."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from studies.models import Output, Study
from studies.models.rules import REGISTRY

from . import FAIL, UNKNOWN, AssignmentFlags, RuleInput

# Applied to every study, even if not declared: researchers' decisions, and answers that came after the place was released.
MANDATORY_RULES = ("manual", "late")
UNSEEN_RULE = "unseen"


@dataclass(frozen=True, slots=True)
class AppliedRule:
    """A rule with its settings and its result. ``role``: primary, sensitivity, or always."""

    slug: str
    label: str
    role: str
    settings: Mapping[str, Any]
    is_outcome_blind: bool
    flags: AssignmentFlags
    problem: str = ""

    @property
    def failed_assignment_ids(self) -> set[int]:
        return {assignment for assignment, state in self.flags.states.items() if state == FAIL}

    @property
    def left_out_answer_ids(self) -> set[int]:
        return self.flags.answers

    @property
    def excludes(self) -> bool:
        return self.role in ("primary", "always")


def apply_rules(study: Study, rule_input: RuleInput) -> list[AppliedRule]:
    """Apply the mandatory rules, then the rules of the study's design in order. A rule that cannot run excludes no assignment."""
    declared = [
        (rule.rule, rule.settings or {}, rule.role) for rule in study.exclusion_rules.order_by("position", "rule")
    ]
    names = {slug for slug, _, _ in declared}
    mandatory = (*MANDATORY_RULES, *([UNSEEN_RULE] if _leaves_unseen_images_out(study) else []))
    all_rules = [(slug, {}, "always") for slug in mandatory if slug not in names] + declared
    return [_applied(slug, settings, role, rule_input) for slug, settings, role in all_rules]


def _leaves_unseen_images_out(study: Study) -> bool:
    """Return whether the study shows images, and was launched since answers about unseen images are left out."""
    if study.counting_version < Study.JUDGED_COUNTING:
        return False
    outputs = Output.objects.filter(system__study=study)
    return any(rows.exclude(media="").exists() for rows in (study.prompts.all(), outputs))


def _applied(slug: str, settings: Mapping[str, Any], role: str, material: RuleInput) -> AppliedRule:
    rule = REGISTRY.get(slug)
    all_unknown = AssignmentFlags(dict.fromkeys(material.submitted, UNKNOWN))
    if rule is None:
        return AppliedRule(slug, slug, role, settings, True, all_unknown, f"The rule {slug!r} is not installed.")
    make = partial(AppliedRule, slug, rule.label, role)
    cleaned: dict[str, Any] = {}
    if (form := rule.bound_form(settings)) is not None:
        if not form.is_valid():
            errors = "; ".join(f"{name}: {' '.join(messages)}" for name, messages in form.errors.items())
            return make(
                dict(settings), rule.is_outcome_blind, all_unknown, f"The rule's settings are invalid: {errors}"
            )
        cleaned = form.cleaned_data
    return make(cleaned, rule.is_outcome_blind, rule.flag(material, **cleaned))


def kept_assignment_ids(
    applied_rules: list[AppliedRule], submitted_ids: list[int], *, include_outcome_rules: bool = False
) -> list[int]:
    """Return the assignments that no excluding rule flags. Without ``include_outcome_rules``, rules that use outcomes are ignored."""
    rules = excluding_rules(applied_rules, include_outcome_rules=include_outcome_rules)
    excluded = set().union(*(rule.failed_assignment_ids for rule in rules))
    return [assignment for assignment in submitted_ids if assignment not in excluded]


def left_out_answer_ids(applied_rules: list[AppliedRule], *, include_outcome_rules: bool = False) -> set[int]:
    """Return the single answers that excluding rules leave out of assignments that count."""
    rules = excluding_rules(applied_rules, include_outcome_rules=include_outcome_rules)
    return set().union(*(rule.left_out_answer_ids for rule in rules))


def excluding_rules(applied_rules: list[AppliedRule], *, include_outcome_rules: bool = False) -> list[AppliedRule]:
    """Return the rules that exclude, from the recommended estimates or with ``include_outcome_rules`` from the paper's."""
    return [rule for rule in applied_rules if rule.excludes and (include_outcome_rules or rule.is_outcome_blind)]
