"""Plans of labelling strategies of two choices: how many answers until a stopping rule decides."""

from typing import Any

from django import forms

from studies.access import Action, check_permission_or_404
from studies.models import Job, Study
from studies.services import jobs
from studies.services.lifecycle import ActionRefused

from .forms import number_field

KIND = "plan_strategies"
RUNS, MOST_ITEMS = 400, 20_000
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


class StrategiesForm(forms.Form):
    """What the simulation needs. The first values are those of the paper's Table 3 with the least difficulty."""

    share = number_field(
        "Answers for x, %", "On average over items. 50 is no difference.", low=50, high=99, initial=61.25
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
    rule = forms.ChoiceField(label="Stopping rule", choices=RULES)
    confidence = number_field("Confidence, %", low=50, high=99.9999, initial=99.9)
    reading = forms.ChoiceField(label="The study ends at", choices=READINGS)
    price = number_field("Price of an answer, with fees", "In the currency of the study.", required=False)

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
            elif (share := cleaned.get("share")) is not None and _difficulty(share, low, high) > 1:
                self.add_error("share", "Annotators of this capability cannot agree so often. Enter a lower share.")
        return cleaned


def _difficulty(share: float, low: float, high: float) -> float:
    """Return the mean difficulty at which annotators of mean capability choose x this often, in percent."""
    return (2 * share / 100 - 1) / ((low + high) / 2)


def request_strategies(study: Study, by, options: dict[str, Any], request_token: str | None = None) -> Job:
    """Submit the job. Raise ActionRefused if the form's values are not valid."""
    check_permission_or_404(by, Action.EDIT, study)
    form = StrategiesForm(options)
    if not form.is_valid():
        name, texts = next(iter(form.errors.items()))
        raise ActionRefused(f"{form.fields[name].label}: {texts[0]}" if name in form.fields else texts[0])
    return jobs.submit(KIND, study=study, by=by, request_token=request_token, options=form.cleaned_data)


def compute_strategies(options: dict[str, Any], seed: int, progress: jobs.ProgressReporter) -> dict[str, Any]:
    """Simulate all strategies with the difference, and without one, where every decision is wrong."""
    import numpy as np

    from analysis.stats.planning.stopping import plan_labelling_strategies
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
    difficulty = _difficulty(options["share"], *agents["capability"])

    def plan(number: int, mean: float) -> Any:
        def say(done: int, total: int) -> None:
            progress(number * total + done, 2 * total, "Simulating studies")

        rng = np.random.default_rng([seed, number])
        return plan_labelling_strategies(mean, n_items, rule=rule, rng=rng, runs=RUNS, progress=say, **agents)

    found = [plan(number, mean) for number, mean in enumerate((difficulty, 0.0))]
    rows = [
        one.as_dict() | {"wrong_without_difference": none.decided, "wrong_error": none.decided_error}
        for one, none in zip(*found, strict=True)
    ]
    return {
        "format": "heval.strategy_plan/1",
        "options": options,
        "seed": seed,
        "mean_difficulty": difficulty,
        "rows": rows,
    }


def latest_strategies(study: Study) -> dict[str, Any] | None:
    """Return the newest result, with the price of each row, or None."""
    job = study.jobs.filter(kind=KIND, state=Job.State.DONE).order_by("-pk").first()
    if job is None or not job.result:
        return None
    result = job.result
    price = result["options"].get("price")
    cheapest = min(result["rows"], key=lambda row: row["labels"])
    return result | {
        "at": job.ended_at,
        "price": price,
        "cheapest": LABELS[cheapest["strategy"]],
        "rows": [
            row | {"label": LABELS[row["strategy"]], "cost": None if price is None else price * row["labels"]}
            for row in result["rows"]
        ],
    }
