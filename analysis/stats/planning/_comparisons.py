"""Several comparisons of one study, simulated together and corrected as the report corrects them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from analysis.stats.arrays import BoolArray, FloatArray, IntArray
from analysis.stats.bootstrap import monte_carlo_error
from analysis.stats.multiplicity import adjust_among, behind_gate
from analysis.stats.plan_claims import PlannedClaim, PlannedFamily, families_in_order, target_of_claim
from analysis.stats.plan_inputs import StudySize, Target, Variation
from analysis.stats.planning._answers import answers_of_differences, assign_prompts, stated_chances
from analysis.stats.planning._judge import judge_studies
from analysis.stats.planning._parts import BLOCK, LAYOUTS, MOST_BETS, MOST_SIMULATED
from analysis.stats.quick_power import shift_of
from analysis.stats.results import Record

COMPARED_RUNS, FEWEST_COMPARED_RUNS = 1000, 100
# Protocols in which a person judges all outputs for a prompt at once, so that comparisons share these judgements.
_JUDGED_TOGETHER = frozenset({"rating", "ranking", "marks"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedClaim(Record):
    """The share of studies that show a comparison, after the correction and without one, with Monte-Carlo errors."""

    name: str
    family: str
    method: str
    family_size: int
    level: float
    power: float
    power_error: float
    alone: float
    alone_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedClaims(Record):
    """The comparisons of a plan, and the shares of studies that show all of them, or at least one."""

    claims: tuple[SimulatedClaim, ...]
    all_shown: float
    all_shown_error: float
    any_shown: float
    any_shown_error: float
    runs: int


def simulate_claims(
    size: StudySize,
    target: Target,
    variations: Variation | Sequence[Variation],
    claims: Sequence[PlannedClaim],
    families: Sequence[PlannedFamily],
    *,
    seed: int,
    runs: int = COMPARED_RUNS,
) -> SimulatedClaims:
    """Simulate studies with all comparisons, each at the smallest difference that matters, and correct their p-values.

    `target` is what each comparison is to find unless it says otherwise, several `variations` are draws from what a
    pilot says, and many comparisons of a large study get fewer than `runs` simulated studies. The p-values are those of
    the report, corrected by `multiplicity.adjust_among`, and by `multiplicity.behind_gate` where a family waits for
    another. In all comparisons the same people answer about the same prompts. What a person and a prompt add to a
    difference is what they add to x minus what they add to y, so comparisons with a common system are correlated; if a
    person judges all outputs at once, what the answer adds is shared in the same way. Two conditions have different
    people, but share the prompts.

    >>> from analysis.stats.plan_claims import Comparisons
    >>> size, target = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20), Target(tests=3)
    >>> found = simulate_claims(size, target, Variation(), *Comparisons(method="holm").claims_of(target), seed=1, runs=200)
    >>> found.all_shown < found.claims[0].power < found.any_shown, found.claims[0].power <= found.claims[0].alone
    (True, True)
    """
    if not claims:
        raise ValueError("claims: there is no comparison.")
    draws = (variations,) if isinstance(variations, Variation) else tuple(variations)
    n_answers = size.answers * len(claims)
    runs = max(min(runs, FEWEST_COMPARED_RUNS), min(runs, MOST_SIMULATED // n_answers))
    n_blocks = max(min(LAYOUTS, runs), len(draws), math.ceil(runs * n_answers / BLOCK))
    rng = np.random.default_rng((seed, 2_000_001))
    shown, alone, n_bets = [], [], 0
    for number in range(min(n_blocks, runs)):
        own_runs = runs // n_blocks + (number < runs % n_blocks)
        pvalues, larger, by_bets = _pvalues(
            size, target, draws[number % len(draws)], claims, runs=max(1, own_runs), rng=rng
        )
        shown.append(shown_claims(pvalues, larger, claims, families))
        alone.append(pvalues < np.array([claim.significance for claim in claims]))
        n_bets += by_bets
        if n_bets >= MOST_BETS:
            break
    is_shown, is_alone = np.concatenate(shown), np.concatenate(alone)
    n = len(is_shown)
    methods = {family.name: family.method for family in families_in_order(claims, families)}
    sizes = {name: sum(claim.family == name for claim in claims) for name in methods}
    every, some = float(is_shown.all(axis=1).mean()), float(is_shown.any(axis=1).mean())
    return SimulatedClaims(
        claims=tuple(
            SimulatedClaim(
                name=claim.name,
                family=claim.family,
                method=methods[claim.family],
                family_size=sizes[claim.family],
                level=claim.significance,
                power=(power := float(is_shown[:, column].mean())),
                power_error=monte_carlo_error(power, n),
                alone=(single := float(is_alone[:, column].mean())),
                alone_error=monte_carlo_error(single, n),
            )
            for column, claim in enumerate(claims)
        ),
        all_shown=every,
        all_shown_error=monte_carlo_error(every, n),
        any_shown=some,
        any_shown_error=monte_carlo_error(some, n),
        runs=n,
    )


def shown_claims(
    pvalues: FloatArray, larger: FloatArray, claims: Sequence[PlannedClaim], families: Sequence[PlannedFamily]
) -> BoolArray:
    """Return which comparisons each study shows, after the correction of their families.

    `pvalues` are the p-values that decide each comparison, and `larger` the larger ones of its two tests, as
    `adjust_among` takes them; both, and the result, have the shape (runs, claims).

    >>> claims = [PlannedClaim(name=name, x=name, y="base", family="primary") for name in "ab"]
    >>> pvalues = np.array([[0.01, 0.04], [0.03, 0.04]])
    >>> shown_claims(pvalues, pvalues, claims, [PlannedFamily(name="primary", method="holm")]).tolist()
    [[True, True], [False, False]]
    """
    levels = np.array([claim.significance for claim in claims])
    is_shown = np.zeros(pvalues.shape, dtype=np.bool_)
    ordered = families_in_order(claims, families)
    columns = {family.name: [k for k, claim in enumerate(claims) if claim.family == family.name] for family in ordered}
    for row, (own, others) in enumerate(zip(pvalues.tolist(), larger.tolist(), strict=True)):
        gates: dict[str, tuple[float, bool]] = {}
        for family in ordered:
            members = columns[family.name]
            adjusted = adjust_among([own[k] for k in members], [others[k] for k in members], family.method)
            # A family without a comparison shows nothing.
            before, is_open = gates.get(family.after, (1.0, False)) if family.after else (0.0, True)
            adjusted = behind_gate(adjusted, before)
            found = np.array(
                [p is not None and is_open and p < levels[k] for p, k in zip(adjusted, members, strict=True)]
            )
            is_shown[row, members] = found
            gates[family.name] = (max(1.0 if p is None else p for p in adjusted), bool(found.all()))
    return is_shown


@dataclass(slots=True)
class _Effects:
    """What people, prompts and answers add to each system (or condition), drawn once and shared by all comparisons."""

    size: StudySize
    target: Target
    variation: Variation
    runs: int
    rng: np.random.Generator
    drawn: dict[tuple[str, str], FloatArray] = field(default_factory=dict)

    def of(self, kind: str, name: str, sd: float, count: int) -> FloatArray:
        if (kind, name) not in self.drawn:
            self.drawn[kind, name] = sd * self.rng.standard_normal((self.runs, count))
        return self.drawn[kind, name]

    def difference(self, kind: str, claim: PlannedClaim, sd: float, count: int) -> FloatArray:
        """Return what x adds minus what y adds: normal with this standard deviation."""
        each = sd / math.sqrt(2)
        return self.of(kind, claim.x, each, count) - self.of(kind, claim.y, each, count)


def _pvalues(
    size: StudySize,
    target: Target,
    variation: Variation,
    claims: Sequence[PlannedClaim],
    *,
    runs: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, int]:
    """Return the p-values of all comparisons in each run, the larger ones of their tests, and how many are of bets."""
    effects = _Effects(size, target, variation, runs, rng)
    people, prompts = assign_prompts(size, rng)
    dealt: dict[str, IntArray] = {}
    columns, others, n_bets = [], [], 0
    for claim in claims:
        own = target_of_claim(claim, target)
        shown = prompts
        if size.is_between_conditions:
            for name in (claim.x, claim.y):
                if name not in dealt:
                    dealt[name] = assign_prompts(size, rng)[1][: size.people_each * size.prompts_each]
            shown = np.concatenate([dealt[claim.x], dealt[claim.y]])
            values = _right_answers(effects, own, claim, shown)
        else:
            values = _answers(effects, own, claim, people, shown)
        found = judge_studies(values, people, shown, size, own)
        columns.append(found.pvalue)
        others.append(found.larger)
        n_bets += int(found.by_bets.sum())
    return np.stack(columns, axis=1), np.stack(others, axis=1), n_bets


def _answers(effects: _Effects, target: Target, claim: PlannedClaim, people: IntArray, prompts: IntArray) -> FloatArray:
    """Return the answers about two systems."""
    size, variation, rng = effects.size, effects.variation, effects.rng
    of_people = effects.difference("people", claim, variation.sd_people, size.people)
    of_prompts = effects.difference("prompts", claim, variation.sd_prompts, size.prompts)
    if not size.is_about_prompts(target.population) and size.prompts > 1:
        of_prompts = of_prompts - of_prompts.mean(axis=1, keepdims=True)
    shift = shift_of(target.difference, variation)
    if size.kind == "chance":
        return stated_chances(size, shift, variation, of_people, of_prompts, prompts, rng)
    if size.protocol in _JUDGED_TOGETHER:
        d = effects.difference("answers", claim, 1.0, len(people))
    else:
        d = rng.standard_normal((effects.runs, len(people)))
    d += shift
    d += of_people[:, people]
    d += of_prompts[:, prompts]
    return answers_of_differences(d, size, variation, people, prompts, rng)


def _right_answers(effects: _Effects, target: Target, claim: PlannedClaim, prompts: IntArray) -> FloatArray:
    """Return the answers of the people in condition x, and then of those in condition y."""
    size, variation = effects.size, effects.variation
    n = size.people_each * size.prompts_each
    of_prompts = effects.of("prompts", "", variation.sd_prompts, size.prompts)
    who = np.repeat(np.arange(size.people_each), size.prompts_each)
    halves = []
    for name, share, shown in ((claim.x, target.difference, prompts[:n]), (claim.y, target.baseline, prompts[n:])):
        d = effects.of("answers", name, 1.0, n) + shift_of(share, variation) + of_prompts[:, shown]
        d += effects.of("people", name, variation.sd_people, size.people_each)[:, who]
        halves.append(d > 0)
    return np.asarray(np.concatenate(halves, axis=1), dtype=np.float64)
