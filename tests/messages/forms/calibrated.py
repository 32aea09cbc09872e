"""The lines of the page of combined numbers."""

from analysis.metrics.calibrated.options import CalibrationForm, CalibrationOptions
from analysis.metrics.calibrated.run import request_calibration
from tests.boards.builders import rating_template
from tests.messages.forms.scenarios import me, says_refused
from tests.messages.lines import Shown, only_informs
from tests.messages.pages.scenarios import draft


def field(**sent):
    """What the form says to these fields."""

    def scenario():
        form = CalibrationForm(rating_template(me(), prompts=6), {"sample": "random"} | sent)
        return [Shown(error) for errors in form.errors.values() for error in errors]

    return scenario


def requested(make):
    return says_refused(lambda: request_calibration(make(), me(), CalibrationOptions()))


FORMS = {
    "is not a width": field(widths="wide"),
    "These are … widths": field(widths="1 2 3 4 5 6 7"),
    "Each system has up": field(n_outputs="3"),
    "No question of the study": only_informs(requested(lambda: draft())),
    "The study has no scores": requested(lambda: rating_template(me(), prompts=6)),
}
