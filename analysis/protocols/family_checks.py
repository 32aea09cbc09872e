"""Say before the launch what the report will say: the sentences of each family, its method and its order."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from studies.design.families import families_before, order_fault
from studies.models import ComparisonFamily, Study
from studies.protocols import Problem

from .blocks.comparisons import Comparison
from .families import study_claims


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
