"""Numbers of robots carry their mark on every page, table and figure, and numbers of people carry none."""

import pytest
from django.urls import reverse

from analysis.metrics.calibrated.options import CalibrationOptions
from analysis.metrics.calibrated.run import calibrate
from analysis.metrics.comparison import compare_with_people
from analysis.report.runs import run_analysis
from annotators.counting import SIMULATED, counted_origins, is_simulated, simulated_words

from .collected_studies import collected
from .judges import store_judge
from .scores import client_of

pytestmark = pytest.mark.django_db
PAGES = ("study_metrics", "study_calibrated", "judge_check")


@pytest.fixture
def study():
    study = collected(people=6)
    store_judge(study)
    study.assignments.update(origin="robot")
    return study


def shown(study):
    client = client_of(study, "owner")
    return {name: client.get(reverse(name, args=[study.pk])).content.decode() for name in PAGES}


@pytest.mark.slow
def test_pages_results_tables_and_figures_of_robots_are_marked(study):
    assert is_simulated(study) and counted_origins(study) == ["robot"]
    (compared,) = compare_with_people(study, study.owner, resamples=99)
    (combined,) = calibrate(study, CalibrationOptions(), study.owner)
    assert compared.result["is_simulated"] and combined.result["is_simulated"]
    pages = shown(study)
    assert {name for name, html in pages.items() if SIMULATED not in html} == set()
    assert " of 6 robots are about " in pages["study_calibrated"] and "6 people" not in pages["study_calibrated"]
    run = run_analysis(study, {"origins": ["robot"], "resamples": 99}, by=None)
    named = [*run.result["tables"], *run.result["figures"]]
    assert len(named) > 4 and all(one["title"].endswith("(simulated)") for one in named)
    client = client_of(study, "owner")
    for form in ("csv", "tex", "json"):
        sent = client.get(reverse("analysis_table", args=[study.pk, run.number, named[0]["name"], form]))
        assert 'filename="simulated-analysis-' in sent["Content-Disposition"]
    drawn = client.get(reverse("analysis_figure", args=[study.pk, run.number, run.result["figures"][0]["name"], "svg"]))
    assert "(simulated)</text>" in drawn.content.decode()


def test_one_submission_of_a_person_takes_the_mark_away(study):
    first = study.assignments.order_by("pk").first()
    study.assignments.filter(pk=first.pk).update(origin="live")
    assert not is_simulated(study) and counted_origins(study) == ["live"]
    study.assignments.filter(pk=first.pk).update(origin="imported")
    assert counted_origins(study) == ["imported"]
    pages = shown(study)
    assert {name for name, html in pages.items() if SIMULATED in html} == set()


@pytest.mark.parametrize(
    ("origins", "words"),
    [(["live"], ""), (["imported", "test"], ""), (["robot"], "simulated"), (["live", "robot"], "partly simulated")],
)
def test_the_mark_names_what_robots_gave(origins, words):
    assert simulated_words(origins) == words
