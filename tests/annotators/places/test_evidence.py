"""The figure of a stopping rule on the collecting page: evidence, threshold, labels to expect, and nothing else while blind."""

import re

import pytest
from django.test import Client

from analysis.report.stopping import submit_stopping_checks
from annotators.places.monitor import latest_stopping_figures
from studies.models import Study
from studies.services import jobs, lifecycle
from tests.builders import choice_study, user
from tests.players import choosing, many

pytestmark = pytest.mark.django_db


def looked_at(study):
    jobs.submit("stopping_check", study=study, by=None)
    jobs.run_waiting_jobs()
    return Study.objects.get(pk=study.pk)


def page_of(study):
    client = Client()
    client.force_login(user("owner", is_superuser=True))
    response = client.get(f"/admin/studies/study/{study.pk}/collecting/")
    assert response.status_code == 200
    return response.content.decode()


def test_before_the_first_look_there_is_no_figure():
    study = choice_study(target_n=5)
    assert latest_stopping_figures(study) == (None, []) and "Stopping rule" not in page_of(study)


@pytest.mark.slow
def test_the_figure_shows_evidence_threshold_and_what_is_to_be_expected():
    study = choice_study(target_n=40, prompts=80, m=2)
    many(study, 5, 0.6)
    page = page_of(looked_at(study))
    assert "Stopping rule" in page and "heval shows which side is ahead when the study is closed" in page
    assert "of 1.30 after 5 annotators" in page and re.search(
        r"About \d+ more labels are expected|The remaining \d+ labels will probably not decide it", page
    )
    (path,) = re.findall(r'<polyline points="([^"]+)"', page.partition('id="stopping"')[2].partition("</section>")[0])
    places = [tuple(map(float, pair.split(","))) for pair in path.split()]
    assert len(places) == 6 and [x for x, _ in places] == sorted({x for x, _ in places})
    assert all(0 <= x <= 420 and 0 <= y <= 200 for x, y in places)
    assert not re.search(r"a_better|b_better|verdict|share of", page)


def test_a_look_without_units_has_words_and_no_path():
    study = choice_study(target_n=40, prompts=80, m=2)
    choosing(study, "a", lambda item: "beta", until="s1.p2")
    page = page_of(looked_at(study)).partition('id="stopping"')[2].partition("</section>")[0]
    assert "no data yet" in page and "<polyline" not in page


def test_a_long_path_is_thinned_and_keeps_its_end():
    study = choice_study(target_n=40, prompts=80, m=2)
    many(study, 2, 0.5)
    job = looked_at(study).jobs.get(kind="stopping_check")
    look = job.result["looks"][0] | {"n": 900, "points": [[n, n / 1000] for n in range(1, 900, 4)]}
    type(job).objects.filter(pk=job.pk).update(result={"looks": [look]})
    (figure,) = latest_stopping_figures(study)[1]
    assert len(figure.frame.across) <= 7 and len(figure.frame.upwards) <= 9 and figure.n == 900


@pytest.mark.slow
def test_the_running_share_is_there_only_after_outcomes_are_shown():
    study = choice_study(target_n=40, prompts=80, m=2)
    many(study, 6, 0.9)
    submit_stopping_checks()
    jobs.run_waiting_jobs()
    result = study.jobs.get(kind="stopping_check").result
    assert "running" not in result["looks"][0] and 'class="band"' not in page_of(study)
    lifecycle.unblind(Study.objects.get(pk=study.pk), user("owner", is_superuser=True), "a pilot of the method")
    submit_stopping_checks()
    jobs.run_waiting_jobs()
    (look,) = study.jobs.get(kind="stopping_check").result["looks"]
    assert [n for n, *_ in look["running"]] == [1, 2, 3, 4, 5, 6]
    share, low, high = look["running"][-1][1:]
    assert 0.5 < share <= 1 and low <= share <= high
    page = page_of(study)
    assert 'class="band"' in page and "Share of choices for x" in page
    assert study.audit_events.filter(verb="unblind").count() == 1
