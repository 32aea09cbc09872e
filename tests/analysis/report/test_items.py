"""What the numbers are about: the items in which a side won, those that divide people, and their texts on the page."""

import json
from collections import defaultdict
from fractions import Fraction

import pytest
from django.db import connection
from django.template.loader import render_to_string
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from analysis.models import AnalysisRun
from analysis.report.build import build_report
from analysis.report.items import KINDS, MOST_ITEMS, items_context
from analysis.report.runs import run_analysis
from annotators.models import Response
from annotators.participation.simulate import CrowdSettings, record_simulated_answers
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from studies.models import Question, Study
from studies.protocols import REGISTRY
from studies.protocols.base import fields
from studies.services import lifecycle
from tests.analysis.report.reported import QUICK, closed, report
from tests.builders import add_choice, add_rating, add_section, draft_study, humanlike_draft, launched, user

pytestmark = pytest.mark.django_db
STRENGTHS = {"alpha": 0.0, "beta": 0.4, "gamma": 1.0}
WITH_ITEMS = ("rating", "two_choice", "ranking", "relative", "marks", "best_worst")


def collected(draft, people=10, is_closed=True, **crowd):
    x, y = draft.systems.order_by("name")[:2]
    if not draft.contrasts.exists():
        draft.contrasts.create(x=y, y=x, expected=">", role="primary")
    study = launched(draft)
    strengths = {name: STRENGTHS[name] for name in study.systems.values_list("name", flat=True)}
    record_simulated_answers(study, people, strengths, crowd=CrowdSettings(**crowd))
    study.assignments.update(origin="live")  # robots count as people here
    return closed(study) if is_closed else study


@pytest.fixture
def choices():
    draft = draft_study(owner=user(), systems=("alpha", "beta"), prompts=8, target_n=10)
    add_choice(draft, m=4, stopping="none", strategy="any", allows_tie=True)
    return collected(draft)


@pytest.fixture
def rated(monkeypatch):
    """Ratings with a comment about each output."""
    monkeypatch.setattr(fields, "COMMENTS", ("A <i>lively</i> ending.",))
    return collected(rating_draft(), commenting=1.0)


def rating_draft():
    draft = draft_study(owner=user(), systems=("alpha", "beta"), prompts=8, target_n=10)
    section = add_rating(draft, position=1, m=4)
    scale = {"kind": "text"}
    Question.objects.create(section=section, position=2, key="why", text="Why?", scale=scale, required=False)
    return draft


@pytest.mark.slow
@pytest.mark.parametrize("protocol", sorted(set(REGISTRY) - {"survey", "humanlike"}))
def test_every_protocol_has_items_or_says_why_not(protocol):
    draft = draft_study(owner=user(), systems=tuple(STRENGTHS), prompts=8, target_n=10, instructions="")
    settings = {"two_choice": {"stopping": "none", "strategy": "any"}}.get(protocol)
    add_section(draft, protocol, m=4, settings=settings)
    study = collected(draft)
    result = report(study)
    assert result["items"] and not result["problems"]
    for compared in result["items"]:
        if protocol not in WITH_ITEMS:
            assert compared["reason"] and not any(compared[kind] for kind, _ in KINDS)
            continue
        assert compared["winner"] in ("alpha", "beta") and not compared["reason"]
        for kind, _ in KINDS:
            assert len(compared[kind]) <= MOST_ITEMS
            for one in compared[kind]:
                assert one["items"] and one["x"] == one["y"] == [0] and one["n"] >= (2 if kind == "split" else 1)
        ahead = {
            kind: [compared["side"] * (one["mean"] - compared["null"]) for one in compared[kind]] for kind, _ in KINDS
        }
        assert compared["won"] and min(ahead["won"]) > 0 and max(ahead["lost"], default=-1) < 0
    context = items_context(study, result)
    assert bool(context["without"]) is (protocol not in WITH_ITEMS) and len(context["without"]) < 2
    for compared in context["compared"]:
        shown = [text for group in compared["groups"] for item in group["items"] for text in item["texts"]]
        assert shown and all(text["text"] for text in shown)


def test_items_are_those_that_the_answers_say(choices):
    (compared,) = report(choices)["items"]
    said = defaultdict(list)
    rows = Response.objects.filter(assignment__study=choices, question__key="better")
    for prompt, chosen, choice in rows.values_list("item__prompt__key", "chosen__output__system__name", "choice"):
        if chosen or choice:
            said[prompt].append(Fraction(1, 2) if not chosen else Fraction(int(chosen == compared["x"])))
    side = 1 if compared["winner"] == compared["x"] else -1
    means = {prompt: sum(values) / len(values) for prompt, values in said.items()}
    ahead = {
        prompt: side * (means[prompt] - Fraction(1, 2)) * len(values) / (len(values) + 2)
        for prompt, values in said.items()
    }
    spread = {
        prompt: sum((value - means[prompt]) ** 2 for value in values) / (len(values) + 2)
        for prompt, values in said.items()
    }
    for kind, score in (("won", ahead), ("lost", {p: -v for p, v in ahead.items()}), ("split", spread)):
        best = sorted((prompt for prompt in score if score[prompt] > 0), key=lambda p: (-score[p], -len(said[p]), p))
        assert [one["prompt"] for one in compared[kind]] == best[:MOST_ITEMS], kind
        for one in compared[kind]:
            assert one["n"] == len(said[one["prompt"]]) and one["mean"] == pytest.approx(float(means[one["prompt"]]))
    assert compared["split"], "the answers of this study must divide people"


def test_the_page_reads_texts_and_comments_and_the_json_has_none(rated, client):
    run = run_analysis(rated, QUICK, by=rated.owner)
    (compared,) = run.result["items"]
    first = compared["won"][0]
    output = rated.systems.get(name="alpha").outputs.get(prompt__key=first["prompt"])
    stored = json.dumps(run.result)
    assert "lively" not in stored and "(ahpla)" in output.text and "(ahpla)" not in stored
    client.force_login(rated.owner)
    address = reverse("analysis", args=[rated.pk, run.number])
    page = client.get(address).content.decode()
    assert page.count("A &lt;i&gt;lively&lt;/i&gt; ending.") >= 2 * first["n"] and "&lt;b&gt;(ahpla)&lt;/b&gt;" in page
    assert page.index('id="reasons"') < page.index('id="items"') < page.index('id="all"')
    assert f"Where {compared['winner']} won most clearly" in page and "may not be passed on" not in page
    context = {"result": run.result, "study": rated, "items": items_context(rated, run.result)}
    # A report with invented answers has no files.
    files = "PDF of the report has these texts"
    assert files in page and files not in render_to_string("report/_items.html", context | {"invented": {"people": 8}})
    rated.stimuli_source = "The corpus at https://example.org."
    assert "may not be passed on" in render_to_string("report/_items.html", context)


def test_comments_go_with_people_and_excluded_people_have_none(rated):
    result = report(rated)
    before = comments_of(rated, result)
    person = Response.objects.filter(assignment__study=rated, question__key="why").first().assignment
    withdraw_annotator_and_erase_texts(person)
    after = comments_of(rated, result)
    assert 0 < len(after) < len(before) and set(before) == {"A <i>lively</i> ending."}
    # A person whose answers the report does not count has no name in it, so no comment either.
    for compared in result["items"]:
        for kind, _ in KINDS:
            for one in compared[kind]:
                one["comments"] = []
    assert comments_of(rated, result) == []


def comments_of(study, result):
    found = items_context(study, result)
    items = [item for one in found["compared"] for group in one["groups"] for item in group["items"]]
    return [comment["text"] for item in items for comment in item["comments"]]


def test_the_number_of_queries_does_not_grow_with_items(rated):
    result = report(rated)
    with CaptureQueriesContext(connection) as some:
        items_context(rated, result)
    with CaptureQueriesContext(connection) as many:
        items_context(rated, result | {"items": result["items"] * 5})
    assert len(many) == len(some) <= 3


def test_texts_that_an_amendment_retired_are_not_shown():
    study = collected(rating_draft(), is_closed=False)
    study.assignments.update(origin="robot")
    result = report(study, origins=["robot"])
    first = result["items"][0]["won"][0]
    section, number = first["items"][0][1:].split(".")
    item = study.items.get(section__position=section, number=number)
    lifecycle.amend(Study.objects.get(pk=study.pk), {"item": {item.pk: {"retired": True}}}, reason="broken", by=None)
    (compared,) = items_context(study, result)["compared"]
    shown = compared["groups"][0]["items"]
    assert shown[0]["is_retired"] and not shown[0]["texts"] and all(one["texts"] for one in shown[1:])


def test_a_text_that_is_gone_is_said_to_be_missing(rated):
    result = report(rated)
    result["items"][0]["won"][0]["x"] = [7]
    (compared,) = items_context(rated, result)["compared"]
    assert [text["is_missing"] for text in compared["groups"][0]["items"][0]["texts"]] == [False, True, False]


def test_a_report_of_an_earlier_version_says_that_items_are_not_computed(rated, client):
    run = run_analysis(rated, QUICK, by=rated.owner)
    stored = dict(run.result)
    del stored["items"]
    names = [field.name for field in AnalysisRun._meta.concrete_fields if field.name not in ("id", "number", "result")]
    AnalysisRun.objects.create(number=2, result=stored, **{name: getattr(run, name) for name in names})
    client.force_login(rated.owner)
    page = client.get(reverse("analysis", args=[rated.pk, 2])).content.decode()
    assert "The items behind the numbers are not computed in this version of the report." in page


def test_hidden_outcomes_have_no_items():
    draft = draft_study(owner=user(), systems=("alpha", "beta"), prompts=8, target_n=10)
    add_choice(draft, m=4, stopping="none", strategy="any")
    study = launched(draft)
    record_simulated_answers(study, 4, {"alpha": 0, "beta": 1})
    study.assignments.update(origin="live")
    result = build_report(study, QUICK)
    assert result["outcomes"]["is_hidden"] and "items" not in result


def test_where_lower_is_better_the_winner_has_the_lower_ratings():
    draft = draft_study(owner=user(), systems=("alpha", "beta"), prompts=6, target_n=8)
    section = add_rating(draft, position=1, m=3)
    question = section.questions.get()
    question.scale |= {"is_lower_better": True}
    question.save()
    study = collected(draft, people=8)
    (compared,) = report(study)["items"]
    means = defaultdict(list)
    rows = Response.objects.filter(assignment__study=study, value__isnull=False)
    for system, prompt, value in rows.values_list("exposure__output__system__name", "item__prompt__key", "value"):
        means[system, prompt].append(float(value))
    loser = "alpha" if compared["winner"] == "beta" else "beta"
    assert compared["won"]
    for one in compared["won"]:
        won, lost = (means[name, one["prompt"]] for name in (compared["winner"], loser))
        assert sum(won) / len(won) < sum(lost) / len(lost)


def test_reasons_for_human_and_for_machine_are_side_by_side(client):
    """Figure 1 and Table 5 of Clark et al. 2021."""
    study = launched(humanlike_draft(owner=user(), domains=("news", "stories"), texts=5, target_n=24))
    record_simulated_answers(study, 24, {"human": 0.5, "gpt3": 0.0}, crowd=CrowdSettings(commenting=1.0))
    study.assignments.update(origin="live")
    run = run_analysis(closed(study), QUICK, by=study.owner)
    (compared,) = run.result["items"]
    assert (
        compared["label"] == "gpt3, no training against chance" and compared["null"] == 0.5 and not compared["reason"]
    )
    said, reasons = defaultdict(dict), defaultdict(list)
    rows = Response.objects.filter(assignment__study=study, question__key="source", value__isnull=False)
    for person, prompt, value in rows.values_list("assignment", "item__prompt__key", "value"):
        said[prompt][person] = value > 2
    for person, prompt, text in Response.objects.filter(
        assignment__study=study, question__scale__kind="text", item__isnull=False
    ).values_list("assignment", "item__prompt__key", "text"):
        if text and prompt in said:
            reasons[prompt, said[prompt][person]].append(text)
    share = {
        prompt: Fraction(sum(is_machine is (prompt.split("-")[1] == "gpt3") for is_machine in own.values()), len(own))
        for prompt, own in said.items()
    }
    ahead = {
        prompt: (one - Fraction(1, 2)) * len(said[prompt]) / (len(said[prompt]) + 2) for prompt, one in share.items()
    }
    spread = {prompt: one * (1 - one) * len(said[prompt]) / (len(said[prompt]) + 2) for prompt, one in share.items()}
    for kind, score in (("won", ahead), ("lost", {p: -v for p, v in ahead.items()}), ("split", spread)):
        best = sorted((p for p in score if score[p] > 0), key=lambda p: (-score[p], -len(said[p]), p))
        assert [one["prompt"] for one in compared[kind]] == best[:MOST_ITEMS], kind
    (context,) = items_context(study, run.result)["compared"]
    assert [len(group["items"]) for group in context["groups"]] == [len(compared[kind]) for kind, _ in KINDS]
    divided, shown = compared["split"][0], context["groups"][2]["items"][0]
    assert shown["result"].startswith(f"{round(100 * divided['mean'])} % right, {divided['n']} answers")
    for side, is_machine in zip(shown["sides"], (False, True), strict=True):
        assert reasons[divided["prompt"], is_machine], "both sides must have reasons"
        assert sorted(one["text"] for one in side["comments"]) == sorted(reasons[divided["prompt"], is_machine])
    assert not any(text in json.dumps(run.result) for own in reasons.values() for text in own)
    client.force_login(study.owner)
    page = client.get(reverse("analysis", args=[study.pk, run.number])).content.decode()
    assert "Explanations of people who said “human”" in page and "Explanations of people who said “machine”" in page
