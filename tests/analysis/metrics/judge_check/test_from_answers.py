"""A sample that is drawn from answers that people have given already."""

from dataclasses import replace

import pytest
from django.core.exceptions import PermissionDenied
from django.urls import reverse

from analysis.metrics import comparison, store
from analysis.metrics.calibrated.options import CalibrationOptions
from analysis.metrics.calibrated.run import calibrate
from analysis.metrics.judge_check.measuring import compute_result, draw_check, newest_check
from analysis.models import JudgeCheckOutput
from annotators.models import Assignment, Response
from studies.models import Batch, Item
from studies.services.lifecycle import ActionRefused
from tests.admin_pages import logged_in
from tests.analysis.api.rest import api_of

from .builders import JUDGE, answered_study, chosen, store_judge

pytestmark = pytest.mark.django_db


def page_of(client, study) -> str:
    return client.get(reverse("judge_check", args=[study.pk])).content.decode()


def drawn(check) -> list[tuple[str, str, str]]:
    columns = ("output__prompt__key", "output__system__name", "part")
    return list(JudgeCheckOutput.objects.filter(judge_check=check).order_by(*columns).values_list(*columns))


def test_the_seed_decides_the_sample_and_the_scores_do_not():
    study, judge = answered_study()
    n_items, batches = Item.objects.count(), list(Batch.objects.values())
    first, again, other = (
        draw_check(study, study.owner, chosen(study, judge, n_test=15, n_development=5, seed=seed))
        for seed in (3, 3, 4)
    )
    assert drawn(first) == drawn(again) != drawn(other) and len(drawn(first)) == 20
    newer = store_judge(study, replace(JUDGE, version="v2"), lambda number: 5 - number % 5)
    assert drawn(draw_check(study, study.owner, chosen(study, newer, n_test=15, n_development=5))) == drawn(first)
    assert (first.is_from_answers, first.n_outputs, first.people_per_output, first.seed) == (True, 40, 3, 3)
    assert first.by == study.owner and set(first.outputs.values_list("probability", flat=True)) == {0.5}
    assert (Item.objects.count(), list(Batch.objects.values())) == (n_items, batches), "the study stays as it is"
    seeds = {draw_check(study, study.owner, chosen(study, judge, seed=None)).seed for _ in range(2)}
    assert len(seeds) == 2


def test_only_outputs_with_enough_verdicts_are_drawn():
    study, judge = answered_study()
    last = Assignment.objects.filter(batch__number=0).latest("pk")
    judged = set(Response.objects.filter(assignment=last).values_list("exposure__output", flat=True))
    Assignment.objects.filter(pk=last.pk).update(withdrawn_at=last.submitted_at)
    check = draw_check(study, study.owner, chosen(study, judge, n_test=30))
    assert check.n_outputs == 30 and not judged & set(check.outputs.values_list("output", flat=True))
    with pytest.raises(ActionRefused, match="31 outputs, but 30 have at least 3 verdicts"):
        draw_check(study, study.owner, chosen(study, judge, n_test=31))
    assert draw_check(study, study.owner, chosen(study, judge, n_test=31, people_per_output=2)).n_outputs == 40


def compare(study, judge):
    comparison.compare_with_people(study, study.owner)


def combine(study, judge):
    calibrate(study, CalibrationOptions(), study.owner)


def check(study, judge):
    draw_check(study, study.owner, chosen(study, judge))
    compute_result(study, study.owner)


@pytest.mark.slow
@pytest.mark.parametrize("read", [compare, combine, check])
def test_a_judge_whose_scores_were_compared_with_answers_is_refused(read):
    study, judge = answered_study(says=lambda output, person, is_yes: is_yes != ((output + person) % 7 == 0))
    read(study, judge)
    n = study.judge_checks.count()
    with pytest.raises(ActionRefused, match="heval compared the scores of “strict v1” with answers on"):
        draw_check(study, study.owner, chosen(study, judge))
    assert study.judge_checks.count() == n
    store.discard(judge, study.owner)
    same = store_judge(study)
    with pytest.raises(ActionRefused, match="Upload scores of a new version"):
        draw_check(study, study.owner, chosen(study, same))
    newer = store_judge(study, replace(JUDGE, version="v2"))
    assert draw_check(study, study.owner, chosen(study, newer)).judge == newer


def test_what_cannot_be_drawn_from_answers_is_refused():
    study, judge = answered_study()
    with pytest.raises(ActionRefused, match="all outputs have the same probability"):
        draw_check(study, study.owner, chosen(study, judge, certainty_ratio=2))
    assert newest_check(study) is None
    collecting, judge = answered_study(study.owner, is_closed=False)
    with pytest.raises(PermissionDenied, match="still collecting"):
        draw_check(collecting, study.owner, chosen(collecting, judge))


FORM = {"question": "verdict", "n_test": 15, "n_development": 5, "people_per_output": 3, "certainty_ratio": 1}
FORM |= {"min_agreement": 0.5, "epsilon": 0.1, "seed": 77}


@pytest.mark.slow
def test_the_page_and_rest_draw_and_the_report_says_what_was_drawn():
    study, judge = answered_study(says=lambda output, person, is_yes: is_yes != ((output + person) % 9 == 0))
    client, api = logged_in(study.owner), api_of(study.owner)
    page = page_of(client, study)
    assert "Draw a sample from the answers" in page and "fewest verdicts of an output" in page.lower()
    assert 'type="hidden" name="certainty_ratio" value="1"' in page and "Unsure outputs" not in page
    for name in ("study_metrics", "study_calibrated"):
        assert reverse("judge_check", args=[study.pk]) in client.get(reverse(name, args=[study.pk])).content.decode()
    sent = api.post(f"studies/{study.code}/judge/sample/", FORM | {"judge": judge.pk})
    assert sent.status_code == 201 and sent.json()["seed"] == 77
    draw = reverse("judge_check_draw", args=[study.pk])
    assert client.post(draw, FORM | {"judge": judge.pk}).status_code == 302
    assert drawn(study.judge_checks.first()) == drawn(study.judge_checks.last())
    compute_result(study, study.owner)
    check = newest_check(study)
    sentence = (
        f"20 outputs were drawn on {check.at:%Y-%m-%d} by {study.owner} from the 40 that had 3 verdicts of people or more, before heval "
        "had compared scores of version v1 with answers. The draw read no score. 1 earlier sample had been drawn."
    )
    page = page_of(client, study)
    assert page.count(sentence) == 2 and "seed <code>77</code>" in page
    assert api.get(f"studies/{study.code}/judge/").json()["sample"] == sentence
    assert "is not shown to be good enough" in page or "is good enough" in page
    refused = client.post(draw, FORM | {"judge": judge.pk})
    assert refused.status_code == 400 and "a sample must be drawn before" in refused.content.decode()
    # A version that was compared before the draw gets no claim that it was not.
    newer = store_judge(study, replace(JUDGE, version="v2"))
    assert client.post(draw, FORM | {"judge": newer.pk}).status_code == 302
    store.discard(newer, study.owner)
    compute_result(study, study.owner)
    assert ", after heval had compared scores of version v1 with answers." in page_of(client, study)


def test_the_page_says_why_no_sample_can_be_drawn():
    study, _ = answered_study(n_people=1)
    assert "Draw a sample from the answers" in page_of(logged_in(study.owner), study)
    study.assignments.update(withdrawn_at=study.launched_at)
    page = page_of(logged_in(study.owner), study)
    assert "People gave a verdict about 0 outputs. A sample from answers needs 10." in page
    assert "Draw a sample from the answers" not in page
    owner = study.owner
    collecting, _ = answered_study(owner, is_closed=False)
    assert "can be drawn from its answers when outcomes are shown" in page_of(logged_in(owner), collecting)
    compared, judge = answered_study(owner)
    compare(compared, judge)
    assert "has compared the scores of each judge with these answers already" in page_of(logged_in(owner), compared)
