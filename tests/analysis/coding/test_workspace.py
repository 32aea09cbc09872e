"""The pages on which samples are drawn and coded: who sees what, and what is refused."""

import pytest

from analysis.coding.codebook import EXPLANATIONS_CODEBOOK
from analysis.coding.models import Coding, CodingSample
from annotators.models import Response
from studies.models import StudyMember
from tests.admin_pages import logged_in
from tests.analysis.coding.coded import code_all, people, sample_of
from tests.builders import user

pytestmark = pytest.mark.django_db


def pages(sample, number=1):
    return f"/admin/analysis/codingsample/{sample.pk}/code/{number}/"


@pytest.mark.slow
def test_a_coder_sees_the_words_and_the_codebook_and_nothing_else(study, coders):
    sample = sample_of(study, coders)
    client = logged_in(coders[0])
    seen = ""
    for address in (
        "/admin/analysis/codingsample/",
        f"/admin/analysis/codingsample/{sample.pk}/change/",
        pages(sample),
    ):
        response = client.get(address)
        assert response.status_code == 200, address
        seen += response.content.decode() + str(response.headers)
    item = sample.items.first()
    assert item.response.text in seen and "Grammar" in seen and "No label applies" in seen
    rating = Response.objects.get(assignment=item.assignment, exposure=item.response.exposure, question__key="source")
    shown = item.response.exposure.output
    secrets = [
        study.title, shown.text, "gpt3", "(namuh)", item.assignment.code, str(item.assignment.annotator), item.assignment.batch.arm.name,
        "examples", item.response.question.text, shown.prompt.key, "Definitely", "Possibly",
    ]  # fmt: skip
    assert [secret for secret in secrets if secret in seen] == [] and rating.value is not None


def test_a_reviewer_sees_text_and_answer_and_neither_author_nor_condition(study, coders):
    sample = sample_of(study, coders, kind="rejections")
    seen = logged_in(coders[0]).get(pages(sample)).content.decode()
    item = sample.items.first()
    written = Response.objects.filter(assignment=item.assignment, question__key__in=["why", "change"])
    assert all(answer.text in seen and answer.exposure.output.text in seen for answer in written)
    assert "human-written" in seen or "machine-generated" in seen
    assert "No reason to refuse this work" in seen and "Mismatch" in seen
    hidden = [study.title, item.assignment.batch.arm.name, "gpt3", item.assignment.code, "none", "condition"]
    assert [
        word
        for word in hidden
        if word in seen.replace('name="none"', "").replace('id="none"', "").replace('for="none"', "")
    ] == []


@pytest.mark.slow
def test_coding_goes_from_item_to_item_and_refuses_an_empty_page(study, coders):
    sample = sample_of(study, coders)
    client = logged_in(coders[0])
    first = client.get(f"/admin/analysis/codingsample/{sample.pk}/code/")
    assert first["Location"] == pages(sample, 1)
    refused = client.post(pages(sample, 1), {"seen": "0"})
    assert refused.status_code == 422 and "choose that no label applies" in refused.content.decode()
    client.post(pages(sample, 1), {"seen": "0", "label": ["grammar", "intent"]})
    assert client.get(f"/admin/analysis/codingsample/{sample.pk}/code/")["Location"] == pages(sample, 2)
    page = client.get(pages(sample, 1)).content.decode()
    assert page.count(" checked") == 2 and 'name="seen" value="1"' in page
    stale = client.post(pages(sample, 1), {"seen": "0", "none": "1"})
    assert stale.status_code == 422 and "another window" in stale.content.decode()
    for number in range(2, 9):
        client.post(pages(sample, number), {"seen": "0", "none": "1"})
    end = client.get(f"/admin/analysis/codingsample/{sample.pk}/code/", follow=True).content.decode()
    assert "You have coded all your items" in end and "8 are coded" in end


def test_a_third_coder_sees_two_codings_and_not_whose(study, coders):
    third = people(study, "thea")[0]
    sample = sample_of(study, [*coders, third], rule="third")
    code_all(sample, coders[0], lambda i: ["grammar"])
    code_all(sample, coders[1], lambda i: [] if i.number == 3 else ["grammar"])
    client = logged_in(third)
    assert client.get(f"/admin/analysis/codingsample/{sample.pk}/code/")["Location"] == pages(sample, 3)
    page = client.get(pages(sample, 3)).content.decode()
    assert (
        "<li>no label applies</li>" in page and "<li>Grammar</li>" in page and "carl" not in page and "cora" not in page
    )
    assert client.get(pages(sample, 1)).status_code == 404


def test_who_has_no_seat_codes_nothing(study, coders):
    sample = sample_of(study, coders)
    stranger, viewer, other = user("sven"), people(study, "vera", role="viewer")[0], people(study, "otto")[0]
    for one, listed in ((stranger, 404), (viewer, 200), (other, 404)):
        client = logged_in(one)
        assert client.get(pages(sample)).status_code == 404
        assert client.post(pages(sample), {"seen": "0", "none": "1"}).status_code == 404
        assert client.get(f"/admin/analysis/codingsample/{sample.pk}/change/").status_code == listed
    StudyMember.objects.filter(user=coders[0]).delete()
    assert logged_in(coders[0]).get(pages(sample)).status_code == 404
    assert not Coding.objects.exists()


@pytest.mark.parametrize("number", [0, 99, 10**12])
def test_an_item_that_is_not_there(study, coders, number):
    sample = sample_of(study, coders)
    assert logged_in(coders[0]).get(pages(sample, number)).status_code == 404


@pytest.mark.parametrize("seen", ["", "x", "-1", "9" * 30, "٣"])
def test_what_no_page_sends_is_refused_with_words(study, coders, seen):
    sample = sample_of(study, coders)
    response = logged_in(coders[0]).post(pages(sample), {"seen": seen, "label": "grammar"})
    assert response.status_code == 422 and not Coding.objects.exists()


def test_a_researcher_draws_a_sample_on_a_page(study, coders):
    client = logged_in(user("olga"))
    address = f"/admin/studies/study/{study.pk}/coding/draw/"
    assert "grammar | Grammar" in client.get(address).content.decode()
    assert "mismatch | Mismatch" in client.get(f"{address}?kind=rejections").content.decode()
    data = {
        "kind": "explanations", "per_arm": 2, "origin": "live", "rule": "union", "first": coders[0].pk, "second": coders[1].pk,
        "third": "", "codebook": "\n".join(EXPLANATIONS_CODEBOOK.as_lines()), "left_out": "Null",
    }  # fmt: skip
    page = client.post(address, data, follow=True).content.decode()
    assert "Sample 1 was drawn: 4 items" in page and "carl" in page and "Writer intent" in page
    for change, words in (
        ({"second": coders[0].pk}, "two different coders"),
        ({"codebook": "Form"}, "Line 1"),
        ({"per_arm": "0"}, "greater than"),
        ({"rule": "third"}, "Choose a third coder"),
        ({"kind": "other"}, "valid choice"),
        ({"left_out": "Other"}, "no label"),
    ):
        refused = client.post(address, data | change)
        assert refused.status_code == 422 and words in refused.content.decode(), words
    assert CodingSample.objects.count() == 1
    assert "Sample 1" in client.get(f"/admin/studies/study/{study.pk}/analyses/").content.decode()
