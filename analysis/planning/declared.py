"""The comparisons that a draft declares, with their families and corrections, as a plan takes them."""

from typing import NamedTuple

from analysis.protocols import planned_block
from analysis.protocols.blocks.comparisons import Comparison
from analysis.protocols.families import study_claims
from analysis.stats.plain_records import HYPOTHESES
from analysis.stats.planning.comparisons import MOST_CLAIMS, Comparisons, PlannedClaim, PlannedFamily
from analysis.stats.planning.inputs import BETWEEN_CONDITIONS, EQUIVALENCE, OF_SINGLE_OUTPUTS, StudySize
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


def claim_labels(study: Study) -> dict[str, str]:
    """Return the words for the declared comparisons by the names that plans store. A name of an earlier draft has none."""
    sections = {section.position: section for section in study.sections.filter(purpose=Section.Purpose.LIVE)}
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
    y = (
        f"{compared.x} by guessing"
        if size.protocol in OF_SINGLE_OUTPUTS and not size.is_between_conditions
        else compared.y
    )
    return PlannedClaim(
        name=_claim_name(compared, block, is_headline=is_headline),
        x=f"{compared.x} ({about})",
        y=f"{y} ({about})",
        family=compared.family,
        goal=goal,
        margin=margin,
        significance=compared.level,
    )
