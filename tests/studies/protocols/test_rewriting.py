"""Questions that have the text shown rewritten, as footnote 11 of Clark et al. 2021 tried: page, drafts, imports, rules and report."""

import json
import random
import re

import pytest
from django.test import Client
from django.urls import reverse

from analysis.coding.samples import codable_explanation_responses
from analysis.data.export_codebook import build_export_codebook
from analysis.report.items import items_context
from analysis.report.pdf import pdf_context
from analysis.report.runs import run_analysis
from annotators.imports import Options, import_answers_and_close_draft
from annotators.models import Response
from annotators.pages.record import record_page_answers
from annotators.participation.simulate import record_simulated_answers
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from studies.design.checklist import section_problems
from studies.models import Output, Question
from studies.stimuli.words import share_of_words_kept
from tests.analysis.report.reported import QUICK, closed
from tests.builders import add_rating, add_section, draft_study, humanlike_draft, launched, user
from tests.players import claimed, form, open_page, plausible

pytestmark = pytest.mark.django_db
ASKED = "Rewrite the text so that it seems to be written by a person."


def rewriting(section, **columns):
    return Question.objects.create(
        **{"section": section, "position": 9, "key": "rewrite", "text": ASKED, "scale": {"kind": "rewrite"}} | columns
    )


def rewriting_draft(required=True, **columns):
    study = humanlike_draft(domains=("news",), instructions="", texts=4, m=4, **columns)
    rewriting(study.sections.get(purpose="live"), required=required)
    return study


def at_the_rewrite(answer="4", **options):
    """An assignment whose first text was judged, the page after it, its slots of the reason and of the rewrite, and the text."""
    assignment = claimed(launched(rewriting_draft(target_n=2, **options)), "w")
    _, page, asks = open_page(assignment)
    (slot,) = asks
    record_page_answers(assignment, page.key, form(**{slot: answer}))
    _, follow, asks = open_page(assignment)
    return assignment, follow, list(asks), Output.objects.get(exposures=page.items[0].exposures[0][1]).text


def test_a_text_is_rewritten_where_people_say_what_they_would_change():
    assignment, follow, (change, rewrite), text = at_the_rewrite()
    assert [question.key for question in follow.questions] == ["change", "rewrite"]
    record_page_answers(assignment, follow.key, form(**{change: "the end", rewrite: f"  Well, {text}\r\n"}))
    stored = Response.objects.get(question__key="rewrite")
    assert (stored.text, stored.value, stored.exposure.output.text) == (f"Well, {text}", None, text)


def test_a_text_that_seemed_human_is_not_rewritten():
    assert [question.key for question in at_the_rewrite("1")[1].questions] == ["why"]


@pytest.mark.parametrize(
    "sent, message",
    [
        (
            lambda text: f" {text}\r\n".replace(" ", "  "),
            "This is the text as it was shown. Please change it, then go on.",
        ),
        (lambda text: "", "The field is empty. Please write the text as you would have it."),
        (lambda text: " \u200b", "The field is empty. Please write the text as you would have it."),
        (lambda text: text * 200, "Please use at most 2000 characters"),
    ],
    ids=["unchanged", "empty", "invisible", "long"],
)
def test_an_answer_that_changes_nothing_is_refused(sent, message):
    assignment, follow, (change, rewrite), text = at_the_rewrite()
    refused = record_page_answers(assignment, follow.key, form(**{change: "the end", rewrite: sent(text)}))
    assert list(refused.sent.errors) == [rewrite] and refused.sent.errors[rewrite].startswith(message)
    assert not Response.objects.filter(question__key="rewrite").exists()


def test_a_text_that_may_be_left_as_it_is_stores_no_answer():
    assignment, follow, (change, rewrite), text = at_the_rewrite(required=False)
    assert record_page_answers(assignment, follow.key, form(**{change: "the end", rewrite: text})).next_key == "s1.p2"
    assert not Response.objects.filter(question__key="rewrite").exists()


def test_a_reason_to_skip_may_be_beside_a_text_that_nobody_touched():
    study = rewriting_draft(target_n=2)
    study.sections.get().questions.filter(key="rewrite").update(skip_reasons=[{"key": "human", "label": "It is human"}])
    assignment = claimed(launched(study), "w")
    _, page, asks = open_page(assignment)
    record_page_answers(assignment, page.key, form(**{next(iter(asks)): "4"}))
    _, follow, (change, rewrite) = open_page(assignment)
    text = Output.objects.get(exposures=page.items[0].exposures[0][1]).text
    both = form(**{change: "the end", rewrite: text, f"{rewrite}.skip": "human"})
    record_page_answers(assignment, follow.key, both)
    assert Response.objects.get(question__key="rewrite").skip_reason == "human"


def test_the_field_starts_with_the_text_and_keeps_a_draft_and_what_was_refused():
    assignment, follow, (change, rewrite), text = at_the_rewrite()
    client, address = Client(), f"{assignment.path}{follow.key}/"

    def field(page):
        box = re.search(rf'<textarea[^>]*name="{rewrite}"[^>]*>\n([^<]*)</textarea>', page.content.decode())
        return box[1].strip()

    page = client.get(address)
    assert field(page) == text and page.content.decode().count(text) == 2, "the text itself remains above the field"
    client.post(address, {change: "", rewrite: f"A draft of {text}", "save": "1"})
    assert field(client.get(address)) == f"A draft of {text}"
    refused = client.post(address, {change: "", rewrite: text, "go": "1"})
    assert "Please change it, then go on." in refused.content.decode() and field(refused) == text
    client.post(address, {change: "the end", rewrite: f"Better {text}", "go": "1"})
    assert field(client.get(address)) == f"Better {text}"


def test_robots_change_the_text():
    assignment, follow, (_, rewrite), text = at_the_rewrite()
    sent = plausible(assignment, follow.key, random.Random(3))[rewrite]
    assert sent.endswith(text.partition(" ")[2]) and sent != text


def problems(section):
    return [problem.text for problem in section_problems(section) if "ewrit" in problem.text]


def test_the_checklist_names_what_cannot_be_rewritten():
    study = rewriting_draft()
    section = study.sections.get()
    assert problems(section) == []
    output = Output.objects.filter(system__study=study).order_by("prompt__key").first()
    Output.objects.filter(pk=output.pk).update(text="word " * 500)
    (long,) = problems(section)
    assert (
        "1 outputs have more than 2000 characters. Raise the question’s maximum." in long and output.prompt.key in long
    )
    Output.objects.filter(pk=output.pk).update(text="", is_empty=True)
    (empty,) = problems(section)
    assert "1 outputs have no text to rewrite" in empty
    Output.objects.filter(pk=output.pk).update(text="word", is_empty=False)
    rewriting(section, key="again", position=10)
    assert [text.partition(" has ")[2] for text in problems(section)] == [
        "2 questions that have the same text rewritten. Keep one of them."
    ]


def test_protocols_with_several_outputs_on_a_page_refuse_the_question():
    section = add_rating(draft_study())
    rewriting(section)
    (text,) = [text for text in problems(section) if "no other" in text]
    assert "“Human or machine: who wrote this text?”" in text and "“Error marks" in text


@pytest.mark.parametrize("is_changed", [True, False], ids=["changed", "unchanged"])
def test_an_import_takes_changed_texts_alone(tmp_path, is_changed):
    study = rewriting_draft(required=False)
    output = Output.objects.filter(system__study=study, system__name="gpt3").select_related("prompt").first()
    text = f"In short: {output.text}" if is_changed else output.text
    path = tmp_path / "a.csv"
    row = f"w1,{{}},{output.prompt.key},gpt3,{{}},{{}}"
    lines = [
        "annotator,question,prompt_key,system,value,text",
        row.format("source", 4, ""),
        row.format("rewrite", "", f'"{text}"'),
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    report = import_answers_and_close_draft(study, path, by=None, options=Options())
    stored = list(Response.objects.filter(question__key="rewrite").values_list("text", flat=True))
    assert stored == [text] * is_changed
    assert is_changed or "This is the text as it was shown." in str(list(report.problems))


def test_the_report_has_the_rewrites_beside_the_originals_and_how_much_was_kept(client):
    study = launched(rewriting_draft(owner=user(), target_n=10))
    record_simulated_answers(study, 10, {"human": 1.0, "gpt3": 0.0})
    study.assignments.update(origin="live")
    gone = study.assignments.order_by("pk").first()
    run = run_analysis(closed(study), QUICK, by=study.owner)
    rows = Response.objects.filter(assignment__study=study, question__key="rewrite").select_related(
        "exposure__output__system"
    )
    by_author, by_text = {}, {}
    for one in rows:
        kept = share_of_words_kept(one.exposure.output.text, one.text)
        by_author.setdefault(one.exposure.output.system.name, []).append(kept)
        by_text.setdefault(one.exposure.output_id, []).append(one.text)
    (table,) = [one for one in run.result["tables"] if one["name"] == "rewrites"]
    assert {row["author"]: (pytest.approx(row["kept"]), row["n_rewrites"]) for row in table["rows"]} == {
        author: (sum(kept) / len(kept), len(kept)) for author, kept in by_author.items()
    }
    assert not any(text in json.dumps(run.result) for texts in by_text.values() for text in texts)
    (compared,) = items_context(study, run.result)["compared"]
    shown = next(group for group in compared["groups"] if group["kind"] == "rewritten")["items"]
    assert sorted(len(item["comments"]) for item in shown) == sorted(map(len, by_text.values()))
    assert all(item["result"].endswith(("rewrites", "rewrite")) and item["comments"][0]["kept"] for item in shown)
    first = shown[0]
    assert first["texts"][-1]["text"].partition(" ")[2] in first["comments"][0]["text"], "robots change the beginning"
    client.force_login(study.owner)
    page = client.get(reverse("analysis", args=[study.pk, run.number])).content.decode()
    assert "Texts that people rewrote" in page and "of the words kept)" in page
    assert not codable_explanation_responses(study, "live").filter(question__key="rewrite").exists()
    scale = next(one["scale"] for one in build_export_codebook(study)["questions"] if one["question"] == "rewrite")
    assert scale == {"stored_in": "text", "kind": "rewrite"}
    study.stimuli_source = "https://example.org"
    for is_public, n in ((True, 0), (False, sum(map(len, by_text.values())))):
        groups = items_context(study, run.result, is_public=is_public)["compared"][0]["groups"]
        assert n == sum(
            len(item["comments"]) for group in groups for item in group["items"] if group["kind"] == "rewritten"
        )
    run.study.stimuli_source = study.stimuli_source
    pdf = pdf_context(run)["items"]
    assert not any(item["comments"] for group in pdf["compared"][0]["groups"] for item in group["items"])
    n_of_gone = rows.filter(assignment=gone).count()
    withdraw_annotator_and_erase_texts(gone)
    groups = items_context(study, run.result)["compared"][0]["groups"]
    left = [item["comments"] for group in groups if group["kind"] == "rewritten" for item in group["items"]]
    assert n_of_gone and sum(map(len, left)) == sum(map(len, by_text.values())) - n_of_gone
    assert not Response.objects.filter(assignment=gone).exclude(text="").exists()


@pytest.mark.parametrize(
    "original, rewritten, share",
    [
        ("a b c d", "a b c d", 1.0),
        ("a b c d", "D, c! x", 0.5),
        ("a a b", "a", 1 / 3),
        ("猫が好き", "猫は好き", 0.75),
        ("…", "a", None),
    ],
)
def test_the_share_of_words_kept(original, rewritten, share):
    assert share_of_words_kept(original, rewritten) == share


def test_practice_has_the_text_rewritten_after_it_told_the_author():
    """The fourth condition of training that the paper's footnote 11 describes."""
    study = humanlike_draft(conditions=("examples",), domains=("news",), instructions="", target_n=2)
    rewriting(study.sections.get(purpose="training"))
    assignment = claimed(launched(study), "w")
    keys = []
    for _ in range(3):
        _, page, _ = open_page(assignment)
        keys.append(page.key)
        record_page_answers(
            assignment, page.key, form(**plausible(assignment) if page.key != "s1.p1" else {"s1.q1.i1.A": "4"})
        )
    assert keys == ["s1.p1", "s1.p1t", "s1.p1f"] and Response.objects.filter(question__key="rewrite").count() == 1


def test_error_marks_may_have_the_output_rewritten_without_errors():
    draft = draft_study(owner=user(), prompts=6, target_n=4)
    section = add_section(draft, "marks", m=2)
    rewriting(section, text="Write it without errors.")
    assert problems(section) == []
    study = launched(draft)
    record_simulated_answers(study, 4, dict.fromkeys(study.systems.values_list("name", flat=True), 0.0))
    study.assignments.update(origin="live")
    assert Response.objects.filter(question__key="rewrite").exclude(text="").count() == 4 * 2 * study.systems.count()
    run = run_analysis(closed(study), QUICK, by=study.owner)
    assert run.result["problems"] == []
