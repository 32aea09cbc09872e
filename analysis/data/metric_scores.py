"""The scores of metrics and judges about single outputs, as reports read them."""

from typing import TYPE_CHECKING

from analysis.data.frames import SECOND_SAMPLE, second_sample_labels
from analysis.models import MetricScore
from studies.models import Study

if TYPE_CHECKING:
    from pandas import DataFrame


def read_metric_scores(study: Study) -> "DataFrame":
    """Return a row for each metric in use and each output that it scored: the mean over its runs, on the metric's own scale.

    ``section`` and ``question``: the place of the question that the scores are about; missing if they are about the output as a whole.
    """
    import pandas as pd

    paths = {
        "output": "output",
        "metric": "metric__name",
        "version": "metric__version",
        "fingerprint": "metric__fingerprint",
        "is_lower_better": "metric__is_lower_better",
        "section": "metric__question__section__position",
        "question": "metric__question__key",
        "system": "output__system__name",
        "prompt": "output__prompt__key",
        "group": "output__prompt__group",
        "value": "value",
    }
    rows = MetricScore.objects.filter(metric__study=study, metric__discarded_at=None)
    rows = rows.order_by("metric__name", "metric__version", "metric", "output", "run")
    read = rows.values_list(*paths.values()).iterator(chunk_size=5000)
    frame = pd.DataFrame(list(read), columns=list(paths)).astype({"value": float})
    means = frame.groupby([name for name in paths if name != "value"], sort=False, dropna=False)["value"].mean()
    found = means.reset_index()
    found[SECOND_SAMPLE] = second_sample_labels(found["prompt"], found.pop("group"), study.group_noun)
    return found
