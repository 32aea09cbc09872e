"""Probes of a judge, from a file that is uploaded on the page to the sentences of the check."""

from functools import partial

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from analysis.metrics.judge_check.measuring import draw_check
from analysis.models import Metric, MetricScore, PairScore
from studies.models import Output, Study
from studies.services import jobs, lifecycle
from tests.admin_pages import logged_in
from tests.analysis.metrics.scores import table
from tests.builders import launched

from .builders import answer_verdicts, chosen, judged_draft

pytestmark = pytest.mark.django_db
N_PROMPTS = 20


def judged_rows(study):
    """Two runs for each output, the second one different for the first five prompts, and each pair in both orders.

    The verdict about the pair of every fourth prompt is the first output in both orders.
    """
    outputs = Output.objects.filter(system__study=study).order_by("prompt__key", "system__name")
    rows = []
    for number, (system, prompt) in enumerate(outputs.values_list("system__name", "prompt__key")):
        is_good = number % 4 < 2
        for run in (1, 2):
            is_changed = run == 2 and number < 10
            rows.append({"system": system, "prompt": prompt, "run": run, "strict": 5 if is_good != is_changed else 1})
    prompts = sorted({row["prompt"] for row in rows})
    for number, prompt in enumerate(prompts):
        for first, second in (("alpha", "beta"), ("beta", "alpha")):
            better = "first" if number % 4 == 0 else "alpha"
            rows.append({"first": first, "second": second, "prompt": prompt, "strict": better})
    return rows


@pytest.mark.slow
def test_a_file_of_runs_and_pairs_in_both_orders_is_probed_on_the_page():
    study = judged_draft(prompts=N_PROMPTS)
    client = logged_in(study.owner)
    file = SimpleUploadedFile("scores.csv", table(judged_rows(study)))
    described = {
        "kind": "judge",
        "version": "v1",
        "family": "alpha",
        "scale_low": 1,
        "scale_high": 5,
        "question": "verdict",
    }
    assert client.post(reverse("study_metrics_upload", args=[study.pk]), described | {"file": file}).status_code == 302
    judge = Metric.objects.get()
    assert (MetricScore.objects.count(), PairScore.objects.count()) == (4 * N_PROMPTS, 2 * N_PROMPTS)

    check = draw_check(study, study.owner, chosen(study, judge, n_test=2 * N_PROMPTS, people_per_output=3))
    study.refresh_from_db()
    study = launched(study)
    scores = dict(MetricScore.objects.filter(run=1).values_list("output", "value"))
    answer_verdicts(study, check, lambda output, person, is_yes: (scores[output] == 5) != (output % 7 == person), 3)
    lifecycle.unblind(study, study.owner, "The judge is checked.")
    study = Study.objects.get(pk=study.pk)
    get = partial(client.get, reverse("judge_check", args=[study.pk]))
    assert client.post(reverse("judge_check_compute", args=[study.pk])).status_code == 302
    jobs.run_waiting_jobs()
    page = get().content.decode()
    assert "Repeated runs give the same verdict in 75.0 % (" in page
    assert "The verdict about a pair changes with its order in 25.0 % (" in page
    assert "whether the judge favours systems of the family “alpha”: its share of “yes” minus people&#x27;s is" in page
    assert "It remains open whether an output&#x27;s length changes the judge&#x27;s share of “yes”" in page
