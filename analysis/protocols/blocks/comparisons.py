"""Planned comparisons of an analysis: a contrast in each section that it concerns, with its family."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from studies.protocols.base.contrasts import system_contrasts_for_section

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.multiplicity import Family
    from analysis.stats.results import Estimate

NOT_PLANNED = "not planned"


@dataclass(frozen=True, slots=True)
class Comparison:
    """(x, y), in that order, in one section and on one criterion. ``level`` is the test's, ``margin`` on the estimand's scale.

    ``population`` is what the design declared: "people_and_prompts", "people" or, if not declared, "".
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

    @property
    def key(self) -> str:
        """The name in tables and families, unique within a protocol."""
        about = f" on {self.criterion}" if self.criterion else ""
        return f"{self.x} > {self.y}{about}, section {self.section}" + (f", {self.question}" if self.question else "")

    def as_dict(self) -> dict[str, Any]:
        return {
            "key": self.key, "section": self.section, "x": self.x, "y": self.y, "criterion": self.criterion,
            "question": self.question, "role": self.role, "family": self.family, "expected": self.expected,
            "margin": self.margin, "level": self.level, "is_planned": self.is_planned,
            "population": self.population,
        }  # fmt: skip

    def tag_estimate(self, estimate: "Estimate", estimand: str, **settings: Any) -> "Estimate":
        """Return the estimate with its comparison and estimand (``key``) in its settings."""
        return replace(
            estimate, settings={**estimate.settings, "contrast": self.as_dict(), "key": estimand, **settings}
        )

    def equivalence_tests(self, estimate: "Estimate", *, null: float, **options: Any) -> "tuple[Estimate, ...]":
        """Return the equivalence test (TOST) of an estimate, if it has a margin and a standard error.

        ``options``: see ``analysis.stats.equivalence.equivalence_test_of_estimate``.
        """
        from analysis.stats.equivalence import equivalence_test_of_estimate

        if not self.margin:
            return ()
        tost = equivalence_test_of_estimate(estimate, null=null, margin=self.margin, significance=self.level, **options)
        return () if tost is None else (tost,)


def comparison_from_contrast(contrast: Any, section: Any, criterion: str, question: str = "") -> Comparison:
    """Return the comparison of a contrast in a section. Its family is the declared one, or all contrasts of its role."""
    return Comparison(
        section=section.position,
        x=contrast.x.name,
        y=contrast.y.name,
        criterion=criterion,
        question=question,
        role=contrast.role,
        family=contrast.family or contrast.role,
        expected=contrast.expected,
        margin=contrast.margin,
        level=contrast.level,
        is_planned=True,
        population=contrast.population,
    )


def samples_if_unpaired(wide: "DataFrame", comparison: Comparison) -> dict[str, Any] | None:
    """Return the judgements of both systems as two samples for ``analysis.stats.unpaired``, or None if they were paired.

    ``wide`` has a row for each annotator and prompt (its index), and a column for each system. Paired (side by side) means that
    an annotator judged both systems for the same prompt. If too few annotators did so for a test, and enough others judged
    each system, the comparison uses all annotators as two samples.
    """
    from analysis.stats.clusters import TOO_FEW_CLUSTERS

    table = wide.reindex(columns=[comparison.x, comparison.y])
    annotators, is_judged = table.index.get_level_values("annotator"), table.notna()
    side_by_side, judges = set(annotators[is_judged.all(axis=1)]), set(annotators[is_judged.any(axis=1)])
    fewest = min(len(set(annotators[is_judged[system]])) for system in table.columns)
    if side_by_side and (
        len(side_by_side) >= TOO_FEW_CLUSTERS or fewest < TOO_FEW_CLUSTERS or len(judges) <= 2 * len(side_by_side)
    ):
        return None
    if not judges:
        return None
    samples: dict[str, Any] = {"systems": (comparison.x, comparison.y)}
    for name, system in zip("xy", table.columns, strict=True):
        judged = table[system].dropna()
        samples[name] = judged.to_numpy(float)
        for labels in ("annotator", "prompt"):
            samples[f"{name}_{labels}s"] = judged.index.get_level_values(labels).to_numpy(object)
    return samples


def planned_comparisons(
    contrasts: Iterable[Any], section: Any, criterion: str, question: str, estimand: str, default_estimand: str
) -> list[Comparison]:
    """Return the planned comparisons of two systems in a section, on this criterion and estimand."""
    return [
        comparison_from_contrast(contrast, section, criterion, question)
        for contrast in system_contrasts_for_section(contrasts, section, estimand, default_estimand)
        if contrast.criterion in ("", criterion)
    ]


def adjust_pvalues_and_add_verdicts(
    compared_estimates: Sequence[tuple[Comparison, "Estimate"]],
    block_name: str,
    context: AnalysisContext,
    *,
    not_claimed: Collection[str] = (),
) -> tuple["Estimate", ...]:
    """Return a block's estimates with p-values and intervals adjusted within each family, and with verdicts.

    Claims are adjusted by Bonferroni's method for the number of claims in their declared family, over all protocols and
    estimands. Other estimates are adjusted for their number in the block. ``not_claimed``: keys of planned comparisons that
    are not claims in this block. Each comparison has its own level.
    """
    from analysis.stats.multiplicity import Family

    families: dict[str, list[Comparison]] = {}
    sizes = {}
    for compared, _ in compared_estimates:
        if block_name in context.claim_blocks and compared.is_planned and compared.key not in not_claimed:
            name = compared.family
            sizes[name] = context.family_sizes[name]
        else:
            name = f"{block_name}.{compared.family}"
        families.setdefault(name, []).append(compared)
    return _with_verdicts(
        compared_estimates,
        [
            (Family(name, tuple(member.key for member in members), "bonferroni", sizes.get(name)), members)
            for name, members in families.items()
        ],
        context,
    )


def adjust_pvalues_and_add_verdicts_as_in_paper(
    compared_estimates: Sequence[tuple[Comparison, "Estimate"]], block_name: str, context: AnalysisContext
) -> tuple["Estimate", ...]:
    """Return the paper's estimates with p-values adjusted by Holm's method in each family of the block, and with verdicts."""
    from analysis.stats.multiplicity import Family

    families: dict[str, list[Comparison]] = {}
    for compared, _ in compared_estimates:
        families.setdefault(f"{block_name}.{compared.family}", []).append(compared)
    return _with_verdicts(
        compared_estimates,
        [(Family(name, tuple(member.key for member in members)), members) for name, members in families.items()],
        context,
    )


def _with_verdicts(
    compared_estimates: Sequence[tuple[Comparison, "Estimate"]],
    families: Sequence[tuple["Family", Sequence[Comparison]]],
    context: AnalysisContext,
) -> tuple["Estimate", ...]:
    from analysis.stats import equivalence

    estimates = {compared.key: estimate for compared, estimate in compared_estimates}
    results = {}
    for family, members in families:
        family_estimates = {key: estimates[key] for key in family.planned}
        for member in members:
            verdicts = equivalence.adjust_and_add_verdicts(
                family_estimates, family, significance=member.level, star_scheme=context.star_scheme
            )
            results[member.key] = verdicts[member.key]
    return tuple(results[compared.key] for compared, _ in compared_estimates)
