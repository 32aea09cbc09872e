"""The records of combined estimates."""

from dataclasses import dataclass

from analysis.stats.results import Estimate, Record, ResultWarning

# What the intervals are about: which of people, prompts and items are a sample.
PEOPLE_AND_PROMPTS, PROMPTS, ITEMS = "people and prompts", "prompts", "items"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsSaved(Record):
    """What the judges save, in labels and in money.

    `se_ratio` is the standard error of the combined estimate divided by that of people alone (1 if the combined
    estimate is the human one). `labels_saved` = n_labels (1 / se_ratio^2 - 1): the further labels that people alone would
    need for the combined standard error, if people, prompts and labels grew in proportion. `share_saved` = 1 - se_ratio^2 is
    their share of all labels that people alone would need. They are negative if the judges make the estimate less precise. `money_saved` = labels_saved `price`. A number that is undefined is
    None, with a `reason`.
    """

    n_labels: int
    se_ratio: float | None = None
    labels_saved: float | None = None
    share_saved: float | None = None
    price: float | None = None
    money_saved: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeUse(Record):
    """One judge of a combined estimate.

    `weight` is the mean slope by which the judge's scores correct the human ones, in points of the human scale per point of the
    judge's; 0 if the combined estimate is the human one. `correlation` is that of the judge's scores with the mean human
    scores of the labelled items, None if one of them does not vary. `bias` is the mean of judge minus human on the human scale.
    """

    judge: str
    weight: float
    correlation: float | None
    bias: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedEstimate(Record):
    """The estimate of people alone (`human`, the number to report first) and the one of people and judges (`combined`).

    `samples` names what is a sample: "people and prompts", "prompts" or "items". `fallback` says why the combined estimate is the human one, or
    is empty. `n_items` counts the items with judges' scores, `n_labelled` those with human labels too. `weights` says how the
    weights were found: "least squares", "mean of the judges", "declared" or "none".
    """

    human: Estimate
    combined: Estimate
    saved: LabelsSaved
    judges: tuple[JudgeUse, ...]
    samples: str
    n_items: int
    n_labelled: int
    weights: str
    fallback: str = ""
    warnings: tuple[ResultWarning, ...] = ()
