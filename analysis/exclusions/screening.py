"""Find annotators who do not read, from their answers to test questions.

Both rules about test questions, the report's tables and the page of annotators use these functions. scipy is imported when
a model is fitted, because the rules are imported by every process.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from studies.models import Output, Study
from studies.models.design import REGISTRY

from . import FAIL, UNKNOWN, AssignmentFlags, RuleInput

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.mixture import Screening


# Apply the rules of a study: the result of each rule, and the kept assignments.


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
    """Return whether the study shows images or warnings, and was launched since answers about unseen images are left out."""
    if study.counting_version < Study.JUDGED_COUNTING:
        return False
    outputs = Output.objects.filter(system__study=study).exclude(media="", warning="")
    return study.prompts.exclude(media="").exists() or outputs.exists()


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


# The flow of annotators through the rules, from arrival to the kept answers.


def exclusion_flow(applied_rules: list[AppliedRule], assignments: "DataFrame") -> dict[str, Any]:
    """Return the flow: stages, each rule's marginal and sequential counts (also by arm), overlaps, and excluded assignments.

    Sequential counts follow the order of the rules: n_in - n_excluded = n_out. Each started assignment is either released,
    unfinished or submitted.
    """
    submitted = assignments[assignments["is_submitted"]]
    arms = dict(zip(submitted["assignment"], submitted["arm"], strict=True))
    names = dict(zip(submitted["assignment"], submitted["annotator"], strict=True))
    remaining = list(arms)
    flagged_by: dict[int, list[str]] = {}
    steps, excluded_assignments = [], []
    for rule in applied_rules:
        failed = rule.failed_assignment_ids & arms.keys()
        excluded = [assignment for assignment in remaining if rule.excludes and assignment in failed]
        for assignment in failed if rule.excludes else ():
            flagged_by.setdefault(assignment, []).append(rule.slug)
        before = Counter(arms[assignment] for assignment in remaining)
        n_excluded_by_arm = Counter(arms[assignment] for assignment in excluded)
        n_in, excluded_ids = len(remaining), set(excluded)
        remaining = [assignment for assignment in remaining if assignment not in excluded_ids]
        steps.append(
            {
                "rule": rule.slug,
                "label": rule.label,
                "role": rule.role,
                "is_outcome_blind": rule.is_outcome_blind,
                "settings": dict(rule.settings),
                "problem": rule.problem,
                "n_in": n_in,
                "n_flagged": len(failed),
                "n_unknown": sum(state == UNKNOWN for state in rule.flags.states.values()),
                "n_excluded": len(excluded),
                "n_out": len(remaining),
                "by_arm": {
                    arm: {"n_in": n, "n_excluded": n_excluded_by_arm.get(arm, 0)} for arm, n in sorted(before.items())
                },
            }
        )
        excluded_assignments += [
            {"annotator": names[assignment], "rule": rule.slug, "evidence": rule.flags.evidence.get(assignment, "")}
            for assignment in excluded
        ]
    overlaps = Counter(tuple(sorted(rules)) for rules in flagged_by.values())
    # Annotators who submitted after their release count as submitted, not as released.
    unsubmitted = assignments[~assignments["is_submitted"]]
    reasons = Counter(reason for reason in unsubmitted["released_reason"] if reason)
    return {
        "unit": "assignment",
        "arrived": len(assignments),
        "turned_away": reasons.get("full", 0),
        "started": len(assignments) - reasons.get("full", 0),
        "released": {reason: n for reason, n in sorted(reasons.items()) if reason != "full"},
        "unfinished": int((~assignments["is_submitted"] & assignments["released_at"].isna()).sum()),
        "submitted": len(arms),
        "rules": steps,
        "overlaps": [
            {"rules": list(rules), "n": n} for rules, n in sorted(overlaps.items(), key=lambda o: (-o[1], o[0]))
        ],
        "excluded_assignments": sorted(excluded_assignments, key=lambda row: (row["rule"], row["annotator"])),
        "kept": len(remaining),
    }


DEFAULT_MODEL = "default"
# The positions of the two types in every pair of counts: positive questions, and all others (negative, damaged, given).
TYPES = ("positive", "negative")
MAX_BOUNDARY_QUESTIONS = 30
MIN_BOUNDARY_QUESTIONS = 10


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The settings of the model. ``model``: "default", or a name of ``analysis.stats.mixture.MODELS``."""

    model: str = DEFAULT_MODEL
    fit: str = "likelihood"
    threshold: float = 0.9
    cutoff: float = 0.99
    cutoff_rule: str = "at_least"

    @classmethod
    def from_stored(cls, settings: Mapping[str, Any]) -> "ModelSettings":
        return cls(**{name: settings[name] for name in asdict(cls()) if name in settings})


@dataclass(frozen=True, slots=True)
class SimpleSettings:
    """The settings of the simple rule: failed at least this many, and this share, of at least this many counted answers."""

    failed: int = 2
    counted: int = 4
    share: float | None = 0.25

    @classmethod
    def from_stored(cls, settings: Mapping[str, Any]) -> "SimpleSettings":
        return cls(**{name: settings[name] for name in asdict(cls()) if name in settings})


@dataclass(frozen=True, slots=True)
class AnnotatorTestCounts:
    """An annotator's answers to test questions, as pairs of positive and negative questions."""

    annotator: str
    right: tuple[int, int]
    counted: tuple[int, int]
    n_uncounted: int

    @property
    def n_counted(self) -> int:
        return sum(self.counted)

    @property
    def n_failed(self) -> int:
        return self.n_counted - sum(self.right)

    def in_words(self) -> str:
        """Return the counts as text: "3 of 7 positive and 6 of 6 negative test questions right"."""
        parts = [
            f"{right} of {counted} {name}"
            for right, counted, name in zip(self.right, self.counted, TYPES, strict=True)
            if counted
        ]
        return f"{' and '.join(parts)} test question{'' if self.n_counted == 1 else 's'} right"


def count_by_annotator(test_answers: "DataFrame") -> list[AnnotatorTestCounts]:
    """Count each annotator's answers in submitted work, sorted by annotator. ``test_answers``: from ``read_test_answers``."""
    if test_answers.empty:
        return []
    right: dict[str, list[int]] = {}
    counted: dict[str, list[int]] = {}
    uncounted: dict[str, int] = {}
    rows = test_answers[test_answers["is_submitted"]]
    for annotator, is_positive, is_right, is_counted in zip(
        rows["annotator"], rows["is_positive"], rows["is_right"], rows["is_counted"], strict=True
    ):
        place = 0 if is_positive else 1
        own_right, own_counted = right.setdefault(annotator, [0, 0]), counted.setdefault(annotator, [0, 0])
        uncounted.setdefault(annotator, 0)
        if is_counted:
            own_counted[place] += 1
            own_right[place] += bool(is_right)
        else:
            uncounted[annotator] += 1
    return [
        AnnotatorTestCounts(
            annotator,
            (right[annotator][0], right[annotator][1]),
            (counted[annotator][0], counted[annotator][1]),
            uncounted[annotator],
        )
        for annotator in sorted(counted)
    ]


def pooled_sentences(pooled: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return as a sentence over how many rounds answers were pooled; nothing for the answers of one study."""
    answers = [row["answers"] for row in pooled]
    if not answers:
        return []
    return [f"The {sum(answers)} counted answers in {len(answers)} rounds of the board were judged together."]


def counts_of_submitted(rule_input: RuleInput) -> list[AnnotatorTestCounts]:
    """Count the answers in the study's own submitted work, and in that of the other rounds of its board."""
    frame = rule_input.test_answers()
    if frame.empty:
        return []
    return count_by_annotator(frame[~frame["is_own"] | frame["assignment"].isin(rule_input.submitted)])


def pooled_studies(test_answers: "DataFrame") -> list[dict[str, Any]]:
    """Return the studies whose answers are judged together, by their codes, with the counted answers and the people of each.

    Without answers of other studies there are none.
    """
    rows = test_answers[test_answers["is_submitted"] & test_answers["is_counted"]]
    if rows["is_own"].all():
        return []
    return [
        {"study": code, "answers": len(own), "annotators": int(own["annotator"].nunique())}
        for code, own in rows.groupby("study", sort=True)
    ]


def fails_simple_rule(counts: AnnotatorTestCounts, settings: SimpleSettings) -> bool | None:
    """Return whether the annotator failed too many test questions, or None with too few counted answers."""
    if counts.n_counted < settings.counted:
        return None
    return counts.n_failed >= settings.failed and counts.n_failed >= (settings.share or 0) * counts.n_counted


def fit_and_screen(counts: Iterable[AnnotatorTestCounts], settings: ModelSettings) -> "Screening":
    """Fit the model to all annotators and return who is flagged. Equal counts and settings give equal results."""
    from analysis.stats.mixture import screen_annotators_by_question_type
    from analysis.stats.seeds import seeded_generator

    rows = list(counts)
    content = sorted([*row.right, *row.counted] for row in rows)
    return screen_annotators_by_question_type(
        [row.right for row in rows],
        [row.counted for row in rows],
        rng=seeded_generator("test questions", content, asdict(settings)),
        model=None if settings.model == DEFAULT_MODEL else settings.model,
        mode="paper" if settings.fit == "paper" else "recommended",
        threshold=settings.threshold,
        cutoff=settings.cutoff,
        rule=settings.cutoff_rule,
    )


def boundary_rows(screening: "Screening", counts: Iterable[AnnotatorTestCounts]) -> list[dict[str, int | None]]:
    """Return the table "flagged at b or fewer right of n": a row for each n, with b of both types, None if no b is flagged.

    Without a fit there are no rows.
    """
    from analysis.stats.mixture import flag_boundaries

    if screening.status != "ok":
        return []
    most = max((n for row in counts for n in row.counted), default=0)
    questions = range(1, min(max(most, MIN_BOUNDARY_QUESTIONS), MAX_BOUNDARY_QUESTIONS) + 1)
    chosen = screening.settings
    tables = [
        flag_boundaries(
            prior,
            questions,
            criterion=chosen["criterion"],
            threshold=chosen["threshold"],
            cutoff=chosen["cutoff"],
            rule=chosen["rule"],
        ).at_most
        for prior in screening.priors
    ]
    # Only the paper's mode flags annotators without a mistake.
    surplus = 0 if screening.mode == "paper" else 1
    return [
        {"n": n} | {name: None if b is None else min(b, n - surplus) for name, b in zip(TYPES, pair, strict=True)}
        for n, pair in zip(questions, zip(*tables, strict=True), strict=True)
    ]


def model_sentences(screening: "Screening") -> list[str]:
    """Return the model in words: what is inattentive, when it is flagged, and what was fitted."""
    chosen = screening.settings
    rule = "reaches" if chosen["rule"] == "at_least" else "exceeds"
    inattentive = (
        f"the accuracy is below {_decimal(chosen['threshold'])}"
        if chosen["criterion"] == "rate"
        else "the annotator is not of the most accurate class"
    )
    sentences = [
        f"Model {screening.model}. Inattentive: {inattentive}. An annotator is flagged if the probability of this {rule} "
        f"{_decimal(chosen['cutoff'])} on positive or on negative questions."
    ]
    if screening.status != "ok":
        return [*sentences, f"The model has no result: {screening.reason}."]
    for place, prior in enumerate(screening.priors):
        classes = ", ".join(
            f"{_decimal(mean)} ({100 * weight:.0f} % of annotators)"
            for mean, weight in zip(prior.means, prior.weights, strict=True)
        )
        origin = f"learned from {screening.fits[place].n_annotators} annotators" if screening.fits else "given"
        sentences.append(f"Expected accuracy on {TYPES[place]} questions, {origin}: {classes}.")
    if screening.spared:
        sentences.append(
            f"{len(screening.spared)} without a mistake on a type of question are not flagged by it, although the model would."
        )
    return sentences


def _decimal(value: float) -> str:
    return f"{value:.3f}".rstrip("0").removeprefix("0") if value < 1 else "1"


def flag_all_work_of_annotators(
    rule_input: RuleInput, judged: Mapping[str, tuple[bool | None, str]]
) -> AssignmentFlags:
    """Judge every submitted assignment as its annotator (see ``AssignmentFlags.judge``). Those of all others are unknown."""
    flags = AssignmentFlags(dict.fromkeys(rule_input.submitted, UNKNOWN))
    rows = rule_input.assignments
    for assignment, annotator in zip(rows["assignment"], rows["annotator"], strict=True):
        if assignment in flags.states and annotator in judged:
            flags.judge(assignment, *judged[annotator])
    return flags


def probability_in_words(value: float) -> str:
    """Return a probability with three digits: ".997", or "above .999"."""
    return "above .999" if value >= 0.9995 else f"{value:.3f}".lstrip("0") if value >= 0.0005 else "below .001"
