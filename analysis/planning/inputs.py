"""What a plan of a study's size is computed from. Nothing here loads numpy."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, TypeVar

from django.db.models import Count, Q

from analysis.protocols import headline_name, planned_block
from analysis.protocols.blocks.comparisons import Comparison
from analysis.protocols.families import study_claims
from analysis.stats.plain_records import HYPOTHESES, NONINFERIORITY, SUPERIORITY_BY_MARGIN
from analysis.stats.planning.comparisons import MOST_CLAIMS, Comparisons, PlannedClaim, PlannedFamily
from analysis.stats.planning.inputs import (
    DEFAULT_HEADLINE,
    EQUIVALENCE,
    HEADLINES,
    MOST_ANSWERS,
    MOST_PEOPLE,
    MOST_PROMPTS,
    StudySize,
    Target,
    Variation,
)
from analysis.stats.planning.priors import DEFAULT_PRIOR
from analysis.stats.planning.sizes import Pace, Prices, minutes_each, people_who_count, shown_prompts
from studies.design.serialization import canonical_json
from studies.design.workload import (
    BatchWorkload,
    estimate_stored_or_trial_batch_workloads,
    mean_reward,
    median_workload,
)
from studies.models import Contrast, Item, Section, Study
from studies.protocols import REGISTRY
from studies.services.lifecycle import FieldsRefused

# The comparisons that a draft declares, with their families and corrections, as a plan takes them.


PLANNED_ROLES = (Contrast.Role.PRIMARY, Contrast.Role.SECONDARY)


class Declared(NamedTuple):
    """The comparisons of a draft, and how many there are in the family of the first."""

    comparisons: Comparisons
    tests: int


def planned_between_conditions(study: Study, section: Section) -> str:
    """Return what the comparison of conditions in a draft is planned as, or '' if its first primary comparison is not between conditions."""
    first = _first_primary_contrast(study)
    if first is None or not first.x_condition:
        return ""
    estimand = first.estimand or REGISTRY[section.protocol].default_estimand(section)
    return next((name for name, one in HEADLINES.items() if one.is_between_conditions and one.kind == estimand), "")


def _first_primary_contrast(study: Study) -> Contrast | None:
    return next((one for one in study.read_contrasts() if one.role == Contrast.Role.PRIMARY), None)


def declared_comparisons(study: Study, size: StudySize) -> Declared:
    """Return the primary and secondary comparisons. One alone needs no correction."""
    block = planned_block(size.protocol)
    found = [
        (name == block or name.startswith(f"{block}_"), name, one)
        for name, planned in study_claims(study).items()
        for one in planned
        if one.role in PLANNED_ROLES
    ]
    # Those of the headline first: the plan is about the first of them.
    found.sort(key=lambda one: (not one[0], one[2].role != Contrast.Role.PRIMARY))
    families = tuple(
        PlannedFamily(name=row.name, method=row.adjustment, after=row.after) for row in study.comparison_families.all()
    )
    if not found:
        return Declared(Comparisons(), 1)
    tests = sum(one.family == found[0][2].family for _, _, one in found)
    if len(found) > MOST_CLAIMS:
        method = next((row.method for row in families if row.name == found[0][2].family), "bonferroni")
        return Declared(Comparisons(method=method), tests)
    if len(found) == 1:
        return Declared(Comparisons(), 1)
    claims = tuple(_planned_claim(one, name, size, is_headline) for is_headline, name, one in found)
    named = {claim.family for claim in claims}
    return Declared(Comparisons(claims=claims, families=tuple(row for row in families if row.name in named)), tests)


def claim_labels(study: Study) -> dict[str, str]:
    """Return the words for the declared comparisons by the names that plans store. A name of an earlier draft has none."""
    sections = {section.position: section for section in study.read_sections()}
    labels = {}
    for block, planned in study_claims(study).items():
        for one in planned:
            labels[_claim_name(one, block, is_headline=True)] = one.label
            estimand = _estimand_in_words(block, sections[one.section])
            labels[_claim_name(one, block, is_headline=False)] = f"{one.label} ({estimand})"
    return labels


def _claim_name(compared: Comparison, block: str, *, is_headline: bool) -> str:
    """Return the name of a claim in stored plans. It is a part of their fingerprint."""
    return compared.key if is_headline else f"{compared.key} ({block})"


def _estimand_in_words(block: str, section: Section) -> str:
    """Return what a block of comparisons estimates, or the protocol if it estimates one thing only."""
    protocol, name = REGISTRY[section.protocol], block.partition(".")[2]
    estimands = protocol.estimands(section)
    found = [words for estimand, words in estimands.items() if name.startswith(estimand)]
    return found[0] if found and len(estimands) > 1 else protocol.label.partition(":")[0]


def _planned_claim(compared: Comparison, block: str, size: StudySize, is_headline: bool) -> PlannedClaim:
    """Return the claim. A comparison of another estimand or criterion has other answers, and its margin another scale."""
    goal, margin = "difference", compared.margin
    low, high = size.scale_ends
    if not is_headline or not margin or margin >= (high - low) / 2:
        margin = None
    elif compared.expected == Contrast.Expected.SAME:
        goal = EQUIVALENCE
    elif compared.hypothesis in HYPOTHESES:
        goal = compared.hypothesis
    about = f"{block}, {compared.section}, {compared.criterion}, {compared.question}"
    y = f"{compared.x} by guessing" if size.headline.outputs == 1 and not size.is_between_conditions else compared.y
    return PlannedClaim(
        name=_claim_name(compared, block, is_headline=is_headline),
        x=f"{compared.x} ({about})",
        y=f"{y} ({about})",
        family=compared.family,
        goal=goal,
        margin=margin,
        significance=compared.level,
    )


# Raise it if the same inputs give other numbers. Stored plans are then computed again.
METHOD_VERSION = 2
# The version for goals by a margin. Until version 2 their sequential designs counted claims of the opposite.
MARGIN_METHOD_VERSION = 3
# Fields that came later. With these values they are not stored, so that a plan from before keeps its fingerprint.
USUAL = {"conditions": 1, "baseline": 0.5, "stopping": "none"}
# What an empty draft starts with.
PEOPLE, PROMPTS, PROMPTS_EACH = 36, 60, 20

_Record = TypeVar("_Record", StudySize, Target, Variation, Pace, Prices)


class InvalidPlanInputs(FieldsRefused):
    """Inputs that cannot be planned."""


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """The size of a study, what it is to find, how much people and prompts vary, and what the work takes and costs.

    ``comparisons``: what the study declares, or how ``target.tests`` comparisons are corrected. ``prior``: where the variation
    comes from. The key of a public prior, ``pilot:<code of a study>``, ``file:<sha256>``, or '' if a person entered it.
    """

    size: StudySize
    target: Target = field(default_factory=Target)
    variation: Variation = field(default_factory=Variation)
    pace: Pace = field(default_factory=Pace)
    prices: Prices = field(default_factory=Prices)
    prior: str = ""
    comparisons: Comparisons = field(default_factory=Comparisons)

    def as_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {name: _record_as_json(getattr(self, name)) for name in _RECORDS} | {"prior": self.prior}
        # Plans from before there were corrections keep their fingerprint.
        return data if self.comparisons == Comparisons() else data | {"comparisons": self.comparisons.as_dict()}

    @classmethod
    def from_json(cls, data: Any) -> "PlanInputs":
        """Return the inputs. Raise InvalidPlanInputs with the faults of all fields."""
        if not isinstance(data, Mapping):
            raise InvalidPlanInputs(
                {"inputs": "must be an object with size, target, variation, pace, prices, prior and comparisons."}
            )
        errors: dict[str, str] = {}
        if unknown := set(data) - {*_RECORDS, "prior", "comparisons"}:
            errors[min(unknown)] = f"is not known. Use {', '.join(_RECORDS)}, prior or comparisons."
        prior = data.get("prior", "")
        if not isinstance(prior, str) or len(prior) > 200:
            errors["prior"] = "must be a text of at most 200 characters."
        records = {name: _read_record(name, kind, data.get(name, {}), errors) for name, kind in _RECORDS.items()}
        try:
            comparisons = Comparisons.from_dict(data.get("comparisons", {}))
        except ValueError as refused:
            name, _, errors["comparisons"] = str(refused).partition(": ")
        if errors:
            raise InvalidPlanInputs(errors)
        inputs = cls(**records, prior=prior, comparisons=comparisons)  # type: ignore[arg-type]  # without errors, each is a record
        if problems := target_problems(inputs.size, inputs.target):
            raise InvalidPlanInputs(problems)
        return inputs

    def fingerprint(self) -> str:
        """Return the sha256 of the inputs and of the version of the method."""
        text = canonical_json({"inputs": self.as_json(), "method_version": self.method_version})
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def method_version(self) -> int:
        """The version of the method that simulates these inputs now. A stored plan with another one is outdated."""
        return MARGIN_METHOD_VERSION if self.target.goal in HYPOTHESES else METHOD_VERSION


_RECORDS: dict[str, Any] = {
    "size": StudySize,
    "target": Target,
    "variation": Variation,
    "pace": Pace,
    "prices": Prices,
}


def target_problems(size: StudySize, target: Target) -> dict[str, str]:
    """Return why no study of this protocol can have the target, by field."""
    low, high = size.scale_ends
    reach = (high - low) / 2
    problems = {}
    if target.margin is not None and target.margin >= reach:
        problems["margin"] = (
            f"{target.margin:g} is as large as the largest difference of this protocol, {reach:g}. Enter less."
        )
    if target.baseline != 0.5 and not size.is_between_conditions:
        problems["baseline"] = "Only comparisons between conditions have a baseline. Enter 50 % here."
    if target.stopping != "none" and not size.headline.has_stopping_rule:
        problems["stopping"] = "Only two choices have this rule. Choose no rule here."
    elif target.stopping != "none" and not target.is_sequential:
        problems["stopping"] = "This rule tests for a difference or for equivalence. Choose no rule for this goal."
    if size.is_between_conditions and target.goal in HYPOTHESES:
        problems["goal"] = "Between conditions a study shows a difference or equivalence. Choose one of these."
    return problems


def build_record(kind: type[_Record], values: Mapping[str, Any], errors: dict[str, str]) -> _Record | None:
    """Return the record, or None after adding what is wrong to ``errors``. The records name the field before a colon."""
    try:
        return kind(**values)
    except ValueError as refused:
        name, _, text = str(refused).partition(": ")
        errors[name] = text
        return None


def _read_record(name: str, kind: type[_Record], data: Any, errors: dict[str, str]) -> _Record | None:
    if not isinstance(data, Mapping):
        errors[name] = "must be an object."
        return None
    known = {one.name: one.type for one in fields(kind)}
    values: dict[str, Any] = {}
    n_before = len(errors)
    for key, value in data.items():
        if key not in known:
            errors[str(key)] = f"is not known. Use {', '.join(known)}."
            continue
        try:
            values[key] = _read_value(value, known[key])
        except (ValueError, OverflowError) as refused:
            errors[key] = str(refused)
    if kind is StudySize:
        for key in ("protocol", "people", "prompts", "prompts_each"):
            if key not in data:
                errors[key] = "is missing."
    return build_record(kind, values, errors) if len(errors) == n_before else None


def _record_as_json(record: Any) -> dict[str, Any]:
    """Return the values in the types of their fields, so that 1 and 1.0 have one fingerprint."""
    values = {one.name: _read_value(getattr(record, one.name), one.type) for one in fields(record)}
    return {name: value for name, value in values.items() if USUAL.get(name) != value}


def _read_value(value: Any, wanted: Any) -> Any:
    """Return the value in the type of its field. Raise ValueError if it has none."""
    if value is None and wanted == (float | None):
        return None
    if wanted is str:
        if isinstance(value, str) and len(value) <= 500:
            return value
        raise ValueError("must be a text of at most 500 characters.")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{str(value)[:40]!r} is not a number.")
    if wanted is int:
        if value != value or value in (float("inf"), float("-inf")) or int(value) != value:
            raise ValueError(f"{value!r} is not a whole number.")
        return int(value)
    return float(value)


def inputs_from_draft(
    study: Study, workloads: Sequence[BatchWorkload] | None = None, *, excluded_share: float | None = None
) -> PlanInputs:
    """Return what the draft says about its size, with defaults for the rest. It never raises: a draft may say anything.

    ``workloads``: those of its batches, if they are known already. ``excluded_share``: of a plan, in the place of what the rules say.
    """
    section = planned_section(study)
    prices = _prices(study, section)
    if excluded_share is not None:
        prices = replace(prices, excluded_share=excluded_share)
    size = _size(study, section, prices)
    declared = declared_comparisons(study, size)
    prior = DEFAULT_PRIOR
    if workloads is None:
        workloads = estimate_stored_or_trial_batch_workloads(study)
    return PlanInputs(
        size,
        _target(study, section, size, declared.tests),
        prior.variation,
        _pace(study, section, size, prices, median_workload(workloads)),
        prices,
        prior.key,
        declared.comparisons,
    )


def planned_section(study: Study) -> Section | None:
    """Return the live section that the plan is about: that of the first primary comparison, or the first one."""
    live = [one for one in study.read_sections() if one.purpose == Section.Purpose.LIVE and headline_name(one.protocol)]
    named = [one.section_id for one in study.read_contrasts() if one.role == Contrast.Role.PRIMARY and one.section_id]
    return next((one for one in live if [one.pk] == named[:1]), live[0] if live else None)


def items_per_prompt(section: Section) -> int:
    """Return how many items of a section give one answer about a pair: its pairs, or its systems if each page shows one output."""
    protocol = REGISTRY[section.protocol]
    systems = list(section.study.systems.judged().order_by("name").values_list("pk", flat=True))
    return max(1, len(protocol.turn_sets(section, systems)))


def count_second_sample(study: Study) -> int:
    """Return how many prompts a result counts: a group of prompts once, and each prompt without a group.

    A plan of groups lets nobody answer about more prompts than there are groups, so it promises rather too little.
    """
    has_group = ~Q(group="")
    return study.prompts.aggregate(n=Count("group", filter=has_group, distinct=True) + Count("pk", filter=~has_group))[
        "n"
    ]


def describe_groups(study: Study) -> str:
    """Return that plans of the study count groups in place of prompts, or '' if no prompt has a group."""
    counted = study.prompts.aggregate(n=Count("pk"), alone=Count("pk", filter=Q(group="")))
    if counted["n"] == counted["alone"]:
        return ""
    nouns = Study.GroupNoun("" if counted["alone"] else study.group_noun).label
    alone = f", of which {counted['alone']:,} are single prompts" if counted["alone"] else ""
    return (
        f"Plans count {nouns} in place of prompts: the {counted['n']:,} prompts of this study are "
        f"{count_second_sample(study):,} {nouns}{alone}."
    )


def _size(study: Study, section: Section | None, prices: Prices) -> StudySize:
    if section is None:
        return StudySize(protocol=DEFAULT_HEADLINE, people=PEOPLE, prompts=PROMPTS, prompts_each=PROMPTS_EACH)
    each = max(1, section.m * study.batches_per_annotator // items_per_prompt(section))
    prompts = min(MOST_PROMPTS, count_second_sample(study) or max(PROMPTS, each))
    each = min(each, prompts)
    people = min(_people(study, prices), MOST_PEOPLE, MOST_ANSWERS // each)
    scale = next((q.scale or {} for q in section.questions.all() if (q.scale or {}).get("kind") == "likert"), {})
    between = planned_between_conditions(study, section)
    conditions = len({arm.condition for arm in study.arms.all()}) if between else 1
    return StudySize(
        protocol=between or headline_name(section.protocol),
        people=max(people, 2) if between else people,
        conditions=min(max(2, conditions), max(people, 2)) if between else 1,
        # People who see few prompts leave the others out.
        prompts=min(prompts, people * each),
        prompts_each=each,
        points=min(100, max(2, len(scale.get("labels") or ()) or 5)),
    )


def _people(study: Study, prices: Prices) -> int:
    """Return how many people count at the target, which counts parts of the work. Some of those who submit are excluded."""
    if not study.target_n:
        return PEOPLE
    finishing = max(1, study.target_n // study.batches_per_annotator)
    is_kept = study.target_kind == Study.Target.KEPT
    return finishing if is_kept else people_who_count(finishing, prices.excluded_share)


def _target(study: Study, section: Section | None, size: StudySize, tests: int) -> Target:
    target = _target_of_contrasts(study, size, tests)
    if section is None or not REGISTRY[section.protocol].stops_by_bets(section):
        return target
    sequential = replace(target, population="people", stopping="anytime")
    return target if target_problems(size, sequential) else sequential


def _target_of_contrasts(study: Study, size: StudySize, tests: int) -> Target:
    first = _first_primary_contrast(study)
    target = Target(tests=tests)
    if first is None:
        return target
    target = replace(target, significance=first.level, population=first.population or target.population)
    goal = EQUIVALENCE if first.expected == Contrast.Expected.SAME else first.hypothesis
    if goal == Contrast.Hypothesis.DIFFERENCE or not first.margin:
        return target
    # Where x is to be not worse or equal, the plan assumes no difference.
    difference = 0.5 if goal in (EQUIVALENCE, NONINFERIORITY) else target.difference
    wanted = replace(target, goal=goal, margin=first.margin, difference=difference)
    if goal == SUPERIORITY_BY_MARGIN and size.null == 0.5:
        wanted = replace(wanted, difference=min(0.95, max(difference, 0.6 + first.margin)))
    return target if target_problems(size, wanted) else wanted


def _pace(study: Study, section: Section | None, size: StudySize, prices: Prices, median: BatchWorkload | None) -> Pace:
    """Return the pace at which `sizes.minutes_each` gives the minutes of the median batch, as the page Design shows them."""
    usual = replace(Pace(), words_per_minute=float(study.words_per_minute))
    if section is None or median is None or section.pk not in median.sections:
        return usual
    parts, shown = study.batches_per_annotator, shown_prompts(size.prompts_each, prices.test_share)
    own, texts = median.sections[section.pk], median.sections.get(section.reuses_id or section.pk)
    if texts is None or not texts.outputs:
        return usual
    pace = replace(
        usual,
        words_per_prompt=_rounded_down(texts.prompt_words * parts / shown, 1),
        words_per_output=_rounded_down(texts.output_words / texts.outputs, 1),
        outputs_per_prompt=_rounded_down(texts.outputs * parts / shown, 4),
        answers_per_prompt=_rounded_down((own.answers - own.fixed_answers) * parts / shown, 4),
        other_minutes=0,
    )
    rest = median.minutes * parts - minutes_each(size, pace, test_share=prices.test_share)
    # What rounding down has left is in the rest, so that the sum is exact.
    return replace(pace, other_minutes=round(max(0.0, rest), 4))


def _rounded_down(value: float, digits: int) -> float:
    return math.floor(value * 10**digits) / 10**digits


def _prices(study: Study, section: Section | None) -> Prices:
    usual, reward = Prices(), mean_reward(study)
    return replace(
        usual,
        wage_per_hour=usual.wage_per_hour if study.wage_per_hour is None else float(study.wage_per_hour),
        reward=None if reward is None else float(reward) * study.batches_per_annotator,
        # Without a rule nobody is excluded, so all who are paid count.
        excluded_share=usual.excluded_share if study.exclusion_rules.exists() else 0.0,
        test_share=0.0 if section is None else _test_share(section),
    )


def _test_share(section: Section) -> float:
    """Return the share of test questions among all items. The settings count them for each live item."""
    if not section.items.filter(kind=Item.Kind.TEST).exists():
        return 0.0
    settings = REGISTRY[section.protocol].cleaned_settings(section)
    per_item = (settings.get("positive_share") or 0) + (settings.get("negative_share") or 0)
    return round(per_item / (1 + per_item), 4)
