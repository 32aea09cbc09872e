"""Plans of labelling strategies of two choices: how many answers until a stopping rule decides."""

import math
from typing import Any

from django import forms
from django.db.models import Exists, OuterRef, QuerySet

from analysis.protocols import REGISTRY as ANALYSES
from studies.models import Section, Study
from studies.services import jobs
from studies.services.lifecycle import ActionRefused

from . import pilots
from .forms import number_field
from .inputs import InvalidPlanInputs
from .simulations import SimulationForm

MOST_RUNS, MOST_ITEMS, MOST_SHARES = 2000, 20_000, 5
LABELS = {
    "one": "One annotator for each item",
    "fixed": "The same annotator for all items",
    "max_three": "Two annotators, and a third if they disagree",
    "majority_5": "Majority of five annotators",
    "majority_7": "Majority of seven annotators",
}
RULES = [
    ("beta_binomial", "valid after every answer (beta-binomial)"),
    ("hoeffding", "Hoeffding's bound, as in Thorleiksdóttir et al. 2022"),
]
READINGS = [
    ("first", "the first crossing, as a study that stops by itself"),
    ("stays", "the crossing after which the bound never falls back, as in Thorleiksdóttir et al. 2022"),
]
DRAWS = [
    ("new", "new annotators and items in each simulated study"),
    ("one", "the same 100 annotators and items in all of them, as in Thorleiksdóttir et al. 2022"),
]


class SharesField(forms.Field):
    """Percentages from 50 to 99: a list, or a text of numbers with spaces between them."""

    def prepare_value(self, value):
        return " ".join(f"{one:g}" for one in value) if isinstance(value, list) else value

    def to_python(self, value):
        parts = value if isinstance(value, list) else str(value or "").replace(",", " ").split()
        if len(parts) > MOST_SHARES:
            raise forms.ValidationError(f"There are {len(parts)} shares. Enter at most {MOST_SHARES}.")
        shares = []
        for part in parts:
            try:
                share = float(part)
            except (TypeError, ValueError):
                share = math.nan
            if not 50 <= share <= 99:
                raise forms.ValidationError(f"{part!r} is not a number from 50 to 99. Enter shares such as 61.25 55.")
            shares.append(share)
        return shares


class StrategiesForm(SimulationForm):
    """What the simulation needs. The first values are those of the paper's Table 3 with the least difficulty."""

    kind = "plan_strategies"
    result_format = "heval.strategy_plan/2"

    pilot = forms.CharField(
        label="Share and spread from a pilot",
        required=False,
        max_length=36,
        empty_value="",
        help_text="Code of a study with two choices whose answers you may export, also this one. Its first comparison then gives the share and "
        "the standard deviation of items, in place of those below.",
    )
    shares = SharesField(
        label="Answers for x, %",
        initial=[61.25],
        help_text=f"On average over items. 50 is no difference. Up to {MOST_SHARES} numbers, with spaces between them.",
    )
    items = forms.IntegerField(
        label="Most items",
        min_value=10,
        max_value=MOST_ITEMS,
        initial=1500,
        help_text="Where the study ends undecided.",
    )
    spread = number_field(
        "Standard deviation of items",
        "Of their difficulty, from −1 (everybody prefers y) to 1.",
        high=1,
        initial=0.316,
    )
    lowest_capability = number_field(
        "Lowest capability of an annotator",
        "0 answers at random, 1 follows the item. Capabilities are spread evenly from here to the highest.",
        high=1,
        initial=0.8,
    )
    highest_capability = number_field("Highest capability", high=1, initial=1)
    rule = forms.ChoiceField(label="Stopping rule", choices=RULES, initial="beta_binomial")
    confidence = number_field("Confidence, %", low=50, high=99.9999, initial=99.9)
    reading = forms.ChoiceField(label="The study ends at", choices=READINGS, initial="first")
    runs = forms.IntegerField(label="Simulated studies", min_value=100, max_value=MOST_RUNS, initial=1000)
    draws = forms.ChoiceField(label="Annotators and items", choices=DRAWS, initial="new")
    price = number_field("Price of an answer, with fees", "In the currency of the study.", required=False)

    def __init__(self, *args, user: Any, **kwargs):
        super().__init__(*args, user=user, **kwargs)
        named = [
            (str(one.code), one.title) for one in _of_two_choices(pilots.pilot_studies(user))[: pilots.MOST_LISTED]
        ]
        self.fields["pilot"].widget = forms.Select(choices=[("", "none: as entered below"), *named])

    def clean_pilot(self):
        if code := self.cleaned_data["pilot"]:
            try:
                study = pilots.find_pilot_study(code, self.user)
            except InvalidPlanInputs as refused:
                raise forms.ValidationError(refused.errors["prior"]) from None
            if not _of_two_choices(Study.objects.filter(pk=study.pk)).exists():
                raise forms.ValidationError("This study has no two choices. Choose a study that has.")
        return code

    def clean(self):
        cleaned = super().clean() or {}
        low, high = cleaned.get("lowest_capability"), cleaned.get("highest_capability")
        if low is not None and high is not None:
            if low > high:
                self.add_error("highest_capability", "This is below the lowest capability. Enter a higher number.")
            elif low + high == 0:
                self.add_error(
                    "highest_capability", "Annotators of capability 0 decide nothing. Enter a number above 0."
                )
            elif not cleaned.get("pilot") and any(
                _difficulty(share, low, high) > 1 for share in cleaned.get("shares", ())
            ):
                self.add_error("shares", "Annotators of this capability cannot agree so often. Enter a lower share.")
        return cleaned


def _with_strategies() -> list[str]:
    """Return the protocols whose labels the strategies of the paper decide."""
    return [slug for slug, analysis in ANALYSES.items() if analysis.reads_deltas]


def _of_two_choices(studies: QuerySet[Study]) -> QuerySet[Study]:
    live = Section.objects.filter(study=OuterRef("pk"), purpose=Section.Purpose.LIVE, protocol__in=_with_strategies())
    return studies.filter(Exists(live))


def _difficulty(share: float, low: float, high: float) -> float:
    """Return the mean difficulty at which annotators of mean capability choose x this often, in percent."""
    return (2 * share / 100 - 1) / ((low + high) / 2)


def with_pilot(options: dict[str, Any], user: Any) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the options with the share and the spread of their pilot, and what the pilot says; or None without a pilot.

    Its share is followed by the lower end of the share's interval, for which a study should be planned, if x is chosen
    more often there too. An answer depends on the product of capability and difficulty alone, so the spread of
    difficulties is that of the shares for the mean capability of the options. Raise ActionRefused if the pilot says too little.
    """
    from analysis.stats.planning.pilot_estimates import share_and_spread
    from analysis.stats.seeds import seeded_generator

    if not options.get("pilot"):
        return options, None
    study = pilots.find_pilot_study(options["pilot"], user)
    answers, data_sha256 = pilots.headline_answers_of(study)
    found = next((one for name, one in answers if name in _with_strategies() and len(one.values)), None)
    if found is None:
        raise ActionRefused("The pilot has no choices that the rules keep. Choose another study.")
    items = found.items if found.items is not None else found.prompts
    try:
        said = share_and_spread(
            found.values, found.annotators.codes, items.codes, rng=seeded_generator(data_sha256, "strategies")
        )
    except ValueError as refused:
        raise ActionRefused(f"The study cannot be a pilot. {refused}") from None
    shares = [round(100 * one, 2) for one in (said.share, said.low) if one > 0.5]
    low, high = options["lowest_capability"], options["highest_capability"]
    if not shares or _difficulty(shares[0], low, high) > 1:
        raise ActionRefused(
            f"In the pilot, {100 * said.share:.1f} % of the answers are for one system. "
            + ("Nothing decides there." if not shares else "Annotators of this capability cannot agree so often.")
            + " Enter shares or capabilities by hand."
        )
    spread = round(min(1.0, 2 * said.spread / ((low + high) / 2)), 4)
    pilot = said.as_dict() | {"study": study.title, "code": str(study.code), "comparison": found.comparison.label}
    return options | {"shares": shares, "spread": spread}, pilot


def compute_strategies(options: dict[str, Any], seed: int, progress: jobs.ProgressReporter) -> dict[str, Any]:
    """Simulate all strategies with each difference, and without one, where every decision is wrong.

    Without a difference, annotators and items are new in each study: those of one draw differ a little.
    """
    import numpy as np

    from analysis.stats.planning.stopping import OTHER_DRAWS, plan_labelling_strategies
    from analysis.stats.stopping_boundaries import beta_binomial_boundaries, hoeffding_boundaries

    n_items, alpha = options["items"], 1 - options["confidence"] / 100
    rule = (
        hoeffding_boundaries(n_items, delta=alpha)
        if options["rule"] == "hoeffding"
        else beta_binomial_boundaries(n_items, level=1 - alpha)
    )
    agents: dict[str, Any] = {
        "spread": options["spread"],
        "spread_kind": "sd",
        "capability": (options["lowest_capability"], options["highest_capability"]),
        "reading": options["reading"],
    }
    means = [*(_difficulty(share, *agents["capability"]) for share in options["shares"]), 0.0]

    def plan(number: int, mean: float) -> Any:
        def say(done: int, total: int) -> None:
            progress(number * total + done, len(means) * total, "Simulating studies")

        return plan_labelling_strategies(
            mean,
            n_items,
            rule=rule,
            rng=np.random.default_rng([seed, number]),
            runs=options["runs"],
            is_one_draw=number < len(options["shares"]) and options["draws"] == "one",
            progress=say,
            **agents,
        )

    *found, without = (plan(number, mean) for number, mean in enumerate(means))
    plans = [
        {
            "share": share,
            "mean_difficulty": mean,
            "rows": [
                one.as_dict() | {"wrong_without_difference": none.decided, "wrong_error": none.decided_error}
                for one, none in zip(rows, without, strict=True)
            ],
        }
        for share, mean, rows in zip(options["shares"], means[:-1], found, strict=True)
    ]
    return {
        "format": StrategiesForm.result_format,
        "options": options,
        "seed": seed,
        "other_draws": OTHER_DRAWS,
        "plans": plans,
    }


def latest_strategies(study: Study) -> dict[str, Any] | None:
    """Return the newest result, with the price of each row, or None."""
    result = StrategiesForm.latest(study)
    if result is None:
        return None
    price = result["options"].get("price")
    if pilot := result.get("pilot"):
        percent = {"percent": "share", "percent_low": "low", "percent_high": "high", "spread_percent": "spread"}
        pilot = pilot | {name: f"{100 * pilot[key]:.1f}" for name, key in percent.items()}
    return result | {
        "price": price,
        "pilot": pilot,
        "plans": [
            plan
            | {
                "cheapest": LABELS[min(plan["rows"], key=lambda row: row["labels"])["strategy"]],
                "rows": [
                    row | {"label": LABELS[row["strategy"]], "cost": None if price is None else price * row["labels"]}
                    for row in plan["rows"]
                ],
            }
            for plan in result["plans"]
        ],
    }
