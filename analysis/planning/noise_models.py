"""Plans of test questions: how well each model finds careless annotators, with so many questions."""

from typing import Any

from django import forms

from analysis.exclusions.rules.checks import MODEL_CHOICES
from studies.models import Study
from studies.services import jobs

from .forms import number_field
from .simulations import SimulationForm

MOST_ROUNDS = 100
MODES = [
    ("recommended", "as reports here flag them"),
    ("paper", "as published: EM, above .99 only, people without a mistake too (slower)"),
]
# Fields of two numbers each, in percent.
RANGES = ("careless", "careless_right", "careful_right")


class NoiseModelsForm(SimulationForm):
    """What the simulation needs. The first values are those of appendix B.2 of the Genie paper."""

    kind = "plan_test_questions"
    result_format = "heval.test_question_plan/1"

    annotators = forms.IntegerField(label="Annotators", min_value=5, max_value=500, initial=88)
    questions = number_field(
        "Test questions of an annotator, median",
        "Of one type, such as negative ones: each type has a model of its own.",
        low=1,
        high=200,
        initial=12,
    )
    activity = number_field(
        "Activity",
        "Standard deviation of the logarithm of their number. 0: all answer equally many. With 1, one annotator in six answers 2.7 times the median or more.",
        high=2,
        initial=1,
    )
    careless_low = number_field("Careless annotators, % from", high=100, initial=1)
    careless_high = number_field(
        "Careless annotators, % to", "Each simulated round draws its share.", high=100, initial=10
    )
    careless_right_low = number_field("Right answers of the careless, % from", high=100, initial=0)
    careless_right_high = number_field(
        "Right answers of the careless, % to", "50 is chance for two answers.", high=100, initial=50
    )
    careful_right_low = number_field("Right answers of the others, % from", high=100, initial=95)
    careful_right_high = number_field("Right answers of the others, % to", high=100, initial=100)
    mode = forms.ChoiceField(label="Flag", choices=MODES, initial="recommended")
    rounds = forms.IntegerField(label="Simulated rounds", min_value=5, max_value=MOST_ROUNDS, initial=25)

    def clean(self):
        cleaned = super().clean() or {}
        for name in RANGES:
            low, high = cleaned.get(f"{name}_low"), cleaned.get(f"{name}_high")
            if low is not None and high is not None and low > high:
                self.add_error(f"{name}_high", "This is below the number before it. Enter a higher number.")
        return cleaned


def compute_flag_rates(options: dict[str, Any], seed: int, progress: jobs.ProgressReporter) -> dict[str, Any]:
    """Simulate the rounds."""
    import numpy as np

    from analysis.stats.planning.noise_models import SimulatedCrowd, simulate_flag_rates

    ranges = {name: (options[f"{name}_low"] / 100, options[f"{name}_high"] / 100) for name in RANGES}
    crowd = SimulatedCrowd(options["annotators"], options["questions"], options["activity"], **ranges)
    rows = simulate_flag_rates(
        crowd,
        rounds=options["rounds"],
        rng=np.random.default_rng(seed),
        mode=options["mode"],
        progress=lambda done, total: progress(done, total, "Simulating rounds"),
    )
    return {
        "format": NoiseModelsForm.result_format,
        "options": options,
        "seed": seed,
        "rows": [row.as_dict() for row in rows],
    }


def latest_flag_rates(study: Study) -> dict[str, Any] | None:
    """Return the newest result, with its rows by model, or None."""
    found = NoiseModelsForm.latest(study)
    if found is None:
        return None
    models: dict[str, list[dict[str, Any]]] = {}
    for row in found["rows"]:
        percent = {
            f"{name}_percent": None if row[name] is None else 100 * row[name]
            for name in ("precision", "precision_error", "recall", "recall_error")
        }
        models.setdefault(row["model"], []).append(row | percent)
    labels = dict(MODEL_CHOICES)
    return found | {
        "mode": dict(MODES)[found["options"]["mode"]],
        "buckets": next(iter(models.values())),
        "models": [{"name": name, "label": labels[name], "rows": rows} for name, rows in models.items()],
    }
