"""The comparisons that a draft declares, with their families and corrections, as a plan takes them."""

from typing import NamedTuple

from analysis.protocols import planned_block
from analysis.protocols.blocks.comparisons import Comparison
from analysis.protocols.families import study_claims
from analysis.stats.margin_names import HYPOTHESES
from analysis.stats.plan_claims import MOST_CLAIMS, Comparisons, PlannedClaim, PlannedFamily
from analysis.stats.plan_inputs import BETWEEN_CONDITIONS, EQUIVALENCE, OF_SINGLE_OUTPUTS, StudySize
from studies.models import Contrast, Section, Study
from studies.protocols import REGISTRY

PLANNED_ROLES = (Contrast.Role.PRIMARY, Contrast.Role.SECONDARY)


class Declared(NamedTuple):
    """The comparisons of a draft, and how many there are in the family of the first."""

    comparisons: Comparisons
    tests: int


def planned_between_conditions(study: Study, section: Section) -> str:
    """Return what the comparison of conditions in a draft is planned as, or '' if its first primary comparison is not between conditions."""
    first = study.contrasts.filter(role=Contrast.Role.PRIMARY).first()
    if first is None or not first.x_condition:
        return ""
    estimand = first.estimand or REGISTRY[section.protocol].default_estimand(section)
    return next((name for name, of in BETWEEN_CONDITIONS.items() if of == estimand), "")


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
    y = (
        f"{compared.x} by guessing"
        if size.protocol in OF_SINGLE_OUTPUTS and not size.is_between_conditions
        else compared.y
    )
    return PlannedClaim(
        name=compared.key if is_headline else f"{compared.key} ({block})",
        x=f"{compared.x} ({about})",
        y=f"{y} ({about})",
        family=compared.family,
        goal=goal,
        margin=margin,
        significance=compared.level,
    )
