"""Adjust the comparisons of all protocols in their families, after every analysis has made its estimates.

A family can span protocols, and Holm's and Hommel's methods need all its p-values at once. An order between families needs
the results of the family before.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from studies.design.comparisons import families_before, order_fault
from studies.design.subjects import read_words_of_sections
from studies.models import ComparisonFamily, Study
from studies.protocols import Problem

from . import REGISTRY
from .blocks.cells import is_sequential
from .blocks.comparisons import ComparedByBlock, Comparison

if TYPE_CHECKING:
    from analysis.stats.multiplicity import Family, Gate
    from analysis.stats.results import Estimate


logger = logging.getLogger("heval.report")

# The verdicts that show a comparison. If it is expected to be equivalent, the others of a difference do not.
EQUIVALENCE_VERDICTS = ("equivalent", "different_but_trivial")
SHOWN_VERDICTS = {
    "difference": ("different", "different_but_trivial"),
    "noninferiority": ("noninferior", "noninferior_but_worse", "better"),
    "superiority_by_margin": ("superior_by_margin",),
}


def planned_claims(
    sections_by_protocol: Mapping[str, Sequence[Any]], errors: dict[str, Exception] | None = None
) -> dict[str, list[Comparison]]:
    """Return the planned claims of all protocols by block, without those that another block supersedes.

    Only the design decides them, so a draft has the same claims as its report. ``errors`` gets the error of each protocol whose
    claims cannot be counted. The claims of the others are returned.
    """
    claims: dict[str, list[Comparison]] = {}
    superseded: dict[str, str] = {}
    for slug, sections in sections_by_protocol.items():
        analysis = REGISTRY[slug]
        try:
            planned = analysis.planned_claims(sections)
        except Exception as error:
            # An error in one protocol must not remove the claims of the others.
            logger.exception("The claims of %s could not be counted", slug)
            if errors is not None:
                errors[slug] = error
            continue
        superseded |= analysis.superseded_claims
        claims |= {name: comparisons for name, comparisons in planned.items() if comparisons}
    return {name: comparisons for name, comparisons in claims.items() if superseded.get(name) not in claims}


def study_claims(study: Any) -> dict[str, list[Comparison]]:
    """Return the planned claims of a study's design by block."""
    sections: dict[str, list[Any]] = {}
    live = [section for section in study.read_sections() if section.purpose == "live"]
    read_words_of_sections(live)
    for section in live:
        if section.protocol in REGISTRY:
            sections.setdefault(section.protocol, []).append(section)
    return planned_claims(sections)


def _declared_names(rows: Iterable[Any]) -> set[str]:
    """Return the families that rows declare, by their own name or as the family before another one."""
    return {name for row in rows for name in (row.name, row.after) if name}


def declared_family_sizes(study: Any) -> dict[str, int]:
    """Return the number of claims in each declared family, over all protocols."""
    declared = _declared_names(study.comparison_families.all())
    if not declared:
        return {}
    sizes = Counter(compared.family for planned in study_claims(study).values() for compared in planned)
    return {name: size for name, size in sizes.items() if name in declared}


def adjust_comparisons(
    compared_by_block: ComparedByBlock,
    claims: Mapping[str, Sequence[Comparison]],
    declared: Iterable[Any] = (),
    *,
    star_scheme: str = "10/5/1",
) -> dict[str, tuple["Estimate", ...]]:
    """Return the estimates of all blocks with adjusted p-values and with verdicts.

    Claims are adjusted in their family, over all protocols and estimands, by the method that ``declared`` (rows of
    ``ComparisonFamily``) names, or else by Bonferroni's. A planned claim without an estimate counts with p = 1, so a family never
    shrinks. All other comparisons are adjusted by Bonferroni's method for their number in the block. Each comparison has
    its own level.
    """
    from analysis.stats.margins import adjust_and_add_verdicts
    from analysis.stats.multiplicity import Family

    estimates: dict[str, Estimate] = {}
    comparisons: dict[str, Comparison] = {}
    families: dict[str, list[str]] = {}
    for block, planned in claims.items():
        for compared in planned:
            key = _key(block, compared)
            if key not in comparisons:
                comparisons[key] = compared
                families.setdefault(compared.family, []).append(key)
    claimed_names = list(families)
    for block, pairs in compared_by_block.items():
        for compared, estimate in pairs:
            key = _key(block, compared)
            estimates[key] = compared.planned_test(estimate) if key in comparisons else estimate
            if key not in comparisons:
                families.setdefault(f"{block}.{compared.family}", []).append(key)
            # The analysis can change a comparison, for example its margin, but not its family.
            comparisons[key] = compared
    rows = {row.name: row for row in declared}
    declared_names = _declared_names(rows.values())
    gates: dict[str, Gate] = {}
    results: dict[str, Estimate] = {}
    for name in [*_each_after_its_gate(claimed_names, rows), *(name for name in families if name not in claimed_names)]:
        row = rows.get(name) if name in claimed_names else None
        gate = gates.get(row.after, _closed(row.after)) if row is not None and row.after else None
        family = Family(name, tuple(families[name]), row.adjustment if row is not None else "bonferroni", gate)
        with_estimate = {key: estimates[key] for key in families[name] if key in estimates}
        # The threshold of a stopping rule in a declared family is the level divided by the family's size, so its result is
        # final. For the other tests of the family it counts as p = 1.
        adjusted = adjust_and_add_verdicts(
            {key: estimate for key, estimate in with_estimate.items() if not is_sequential(estimate)},
            family,
            significance={key: comparisons[key].level for key in with_estimate},
            star_scheme=star_scheme,
        )
        for key, estimate in with_estimate.items():
            if is_sequential(estimate):
                adjusted[key] = (
                    _decided_by_rule(estimate, family)
                    if name in declared_names
                    else _decided_at_a_level_of_its_own(estimate, comparisons[key].level, family)
                )
        is_gate = name in {row.after for row in rows.values()}
        for key, estimate in adjusted.items():
            adjusted[key] = comparisons[key].planned_verdict(estimate, is_gate=is_gate)
        results |= adjusted
        gates[name] = _gate_of(name, [(comparisons[key], adjusted.get(key)) for key in families[name]])
    return {
        block: tuple(results[_key(block, compared)] for compared, _ in pairs)
        for block, pairs in compared_by_block.items()
    }


def _key(block: str, compared: Comparison) -> str:
    return f"{block}\x1f{compared.family}\x1f{compared.key}"


def _each_after_its_gate(names: Sequence[str], rows: Mapping[str, Any]) -> list[str]:
    """Return the names so that each family comes after the one before which it is not tested."""
    ordered: list[str] = []
    seen: set[str] = set()

    def add(name: str) -> None:
        if name in seen or name not in names:
            return
        seen.add(name)
        row = rows.get(name)
        if row is not None and row.after:
            add(row.after)
        ordered.append(name)

    for name in names:
        add(name)
    return ordered


def _closed(name: str) -> "Gate":
    """Return the gate of a family without a claim: nothing was shown."""
    from analysis.stats.multiplicity import Gate

    return Gate(name, 1.0, False)


def _gate_of(name: str, members: Iterable[tuple[Comparison, "Estimate | None"]]) -> "Gate":
    """Return the gate that this family is for the next one."""
    from analysis.stats.multiplicity import Gate

    pvalues, shown = [], []
    for compared, estimate in members:
        verdicts = EQUIVALENCE_VERDICTS if compared.expected == "~" else SHOWN_VERDICTS[compared.hypothesis]
        is_shown = estimate is not None and estimate.detail.get("verdict") in verdicts
        shown.append(is_shown)
        pvalues.append(_deciding_pvalue(compared, estimate, is_shown))
    return Gate(name, max(pvalues, default=1.0), bool(shown) and all(shown))


def _deciding_pvalue(compared: Comparison, estimate: "Estimate | None", is_shown: bool) -> float:
    """Return the adjusted p-value of the test that shows the comparison: of equivalence if it is expected, else of difference."""
    if estimate is None or (estimate.is_blocked and not is_shown):
        return 1.0
    if compared.expected != "~":
        tested = estimate.test
    elif is_sequential(estimate):
        # A stopping rule decides equivalence at a fixed level by its interval, without a p-value.
        return 0.0 if is_shown else 1.0
    else:
        tested = next((other.test for other in estimate.sensitivity if other.analysis.endswith(".equivalence")), None)
    if tested is None or tested.pvalue_adjusted is None:
        return 1.0
    return tested.pvalue_adjusted


def _decided_at_a_level_of_its_own(estimate: "Estimate", level: float, family: "Family") -> "Estimate":
    """Return the result of a stopping rule without a declared family. Say so if its threshold ignores a part of the family."""
    if estimate.interval is None or (1 - estimate.interval.level) * family.size <= level * (1 + 1e-9):
        return estimate
    return replace(estimate, detail={**estimate.detail, "family_not_counted": [family.name, family.size]})


def _decided_by_rule(estimate: "Estimate", family: "Family") -> "Estimate":
    """Return the result of a stopping rule with its p-value adjusted as its threshold is, and behind the gate of its family."""
    gate, test, detail = family.gate, estimate.test, dict(estimate.detail)
    if gate is not None:
        detail["gate"] = gate.as_dict()
        if not gate.is_open:
            detail["verdict"] = "not_tested"
    if test is not None:
        pvalue = max(min(1.0, family.size * test.pvalue), gate.pvalue if gate is not None else 0.0)
        test = replace(test, pvalue_adjusted=pvalue, adjust="bonferroni", family=family.name, family_size=family.size)
    return replace(estimate, test=test, detail=detail)


# Say before the launch what the report will say: the sentences of each family, its method and its order.


def find_family_problems(study: Study, **signal_kwargs: object) -> Iterator[Problem]:
    """Return what is missing or unwise in the families of planned comparisons, for the checklist before launch."""
    rows = list(study.comparison_families.all())
    after = {row.name: row.after for row in rows}
    if fault := order_fault(after):
        yield Problem(f"The families of comparisons {fault}", "comparison_families")
        return
    named = {family or role for family, role in study.contrasts.values_list("family", "role")}
    claims = [compared for planned in study_claims(study).values() for compared in planned]
    concluded = {compared.family for compared in claims} if claims else named
    for row in rows:
        if row.name not in named:
            yield Problem(
                f"No comparison belongs to the family “{row.name}”. Correct its name, or delete the row.",
                "comparison_families",
                False,
                f"family_without_comparison:{row.name}",
            )
        if row.after and row.after not in concluded:
            yield Problem(
                f"The family “{row.name}” waits for “{row.after}”, for which the report has no sentence. Correct the name.",
                "comparison_families",
            )
    yield from _unordered_families(claims, after)
    yield from _unequal_levels(study, after)


def _unordered_families(claims: Iterable[Comparison], after: Mapping[str, str]) -> Iterator[Problem]:
    by_role: dict[str, dict[str, None]] = {"primary": {}, "secondary": {}}
    for compared in claims:
        by_role.get(compared.role, {})[compared.family] = None
    unordered = [
        (first, second)
        for second in by_role["secondary"]
        for first in by_role["primary"]
        if first != second and first not in families_before(second, after)
    ]
    for first, second in unordered[:1]:
        yield Problem(
            f"The families “{first}” and “{second}” have no order. The error level holds in each family, not over both.",
            "comparison_families",
            False,
            f"unordered_families:{first}:{second}",
        )


def _unequal_levels(study: Study, after: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a warning for each family that waits for another one, if not all their comparisons have the same level.

    An adjusted p of the later family is at least the largest of the earlier one. So a smaller level of the later family asks more of
    the earlier one than is written, and with a larger one the error over both is larger than the level of the earlier one.
    """
    levels: dict[str, set[float]] = {}
    for family, role, level in study.contrasts.values_list("family", "role", "level"):
        levels.setdefault(family or role, set()).add(level)
    for second, first in after.items():
        if first in levels and second in levels and len(levels[first] | levels[second]) > 1:
            yield Problem(
                f"The ordered families “{first}” and “{second}” have different significance levels. "
                "Their order holds the error at one level only: enter the same.",
                "comparison_families",
                False,
                f"levels_of_ordered_families:{first}:{second}",
            )


def describe_families(study: Study, **signal_kwargs: object) -> list[dict[str, Any]]:
    """Return what the report will say of each family: its sentences, method and order, and the sentences of each pair."""
    rows = {row.name: row for row in study.comparison_families.all()}
    members: dict[str, Counter[str]] = {}
    for planned in study_claims(study).values():
        for compared in planned:
            members.setdefault(compared.family, Counter())[f"{compared.x} and {compared.y}"] += 1
    labels = dict(ComparisonFamily.Adjustment.choices)
    return [
        {
            "name": name,
            "n_sentences": pairs.total(),
            "adjustment": labels[rows[name].adjustment if name in rows else "bonferroni"],
            "after": rows[name].after if name in rows else "",
            "pairs": list(pairs.items()),
        }
        for name, pairs in members.items()
    ]
