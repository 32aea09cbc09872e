"""The comparisons of a plan with the declared correction: their families, levels, and power in closed form, without numpy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from analysis.stats.plain_records import NONINFERIORITY, PlainRecord
from analysis.stats.planning.closed_forms import Components, quick_plan
from analysis.stats.planning.inputs import EQUIVALENCE, StudySize, Target, Variation

# Methods of `multiplicity.METHODS` that control the probability of any wrong claim.
CORRECTIONS = ("bonferroni", "holm", "hommel")
MOST_CLAIMS = 100
BY_HAND = "comparisons"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedClaim(PlainRecord):
    """One comparison: what it is called, what it compares, and what it is to show, at the level `significance`.

    Comparisons with a common `x` or `y` share that system's answers.

    Raises
    ------
    ValueError
        If a value is not possible.
    """

    name: str
    x: str
    y: str
    family: str = BY_HAND
    goal: str = "difference"
    margin: float | None = None
    significance: float = 0.05

    def __post_init__(self) -> None:
        if self.x == self.y:
            raise ValueError(f"claims: {self.name[:80]} compares {self.x[:80]} with itself. Name two systems.")
        Target(goal=self.goal, margin=self.margin, significance=self.significance)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFamily(PlainRecord):
    """How a family is corrected, and the family that must be shown before, or ''.

    Raises
    ------
    ValueError
        If the method is not one of `CORRECTIONS`.
    """

    name: str
    method: str = "bonferroni"
    after: str = ""

    def __post_init__(self) -> None:
        _validate_correction(self.method)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickClaim(PlainRecord):
    """The approximate power of a comparison: at its level divided by the size of its family, and at its whole level.

    With Bonferroni's method both are the same. With Holm's or Hommel's, the power lies between them.
    """

    claim: PlannedClaim
    method: str
    family_size: int
    power: float
    power_at_most: float


def _validate_correction(method: str) -> None:
    """Raise ValueError if the method is not one of `CORRECTIONS`."""
    if method not in CORRECTIONS:
        raise ValueError(f"correction: {method!r} is not one of {', '.join(CORRECTIONS)}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparisons(PlainRecord):
    """The comparisons of a plan: those that a study declares, or as many as the target has tests, corrected by `method`.

    Attributes
    ----------
    method : str, default "bonferroni"
        One of `CORRECTIONS`, if there are no claims.
    claims, families : tuple[PlannedClaim, ...], tuple[PlannedFamily, ...]
        The declared comparisons, and how their families are corrected.

    Raises
    ------
    ValueError
        If the method is not possible, or there are more than 100 claims.
    """

    method: str = "bonferroni"
    claims: tuple[PlannedClaim, ...] = ()
    families: tuple[PlannedFamily, ...] = ()

    def __post_init__(self) -> None:
        _validate_correction(self.method)
        if len(self.claims) > MOST_CLAIMS:
            raise ValueError(
                f"comparisons: {len(self.claims)} are more than {MOST_CLAIMS}. Give their number and a correction."
            )

    @classmethod
    def from_dict(cls, data: Any) -> "Comparisons":
        """Return the record of `as_dict`. Raise ValueError if it is not such a record."""
        try:
            return cls(
                method=data.get("method", "bonferroni"),
                claims=tuple(PlannedClaim(**one) for one in data.get("claims", ())),
                families=tuple(PlannedFamily(**one) for one in data.get("families", ())),
            )
        except (TypeError, AttributeError):
            raise ValueError("comparisons: must be an object with method, claims and families.") from None

    @property
    def first_family_size(self) -> int:
        """Return how many claims the family of the first one has, 1 without claims."""
        return max(1, sum(claim.family == self.claims[0].family for claim in self.claims))

    def claims_of(self, target: Target) -> tuple[tuple[PlannedClaim, ...], tuple[PlannedFamily, ...]]:
        """Return the claims with their families. Without declared ones, each of the target's tests is of two systems of its own.

        There are no claims for one comparison, where nothing is to be corrected, or for more than 100, which take too long.

        >>> claims, families = Comparisons(method="holm").claims_of(Target(tests=2))
        >>> [claim.name for claim in claims], families[0].method
        (['comparison 1', 'comparison 2'], 'holm')
        """
        if self.claims:
            return self.claims, self.families
        numbers = range(1, target.tests + 1) if 1 < target.tests <= MOST_CLAIMS else ()
        claims = tuple(
            PlannedClaim(
                name=f"comparison {number}",
                x=f"x{number}",
                y=f"y{number}",
                goal=target.goal,
                margin=target.margin,
                significance=target.significance,
            )
            for number in numbers
        )
        return claims, (PlannedFamily(name=BY_HAND, method=self.method),)


def target_of_claim(claim: PlannedClaim, target: Target) -> Target:
    """Return what a comparison is to find, at its whole level: the smallest difference that matters, or none.

    Where x is to be not worse or equivalent, the plan assumes no difference.

    >>> target_of_claim(PlannedClaim(name="x ~ y", x="x", y="y", goal="equivalence", margin=0.1), Target()).difference
    0.5
    """
    difference = target.difference
    if claim.goal != target.goal and claim.goal in (EQUIVALENCE, NONINFERIORITY):
        difference = target.baseline
    return replace(
        target,
        goal=claim.goal,
        margin=claim.margin,
        significance=claim.significance,
        tests=1,
        difference=difference,
    )


def quick_claims(
    size: StudySize,
    target: Target,
    variation: Variation,
    claims: Sequence[PlannedClaim],
    families: Sequence[PlannedFamily],
) -> tuple[QuickClaim, ...]:
    """Return the approximate power of each comparison, in order.

    `families` says how the families of the comparisons are corrected; one that is not named there is corrected by
    Bonferroni's method. The powers of comparisons behind another family hold if all of that family is shown.

    >>> size, target = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20), Target(tests=3)
    >>> found = quick_claims(size, target, Variation(), *Comparisons(method="holm").claims_of(target))
    >>> len(found), round(found[0].power, 2), round(found[0].power_at_most, 2)
    (3, 0.61, 0.77)
    """
    methods = {family.name: family.method for family in families}
    sizes: dict[str, int] = {}
    for claim in claims:
        sizes[claim.family] = sizes.get(claim.family, 0) + 1
    powers: dict[Target, float] = {}

    def power_of(own: Target) -> float:
        if own not in powers:
            powers[own] = quick_plan(size, own, variation).power
        return powers[own]

    found = []
    for claim in claims:
        own, method = target_of_claim(claim, target), methods.get(claim.family, "bonferroni")
        least = power_of(replace(own, tests=sizes[claim.family]))
        most = least if method == "bonferroni" else power_of(own)
        found.append(
            QuickClaim(claim=claim, method=method, family_size=sizes[claim.family], power=least, power_at_most=most)
        )
    return tuple(found)


def families_in_order(claims: Sequence[PlannedClaim], families: Sequence[PlannedFamily]) -> list[PlannedFamily]:
    """Return the families that have a comparison, each behind the one that must be shown before.

    A family that is not declared in `families` is corrected by Bonferroni's method.

    >>> claims = [PlannedClaim(name=name, x=name, y="base", family=name) for name in ("b", "a")]
    >>> [family.name for family in families_in_order(claims, [PlannedFamily(name="b", after="a")])]
    ['a', 'b']
    """
    declared = {family.name: family for family in families}
    named = list(dict.fromkeys(claim.family for claim in claims))

    def n_before(name: str, seen: tuple[str, ...] = ()) -> int:
        after = declared[name].after if name in declared else ""
        return 0 if not after or after in seen else 1 + n_before(after, (*seen, name))

    return [declared.get(name) or PlannedFamily(name=name) for name in sorted(named, key=n_before)]


# What a finished study shows about the assumptions of its plan, without numpy.


def components_of_variances(
    mean: float,
    over_people: float,
    over_prompts: float,
    combined: float,
    *,
    people: int,
    prompts: int,
    answers: int,
) -> Components | None:
    """Return the variances of one answer over people, over prompts, and the rest, from the variances of a reported mean.

    `over_people`, `over_prompts` and `combined` are the jackknife variances of the mean (`cluster_variances.TwoWayVariance`).
    With a people, b prompts and n answers in a balanced layout, their expected values are V_a = v_people / a + (v_rest
    + v_prompts (1 - n / (a b))) / n, likewise V_b, and that of independent answers is V_a + V_b - combined = (v_people
    (1 - 1 / a) + v_prompts (1 - 1 / b) + v_rest) / n. The three equations are solved, and a variance with a negative
    solution is 0. The result is None if people answer about too few prompts, or too few people about each, to tell them
    apart.

    >>> found = components_of_variances(0.6, 0.0022, 0.0030, 0.0044, people=36, prompts=60, answers=720)
    >>> round(found.people, 3), round(found.prompts, 3), round(found.rest, 3)
    (0.055, 0.145, 0.379)
    """
    if answers < 1.5 * people or answers < 1.5 * prompts or people < 2 or prompts < 2:
        return None
    independent = over_people + over_prompts - combined
    # Coefficients of v_people and v_prompts in n (V_a - V_ab) and n (V_b - V_ab), from which the rest is gone.
    aa, ab = (answers + 1) / people - 1, (1 - answers / people) / prompts
    ba, bb = (1 - answers / prompts) / people, (answers + 1) / prompts - 1
    a, b = answers * (over_people - independent), answers * (over_prompts - independent)
    determinant = aa * bb - ab * ba
    if abs(determinant) < 1e-9:
        return None
    v_people = max(0.0, (a * bb - b * ab) / determinant)
    v_prompts = max(0.0, (b * aa - a * ba) / determinant)
    rest = answers * independent - v_people * (1 - 1 / people) - v_prompts * (1 - 1 / prompts)
    return Components(mean=mean, people=v_people, prompts=v_prompts, rest=max(0.0, rest))
