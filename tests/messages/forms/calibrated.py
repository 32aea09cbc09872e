"""The lines of the page of combined numbers."""

from analysis.metrics.calibrated.options import CalibrationForm, CalibrationOptions
from analysis.metrics.calibrated.run import request_calibration
from tests.boards.builders import rating_template
from tests.messages.forms.scenarios import me, says_refused
from tests.messages.lines import Shown
from tests.messages.pages.scenarios import draft

METRICS = "analysis/metrics"


def field(**sent):
    """What the form says to these fields."""

    def scenario():
        form = CalibrationForm(rating_template(me(), prompts=6), {"sample": "random"} | sent)
        return [Shown(error) for errors in form.errors.values() for error in errors]

    return scenario


def requested(make):
    return says_refused(lambda: request_calibration(make(), me(), CalibrationOptions()))


LINES = {
    f"{METRICS}:clean_widths": [
        ("“wide” is not a width", "Enter numbers from 0.01 to 100", field(widths="wide")),
        ("These are 7 widths", "Enter at most 6", field(widths="1 2 3 4 5 6 7")),
    ],
    f"{METRICS}:clean_n_outputs": [
        ("Each system has up to 6 outputs", "Enter at least this number", field(n_outputs="3")),
    ],
    f"{METRICS}:request_calibration": [
        ("No question of the study gives scores", "Only ratings", requested(lambda: draft())),
        (
            "no scores of a metric or judge",
            "Store scores first",
            requested(lambda: rating_template(me(), prompts=6)),
        ),
    ],
}
