"""Planned comparisons of an analysis: a contrast in each section that it concerns, with its family."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.data.frames import SECOND_SAMPLE, cluster_labels
from studies.design.subjects import Subject, join_words, words_of_section
from studies.protocols import REGISTRY
from studies.protocols.base.pairs import system_contrasts_for_section

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.margins import MarginHypothesis
    from analysis.stats.results import Estimate


NOT_PLANNED = "not planned"
DIFFERENCE_HYPOTHESIS = "difference"


@dataclass(frozen=True, slots=True)
class Comparison:
    """(x, y), in that order, in one section and on one criterion. ``level`` is the test's, ``margin`` on the estimand's scale.

    ``population`` is what the design declared: "people_and_prompts", "people" or, if not declared, "". ``hypothesis`` is that
    of ``Contrast``. ``is_lower_better``: lower values of the estimand are better for x. ``subject``: what it is about, for readers.
    """

    section: int
    x: str
    y: str
    criterion: str = ""
    question: str = ""
    role: str = "exploratory"
    family: str = NOT_PLANNED
    expected: str = ""
    margin: float | None = None
    level: float = 0.05
    is_planned: bool = False
    population: str = ""
    hypothesis: str = DIFFERENCE_HYPOTHESIS
    is_lower_better: bool = False
    subject: Subject = Subject()

    @property
    def key(self) -> str:
        """The name in tables and families, unique within a protocol."""
        about = f" on {self.criterion}" if self.criterion else ""
        return f"{self.x} > {self.y}{about}, section {self.section}" + (f", {self.question}" if self.question else "")

    @property
    def label(self) -> str:
        """The name for readers: x > y, and what the comparison is about."""
        return join_words(f"{self.subject.x or self.x} > {self.subject.y or self.y}", self.subject.note)

    def as_dict(self) -> dict[str, Any]:
        return {
            "key": self.key, "section": self.section, "x": self.x, "y": self.y, "criterion": self.criterion,
            "question": self.question, "role": self.role, "family": self.family, "expected": self.expected,
            "margin": self.margin, "level": self.level, "is_planned": self.is_planned,
            "population": self.population, "hypothesis": self.hypothesis,
        }  # fmt: skip

    def tag_estimate(self, estimate: "Estimate", estimand: str, **settings: Any) -> "Estimate":
        """Return the estimate with its comparison and estimand (``key``) in its settings."""
        named = {"contrast": self.as_dict(), "subject": self.subject.as_dict(), "key": estimand}
        return replace(estimate, settings={**estimate.settings, **named, **settings})

    def equivalence_tests(self, estimate: "Estimate", *, null: float) -> "tuple[Estimate, ...]":
        """Return the equivalence test (TOST) of an estimate, if it has a margin and a standard error."""
        from analysis.stats.margins import equivalence_test_of_estimate

        if not self.margin or self.hypothesis != DIFFERENCE_HYPOTHESIS:
            return ()
        tost = equivalence_test_of_estimate(estimate, null=null, margin=self.margin, significance=self.level)
        return () if tost is None else (tost,)

    def with_equivalence_tests(self, estimate: "Estimate", *, null: float) -> "Estimate":
        """Return the estimate with its equivalence test, if it has one."""
        return replace(estimate, sensitivity=(*estimate.sensitivity, *self.equivalence_tests(estimate, null=null)))

    def claim_by_margin(self, null: float) -> "MarginHypothesis | None":
        """Return the declared claim by a margin, or None if the comparison asks for a difference."""
        from analysis.stats.margins import MarginHypothesis

        if self.margin is None or self.hypothesis == DIFFERENCE_HYPOTHESIS:
            return None
        return MarginHypothesis(self.hypothesis, null, self.margin, self.is_lower_better)

    def planned_test(self, estimate: "Estimate") -> "Estimate":
        """Return the estimate with the test of the declared hypothesis, which is the test of difference by default."""
        from analysis.stats.margins import margin_test

        if estimate.test is None or estimate.test.null is None:
            return estimate
        claim = self.claim_by_margin(estimate.test.null)
        return estimate if claim is None else margin_test(estimate, claim, significance=self.level)

    def planned_verdict(self, estimate: "Estimate", *, is_gate: bool = False) -> "Estimate":
        """Return an adjusted estimate with the verdict about its claim by a margin, if it was tested for one.

        ``is_gate``: another family waits for that of the comparison. Then the claim alone can be shown: the level that
        "better" and "worse" would use is passed on to the next family. ``analysis.stats.claims`` reads this from the detail.
        """
        from analysis.stats.margins import margin_verdict

        if estimate.detail.get("verdict") == "not_tested":
            return estimate
        tested = estimate.settings.get("claim")
        claim = self.claim_by_margin(tested["null"]) if tested else None
        if claim is None:
            return estimate
        judged = replace(estimate, detail={**estimate.detail, "is_gate": True}) if is_gate else estimate
        verdict = margin_verdict(judged, claim, significance=self.level)
        return replace(judged, detail={**judged.detail, "verdict": verdict})


# The comparisons of each block, with their estimates; and the estimates in the same order, adjusted and with verdicts.
ComparedByBlock = Mapping[str, Sequence[tuple[Comparison, "Estimate"]]]
AdjustedByBlock = Mapping[str, tuple["Estimate", ...]]


def comparison_from_contrast(
    contrast: Any, section: Any, criterion: str, question: str = "", *, names: tuple[str, str] | None = None
) -> Comparison:
    """Return the comparison of a contrast in a section. Its family is the declared one, or all contrasts of its role.

    ``names``: what is compared, if not the contrast's two systems.
    """
    x, y = names or (contrast.x.name, contrast.y.name)
    return Comparison(
        section=section.position,
        x=x,
        y=y,
        criterion=criterion,
        question=question,
        role=contrast.role,
        family=contrast.family or contrast.role,
        expected=contrast.expected,
        margin=contrast.margin,
        level=contrast.level,
        is_planned=True,
        population=contrast.population,
        hypothesis=contrast.hypothesis,
        subject=words_of_section(section).subject(criterion, question),
    )


def unplanned_comparison(section: Any, x: str, y: str, criterion: str = "", question: str = "") -> Comparison:
    """Return a comparison in a section that no contrast declares."""
    subject = words_of_section(section).subject(criterion, question)
    return Comparison(section.position, x, y, criterion, question, subject=subject)


def read_contrasts(section: Any) -> list[Any]:
    """Read the contrasts of the section's study, once for all its questions."""
    return section.study.read_contrasts()


def samples_if_unpaired(wide: "DataFrame", comparison: Comparison) -> dict[str, Any] | None:
    """Return the judgements of both systems as two samples for ``analysis.stats.unpaired``, or None if they were paired.

    ``wide`` has a row for each annotator and prompt (its index, with the second sample), and a column for each system. Paired (side by side) means that
    an annotator judged both systems for the same prompt. If too few annotators did so for a test, and enough others judged
    each system, the comparison uses all annotators as two samples.
    """
    from analysis.stats.arrays import distinct_integers
    from analysis.stats.cluster_variances import TOO_FEW_CLUSTERS

    table = wide.reindex(columns=[comparison.x, comparison.y])
    annotators, names = table.index.get_level_values("annotator").factorize()
    is_judged = table.notna().to_numpy(bool)
    side_by_side, judges, *each = (
        len(distinct_integers(annotators[rows], len(names)))
        for rows in (is_judged.all(axis=1), is_judged.any(axis=1), *is_judged.T)
    )
    if side_by_side and (
        side_by_side >= TOO_FEW_CLUSTERS or min(each) < TOO_FEW_CLUSTERS or judges <= 2 * side_by_side
    ):
        return None
    if not judges:
        return None
    samples: dict[str, Any] = {"systems": (comparison.x, comparison.y)}
    for name, system in zip("xy", table.columns, strict=True):
        judged = table[system].dropna()
        samples[name] = judged.to_numpy(float)
        for labels, level in (("annotators", "annotator"), ("prompts", SECOND_SAMPLE)):
            samples[f"{name}_{labels}"] = cluster_labels(judged.index.get_level_values(level))
    return samples


def planned_comparisons(
    contrasts: Iterable[Any], section: Any, criterion: str, question: str, estimand: str
) -> list[Comparison]:
    """Return the planned comparisons of two systems in a section, on this criterion and estimand.

    If a family plans a pair twice, for example on all criteria and on this one, the plan that names more is meant.
    """
    default = REGISTRY[section.protocol].default_estimand(section)
    meant = [
        contrast
        for contrast in system_contrasts_for_section(contrasts, section, estimand, default)
        if contrast.criterion in ("", criterion)
    ]
    by_claim = {(one.x_id, one.y_id, one.family or one.role): one for one in sorted(meant, key=names_more)}
    return [
        comparison_from_contrast(contrast, section, criterion, question)
        for contrast in meant
        if contrast in by_claim.values()
    ]


def names_more(contrast: Any) -> int:
    """Return how much a contrast names of what it is about: its criterion, its section and its estimand."""
    return bool(contrast.criterion) + bool(contrast.section_id) + bool(contrast.estimand)


def planned_comparisons_of_questions(section: Any, questions: Iterable[Any], estimand: str) -> list[Comparison]:
    """Return the planned comparisons of two systems in a section, for each question that they concern."""
    contrasts = read_contrasts(section)
    return [
        compared
        for question in questions
        for compared in planned_comparisons(contrasts, section, question.criterion, question.key, estimand)
    ]


def other_comparisons(
    section: Any,
    planned: Iterable[Comparison],
    pairs: Iterable[tuple[str, str]],
    criterion: str = "",
    question: str = "",
) -> list[Comparison]:
    """Return comparisons of those pairs that none of the planned ones compares."""
    planned_pairs = {frozenset((compared.x, compared.y)) for compared in planned}
    return [
        unplanned_comparison(section, x, y, criterion, question)
        for x, y in pairs
        if frozenset((x, y)) not in planned_pairs
    ]


def each_once(comparisons: Iterable[Comparison]) -> tuple[Comparison, ...]:
    return tuple({compared.key: compared for compared in comparisons}.values())


def adjust_pvalues_and_add_verdicts_as_in_paper(
    compared_estimates: Sequence[tuple[Comparison, "Estimate"]], block_name: str, context: AnalysisContext
) -> tuple["Estimate", ...]:
    """Return the paper's estimates with p-values adjusted by Holm's method in each family of the block, and with verdicts."""
    from analysis.stats.margins import adjust_and_add_verdicts
    from analysis.stats.multiplicity import Family

    families: dict[str, list[tuple[Comparison, Estimate]]] = {}
    for compared, estimate in compared_estimates:
        families.setdefault(f"{block_name}.{compared.family}", []).append((compared, estimate))
    results: dict[str, Estimate] = {}
    for name, members in families.items():
        results |= adjust_and_add_verdicts(
            {compared.key: estimate for compared, estimate in members},
            Family(name, tuple(compared.key for compared, _ in members)),
            significance={compared.key: compared.level for compared, _ in members},
            star_scheme=context.star_scheme,
        )
    return tuple(results[compared.key] for compared, _ in compared_estimates)


# Planted references in analyses: the names of the systems that are ends of the scale.


@dataclass(frozen=True, slots=True)
class PlantedReferences:
    """The names of the systems that are planted ends of the scale."""

    maximal: frozenset[str] = frozenset()
    minimal: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        return self.maximal | self.minimal

    @property
    def is_complete(self) -> bool:
        return bool(self.maximal and self.minimal)

    def kind_of(self, system: str) -> str:
        """Return which end a system is, for tables, or '' for a system under evaluation."""
        return "maximal" if system in self.maximal else "minimal" if system in self.minimal else ""


def planted_references_of(study: Any) -> PlantedReferences:
    kinds = study.systems.model.Reference
    names_by_kind: dict[str, set[str]] = {}
    for name, reference in study.systems.exclude(reference="").values_list("name", "reference"):
        names_by_kind.setdefault(reference, set()).add(name)
    return PlantedReferences(
        frozenset(names_by_kind.get(kinds.MAXIMAL, ())), frozenset(names_by_kind.get(kinds.MINIMAL, ()))
    )


def pairs_under_evaluation(
    systems: Iterable[str], references: PlantedReferences = PlantedReferences()
) -> Iterator[tuple[str, str]]:
    """Return all pairs of systems under evaluation. Planted ends are compared only if this is planned."""
    return combinations(sorted(set(systems) - references.names), 2)
