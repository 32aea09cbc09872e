"""How much people and prompts vary, and how far systems differ, in public evaluations.

Each record is what one public data set or paper shows, with its source and how it was converted. Nothing here loads
numpy, so that a page can read it quickly.
"""

from dataclasses import dataclass
from typing import Any

from analysis.stats.plain_records import PlainRecord
from analysis.stats.planning.inputs import Variation

_DYNAMIC = (
    "Thorleiksdóttir et al. 2022, Dynamic Human Evaluation for Relative Model Comparisons, LREC; its released labels"
)
_SPA = "Ethayarajh and Jurafsky 2022, The Authenticity Gap in Human Evaluation, EMNLP, Table 1"
_GENIE = "Khashabi et al. 2022, Genie: Toward Reproducible and Standardized Human Evaluation, EMNLP, Table 3"
_NOT_GOLD = "Clark et al. 2021, All That's 'Human' Is Not Gold, ACL, section 2.4 and Table 1"
_WMT = "Freitag et al. 2023, Results of WMT23 Metrics Shared Task, WMT; its MQM ratings"

_PROBIT = (
    "A probit model with people and pairs as random effects, fitted by lme4 to the same labels. "
    "The logit model gives {pairs} (pairs) and {people} (people); divided by pi / sqrt(3) these are {latent}."
)
_POINTS = (
    "Standard deviations of the difference between two neighbouring systems in points (penalties cut at 0, 1, 5 and 10), "
    "divided by that of one answer, {residual} points. Those of quality are of the mean of both systems, likewise."
)
_MARKED = "Professional translators marked errors, three for each segment; penalties as five points."
_CHOSEN = "Crowd workers chose the better of two sentences."
_AS_PRINTED = "As published: the mean of the stated chances that one system is better."
_SHARE = "The share of labels for one system."
_HALF_TIES = "The probability that one system has the lower penalty for a segment, ties as half."


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedDifference(PlainRecord):
    """A difference between two systems that was observed.

    Attributes
    ----------
    label : str
        Which systems.
    probability : float
        Probability that the system at least as good is preferred; in `is_about_answers`, that an answer is right.
    source, conversion : str
        Where the number is from, and how it became a probability.
    is_about_answers : bool, default False
        Whether it is the probability of telling human text from machine text.
    """

    label: str
    probability: float
    source: str
    conversion: str
    is_about_answers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior(PlainRecord):
    """How much people and prompts varied in one data set.

    Attributes
    ----------
    key, label : str
        The name in settings, and what a page shows.
    source, conversion : str
        Where the numbers are from, and how they were brought to the scale of `inputs.Variation`.
    what : str
        What people did.
    answers, people, prompts : int
        How many there were, 0 in a summary of several data sets.
    variation : Variation
        The numbers.
    """

    key: str
    label: str
    source: str
    conversion: str
    what: str
    answers: int
    people: int
    prompts: int
    variation: Variation


def _prior(key: str, label: str, *, sds: tuple[float, ...], source: str, **about: Any) -> Prior:
    names = ("sd_people", "sd_prompts", "sd_quality_people", "sd_quality_prompts", "sd_quality")
    variation = Variation(source=source, **dict(zip(names, sds, strict=False)))
    return Prior(key=key, label=label, source=source, variation=variation, **about)


PRIORS = (
    _prior(
        "typical",
        "Between four public data sets",
        sds=(0.3, 0.7),
        source="The four data sets below",
        conversion="Rounded quadratic means of the four data sets: .32 (people) and .74 (prompts).",
        what="People chose one of two sentences, or rated translations.",
        answers=0,
        people=0,
        prompts=0,
    ),
    _prior(
        "choices_neighbours",
        "Two neighbouring systems, crowd workers choose",
        sds=(0.20, 0.75),
        source=f"{_DYNAMIC}, V2 and CGA, first round",
        conversion=_PROBIT.format(pairs="1.27", people=".33", latent=".70 and .18"),
        what=_CHOSEN,
        answers=5000,
        people=73,
        prompts=500,
    ),
    _prior(
        "choices_far_apart",
        "Two very different systems, crowd workers choose",
        sds=(0.59, 1.03),
        source=f"{_DYNAMIC}, V1 and CGA",
        conversion=_PROBIT.format(pairs="1.89", people="1.07", latent="1.04 and .59"),
        what=_CHOSEN,
        answers=5000,
        people=69,
        prompts=500,
    ),
    _prior(
        "mqm_zh_en",
        "Translations from Chinese, professionals rate",
        sds=(0.04, 0.53, 0.58, 0.81, 0.71),
        source=f"{_WMT}, Chinese to English",
        conversion=_POINTS.format(residual="1.00"),
        what=_MARKED,
        answers=11_310,
        people=8,
        prompts=377,
    ),
    _prior(
        "mqm_en_de",
        "Translations into German, professionals rate",
        sds=(0.16, 0.56, 0.62, 0.95, 0.67),
        source=f"{_WMT}, English to German",
        conversion=_POINTS.format(residual=".93"),
        what=_MARKED,
        answers=3120,
        people=10,
        prompts=104,
    ),
)
DEFAULT_PRIOR = PRIORS[0]


def _observed(label: str, probability: float, source: str, conversion: str, **more: Any) -> ObservedDifference:
    return ObservedDifference(label=label, probability=probability, source=source, conversion=conversion, **more)


_SCORES = "Scores {scores} of 100; the standard deviation 29 is from the interval of 2.0 with 800 answers. Normal, each answer about another text."
_RIGHT = "The share of right answers of untrained people."
OBSERVED_DIFFERENCES = (
    _observed("Translation Chinese to English, next in rank, median of 9 pairs", 0.53, _WMT, _HALF_TIES),
    _observed("Translation English to German, next in rank, median of 9 pairs", 0.59, _WMT, _HALF_TIES),
    _observed("Translation Chinese to English, any two of ten systems, median", 0.60, _WMT, _HALF_TIES),
    _observed("Translation English to German, any two of ten systems, median", 0.63, _WMT, _HALF_TIES),
    _observed("Sentences, CGA and V2, first round", 0.597, _DYNAMIC, _SHARE),
    _observed("Sentences, CGA and V2, second round", 0.623, _DYNAMIC, _SHARE),
    _observed("Sentences, CGA and V1", 0.875, _DYNAMIC, _SHARE),
    _observed("Stories, human and GPT-3 davinci", 0.544, _SPA, _AS_PRINTED),
    _observed("Stories, GPT-3 davinci and curie", 0.575, _SPA, _AS_PRINTED),
    _observed("Stories, human and GPT-3 ada", 0.58, _SPA, _AS_PRINTED),
    _observed("Stories, GPT-3 curie and babbage", 0.63, _SPA, _AS_PRINTED),
    _observed("Stories, GPT-3 babbage and ada", 0.688, _SPA, _AS_PRINTED),
    _observed("Translations, Genie large and base models", 0.51, _GENIE, _SCORES.format(scores="70.4 and 69.0")),
    _observed(
        "Translations, Genie base models of 6 and 3 layers", 0.54, _GENIE, _SCORES.format(scores="69.0 and 65.3")
    ),
    _observed(
        "Translations, Genie base models of 3 and 1 layers", 0.64, _GENIE, _SCORES.format(scores="65.3 and 50.7")
    ),
    _observed("Human or machine, GPT-2", 0.579, _NOT_GOLD, _RIGHT, is_about_answers=True),
    _observed("Human or machine, GPT-2, stories", 0.62, _NOT_GOLD, _RIGHT, is_about_answers=True),
    _observed("Human or machine, GPT-3", 0.499, _NOT_GOLD, _RIGHT, is_about_answers=True),
)


def prior_of(key: str) -> Prior:
    """Return the prior of `PRIORS` with this key; raise ValueError if there is none.

    >>> prior_of("choices_neighbours").variation.sd_prompts
    0.75
    """
    for prior in PRIORS:
        if prior.key == key:
            return prior
    raise ValueError(f"prior: {key!r} is not one of {', '.join(prior.key for prior in PRIORS)}.")
