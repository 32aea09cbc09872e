"""Metrics of many outputs are computed in parts: what was interrupted goes on, with the scores of a computation that was not."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.urls import reverse

from analysis.metrics import computed
from analysis.metrics.texts.built_in import BUILT_IN
from analysis.models import Metric, MetricScore
from studies.models import Job, JobPart, Output
from studies.services import jobs
from tests.boards.builders import rating_template
from tests.builders import user

pytestmark = pytest.mark.django_db
SYSTEMS, PROMPTS = ("human", "good", "poor"), 5
NAMES = ["ter", "bleu", "chrf", "rouge_l", "token_f1", "share of vowels"]
TEXT = "the old house by the river was green and its doors were blue as was the roof of the barn"


def vowels(text, references):
    return sum(map(text.count, "aeiou")) / len(text) + len(references) / 7


class Killed(BaseException):
    """As a killed process leaves its job: nothing is written."""


@pytest.fixture
def texts():
    """Studies with the same texts, in which the scores of no two outputs of a prompt are equal."""

    words = TEXT.split()

    def make(name):
        study = rating_template(user(name), prompts=PROMPTS, systems=SYSTEMS)
        for number, output in enumerate(Output.objects.filter(system__study=study).order_by("prompt__key", "system")):
            n = number // len(SYSTEMS) + number % len(SYSTEMS) * 3
            Output.objects.filter(pk=output.pk).update(text=" ".join(words[n:] + words[: n // 2]))
        return study

    return make


@pytest.fixture(autouse=True)
def metrics(monkeypatch):
    """A plug-in beside the built-in metrics, and parts of three outputs: four of each group that is computed together."""
    plug_in = computed.PlugIn("share of vowels", "vowels", lambda: "1", lambda: vowels)
    monkeypatch.setattr(computed, "available_metrics", lambda: BUILT_IN | {plug_in.name: plug_in})
    monkeypatch.setattr(computed, "OUTPUTS_OF_A_PART", 3)
    monkeypatch.setattr(computed, "PLUG_IN_OUTPUTS_OF_A_PART", 3)


def scores_of(study) -> dict:
    rows = MetricScore.objects.filter(metric__study=study)
    return {
        tuple(row[:3]): row[3]
        for row in rows.values_list("metric__name", "output__system__name", "output__prompt__key", "value")
    }


def run_again(job) -> None:
    Job.objects.filter(pk=job.pk).update(leased_until=Now() - timedelta(seconds=1))
    jobs.requeue_or_fail_expired_jobs()
    jobs.run_waiting_jobs()
    job.refresh_from_db()


@pytest.mark.parametrize("end", ["cancelled", "failed"])
def test_a_job_that_ends_in_a_slow_metric_says_which_metrics_are_stored(texts, client, monkeypatch, end):
    """The fast metrics are stored before; a metric is stored for all outputs or not at all."""
    study = texts("ada")
    job = computed.request_metrics(study, study.owner, NAMES)
    store, n_parts = jobs.StoredParts.store, []

    def end_in_ter(self, position, result):
        store(self, position, result)
        if "ter" in result:
            n_parts.append(position)
            if end == "failed":
                raise jobs.UserFacingError("TER refused a text.")
            assert jobs.request_cancel(job, study.owner)

    monkeypatch.setattr(jobs.StoredParts, "store", end_in_ter)
    jobs.run_waiting_jobs()
    job.refresh_from_db()
    assert (
        len(n_parts) == 1 and job.state == end and job.result == {"stored": ["BLEU", "chrF", "ROUGE-L", "F1 of words"]}
    )
    assert set(Metric.objects.filter(study=study).values_list("name", flat=True)) == {*NAMES[1:5]}
    client.force_login(study.owner)
    said = client.get(reverse("admin:studies_job_page", args=[job.code])).content.decode()
    assert "Stored before: BLEU, chrF, ROUGE-L, F1 of words." in said and "othing was changed" not in said


def test_a_job_that_is_cancelled_before_it_stores_anything_says_so(texts, client, monkeypatch):
    study = texts("ada")
    job = computed.request_metrics(study, study.owner, NAMES)
    monkeypatch.setattr(jobs.StoredParts, "store", lambda *_: jobs.request_cancel(job, study.owner))
    jobs.run_waiting_jobs()
    job.refresh_from_db()
    client.force_login(study.owner)
    said = client.get(reverse("admin:studies_job_page", args=[job.code])).content.decode()
    assert job.state == "cancelled" and "Cancelled, nothing was changed" in said and not Metric.objects.exists()


@pytest.mark.parametrize("last", [0, 1, 4, 6, 10, 11])
def test_a_killed_job_scores_only_what_it_had_not_stored_and_all_scores_are_equal(texts, monkeypatch, last):
    study, other = texts("ada"), texts("eve")
    job = computed.request_metrics(study, study.owner, NAMES)
    stored, store = [], jobs.StoredParts.store

    def store_or_die(self, position, result):
        if len(stored) == last:
            raise Killed
        store(self, position, result)
        stored.append(position)

    monkeypatch.setattr(jobs.StoredParts, "store", store_or_die)
    with pytest.raises(Killed):
        jobs.run_waiting_jobs()
    assert JobPart.objects.filter(is_done=True).count() == last
    monkeypatch.setattr(jobs.StoredParts, "store", lambda *given: stored.append(given[1]) or store(*given))
    run_again(job)
    assert (job.state, job.attempts, len(stored)) == ("done", 2, 12), job.error
    computed.compute_metrics(other, other.owner, NAMES)
    found = scores_of(study)
    assert len(found) == 10 * len(NAMES) and found == scores_of(other)
    hashes = Metric.objects.filter(study=study).values_list("name", "n_scores")
    assert sorted(hashes) == sorted((name, 10) for name in NAMES)


def test_a_launch_waits_for_one_part_of_the_metrics(texts, monkeypatch):
    study, order, store = texts("ada"), [], jobs.StoredParts.store
    monkeypatch.setattr(jobs, "_kinds", dict(jobs.kinds()))
    jobs.register("short")(lambda job, progress: order.append("short"))

    def store_and_submit(self, position, result):
        order.append(position)
        if len(order) == 2:
            jobs.submit("short", by=None)
        store(self, position, result)

    monkeypatch.setattr(jobs.StoredParts, "store", store_and_submit)
    job = computed.request_metrics(study, study.owner, ["token_f1"])
    assert jobs.run_waiting_jobs() == 3
    job.refresh_from_db()
    assert order == [0, 1, "short", 2, 3] and (job.state, job.done, job.total) == ("done", 10, 10)


def test_texts_that_changed_meanwhile_are_scored_again(texts, monkeypatch):
    study, store = texts("ada"), jobs.StoredParts.store
    job = computed.request_metrics(study, study.owner, ["token_f1"])

    def store_two(self, position, result):
        store(self, position, result)
        if position == 1:
            raise Killed

    monkeypatch.setattr(jobs.StoredParts, "store", store_two)
    with pytest.raises(Killed):
        jobs.run_waiting_jobs()
    output = Output.objects.filter(system__study=study, system__name="good").order_by("prompt__key").first()
    Output.objects.filter(pk=output.pk).update(text="nothing")
    monkeypatch.setattr(jobs.StoredParts, "store", store)
    run_again(job)
    assert MetricScore.objects.get(output=output).value == 0


def test_a_part_of_a_slow_metric_takes_seconds_and_not_minutes(monkeypatch):
    monkeypatch.setattr(computed, "OUTPUTS_OF_A_PART", 200)

    def sizes(n_words, text="words "):
        outputs = [computed.OutputToScore(n, "good", "p", text * n_words, ["a reference"]) for n in range(250)]
        return [len(chunk) for chunk in computed._chunks([BUILT_IN["ter"]], outputs)]

    assert sizes(10) == [200, 50]
    assert sizes(80) == [45, 45, 45, 45, 45, 25]
    assert set(sizes(160)[:-1]) == {12}
    assert set(sizes(400)) == {1}
    assert sizes(80, "很") == sizes(80), "a character of Chinese is a word"
