"""What people, programs and the public learn about a check: the page, REST, the command and the badge."""

import os
from unittest import mock

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from analysis.metrics.judge_check.measuring import compute_result
from analysis.models import JudgeCheckResult
from heval_site.management.commands.judge import Command
from studies.models import Study
from studies.services import jobs, lifecycle
from tests.analysis.api.rest import api_of
from tests.in_process import site_of

from .builders import checked_study, judged_draft, store_judge

pytestmark = pytest.mark.django_db
FORM = {
    "question": "verdict",
    "n_test": 12,
    "n_development": 4,
    "people_per_output": 3,
    "certainty_ratio": 2,
    "min_agreement": 0.7,
    "epsilon": 0.1,
}


def logged_in(study):
    client = Client()
    client.force_login(study.owner)
    return client


def page_of(client, study, status=200):
    response = client.get(reverse("judge_check", args=[study.pk]))
    assert response.status_code == status
    return response.content.decode()


def test_a_draft_is_drawn_by_the_form_or_by_rest():
    study = judged_draft()
    judge = store_judge(study)
    client = logged_in(study)
    page = page_of(client, study)
    assert "Draw the sample" in page and "-----" not in page, "one judge and one question are chosen"
    assert "Upload its scores first" in page_of(logged_in(bare := judged_draft(study.owner)), bare)
    draw = reverse("judge_check_draw", args=[study.pk])
    refused = client.post(draw, FORM | {"judge": judge.pk, "min_agreement": ""})
    assert refused.status_code == 400 and "Nothing says what is good enough" in refused.content.decode()
    assert "but the judge scored 40" in client.post(draw, FORM | {"judge": judge.pk, "n_test": 99}).content.decode()
    assert client.post(draw, FORM | {"judge": judge.pk}).status_code == 302
    page = page_of(client, study)
    assert "three people or more must judge" not in page
    assert "Draw another sample" in page and "12 outputs decide, 4 are for changing the judge" in page
    api = api_of(study.owner)
    sent = api.post(f"studies/{study.code}/judge/sample/", FORM | {"judge": judge.pk})
    assert sent.status_code == 201 and sent.json()["state"] == "open"
    client.post(draw, FORM | {"judge": judge.pk, "needs_alternative_test": "on"})
    text = (
        "A batch has about 8, so three people or more must judge 4 batches each. The study allows 1 batch per annotator"
    )
    assert text in page_of(client, study)
    wrong = api.post(f"studies/{study.code}/judge/sample/", FORM | {"judge": 0, "colour": 1})
    assert wrong.status_code == 400 and [one["field"] for one in wrong.json()["errors"]] == ["colour"]
    assert study.judge_checks.count() == 3


def run_command(study) -> int:
    """The exit code of ``heval judge`` for the study's owner."""
    site = mock.patch.object(Command, "make_site", lambda *_: site_of(study.owner))
    with mock.patch.dict(os.environ, {"HEVAL_TOKEN": "any"}), site:
        try:
            call_command("judge", str(study.code)[:8], site="http://localhost")
        except SystemExit as ended:
            return ended.code
    return 0


@pytest.mark.slow
def test_the_result_is_shown_in_sentences_by_exit_code_and_by_a_badge_that_reveals_nothing_else(capsys):
    study, check = checked_study(min_agreement=0.4, n_test=30, n_development=10)
    client, api = logged_in(study), api_of(study.owner)
    assert client.post(reverse("judge_check_compute", args=[study.pk]), follow=True).status_code == 200
    assert not JudgeCheckResult.objects.exists(), "outcomes are hidden"
    assert run_command(study) == 11
    lifecycle.unblind(study, study.owner, "The judge is checked.")
    started = api.post(f"studies/{study.code}/judge/", {})
    assert started.status_code == 202
    jobs.run_waiting_jobs()
    page = page_of(client, study)
    assert "“strict” is good enough" in page and "The lower end is above the declared 40.0 %" in page
    assert run_command(study) == 0
    assert "180 verdicts of 6 people about 30 outputs" in capsys.readouterr().out
    shown = api.get(f"studies/{study.code}/judge/").json()
    assert (shown["state"], shown["n_verdicts"], shown["criteria"][0]["is_met"]) == ("good", 180, True)
    badge = Client().get(reverse("judge_badge", args=[check.badge_key]))
    text = badge.content.decode()
    assert badge["Content-Type"] == "image/svg+xml" and "judge strict: good enough, " in text and "n = 180" in text
    assert not [word for word in (study.title, str(study.code), "alpha", "v1", study.owner.username) if word in text]
    assert Client().get(reverse("judge_badge", args=["x" * 32])).status_code == 404


@pytest.mark.slow
def test_a_judge_that_is_not_good_enough_ends_the_command_with_10():
    study, check = checked_study(says=lambda output, person, is_yes: (output + person) % 2)
    lifecycle.unblind(study, study.owner, "The judge is checked.")
    compute_result(Study.objects.get(pk=study.pk), study.owner)
    assert run_command(study) == 10
    assert "is not shown to be good enough" in page_of(logged_in(study), study)
    assert "not good enough" in Client().get(reverse("judge_badge", args=[check.badge_key])).content.decode()
