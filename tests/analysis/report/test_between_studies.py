"""Closed studies beside each other: what is shared, what is refused, what is stored, and the pages of it."""

import json
import math
import statistics

import pytest
from django.core.exceptions import PermissionDenied
from django.db.models import Value
from django.db.models.functions import Concat
from django.http import Http404
from django.test import Client
from django.urls import reverse

from analysis.models import StudiesComparison
from analysis.report.between_studies import find_parts, offered_parts, request_comparison, run_comparison
from annotators.models import Response
from annotators.participation.simulate import record_simulated_answers
from studies.models import AuditEvent, Job, Question
from studies.services import jobs
from studies.services.lifecycle import ActionRefused, FieldsRefused
from tests import study_command
from tests.analysis.api.rest import api_of
from tests.analysis.protocols.answers import answer
from tests.analysis.report.reported import closed, finished, report
from tests.browsing import look_at, shot
from tests.builders import add_choice, draft_study, humanlike_draft, recruitment, spa_draft, spa_study, user
from tests.launching import launched

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return user("owner")


@pytest.fixture
def pair(owner):
    """Two closed studies with the same prompts and questions, and other people."""
    return [finished(owner, title=title) for title in ("Students", "Crowd")]


def codes(*studies):
    return {"studies": [str(study.code) for study in studies]}


def changed(owner, change):
    """A closed study, changed as a draft."""
    draft = spa_draft(owner=owner, title="Crowd", target_n=12)
    change(draft)
    launched(draft, owner)
    answer(draft, 12, percent=lambda person, x, y: 50, rating=lambda person, system: 1 + (person + len(system)) % 5)
    return closed(draft)


def with_ratings(**columns):
    return lambda draft: Question.objects.filter(section__study=draft, section__protocol="rating").update(**columns)


def rows_of(result, name):
    return next(one for one in result["tables"] if one["name"] == name)["rows"]


def test_estimates_are_those_of_the_reports_and_prompts_are_paired(pair):
    first, second = pair
    result = run_comparison(first, codes(first, second), by=None).result
    ratings = [one for one in result["comparisons"] if one["protocol"] == "rating"]
    assert {one["protocol"] for one in result["comparisons"]} == {"rating", "spa"} and ratings
    # The same pair by two protocols has two names, so that tables and the figure have a row for each.
    assert len({one["name"] for one in result["comparisons"]}) == len(result["comparisons"])
    for number, study in enumerate(pair):
        block = next(
            one
            for one in report(study)["blocks"]
            if one["name"] == "rating.superiority" and one["mode"] == "recommended"
        )
        printed = {(e["settings"]["contrast"]["x"], e["settings"]["contrast"]["y"]): e for e in block["estimates"]}
        for one in ratings:
            mine, theirs = one["means"][number], printed[tuple(one["name"].partition(": ")[2].split(" > "))]
            assert (mine["estimate"], mine["interval"]) == (theirs["estimate"], theirs["interval"])
    shared = result["comparisons"][0]["differences"][0]["detail"]
    assert shared["n_shared_people"] == 0 and shared["n_shared_prompts"] > 0
    assert rows_of(result, "effort")[0]["kept"] == 12 and rows_of(result, "effort")[0]["minutes"] == 20.0
    assert all(len(one["columns"]) <= 7 for one in result["tables"])


def test_the_same_people_are_paired_and_equal_keys_with_other_texts_are_not(owner, pair):
    first = pair[0]
    second = changed(owner, lambda draft: draft.prompts.update(text="Another text."))
    for own, other in zip(first.assignments.order_by("pk"), second.assignments.order_by("pk"), strict=True):
        type(other).objects.filter(pk=other.pk).update(annotator=own.annotator)
    shared = run_comparison(first, codes(first, second), by=None).result["comparisons"][0]["differences"][0]["detail"]
    assert (shared["n_shared_people"], shared["n_shared_prompts"]) == (12, 0)


def test_the_same_answers_do_not_differ_and_opposite_ones_do(owner, pair):
    first, second = pair[0], changed(owner, lambda draft: None)
    result = run_comparison(first, codes(first, second), by=None).result
    by_protocol = {one["protocol"]: one for one in result["comparisons"]}
    spa, rating = by_protocol["spa"]["differences"][0], by_protocol["rating"]["differences"][0]
    assert spa["estimate"] > 0.1 and spa["test"]["pvalue_adjusted"] >= spa["test"]["pvalue"]
    assert spa["test"]["family_size"] == len(result["comparisons"]) and rating["estimate"] == 0
    said = next(one for one in result["sentences"] if one.startswith("The stated chance"))
    assert "points higher in “Students” than in “Crowd” (95 % CI" in said and "n = 12 and 12 people" in said
    assert any(one.startswith("It remains open whether “Students” and “Crowd” differ.") for one in result["sentences"])


def test_answers_of_robots_are_marked(pair):
    assert run_comparison(pair[0], codes(*pair), by=None).result["simulated"] == ""
    for one in pair:
        one.assignments.update(origin="robot")
    result = run_comparison(pair[0], codes(*pair) | {"origins": ["robot"]}, by=None).result
    assert result["simulated"] == "simulated"
    assert all(one["title"].endswith(" (simulated)") for one in (*result["tables"], *result["figures"]))


def test_links_of_one_study_are_compared(owner):
    study = finished(owner)
    links = [recruitment(study), recruitment(study)]
    for number, row in enumerate(study.assignments.order_by("pk")):
        type(row).objects.filter(pk=row.pk).update(recruitment=links[number % 2])
    assert [part.link for part in offered_parts(study, owner)] == [None, *links]
    sent = {"studies": [f"{study.code}:{link.key}" for link in links]}
    result = run_comparison(study, sent, by=None).result
    assert [row["people"] for row in rows_of(result, "effort")] == [6, 6]
    assert result["comparisons"][0]["differences"][0]["detail"]["n_shared_people"] == 0
    with pytest.raises(FieldsRefused, match="share their people"):
        find_parts(study, [str(study.code), sent["studies"][0]], None)


def test_three_studies_have_a_joint_test(pair, owner):
    third = finished(owner)
    result = run_comparison(third, codes(third, *pair), by=None).result
    assert len(rows_of(result, "equality")) == len(result["comparisons"])
    assert len(rows_of(result, "differences")) == 3 * len(result["comparisons"])


def test_other_words_and_other_scales_are_refused_by_name(owner, pair):
    first = pair[0]
    text = Question.objects.filter(section__study=first, section__protocol="rating").first().text
    second = changed(owner, with_ratings(text=f"{text} Truly?"))
    with pytest.raises(
        ActionRefused, match=r"The question “.*” has other words \(.*“Truly\?”\) in “Students” and in “Crowd”"
    ):
        request_comparison(first, None, codes(first, second))
    second = changed(owner, with_ratings(scale={"kind": "likert", "labels": list("1234567")}))
    with pytest.raises(ActionRefused, match=r"another scale \(labels: .*maximum: 5 and 7"):
        request_comparison(first, None, codes(first, second))


def test_different_systems_are_compared_if_they_are_named(owner, pair):
    first = pair[0]
    second = changed(owner, lambda draft: draft.systems.update(name=Concat(Value("new "), "name")))
    with pytest.raises(ActionRefused, match="no comparison with answers in common: “Students” has “"):
        run_comparison(first, codes(first, second), by=None)
    one = next(iter(report(first)["blocks"][0]["estimates"]))["settings"]["contrast"]
    other = f"SPA: new {one['x']} > new {one['y']}"
    sent = codes(first, second) | {"comparisons": [f"SPA: {one['x']} > {one['y']}", other]}
    result = run_comparison(first, sent, by=None).result
    assert [row["name"] for row in result["comparisons"]] == [" | ".join(sent["comparisons"]).replace("SPA: ", "")]
    mixed = [sent["comparisons"][0], other.replace("SPA", "Rating of each output")]
    with pytest.raises(ActionRefused, match="different protocols or criteria"):
        run_comparison(first, sent | {"comparisons": mixed}, by=None)
    with pytest.raises(ActionRefused, match="has no answers about “nothing”. Name one of “SPA: "):
        run_comparison(first, sent | {"comparisons": ["nothing", other]}, by=None)


def test_only_closed_studies_that_the_user_may_analyse(owner, pair):
    first, second = pair
    collecting = spa_study(owner)
    with pytest.raises(PermissionDenied, match="still collecting"):
        request_comparison(first, owner, codes(first, collecting))
    for wrong, message in (
        (codes(first), "from 2 to 6"),
        (codes(first, first), "each once"),
        ({"studies": [str(first.code), "x"]}, "'x' is not the code"),
        ({"studies": [str(first.code), f"{second.code}:none"]}, "has no link 'none'"),
        (codes(second, finished(owner)), "Name “Students”"),
        (codes(first, second) | {"comparisons": ["a"]}, "one comparison for each"),
        (codes(first, second) | {"studies": "x"}, "must be a list"),
        (codes(first, second) | {"level": 7}, "level"),
        (codes(first, second) | {"speed": 7}, "no such parameter"),
    ):
        with pytest.raises(FieldsRefused, match=message):
            request_comparison(first, owner, wrong)
    stranger = user("stranger")
    first.members.create(user=stranger, role="owner")
    with pytest.raises(Http404):
        request_comparison(first, stranger, codes(first, second))
    run_comparison(first, codes(first, second), by=owner)
    visitor = Client()
    visitor.force_login(stranger)
    assert "not been compared" in visitor.get(reverse("studies_comparisons", args=[first.pk])).content.decode()
    assert visitor.get(reverse("studies_comparison", args=[first.pk, 1])).status_code == 404


def test_the_page_starts_a_job_and_shows_what_it_stored(owner, pair):
    first, second = pair
    client = Client()
    client.force_login(owner)
    address = reverse("studies_comparisons", args=[first.pk])
    assert address in client.get(reverse("analyses", args=[first.pk])).content.decode()
    form = client.get(address)
    assert "Crowd" in form.content.decode()
    assert "Tick two studies" in client.post(address, {"level": "0.95"}).content.decode()
    sent = codes(first, second) | {"level": "0.9", "token": form.context["token"]}
    for _ in range(2):
        answer = client.post(address, sent)
        assert answer.status_code == 302
    job = Job.objects.get(kind="compare_studies")
    assert answer.url == reverse("admin:studies_job_page", args=[job.code])
    assert jobs.claim_and_run_job(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error
    row = StudiesComparison.objects.get(study=first)
    assert run_comparison(first, {}, by=owner, job_code=str(job.code)) == row
    assert AuditEvent.objects.filter(study=first, verb="compare studies").count() == 1
    page = client.get(job.result["url"]).content.decode()
    assert "Differences between the studies" in page and "90% CI" in page and row.result_sha256 in page
    for name in (
        "differences.csv",
        "differences.tex",
        "effort.md",
        "agreement.txt",
        "estimates.json",
        "result.json",
        "studies.svg",
        "studies.pdf",
    ):
        assert client.get(f"{job.result['url']}{name}").status_code == 200, name
    for name in ("nothing.csv", "effort.doc", "studies.csv"):
        assert client.get(f"{job.result['url']}{name}").status_code == 404, name


def test_the_command_prints_the_sentences(pair):
    _, said = study_command.run("compare", "Students", "Crowd", "--level", "0.9")
    row = StudiesComparison.objects.get()
    assert said.splitlines() == [
        *row.result["sentences"],
        f"Comparison 1, result SHA-256 {row.result_sha256}",
    ]
    code, said = study_command.refusal("compare", "Students", "Students")
    assert code == 2 and "400" in said


def test_equal_inputs_give_an_equal_result(pair):
    rows = [run_comparison(pair[0], codes(*pair), by=None) for _ in range(2)]
    assert [row.number for row in rows] == [1, 2] and rows[0].result_sha256 == rows[1].result_sha256
    assert rows[0].figure_svg == rows[1].figure_svg


def test_rest_starts_a_comparison_once_and_returns_its_result(owner, pair):
    first, second = pair
    api, address = api_of(owner), f"studies/{first.code}/comparisons/"
    for _ in range(2):
        answer = api.post(address, codes(first, second), **{"Idempotency-Key": "k"})
        assert answer.status_code == 202, answer.body
    assert jobs.claim_and_run_job(Job.objects.get(kind="compare_studies").pk)
    assert [row["number"] for row in json.loads(api.get(address).body)["results"]] == [1]
    assert json.loads(api.get(f"{address}1/").body)["result"]["sentences"]
    refused = api.post(address, {"studies": [str(first.code), "x"]})
    assert refused.status_code == 400 and "is not the code of a study" in refused.body.decode()
    bound = api_of(owner, study=first)
    assert bound.post(address, codes(first, second)).status_code == 404
    assert bound.get(f"{address}1/").status_code == 404


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_the_pages_are_readable_on_a_phone(live_server, browser, client):
    by = user("jo", is_superuser=True)
    studies = [finished(by, title=title) for title in ("Students of one university", "Crowd on a panel")]
    row = run_comparison(studies[0], codes(*studies), by=by)
    client.force_login(by)
    context = browser.new_context()
    context.add_cookies([{"name": "heval", "value": client.cookies["heval"].value, "url": live_server.url}])
    page, wrong = context.new_page(), []
    for name, args in (("studies_comparisons", [studies[0].pk]), ("studies_comparison", [studies[0].pk, row.number])):
        page.goto(live_server.url + reverse(name, args=args))
        look_at(page, name, wrong)
        shot(page, name)
    assert not wrong


def test_experts_and_a_crowd_are_compared_by_their_links(owner):
    """The pilot of Clark et al. 2021: the same texts, judged by people of two links."""
    study = launched(humanlike_draft(owner=owner, domains=("news", "stories")), owner)
    record_simulated_answers(study, 12, {"human": 2.0, "gpt3": 0.0})
    links = [recruitment(study), recruitment(study)]
    for number, row in enumerate(study.assignments.order_by("pk")):
        type(row).objects.filter(pk=row.pk).update(recruitment=links[number % 2], origin="live")
    closed(study)
    result = run_comparison(study, {"studies": [f"{study.code}:{link.key}" for link in links]}, by=None).result
    compared, *by_domain = result["comparisons"]
    assert [one["name"] for one in by_domain] == ["gpt3, none, news > chance", "gpt3, none, stories > chance"]
    guesses = Response.objects.filter(assignment__study=study, question__key="source", value__isnull=False)
    for link, mean in zip(links, compared["means"], strict=True):
        rows = guesses.filter(assignment__recruitment=link).values_list("value", "exposure__output__system__name")
        right = [(value > 2) == (system == "gpt3") for value, system in rows]
        assert len(right) == 30 and mean["estimate"] == pytest.approx(sum(right) / 30)
    assert compared["protocol"] == "humanlike" and compared["differences"][0]["interval"]


def test_two_machines_of_two_studies_are_compared_by_domain(owner):
    """GPT2 and GPT3 were experiments of their own in Clark et al. 2021, section 2.4."""
    studies = []
    for machine, quality in (("gpt2", -2.0), ("gpt3", 2.0)):
        draft = humanlike_draft(
            owner=owner, title=machine, domains=("news", "stories"), machines=(machine,), target_n=24
        )
        study = launched(draft, owner)
        record_simulated_answers(study, 24, {"human": 2.0, machine: quality})
        study.assignments.update(origin="live")
        studies.append(closed(study))
    sent = codes(*studies) | {"comparisons": [f"{study.title}, none > chance" for study in studies]}
    result = run_comparison(studies[0], sent, by=None).result
    names = [f"gpt2, none{domain} > chance | gpt3, none{domain} > chance" for domain in ("", ", news", ", stories")]
    assert [one["name"] for one in result["comparisons"]] == names
    sizes = rows_of(result, "sizes")
    for domain, compared, size in zip(("", "news", "stories"), result["comparisons"], sizes, strict=True):
        shares = []
        for study in studies:
            guesses = Response.objects.filter(assignment__study=study, question__key="source", value__isnull=False)
            people = {}
            for person, value, system, own in guesses.values_list(
                "assignment", "value", "exposure__output__system__name", "exposure__output__prompt__domain"
            ):
                if own in (domain or own):
                    people.setdefault(person, []).append((value > 2) == (system != "human"))
            shares.append([statistics.mean(right) for right in people.values()])
        assert [len(one) for one in shares] == ([24, 24] if domain == "" else [12, 12])
        assert compared["differences"][0]["estimate"] == pytest.approx(
            statistics.mean(shares[0]) - statistics.mean(shares[1])
        )
        pooled = math.sqrt(statistics.mean(statistics.variance(one) for one in shares))
        assert (
            size["d"] == pytest.approx(compared["differences"][0]["estimate"] / pooled)
            and size["interval"][0] < size["d"]
        )
        assert compared["differences"][0]["test"]["family_size"] == 3
    blocks = [one for one in report(studies[0])["blocks"] if one["name"] == "humanlike.paper"]
    printed = [one for one in blocks[0]["estimates"] if one["analysis"] == "humanlike.alpha_nominal"]
    within = [row["estimate"] for row in rows_of(result, "within") if row["label"] == "gpt2"]
    assert sorted(within) == sorted(one["estimate"] for one in printed)


def test_kappa_of_each_study_is_that_of_its_report(owner):
    studies = []
    for title, alpha in (("R1", 0.0), ("R2", 1.0)):
        draft = draft_study(owner=owner, systems=("alpha", "beta"), prompts=8, target_n=10, title=title)
        add_choice(draft, m=4, stopping="none", strategy="any")
        record_simulated_answers(launched(draft, owner), 10, {"alpha": alpha, "beta": 1.0})
        draft.assignments.update(origin="live")
        studies.append(closed(draft))
    result = run_comparison(studies[0], codes(*studies), by=None).result
    printed = [
        next(b for b in report(study)["blocks"] if b["name"] == "choice.agreement")["estimates"][0] for study in studies
    ]
    assert [row["measure"] for row in rows_of(result, "within")] == ["Fleiss' kappa by side of the screen"] * 2
    assert [row["estimate"] for row in rows_of(result, "within")] == [one["estimate"] for one in printed]
    assert result["comparisons"][0]["within"][0]["n"] == printed[0]["n"] == 8
