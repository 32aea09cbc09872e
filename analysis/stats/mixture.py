"""Who answers test questions so badly that the answers may not count: a mixture-of-betas model of accuracy.

Annotator w answers n_w test questions of one type and X_w of them rightly, X_w ~ Binomial(n_w, P_w), with P_w drawn from
a mixture of beta distributions. An annotator is noisy by the `rate` criterion if P_w lies below a threshold, by the
`class` criterion if w belongs to any component but the one with the highest mean. Positive questions (a true output) and
negative ones (an output of something else) are fitted apart, since a clicker may favour either; noisy on one is noisy.

Source: Genie (Khashabi et al. 2022), section 5 and appendix B.1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from analysis.stats.arrays import BoolArray, FloatArray, IntArray, codes, refuse_level, refuse_outside, vector
from analysis.stats.results import MODES, Record, Warning, plain

RATE_THRESHOLD = 0.9
CUTOFF = 0.99
# A posterior that equals the cut-off but for rounding (the uniform prior at 0 of 1) lies on it.
ROUNDING = 1e-12
RULES = ("at_least", "more_than")
# The paper's stabiliser: 36 workers with 19 of 20, four with 1, 1, 5 and 10 of 20.
PSEUDO_SUCCESSES = (19,) * 36 + (1, 1, 5, 10)
PSEUDO_TRIALS = (20,) * 40
MIN_CONCENTRATION = 0.1
MAX_CONCENTRATION = 1000.0
# Where the published EM algorithm comes to rest on the pseudo-data: a cap for a fast fit that is near it.
EM_CONCENTRATION = 5000.0
MAX_LOGIT = 7.0
LEARNED_MIN_ANNOTATORS = 30
LEARNED_MIN_QUESTIONS = 5
TYPES = ("positive", "negative")
# How many steps of the fixed point are taken between two looks at the likelihood.
EM_BLOCK = 128


@dataclass(frozen=True, slots=True)
class BetaMixture(Record):
    """A prior on accuracy: `weights` of components Beta(`alphas`, `betas`), all of one length k."""

    weights: tuple[float, ...]
    alphas: tuple[float, ...]
    betas: tuple[float, ...]

    def __post_init__(self) -> None:
        if not len(self.weights) == len(self.alphas) == len(self.betas) > 0:
            raise ValueError("weights: as many as alphas and betas are needed, at least one")
        if min(self.weights) < 0 or abs(sum(self.weights) - 1) > 1e-6:
            raise ValueError("weights: must be non-negative and add up to 1")
        if not all(0 < value < math.inf for value in (*self.alphas, *self.betas)):
            raise ValueError("alphas: the parameters of a beta distribution are positive numbers")

    @property
    def means(self) -> tuple[float, ...]:
        """The expected accuracy within each component."""
        return tuple(alpha / (alpha + beta) for alpha, beta in zip(self.alphas, self.betas, strict=True))

    @property
    def best(self) -> int:
        """The component of the annotators who are not noisy: the one with the highest mean."""
        return int(np.argmax(self.means))

    def as_dict(self) -> dict[str, Any]:
        """Plain dict."""
        return Record.as_dict(self) | {"means": plain(self.means)}


PRIORS = {
    "fixed1": BetaMixture((1.0,), (4.0,), (1.0,)),
    "fixed2": BetaMixture((0.05, 0.95), (0.5, 9.5), (4.5, 0.5)),
    "jeffreys": BetaMixture((1.0,), (0.5,), (0.5,)),
    "uniform": BetaMixture((1.0,), (1.0,), (1.0,)),
}
# The eight rows of the paper's Table 1: criterion, and the prior (its name, or how many components are learned).
MODELS: dict[str, tuple[str, str | int]] = {
    "class_fixed2": ("class", "fixed2"),
    "class_learned2": ("class", 2),
    "rate_jeffreys": ("rate", "jeffreys"),
    "rate_uniform": ("rate", "uniform"),
    "rate_fixed1": ("rate", "fixed1"),
    "rate_learned1": ("rate", 1),
    "rate_fixed2": ("rate", "fixed2"),
    "rate_learned2": ("rate", 2),
}


@dataclass(frozen=True, slots=True)
class MixtureFit(Record):
    """A learned prior. `mixture` has its components by ascending mean, None unless status is "ok".

    `n_annotators` who answered anything gave `n_answers`; `n_pseudo` pseudo-annotators stabilise the fit. `at_cap`
    numbers the components whose concentration rests on its bound, which the data do not identify.
    """

    status: str
    reason: str
    mixture: BetaMixture | None
    log_likelihood: float | None
    n_annotators: int
    n_answers: int
    n_pseudo: int
    at_cap: tuple[int, ...]
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Boundaries(Record):
    """When an annotator is flagged: of `questions[i]` answers of one type, at most `at_most[i]` are right.

    None: not even all wrong suffices yet. `irregular` lists (right, asked) that a model flags although somebody with
    fewer right answers goes free, as a badly fitted one can.
    """

    questions: tuple[int, ...]
    at_most: tuple[int | None, ...]
    irregular: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Tally(Record):
    """Test questions answered: `annotators` (labels, sorted), `successes` and `trials` (n, 2), `skipped` (n, 2).

    The columns are positive and negative questions; a skipped answer is a neutral one that was not counted.
    """

    annotators: tuple[Any, ...]
    successes: IntArray
    trials: IntArray
    skipped: IntArray


@dataclass(frozen=True, slots=True)
class Screening(Record):
    """Which annotators a model flags, in the order given.

    `posteriors` (n, 2) for positive and negative questions, `flagged` (n,) on either, `combined` (n,) the probability
    1 - (1 - q1)(1 - q2) of being noisy on one or the other. `spared` are positions that the model flagged although
    every answer was right. `beside` is the same under `rate_fixed2`, which needs no other annotators.
    """

    model: str
    mode: str
    status: str
    reason: str
    n: int
    posteriors: FloatArray
    flagged: BoolArray
    combined: FloatArray
    spared: tuple[int, ...]
    priors: tuple[BetaMixture, ...]
    fits: tuple[MixtureFit, ...]
    warnings: tuple[Warning, ...]
    settings: dict[str, Any]
    beside: "Screening | None" = None

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON-safe dict."""
        return Record.as_dict(self) | {"unit": "annotator"}


def score_answers(
    values: npt.ArrayLike, is_positive: npt.ArrayLike, *, midpoint: float = 0.5, neutral: str = "skip"
) -> FloatArray:
    """Which answers to test questions are right: 1, 0, or NaN where nothing is counted. Shapes (n,).

    `values` lie in 0..1 (Likert points mapped), NaN missing. A positive question is right above `midpoint`, a negative
    one below it. The paper binarises "at 0.5" and says nothing of an answer of exactly .5: here it counts as `neutral`
    says, "wrong" or "skip" (left out, the default).

    >>> score_answers([0.75, 0.5, 0.25], [True, True, False]).tolist()
    [1.0, nan, 1.0]
    """
    if neutral not in ("skip", "wrong"):
        raise ValueError(f"neutral: {neutral!r} is neither skip nor wrong")
    answers = vector(values, "values")
    refuse_outside(answers, (0.0, 1.0), "values")
    positive = np.asarray(is_positive)
    if positive.shape != answers.shape or positive.dtype != bool:
        raise ValueError(f"is_positive: {len(answers)} truth values are needed")
    right = np.where(positive, answers > midpoint, answers < midpoint).astype(np.float64)
    right[np.isnan(answers)] = np.nan
    if neutral == "skip":
        right[answers == midpoint] = np.nan
    return right


def tally(
    values: npt.ArrayLike,
    is_positive: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    midpoint: float = 0.5,
    neutral: str = "skip",
) -> Tally:
    """Right answers and answers counted of each annotator, by type of question; see `score_answers`.

    >>> counted = tally([1, 0.5, 0.25, 0], [True, True, False, True], ["a", "a", "a", "b"])
    >>> counted.successes.tolist(), counted.trials.tolist(), counted.skipped.tolist()
    ([[1, 1], [0, 0]], [[1, 1], [1, 0]], [[1, 0], [0, 0]])
    """
    right = score_answers(values, is_positive, midpoint=midpoint, neutral=neutral)
    positions, n = codes(np.asarray(annotators), "annotators", len(right))
    cell = 2 * positions + np.where(np.asarray(is_positive, dtype=bool), 0, 1)
    counted, given = ~np.isnan(right), ~np.isnan(vector(values, "values"))

    def table(chosen: BoolArray) -> IntArray:
        return np.asarray(np.bincount(cell[chosen], minlength=2 * n).reshape(n, 2), dtype=np.int64)

    return Tally(
        annotators=tuple(np.unique(np.asarray(annotators)).tolist()),
        successes=table(right == 1),
        trials=table(counted),
        skipped=table(given & ~counted),
    )


def rate_posterior(
    prior: BetaMixture, successes: npt.ArrayLike, trials: npt.ArrayLike, *, threshold: float = RATE_THRESHOLD
) -> FloatArray:
    """P(P_w < `threshold` | data) of each annotator: sum_k q_k I_threshold(alpha_k + s, beta_k + n - s); shape (n,).

    `successes` and `trials` have shape (n,): right answers s out of n counted. q_k is the posterior probability of
    component k. An annotator without an answer keeps the prior's probability.

    >>> rate_posterior(PRIORS["fixed2"], [0, 9], [3, 10]).round(4).tolist()
    [0.9981, 0.2671]
    """
    refuse_level(threshold)
    right, asked = _counts(successes, trials)
    weights = _component_posterior(prior, right, asked)
    alphas, betas = np.array(prior.alphas), np.array(prior.betas)
    below = special.betainc(alphas + right[:, None], betas + (asked - right)[:, None], threshold)
    return np.asarray(np.sum(weights * below, axis=1), dtype=np.float64)


def class_posterior(prior: BetaMixture, successes: npt.ArrayLike, trials: npt.ArrayLike) -> FloatArray:
    """P(Z_w is not the best component | data) of each annotator; shape (n,). Needs two components or more.

    q_k is proportional to theta_k B(alpha_k + s, beta_k + n - s) / B(alpha_k, beta_k).

    >>> class_posterior(PRIORS["fixed2"], [0, 9], [3, 10]).round(4).tolist()
    [0.966, 0.0002]
    """
    if len(prior.weights) < 2:
        raise ValueError("prior: the class criterion needs at least two components")
    weights = _component_posterior(prior, *_counts(successes, trials))
    others = [k for k in range(len(prior.weights)) if k != prior.best]
    # The sum over the others, not one minus the best: it keeps its digits where it is tiny.
    return np.asarray(np.sum(weights[:, others], axis=1), dtype=np.float64)


def posterior(
    prior: BetaMixture,
    successes: npt.ArrayLike,
    trials: npt.ArrayLike,
    *,
    criterion: str,
    threshold: float = RATE_THRESHOLD,
) -> FloatArray:
    """The probability of being noisy by `criterion`: "rate" (`rate_posterior`) or "class" (`class_posterior`).

    >>> posterior(PRIORS["uniform"], [0], [1], criterion="rate").round(4).tolist()
    [0.99]
    """
    if criterion == "rate":
        return rate_posterior(prior, successes, trials, threshold=threshold)
    if criterion == "class":
        return class_posterior(prior, successes, trials)
    raise ValueError(f"criterion: {criterion!r} is neither rate nor class")


def is_noisy(posteriors: npt.ArrayLike, *, cutoff: float = CUTOFF, rule: str = "at_least") -> BoolArray:
    """Whether a posterior reaches the cut-off ("at_least", section 5 of the paper) or passes it ("more_than", B.1).

    The two differ where a posterior is the cut-off itself: the uniform prior gives .99 after one wrong answer.

    >>> at_the_point = rate_posterior(PRIORS["uniform"], [0], [1])
    >>> is_noisy(at_the_point).tolist(), is_noisy(at_the_point, rule="more_than").tolist()
    ([True], [False])
    """
    refuse_level(cutoff)
    if rule not in RULES:
        raise ValueError(f"rule: {rule!r} is none of {', '.join(RULES)}")
    values = np.asarray(posteriors, dtype=np.float64)
    return np.asarray(values >= cutoff - ROUNDING if rule == "at_least" else values > cutoff + ROUNDING)


def boundaries(
    prior: BetaMixture,
    questions: Sequence[int],
    *,
    criterion: str,
    threshold: float = RATE_THRESHOLD,
    cutoff: float = CUTOFF,
    rule: str = "at_least",
) -> Boundaries:
    """The table "flag if at most b right of n" for each number of `questions` of one type.

    >>> boundaries(PRIORS["fixed2"], [1, 3, 10, 20], criterion="rate").at_most
    (None, 0, 4, 12)
    """
    at_most: list[int | None] = []
    irregular: list[tuple[int, int]] = []
    for asked in questions:
        if asked < 0:
            raise ValueError(f"questions: {asked} is negative")
        right = np.arange(asked + 1)
        found = posterior(prior, right, np.full(asked + 1, asked), criterion=criterion, threshold=threshold)
        flagged = is_noisy(found, cutoff=cutoff, rule=rule)
        first_free = int(np.argmin(flagged)) if not flagged.all() else asked + 1
        at_most.append(first_free - 1 if first_free else None)
        irregular += [(int(count), asked) for count in right[first_free:][flagged[first_free:]]]
    return Boundaries(tuple(int(asked) for asked in questions), tuple(at_most), tuple(irregular))


def flag_probability(at_most: Sequence[int | None], accuracy: float, *, skip_rate: float = 0.0) -> FloatArray:
    """The exact probability that an annotator has been flagged after each question, looked at after every answer.

    `at_most[n - 1]` is the boundary after n counted answers of one type (`boundaries` over 1..N). Each answer is right
    with probability `accuracy`, neutral and not counted with `skip_rate`, wrong otherwise. Returns shape (N,): flagged
    by the time that 1..N questions were asked. By a forward recursion over (counted, right), so without simulation
    error. Flagged on positive or on negative questions is 1 - (1 - a)(1 - b).

    >>> table = boundaries(PRIORS["fixed2"], range(1, 11), criterion="rate")
    >>> flag_probability(table.at_most, 0.4)[[4, 9]].round(3).tolist()
    [0.372, 0.746]
    """
    if not (0 <= accuracy <= 1 and 0 <= skip_rate <= 1 and accuracy + skip_rate <= 1 + ROUNDING):
        raise ValueError("accuracy: with skip_rate it must be a probability")
    wrong = max(0.0, 1 - accuracy - skip_rate)
    n = len(at_most)
    alive = np.zeros((n + 1, n + 1))
    alive[0, 0] = 1.0
    stops = np.zeros((n + 1, n + 1), dtype=bool)
    for asked, boundary in enumerate(at_most, start=1):
        if boundary is not None:
            stops[asked, : boundary + 1] = True
    flagged = np.zeros(n)
    total = 0.0
    for asked in range(n):
        step = skip_rate * alive
        step[1:, :] += wrong * alive[:-1, :]
        step[1:, 1:] += accuracy * alive[:-1, :-1]
        total += float(step[stops].sum())
        step[stops] = 0.0
        alive = step
        flagged[asked] = total
    return flagged


def fit(
    successes: npt.ArrayLike,
    trials: npt.ArrayLike,
    *,
    n_components: int,
    rng: np.random.Generator,
    method: str = "likelihood",
    pseudo_data: bool = True,
    starts: int = 10,
    max_concentration: float = MAX_CONCENTRATION,
) -> MixtureFit:
    """Learns the mixture of betas from the annotators' counts, by maximum likelihood; shapes (n,).

    "likelihood" climbs directly (L-BFGS-B with the exact gradient on the logits of the weights, the logits of the
    means within -7..7 and the logarithms of the concentrations alpha + beta within .1..`max_concentration`) from
    several starts. The cap matters: the pseudo-data vary less than binomially, so the likelihood of the good component
    grows with its concentration for ever. "em" is the published algorithm step by step (Minka's fixed point restarted
    at alpha = beta = 1 in each M-step, tolerances 1e-6 and 1e-7), which takes seconds and stops where its tolerance,
    not the likelihood, tells it to; `max_concentration` does not bind it. Only `rng.uniform` and `rng.standard_gamma`
    are drawn from, in the published order. Rows are reduced to distinct (s, n).

    `pseudo_data` appends the paper's 40 pseudo-annotators. Nothing answered: `no_data`; without pseudo-data fewer than
    2 k annotators with two answers or more: `not_identified`.

    Source: appendix B.1; Minka 2000, Estimating a Dirichlet distribution.

    >>> found = fit([], [], n_components=2, rng=np.random.default_rng(0))
    >>> [round(mean, 2) for mean in found.mixture.means], round(found.log_likelihood, 2), found.at_cap
    ([0.21, 0.95], -58.45, (1,))
    """
    if n_components < 1:
        raise ValueError(f"n_components: {n_components} is less than 1")
    if method not in ("likelihood", "em"):
        raise ValueError(f"method: {method!r} is neither likelihood nor em")
    if starts < 1:
        raise ValueError(f"starts: {starts} is less than 1")
    if not MIN_CONCENTRATION < max_concentration < math.inf:
        raise ValueError(f"max_concentration: {max_concentration!r} is not above {MIN_CONCENTRATION}")
    right, asked = _counts(successes, trials)
    n_annotators, n_answers = int(np.sum(asked > 0)), int(asked.sum())
    common: dict[str, Any] = {
        "n_annotators": n_annotators,
        "n_answers": n_answers,
        "n_pseudo": len(PSEUDO_TRIALS) if pseudo_data else 0,
        "settings": {
            "n_components": n_components,
            "method": method,
            "pseudo_data": pseudo_data,
            "starts": starts,
            "max_concentration": max_concentration if method == "likelihood" else None,
        },
    }
    empty: dict[str, Any] = {"mixture": None, "log_likelihood": None, "at_cap": ()}
    if pseudo_data:
        right = np.concatenate([right, np.array(PSEUDO_SUCCESSES)])
        asked = np.concatenate([asked, np.array(PSEUDO_TRIALS)])
    elif n_answers == 0:
        return MixtureFit("no_data", "no test question was answered", **empty, **common)
    elif int(np.sum(asked > 1)) < 2 * n_components:
        reason = f"fewer than {2 * n_components} annotators answered two questions or more"
        return MixtureFit("not_identified", reason, **empty, **common)
    tails = _Tails.of(right, asked)
    if method == "em":
        found = _expectation_maximisation(tails, n_components, starts, rng)
    else:
        found = _climb(tails, n_components, starts, max_concentration, rng)
    if found is None:
        return MixtureFit("failed", "no start led to a finite likelihood", **empty, **common)
    weights, alphas, betas, log_likelihood = found
    order = np.argsort(alphas / (alphas + betas))
    mixture = BetaMixture(tuple(weights[order].tolist()), tuple(alphas[order].tolist()), tuple(betas[order].tolist()))
    concentrations = (alphas + betas)[order]
    reached = concentrations > max_concentration * (1 - 1e-6) if method == "likelihood" else concentrations < 0
    return MixtureFit(
        status="ok",
        reason="",
        mixture=mixture,
        log_likelihood=log_likelihood,
        at_cap=tuple(int(k) for k in np.flatnonzero(reached)),
        **common,
    )


def default_model(trials: npt.ArrayLike) -> str:
    """The model to screen with: `class_learned2`, or `rate_fixed2` while there is too little to learn from.

    `trials` has shape (n, 2). Learning needs 30 annotators with at least five answers to each type of question.

    >>> default_model([[5, 5]] * 29), default_model([[5, 5]] * 30)
    ('rate_fixed2', 'class_learned2')
    """
    enough = np.sum(_typed(trials, "trials") >= LEARNED_MIN_QUESTIONS, axis=0)
    return "class_learned2" if bool(np.all(enough >= LEARNED_MIN_ANNOTATORS)) else "rate_fixed2"


def screen(
    successes: npt.ArrayLike,
    trials: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    model: str | None = None,
    mode: str = "recommended",
    threshold: float = RATE_THRESHOLD,
    cutoff: float = CUTOFF,
    rule: str | None = None,
    starts: int = 10,
    max_concentration: float = MAX_CONCENTRATION,
) -> Screening:
    """Flags annotators who are noisy on positive or on negative test questions; counts have shape (n, 2), see `tally`.

    `model` is one of `MODELS`; None takes the paper's `class_learned2` in paper mode and `default_model` otherwise.
    Paper mode learns by the published EM algorithm and flags above the cut-off; recommended mode learns by direct
    likelihood with a capped concentration, flags at the cut-off too, shows `rate_fixed2` beside (the class criterion
    misses people who click at random), and never flags somebody for a type of question answered without a mistake
    (warning `perfect_spared`). The uninformative priors flag careful people after one or two mistakes (warning
    `uninformative_prior`). A learned fit that fails makes everybody unflagged, with the fit's status.

    >>> found = screen([[0, 5], [10, 10]], [[5, 5], [10, 10]], rng=np.random.default_rng(0))
    >>> found.model, found.flagged.tolist()
    ('rate_fixed2', [True, False])
    """
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r} is none of {', '.join(MODES)}")
    right, asked = _typed(successes, "successes"), _typed(trials, "trials")
    if right.shape != asked.shape:
        raise ValueError(f"trials: shape {asked.shape} where successes has {right.shape}")
    chosen = model if model is not None else ("class_learned2" if mode == "paper" else default_model(asked))
    if chosen not in MODELS:
        raise ValueError(f"model: {chosen!r} is none of {', '.join(MODELS)}")
    criterion, prior = MODELS[chosen]
    used_rule = rule if rule is not None else ("more_than" if mode == "paper" else "at_least")
    method = "em" if mode == "paper" else "likelihood"
    fits: list[MixtureFit] = []
    priors: list[BetaMixture] = []
    for column in range(2):
        if isinstance(prior, str):
            priors.append(PRIORS[prior])
            continue
        found = fit(
            right[:, column],
            asked[:, column],
            n_components=prior,
            rng=rng,
            method=method,
            starts=starts,
            max_concentration=max_concentration,
        )
        fits.append(found)
        if found.mixture is not None:
            priors.append(found.mixture)
    broken = next((found for found in fits if found.status != "ok"), None)
    n = len(right)
    posteriors = np.full((n, 2), np.nan)
    flagged = np.zeros((n, 2), dtype=bool)
    if broken is None:
        for column in range(2):
            posteriors[:, column] = posterior(
                priors[column], right[:, column], asked[:, column], criterion=criterion, threshold=threshold
            )
        flagged = is_noisy(posteriors, cutoff=cutoff, rule=used_rule)
    warnings: list[Warning] = []
    spared: tuple[int, ...] = ()
    if mode == "recommended":
        # A component with a higher mean but less spread can claim everybody who makes some mistakes, and leave those
        # who make none to the "noisy" one.
        perfect = flagged & (right == asked)
        spared = tuple(int(row) for row in np.flatnonzero(perfect.any(axis=1)))
        flagged = flagged & ~perfect
        if spared:
            warnings.append(Warning("perfect_spared", "warn", {"n": len(spared)}))
        if prior in ("jeffreys", "uniform"):
            warnings.append(Warning("uninformative_prior", "warn", {"model": chosen}))
    status, reason = ("ok", "") if broken is None else (broken.status, broken.reason)
    if n == 0:
        status, reason = "no_data", "no annotator answered a test question"
    beside = None
    if mode == "recommended" and chosen != "rate_fixed2":
        beside = screen(right, asked, rng=rng, model="rate_fixed2", threshold=threshold, cutoff=cutoff, rule=used_rule)
    return Screening(
        model=chosen,
        mode=mode,
        status=status,
        reason=reason,
        n=n,
        posteriors=posteriors,
        flagged=np.asarray(flagged.any(axis=1)),
        combined=np.asarray(1 - np.prod(1 - posteriors, axis=1)),
        spared=spared,
        priors=tuple(priors),
        fits=tuple(fits),
        warnings=tuple(warnings),
        settings={"threshold": threshold, "cutoff": cutoff, "rule": used_rule, "criterion": criterion},
        beside=beside,
    )


def _counts(successes: npt.ArrayLike, trials: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    right, asked = _whole(successes, "successes"), _whole(trials, "trials")
    if right.ndim != 1 or right.shape != asked.shape:
        raise ValueError(f"trials: shape {asked.shape} where successes has {right.shape}")
    wrong = np.flatnonzero(right > asked)
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(f"successes: row {row} has {int(right[row])} of {int(asked[row])}")
    return right, asked


def _whole(values: npt.ArrayLike, name: str) -> IntArray:
    array = np.asarray(values, dtype=np.float64)
    bad = np.argwhere(~(np.isfinite(array) & (array >= 0) & (array == np.round(array))))
    if len(bad):
        raise ValueError(f"{name}: row {int(bad[0][0])} is no count")
    return np.asarray(array, dtype=np.int64)


def _typed(values: npt.ArrayLike, name: str) -> IntArray:
    array = _whole(values, name)
    if array.size == 0:
        return array.reshape(0, 2)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"{name}: expected shape (n, 2), got {array.shape}")
    return array


def _component_posterior(prior: BetaMixture, right: IntArray, asked: IntArray) -> FloatArray:
    alphas, betas = np.array(prior.alphas), np.array(prior.betas)
    with np.errstate(divide="ignore"):
        joint = np.log(np.array(prior.weights)) + special.betaln(
            alphas + right[:, None], betas + (asked - right)[:, None]
        )
    joint -= special.betaln(alphas, betas)
    return np.asarray(np.exp(joint - special.logsumexp(joint, axis=1, keepdims=True)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Tails:
    """The counts as tail indicators: log B(a + s, b + f) / B(a, b) is a sum of logarithms over j < s, j < f, j < n.

    Distinct rows only. `member` (rows, J) says which of the J terms a row has, `offset` (J,) is j, `kind` (J,) whether
    the term belongs to alpha, beta or their sum, whose terms count negatively (`sign`); (alpha, beta) @ `spread` gives
    each term its parameter.
    """

    counts: FloatArray
    member: FloatArray
    offset: FloatArray
    kind: IntArray
    sign: FloatArray
    spread: FloatArray
    binomial: FloatArray

    @classmethod
    def of(cls, right: IntArray, asked: IntArray) -> "_Tails":
        rows, counts = np.unique(np.column_stack([right, asked]), axis=0, return_counts=True)
        parts = (rows[:, 0], rows[:, 1] - rows[:, 0], rows[:, 1])
        ranges = [np.arange(part.max(initial=0)) for part in parts]
        kind = np.repeat(np.arange(3), [len(values) for values in ranges])
        return cls(
            counts=counts.astype(np.float64),
            member=np.concatenate(
                [(part[:, None] > values).astype(np.float64) for part, values in zip(parts, ranges, strict=True)],
                axis=1,
            ),
            offset=np.concatenate(ranges).astype(np.float64),
            kind=kind,
            sign=np.where(kind == 2, -1.0, 1.0),
            spread=np.array([kind != 1, kind != 0], dtype=np.float64),
            binomial=np.asarray(
                special.gammaln(parts[2] + 1) - special.gammaln(parts[0] + 1) - special.gammaln(parts[1] + 1)
            ),
        )

    def terms(self, alphas: FloatArray, betas: FloatArray) -> FloatArray:
        """alpha + j, beta + j or alpha + beta + j; shape (..., J)."""
        return np.asarray(np.stack([alphas, betas], axis=-1) @ self.spread + self.offset)

    def log_likelihoods(self, alphas: FloatArray, betas: FloatArray) -> FloatArray:
        """Of each distinct row under each component; shape (..., rows)."""
        return np.asarray((np.log(self.terms(alphas, betas)) * self.sign) @ self.member.T + self.binomial)


_Found = tuple[FloatArray, FloatArray, FloatArray, float]


def _climb(tails: _Tails, k: int, starts: int, cap: float, rng: np.random.Generator) -> _Found | None:
    total = float(tails.counts.sum())
    bounds = [(-12.0, 12.0)] * (k - 1) + [(-MAX_LOGIT, MAX_LOGIT)] * k
    bounds += [(math.log(MIN_CONCENTRATION), math.log(cap))] * k

    def unpacked(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        logits = np.concatenate([[0.0], x[: k - 1]])
        return (
            np.exp(logits - special.logsumexp(logits)),
            np.asarray(special.expit(x[k - 1 : 2 * k - 1])),
            np.exp(x[2 * k - 1 :]),
        )

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        weights, means, concentrations = unpacked(x)
        terms = tails.terms(means * concentrations, (1 - means) * concentrations)
        joint = np.log(weights)[:, None] + (np.log(terms) * tails.sign) @ tails.member.T + tails.binomial
        each = special.logsumexp(joint, axis=0)
        shares = np.exp(joint - each) * tails.counts
        slopes = (shares @ tails.member) * tails.sign / terms
        by_alpha, by_beta, by_sum = (slopes[:, tails.kind == part].sum(axis=1) for part in range(3))
        by_mean = (by_alpha - by_beta) * concentrations * means * (1 - means)
        by_concentration = (by_alpha * means + by_beta * (1 - means) + by_sum) * concentrations
        by_weight = shares.sum(axis=1) - total * weights
        gradient = np.concatenate([by_weight[1:], by_mean, by_concentration])
        return -float(tails.counts @ each), -gradient

    best: tuple[float, FloatArray] | None = None
    for start in range(starts):
        if start == 0:
            means, concentrations = np.linspace(0.3, 0.95, k) if k > 1 else np.array([0.8]), np.full(k, 5.0)
        else:
            means, concentrations = rng.uniform(0.02, 0.98, k), 5 * rng.standard_gamma(2, k)
        first = np.concatenate(
            [np.zeros(k - 1), special.logit(means), np.log(np.clip(concentrations, MIN_CONCENTRATION, cap))]
        )
        found = optimize.minimize(objective, first, jac=True, method="L-BFGS-B", bounds=bounds)
        if math.isfinite(found.fun) and (best is None or found.fun < best[0]):
            best = (float(found.fun), np.asarray(found.x, dtype=np.float64))
    if best is None:
        return None
    weights, means, concentrations = unpacked(best[1])
    return weights, means * concentrations, (1 - means) * concentrations, -best[0]


def _expectation_maximisation(tails: _Tails, k: int, starts: int, rng: np.random.Generator) -> _Found | None:
    """All starts at once: their steps are the same arithmetic, and each stops by its own tolerance."""
    # One component is fitted in the first step, whatever it starts from.
    starts = starts if k > 1 else 1
    drawn = [(rng.uniform(0.0, 1.0, k), rng.standard_gamma(2.0, k)) for _ in range(starts)]
    means, concentrations = np.array([pair[0] for pair in drawn]), np.array([pair[1] for pair in drawn])
    alphas, betas = means * concentrations, (1 - means) * concentrations
    weights = np.full((starts, k), 1 / k)

    def misfit(chosen: IntArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            joint = np.log(weights[chosen])[..., None] + tails.log_likelihoods(alphas[chosen], betas[chosen])
            return np.asarray(-(special.logsumexp(joint, axis=1) @ tails.counts))

    active = np.arange(starts)
    now = misfit(active)
    for _ in range(1000):
        joint = weights[active][..., None] * np.exp(tails.log_likelihoods(alphas[active], betas[active]))
        with np.errstate(invalid="ignore"):
            shares = joint / joint.sum(axis=1, keepdims=True) * tails.counts
        weights[active] = shares.sum(axis=-1) / tails.counts.sum()
        fitted = _fixed_point(tails, shares.reshape(-1, len(tails.counts)))
        alphas[active], betas[active] = (values.reshape(-1, k) for values in fitted)
        before, now[active] = now[active], misfit(active)
        with np.errstate(invalid="ignore", divide="ignore"):
            goes_on = (before - now[active]) / before >= 1e-6
        active = active[goes_on]
        if len(active) == 0:
            break
    finite = np.isfinite(now) & np.isfinite(alphas).all(axis=1) & (alphas > 0).all(axis=1) & (betas > 0).all(axis=1)
    if not finite.any():
        return None
    best = int(np.argmin(np.where(finite, now, np.inf)))
    return weights[best], alphas[best], betas[best], -float(now[best])


def _fixed_point(tails: _Tails, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Minka's iteration for every row of `shares` (components, distinct rows), each stopped by its own tolerance.

    Steps are taken in blocks and the likelihood is then looked at for the whole block, which gives the same iterates
    as looking after each step and costs a fraction of the calls.
    """
    pulls, constants = shares @ tails.member, shares @ tails.binomial
    sums = np.eye(3)[tails.kind]
    final = np.ones((len(shares), 2))
    pair = np.ones((len(shares), 2))
    rows = np.arange(len(shares))

    def misfit(pairs: FloatArray) -> FloatArray:
        logs = np.log(tails.terms(pairs[..., 0], pairs[..., 1])) * tails.sign
        return np.asarray(-(np.sum(logs * pulls[rows], axis=-1) + constants[rows]))

    with np.errstate(invalid="ignore", divide="ignore"):
        last = misfit(pair)
        taken = 0
        while len(rows) and taken < 10_000:
            block = np.empty((min(EM_BLOCK, 10_000 - taken), len(rows), 2))
            pulling = pulls[rows]
            terms = np.empty_like(pulling)
            for step in range(len(block)):
                np.matmul(pair, tails.spread, out=terms)
                terms += tails.offset
                np.divide(pulling, terms, out=terms)
                slopes = terms @ sums
                pair = pair * slopes[:, :2] / slopes[:, 2:]
                block[step] = pair
            taken += len(block)
            seen = np.concatenate([last[None], misfit(block)])
            # A rise stops the iteration too, and so does a likelihood that is not a number.
            stops = ~((seen[:-1] - seen[1:]) / seen[:-1] >= 1e-7)
            done = stops.any(axis=0)
            where = np.where(done, np.argmax(stops, axis=0), len(block) - 1)
            final[rows] = block[where, np.arange(len(rows))]
            rows, pair, last = rows[~done], pair[~done], seen[-1][~done]
    return final[:, 0], final[:, 1]
