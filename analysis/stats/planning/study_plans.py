"""The plan of a whole study, from simulated studies of several sizes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from analysis.stats.arrays import BoolArray, FloatArray, IntArray
from analysis.stats.bootstrap import monte_carlo_error
from analysis.stats.multiplicity import adjust_among, behind_gate
from analysis.stats.planning.closed_forms import shift_of
from analysis.stats.planning.comparisons import PlannedClaim, PlannedFamily, families_in_order, target_of_claim
from analysis.stats.planning.inputs import EQUIVALENCE, HEADLINES, StudySize, Target, Variation
from analysis.stats.planning.simulated_studies import (
    Headlines,
    answers_of_differences,
    assign_prompts,
    judge_studies,
    simulate_answers,
    stated_chances,
)
from analysis.stats.planning.sizes import (
    most_power_by_people,
    needed_both,
    needed_people,
    needed_prompts,
    other_differences,
    other_people,
    other_prompts,
    other_protocols,
    wrong_target,
)
from analysis.stats.results import Record

# Several comparisons of one study, simulated together and corrected as the report corrects them.


COMPARED_RUNS, FEWEST_COMPARED_RUNS = 1000, 100


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

    >>> from analysis.stats.planning.comparisons import Comparisons
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
    if size.headline.are_outputs_judged_together:
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


# The parts of a plan: studies of one size each, simulated and analysed in a piece of work of its own.


# Runs of the planned size, and of each other size. The Monte-Carlo errors of a power of .8 are .009 and .018.
RUNS, OTHER_RUNS = 2000, 500
# Answers of a block of runs, and answers of one part in all. Larger studies are simulated less often.
BLOCK, MOST_SIMULATED = 400_000, 40_000_000
FEWEST_RUNS = 100
# A part stops after the block with its last bet of this many, or as many as a quarter of its runs: bets take 100 times as long as a t test.
MOST_BETS = 150
# Least number of layouts (who sees which prompts together) in a part.
LAYOUTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPart(Record):
    """One size to simulate: an independent piece of work with a seed of its own.

    `kind` says where its result belongs: planned, difference, people, prompts, protocol, margin, null, needed_people,
    needed_prompts or needed_both.
    """

    kind: str
    size: StudySize
    target: Target
    runs: int
    seed: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSize(Record):
    """What simulated studies of one size said, each share with its Monte-Carlo standard error.

    Attributes
    ----------
    power, power_error : float
        Share of studies that reach the goal.
    half_width, half_width_error : float or None
        Half the mean width of the interval, on the scale of the headline. None if no study has an interval.
    value : float
        Mean headline.
    decided, decided_error : float
        Share of studies that claim a difference or reach the goal.
    wrong_direction, wrong_direction_error : float or None
        Share of studies that claim the opposite of the true difference. None if there is no difference.
    by_bets : float
        Share of studies in which bets replace the t test.
    population : str
        What the claim is about: "people_and_prompts" or "people".
    runs : int
        Number of simulated studies.
    """

    kind: str
    size: StudySize
    difference: float
    power: float
    power_error: float
    half_width: float | None
    half_width_error: float | None
    value: float
    decided: float
    decided_error: float
    wrong_direction: float | None
    wrong_direction_error: float | None
    by_bets: float
    population: str
    runs: int


def plan_parts(
    size: StudySize,
    target: Target,
    variation: Variation,
    *,
    seed: int,
    runs: int = RUNS,
    other_runs: int = OTHER_RUNS,
) -> tuple[PlanPart, ...]:
    """Return the pieces of work of a plan, the planned size first; each can run in another process.

    `seed` is stored with the plan. `runs` and `other_runs` are the simulated studies of the planned size, and of each
    other size.

    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> parts = plan_parts(size, Target(), Variation(), seed=1)
    >>> parts[0].kind, parts[0].runs, sorted({part.kind for part in parts})[:3]
    ('planned', 2000, ['difference', 'needed_people', 'needed_prompts'])
    """
    todo: list[tuple[str, StudySize, Target, int]] = [("planned", size, target, runs)]
    todo.append(("margin" if target.goal == EQUIVALENCE else "null", size, wrong_target(size, target, variation), runs))
    if target.goal != EQUIVALENCE:
        todo += [
            ("difference", size, replace(target, difference=d), other_runs)
            for d in other_differences(size, target, variation)
        ]
    todo += [("people", other, target, other_runs) for other in other_people(size)]
    todo += [("prompts", other, target, other_runs) for other in other_prompts(size)]
    if target.goal == "difference":
        todo += [("protocol", o, replace(target, stopping="none"), other_runs) for o in other_protocols(size)]
    alone = {
        "needed_people": needed_people(size, target, variation),
        "needed_prompts": needed_prompts(size, target, variation),
    }
    # Where neither alone is enough, more of both may be.
    both = None if any(alone.values()) else needed_both(size, target, variation)
    for kind, needed in (*alone.items(), ("needed_both", both)):
        if needed is not None:
            todo.append((kind, needed, target, other_runs))
    return tuple(
        PlanPart(kind=kind, size=own, target=aim, runs=_affordable_runs(own, n), seed=(seed, number))
        for number, (kind, own, aim, n) in enumerate(todo)
    )


def simulate_part(part: PlanPart, variations: Variation | Sequence[Variation]) -> SimulatedSize:
    """Simulate the studies of one part of a plan.

    Several `variations` are draws from what a pilot says: each serves an equal share of the runs, so the power is the
    assurance.

    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> part = PlanPart(kind="planned", size=size, target=Target(), runs=400, seed=(1, 0))
    >>> 0.7 < simulate_part(part, Variation()).power < 0.85
    True
    """
    draws = (variations,) if isinstance(variations, Variation) else tuple(variations)
    size, target = part.size, part.target
    rng = np.random.default_rng(part.seed)
    # Each block has a layout of its own: which prompts meet in a batch is drawn, too.
    n_blocks = max(LAYOUTS, len(draws), math.ceil(part.runs * size.answers / BLOCK))
    found: list[Headlines] = []
    n_bets = 0
    for number, runs in enumerate(_split(part.runs, n_blocks)):
        if not runs or n_bets >= max(MOST_BETS, part.runs // 4):
            break
        people, prompts = assign_prompts(size, rng)
        values = simulate_answers(size, target, draws[number % len(draws)], people, prompts, runs=runs, rng=rng)
        found.append(judge_studies(values, people, prompts, size, target))
        n_bets += int(found[-1].by_bets.sum())
    estimate, low, high = (
        np.concatenate([getattr(one, name) for one in found]) for name in ("estimate", "low", "high")
    )
    is_difference = np.concatenate([one.is_difference for one in found])
    is_reached = np.concatenate([one.is_reached for one in found])
    beyond = target.difference - target.baseline
    true_sign = math.copysign(1.0, beyond) if abs(beyond) > 1e-9 else 0.0
    wrong = float(np.mean(is_difference & ((estimate - size.null) * true_sign < 0))) if true_sign else None
    half = (high - low)[~np.isnan(low)] / 2
    power, decided, runs = float(np.mean(is_reached)), float(np.mean(is_reached | is_difference)), len(estimate)
    return SimulatedSize(
        kind=part.kind,
        size=size,
        difference=target.difference,
        power=power,
        power_error=monte_carlo_error(power, runs),
        half_width=float(np.mean(half)) if len(half) else None,
        half_width_error=float(np.std(half) / math.sqrt(len(half))) if len(half) else None,
        value=float(np.mean(estimate)),
        decided=decided,
        decided_error=monte_carlo_error(decided, runs),
        wrong_direction=wrong,
        wrong_direction_error=None if wrong is None else monte_carlo_error(wrong, runs),
        by_bets=float(np.mean(np.concatenate([one.by_bets for one in found]))),
        population="people_and_prompts" if size.is_about_prompts(target.population) else "people",
        runs=runs,
    )


def _affordable_runs(size: StudySize, runs: int) -> int:
    return max(min(runs, FEWEST_RUNS), min(runs, MOST_SIMULATED // size.answers))


def _split(runs: int, n_blocks: int) -> list[int]:
    return [runs // n_blocks + (number < runs % n_blocks) for number in range(n_blocks)]


# The plan of a whole study: its simulated power, what it would be with other sizes, and which resource is short.


_NORMAL = NormalDist()
_ORDER = tuple(HEADLINES)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlan(Record):
    """The plan of a study with one comparison, or with several at an equal level.

    Attributes
    ----------
    planned : SimulatedSize
        The size that was asked for.
    differences, people, prompts, protocols : tuple[SimulatedSize, ...]
        Other true differences; other numbers of people with the same prompts; other numbers of prompts with the same
        answers, so with fewer labels for each; other protocols with the same people and prompts.
    detectable, detectable_error : float or None
        The smallest difference found with the wanted power, by interpolation of `differences`.
    false_decision : SimulatedSize
        The same size where there is no difference: its share of decisions is that of wrong ones. With the goal
        equivalence: the same size at the margin, where every claim of equivalence is wrong.
    most_power_by_people : float
        The power with the same prompts and any number of people (approximate).
    needed_people, needed_prompts, needed_both : SimulatedSize or None
        The smallest size with the wanted power by one resource alone, or by both together. None if no size has it.
    settings : dict
        What was planned, with the seed.
    """

    planned: SimulatedSize
    differences: tuple[SimulatedSize, ...]
    people: tuple[SimulatedSize, ...]
    prompts: tuple[SimulatedSize, ...]
    protocols: tuple[SimulatedSize, ...]
    detectable: float | None
    detectable_error: float | None
    false_decision: SimulatedSize
    most_power_by_people: float
    needed_people: SimulatedSize | None
    needed_prompts: SimulatedSize | None
    needed_both: SimulatedSize | None = None
    settings: dict[str, Any] = field(default_factory=dict)


def assemble_plan(
    size: StudySize,
    target: Target,
    variation: Variation,
    simulated: Sequence[SimulatedSize],
    *,
    settings: Mapping[str, Any] | None = None,
) -> StudyPlan:
    """Return the plan from the results of all its parts.

    `size`, `target` and `variation` are as in `plan_parts`, and the results in `simulated` have any order. If the
    planned size is not among them, the function raises ValueError. `settings` is stored with the plan and has its seed,
    for example.

    >>> size, target = StudySize(protocol="two_choice", people=20, prompts=40, prompts_each=10), Target(difference=0.7)
    >>> parts = plan_parts(size, target, Variation(), seed=1, runs=100, other_runs=100)
    >>> plan = assemble_plan(size, target, Variation(), [simulate_part(part, Variation()) for part in parts])
    >>> plan.planned.power > 0.9, len(plan.people) > 4
    (True, True)
    """
    by_kind: dict[str, list[SimulatedSize]] = {}
    for one in simulated:
        by_kind.setdefault(one.kind, []).append(one)
    if "planned" not in by_kind:
        raise ValueError("simulated: the planned size is not among the results.")
    planned = by_kind["planned"][0]
    curve = tuple(sorted([*by_kind.get("difference", []), planned], key=lambda one: one.difference))
    detectable, error = (
        (None, None) if target.goal == EQUIVALENCE else _detectable(curve, target.wanted, target.baseline)
    )

    def in_order(kind: str, key: Callable[[SimulatedSize], Any]) -> tuple[SimulatedSize, ...]:
        return tuple(sorted([*by_kind.get(kind, []), planned], key=key))

    return StudyPlan(
        planned=planned,
        differences=curve,
        people=in_order("people", lambda one: one.size.people),
        prompts=in_order("prompts", lambda one: one.size.prompts),
        protocols=in_order("protocol", lambda one: _ORDER.index(one.size.protocol)),
        detectable=detectable,
        detectable_error=error,
        false_decision=by_kind["margin" if target.goal == EQUIVALENCE else "null"][0],
        most_power_by_people=most_power_by_people(size, target, variation),
        needed_people=next(iter(by_kind.get("needed_people", [])), None),
        needed_prompts=next(iter(by_kind.get("needed_prompts", [])), None),
        needed_both=next(iter(by_kind.get("needed_both", [])), None),
        settings={
            "size": size.as_dict(),
            "target": target.as_dict(),
            "variation": variation.as_dict(),
            **(settings or {}),
        },
    )


def _detectable(curve: Sequence[SimulatedSize], wanted: float, baseline: float) -> tuple[float | None, float | None]:
    """Return where the curve crosses the wanted power, with its Monte-Carlo error: weighted least squares of probits near it."""
    points = [one for one in curve if 0.02 < one.power < 0.98 and one.difference != baseline]
    if len(points) < 2 or not min(one.power for one in points) < wanted < max(one.power for one in curve):
        return None, None
    x = np.array([one.difference for one in points])
    p = np.array([one.power for one in points])
    z = np.array([_NORMAL.inv_cdf(value) for value in p])
    density = np.array([_NORMAL.pdf(value) for value in z])
    weights = np.array([one.runs for one in points]) * density**2 / (p * (1 - p))
    mean_x, mean_z = np.average(x, weights=weights), np.average(z, weights=weights)
    slope = float(np.sum(weights * (x - mean_x) * (z - mean_z)) / np.sum(weights * (x - mean_x) ** 2))
    if abs(slope) < 1e-9:
        return None, None
    found = float(mean_x + (_NORMAL.inv_cdf(wanted) - mean_z) / slope)
    variance = 1 / np.sum(weights) + (found - mean_x) ** 2 / np.sum(weights * (x - mean_x) ** 2)
    return found, float(np.sqrt(variance) / abs(slope))
