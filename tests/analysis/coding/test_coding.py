"""Coding explanations and reviewing work: who sees what, what is stored, what two codings become, and what the report says."""

import random

import pytest
from django.db import IntegrityError, transaction

from analysis.coding import record
from analysis.coding.codebook import EXPLANATIONS, REJECTIONS, Codebook, CodebookRefused, read_lines
from analysis.coding.hints import hints_by_row, hints_of, near_duplicates
from analysis.coding.models import Coding, CodingSample
from analysis.coding.samples import read_samples, refused_work, reviewed
from analysis.coding.sampling import draw_sample, explanations
from analysis.report.build import build_report
from analysis.report.codings import blocks
from annotators.models import Assignment, Response
from annotators.participation.withdraw import withdraw
from studies.models import Study, StudyMember
from studies.services import lifecycle
from studies.services.lifecycle import NotNow
from tests.admin_pages import logged_in
from tests.builders import humanlike_draft, launched, user
from tests.players import submitted

pytestmark = pytest.mark.django_db
WORDS = "It was plain that the ending did not follow from what came before"


def people(study, *names, role="coder"):
    found = [user(name) for name in names]
    for one in found:
        StudyMember.objects.get_or_create(study=study, user=one, defaults={"role": role})
    return found


@pytest.fixture
def study():
    study = humanlike_draft(conditions=("none", "examples"), domains=("news",), target_n=8, owner=user("olga"), m=4)
    study = launched(study)
    for n in range(8):
        submitted(study, f"w{n}", rng=random.Random(n), comment=f"{WORDS}, number {n}")
    return study


@pytest.fixture
def coders(study):
    return people(study, "carl", "cora")


def sample_of(study, coders, kind="explanations", rule="union", per_arm=4, **options):
    book = EXPLANATIONS if kind == "explanations" else REJECTIONS
    return draw_sample(study, kind=kind, rule=rule, codebook=book, per_arm=per_arm, coders=coders, by=None, **options)


def code_all(sample, coder, labels_of):
    for item in sample.items.all():
        labels = labels_of(item)
        record.code(item, coder, labels, not labels, 0)


def tables(sample_blocks):
    return {one["name"]: one for block in sample_blocks for one in block.tables}


def made(study):
    return blocks(read_samples(study, ["live"]), level=0.95, resamples=199, seed="00")


# Samples


def test_a_sample_takes_one_explanation_of_so_many_annotators_of_each_arm(study, coders):
    sample = sample_of(study, coders, per_arm=3)
    items = list(sample.items.select_related("assignment__batch__arm", "response__question"))
    assert [item.number for item in items] == list(range(1, 7))
    arms = [item.assignment.batch.arm.condition for item in items]
    assert sorted(arms) == ["examples"] * 3 + ["none"] * 3 and arms != sorted(arms)
    assert len({item.assignment_id for item in items}) == 6
    assert {item.response.question.key for item in items} <= {"why", "change"}
    again = sample_of(study, coders, per_arm=3)
    assert again.number == 2 and [i.response_id for i in again.items.all()] != [i.response_id for i in items]


def test_practice_and_people_who_left_are_not_sampled(study, coders):
    gone = Assignment.objects.filter(study=study).first()
    withdraw(gone)
    sample = sample_of(study, coders, per_arm=10)
    assert sample.items.count() == 7 and gone.pk not in sample.items.values_list("assignment", flat=True)
    assert {r.question.section.purpose for r in explanations(study, "live")} == {"live"}


@pytest.mark.parametrize("change, words", [
    (lambda s, c: sample_of(s, c[:1]), "two different coders"), (lambda s, c: sample_of(s, [c[0], c[0]]), "two different"),
    (lambda s, c: sample_of(s, c, rule="third"), "three different"), (lambda s, c: sample_of(s, [c[0], user("sven")]), "sven is no coder"),
    (lambda s, c: sample_of(s, c, origin="robot"), "has written"),
])  # fmt: skip
def test_what_cannot_be_sampled_is_refused_with_words(study, coders, change, words):
    with pytest.raises(NotNow, match=words):
        change(study, coders)
    assert not CodingSample.objects.exists()


def test_a_codebook_is_read_from_lines_and_written_back():
    assert read_lines(EXPLANATIONS.as_lines(), ["Null"]) == EXPLANATIONS
    assert len(EXPLANATIONS.labels) == 11 and list(EXPLANATIONS.categories) == [
        "Form",
        "Content",
        "Machine capabilities",
        "Null",
    ]
    assert Codebook.from_json(REJECTIONS.as_json()) == REJECTIONS


@pytest.mark.parametrize("lines, left_out, words", [
    (["Form | grammar"], [], "Line 1: write category"), (["Form | Bad key | Grammar"], [], "Line 1: the key"),
    (["Form | a | A", "Form | a | B"], [], "Line 2: the key “a” stands twice"), ([], [], "at least one label"),
    (["Form | a | A"], ["Null"], "No label is in the category “Null”"), (["Form | a | A"], ["Form"], "must count"),
    ([f"Form | a{n} | A" for n in range(61)], [], "at most 60"),
])  # fmt: skip
def test_what_is_no_codebook_is_refused_with_its_line(lines, left_out, words):
    with pytest.raises(CodebookRefused, match=words):
        read_lines(lines, left_out)


# Codings


def test_no_label_applies_is_an_answer_and_not_coded_is_none(study, coders):
    sample = sample_of(study, coders)
    first, second = sample.items.all()[:2]
    record.code(first, coders[0], [], True, 0)
    with pytest.raises(NotNow, match="at least one label, or say that none applies"):
        record.code(second, coders[0], [], False, 0)
    with pytest.raises(NotNow, match="not both"):
        record.code(second, coders[0], ["grammar"], True, 0)
    with pytest.raises(NotNow, match="no label “nonsense”"):
        record.code(second, coders[0], ["nonsense"], False, 0)
    said = record.given(sample)
    assert said[first.pk][1].labels == frozenset() and second.pk not in said
    with pytest.raises(IntegrityError), transaction.atomic():
        Coding.objects.create(item=second, coder=coders[0], labels="", is_none=False)


def test_thinking_again_adds_a_revision_and_two_windows_do_not_overwrite_each_other(study, coders):
    sample = sample_of(study, coders)
    item = sample.items.first()
    record.code(item, coders[0], ["genre", "grammar"], False, 0)
    assert record.code(item, coders[0], ["grammar", "genre"], False, 1) is None  # nothing new
    record.code(item, coders[0], ["intent"], False, 1)
    with pytest.raises(record.CodingConflict):
        record.code(item, coders[0], ["vague"], False, 1)
    assert [(c.revision, c.labels) for c in item.codings.all()] == [(1, "grammar genre"), (2, "intent")]
    assert record.given(sample)[item.pk][1].labels == {"intent"}


def test_a_third_coder_sees_what_two_differ_on_and_decides(study, coders):
    third = people(study, "thea")[0]
    sample = sample_of(study, [*coders, third], rule="third")
    items = list(sample.items.all())
    code_all(sample, coders[0], lambda item: ["grammar"])
    code_all(sample, coders[1], lambda item: ["factuality"] if item in items[:2] else ["grammar"])
    assert [i.pk for i in record.items_for(sample, 3, record.given(sample))] == [i.pk for i in items[:2]]
    record.code(items[0], third, ["factuality"], False, 0)
    (read,) = read_samples(study, ["live"])
    by_number = {one.assignment: one for one in read.items}
    assert read.merged(by_number[items[0].assignment_id]) == [{"factuality"}]
    assert read.merged(by_number[items[1].assignment_id]) is None
    assert read.merged(by_number[items[5].assignment_id]) == [{"grammar"}]
    note = tables(made(study))["coding_categories_1"]["note"]
    assert note.endswith("1 item waits for the third coder and does not count.") and "a third coder decides" in note


# What the report says


def test_categories_by_condition_are_shares_of_labels_with_null_left_out(study, coders):
    sample = sample_of(study, coders)
    arms = dict(Assignment.objects.filter(study=study).values_list("pk", "batch__arm__condition"))
    # Untrained people speak of form; trained ones of content, each once of nothing that counts.
    code_all(sample, coders[0], lambda i: ["grammar"] if arms[i.assignment_id] == "none" else ["factuality", "vague"])
    code_all(sample, coders[1], lambda i: ["grammar", "intent"] if arms[i.assignment_id] == "none" else ["factuality"])
    found = tables(made(study))
    none, examples = found["coding_categories_1"]["rows"]
    labels = [c["label"] for c in found["coding_categories_1"]["columns"]]
    assert labels[1:7:2] == ["Form", "Content", "Machine capabilities"]
    assert (none["c0"], none["c1"], none["c2"]) == (0.5, 0.0, 0.5) and (none["n"], none["labels"]) == (4, 8)
    assert (examples["c0"], examples["c1"], examples["c2"]) == (0.0, 1.0, 0.0) and examples["labels"] == 4
    change = {row["category"]: row["estimate"] for row in found["coding_differences_1"]["rows"]}
    assert change == {"Form": -0.5, "Content": 1.0, "Machine capabilities": -0.5}


def test_agreement_is_that_of_the_two_by_themselves(study, coders):
    sample = sample_of(study, coders, rule="intersection")
    items = list(sample.items.all())
    code_all(sample, coders[0], lambda i: ["grammar"] if i in items[:4] else [])
    code_all(sample, coders[1], lambda i: ["grammar"] if i in items[:3] else [])
    rows = {row["label"]: row for row in tables(made(study))["coding_agreement_1"]["rows"]}
    grammar = rows["Grammar"]
    # 7 of 8 alike; expected by chance .5 x .375 + .5 x .625 = .5: kappa = (.875 - .5) / .5.
    assert grammar["agreement"] == 0.875 and grammar["estimate"] == pytest.approx(0.75) and grammar["n"] == 8
    assert rows["Genre"]["estimate"] is None and rows["Genre"]["reason"]
    assert "α, MASI" in next(iter(rows))
    (read,) = read_samples(study, ["live"])
    assert sum(map(bool, [read.is_refused(item) for item in read.pairs])) == 3  # the rule does not touch agreement


def test_items_that_one_coder_has_not_coded_do_not_count(study, coders):
    sample = sample_of(study, coders)
    code_all(sample, coders[0], lambda i: ["grammar"])
    assert made(study) == []
    record.code(sample.items.first(), coders[1], ["grammar"], False, 0)
    assert "1 of 8 coded by both" in tables(made(study))["coding_agreement_1"]["note"]


def test_coders_who_may_see_more_are_told_of(study):
    carl, olga = people(study, "carl")[0], user("olga")
    sample = sample_of(study, [carl, olga])
    for coder in (carl, olga):
        code_all(sample, coder, lambda i: ["grammar"])
    assert "1 of the coders may see the study otherwise" in tables(made(study))["coding_agreement_1"]["note"]


def test_who_withdraws_after_being_coded_is_gone_from_the_report(study, coders):
    sample = sample_of(study, coders)
    for coder in coders:
        code_all(sample, coder, lambda i: ["grammar"])
    withdraw(sample.items.first().assignment)
    assert "7 of 7 coded" in tables(made(study))["coding_agreement_1"]["note"]
    assert len(record.items_for(sample, 1, record.given(sample))) == 7


def test_the_report_has_it_and_hides_it_while_the_study_collects(study, coders):
    sample = sample_of(study, coders)
    for coder in coders:
        code_all(sample, coder, lambda i: ["grammar"])
    hidden = build_report(study, {"resamples": 99})
    assert not any(block["name"].startswith("coding") for block in hidden["blocks"])
    lifecycle.close(study, by=None), lifecycle.finish(study, by=None)
    shown = build_report(Study.objects.get(pk=study.pk), {"resamples": 99})
    assert {"coding_agreement_1", "coding_categories_1"} <= {one["name"] for one in shown["tables"]}
    assert shown["problems"] == []


# Reviewing work


def test_reviewers_agree_by_reason_and_refused_work_can_be_left_out(study, coders):
    sample = sample_of(study, coders, kind="rejections", rule="union")
    items = list(sample.items.all())
    assert {item.response_id for item in items} == {None}
    code_all(
        sample, coders[0], lambda i: ["vague", "copied"] if i == items[0] else ["mismatch"] if i == items[1] else []
    )
    code_all(sample, coders[1], lambda i: ["vague"] if i == items[0] else [])
    samples = read_samples(study, ["live"])
    assert refused_work(samples) == {
        items[0].assignment_id: "reviewed: Copied, Vague", items[1].assignment_id: "reviewed: Mismatch",
    }  # fmt: skip
    assert len(reviewed(samples)) == 8
    found = tables(made(study))
    rows = {row["label"]: row for row in found["coding_agreement_1"]["rows"]}
    assert rows["Vague"]["estimate"] == 1.0 and rows["any reason"]["agreement"] == 0.875
    assert sum(row["refused"] for row in found["coding_refused_1"]["rows"]) == 2
    from analysis.data.frames import assignments_frame, responses_frame
    from analysis.data.material import material_of
    from analysis.exclusions import FAIL, PASS
    from analysis.exclusions.rules.failed_review import failed_review

    flags = failed_review(material_of(study, responses_frame(study).rows, assignments_frame(study).rows))
    assert (
        flags.states[items[0].assignment_id] == FAIL and flags.evidence[items[1].assignment_id] == "reviewed: Mismatch"
    )
    assert flags.states[items[5].assignment_id] == PASS


def test_both_must_refuse_where_the_rule_says_so(study, coders):
    sample = sample_of(study, coders, kind="rejections", rule="intersection")
    items = list(sample.items.all())
    code_all(sample, coders[0], lambda i: ["vague"] if i in items[:2] else [])
    code_all(sample, coders[1], lambda i: ["copied"] if i == items[0] else [])
    assert list(refused_work(read_samples(study, ["live"]))) == [items[0].assignment_id]
    note = tables(made(study))["coding_refused_1"]["note"]
    assert "Work is refused that both refuse, if not for the same reason." in note and "label" not in note


def test_what_a_third_has_not_decided_leaves_an_earlier_review_as_it_was(study, coders):
    from analysis.data.material import _reviews

    earlier = sample_of(study, coders, kind="rejections")
    for coder in coders:
        code_all(earlier, coder, lambda i: ["vague"])
    later = sample_of(study, [*coders, *people(study, "thea")], kind="rejections", rule="third")
    let_pass = later.items.first().assignment_id
    code_all(later, coders[0], lambda i: [])
    code_all(later, coders[1], lambda i: [] if i.assignment_id == let_pass else ["copied"])
    found = _reviews(study)
    assert found.pop(let_pass) == "" and list(found.values()) == ["reviewed: Vague"] * 7
    note = tables(made(study))["coding_refused_2"]["note"]
    assert "7 items wait for the third coder and do not count." in note and "third coder decides" in note
    rows = {row["condition"]: row for row in tables(made(study))["coding_refused_2"]["rows"]}
    assert sorted(row["n"] for row in rows.values()) == [0, 1]
    assert {row["reason"] for row in rows.values() if not row["n"]} == {"no value to analyse"}


def test_work_that_nobody_reviewed_is_unknown(study):
    from analysis.data.frames import assignments_frame, responses_frame
    from analysis.data.material import material_of
    from analysis.exclusions import UNKNOWN
    from analysis.exclusions.rules.failed_review import failed_review

    flags = failed_review(material_of(study, responses_frame(study).rows, assignments_frame(study).rows))
    assert set(flags.states.values()) == {UNKNOWN}


# Hints

TEXT = "Once upon a time there was a king who had three daughters and a very old horse in the yard."


@pytest.mark.parametrize("said, others, found", [
    ("there was a king who had three daughters and", {}, ("copied",)),
    ("There was a KING, who had three daughters: and", {}, ("copied",)),
    ("there was a king who had three daughters and that is why I think a person wrote it", {}, ()),
    ("good", {}, ("short",)), ("very good!", {}, ("short",)), ("n/a", {}, ("short",)), ("it ends well", {}, ()),
    ("it ends well", {"it ends well": 2}, ("duplicate",)), ("it ends well", {"it ends well": 1}, ()), ("", {}, ("short",)),
])  # fmt: skip
def test_what_a_program_notices(said, others, found):
    assert hints_of(said, [TEXT], others) == found


def test_the_same_words_of_one_person_are_no_duplicate():
    rows = [
        (1, "", "it ends well"),
        (1, "", "It ends well."),
        (2, "", "it ENDS well!"),
        (3, "", "it ends well"),
        (4, "", "other words here"),
    ]
    assert hints_by_row(rows, {}) == [("duplicate",)] * 4 + [()]


LONG = [
    "the",
    "ending",
    "did",
    "not",
    "follow",
    "from",
    "what",
    "came",
    "before",
    "and",
    "nobody",
    "in",
    "it",
    "ever",
    "said",
    "why",
]


def test_what_others_wrote_nearly_the_same_is_noticed_above_the_declared_share():
    """LONG has 16 words and 12 runs of five. A word changed at place p breaks the runs that hold it."""

    def changed(*places):
        return " ".join("other" if n in places else word for n, word in enumerate(LONG))

    whole = " ".join(LONG)
    # One word in the middle breaks 5 of 12 runs: 7 of 12 are shared, above one half. Two words far apart break 10.
    assert near_duplicates([(1, whole), (2, changed(7))]) == [True, True]
    assert near_duplicates([(1, whole), (2, changed(5, 10))]) == [False, False]
    # At one half exactly (a word at place 5 and its neighbour: 6 broken runs of 12) it is not above it.
    assert near_duplicates([(1, whole), (2, changed(5, 6))]) == [False, False]
    # One's own words, word for word the same, and what is too short to say: not this flag's.
    assert near_duplicates([(1, whole), (1, changed(7))]) == [False, False]
    assert near_duplicates([(1, whole), (2, whole.upper())]) == [False, False]
    assert near_duplicates([(1, "a b c d e f"), (2, "a b c d e g")]) == [False, False]
    # A short one that stands whole within a long one.
    assert near_duplicates([(1, " ".join(LONG[:9])), (2, whole)]) == [True, False]
    assert hints_by_row([(1, "", whole), (2, "", changed(7))], {}) == [("near_duplicate",)] * 2
    # A text that a whole crowd passed on is noticed, however many pass it on.
    crowd = [(n, f"{whole} {n}") for n in range(120)]
    assert all(near_duplicates(crowd))


# The workspace


def pages(sample, number=1):
    return f"/admin/analysis/codingsample/{sample.pk}/code/{number}/"


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
    assert "Nothing is wrong with this work" in seen and "Mismatch" in seen
    hidden = [study.title, item.assignment.batch.arm.name, "gpt3", item.assignment.code, "none", "condition"]
    assert [
        word
        for word in hidden
        if word in seen.replace('name="none"', "").replace('id="none"', "").replace('for="none"', "")
    ] == []


def test_coding_goes_from_item_to_item_and_refuses_an_empty_page(study, coders):
    sample = sample_of(study, coders)
    client = logged_in(coders[0])
    first = client.get(f"/admin/analysis/codingsample/{sample.pk}/code/")
    assert first["Location"] == pages(sample, 1)
    refused = client.post(pages(sample, 1), {"seen": "0"})
    assert refused.status_code == 422 and "say that none applies" in refused.content.decode()
    client.post(pages(sample, 1), {"seen": "0", "label": ["grammar", "intent"]})
    assert client.get(f"/admin/analysis/codingsample/{sample.pk}/code/")["Location"] == pages(sample, 2)
    page = client.get(pages(sample, 1)).content.decode()
    assert page.count(" checked") == 2 and 'name="seen" value="1"' in page
    stale = client.post(pages(sample, 1), {"seen": "0", "none": "1"})
    assert stale.status_code == 422 and "another window" in stale.content.decode()
    for number in range(2, 9):
        client.post(pages(sample, number), {"seen": "0", "none": "1"})
    end = client.get(f"/admin/analysis/codingsample/{sample.pk}/code/", follow=True).content.decode()
    assert "Everything that is yours to code is coded" in end and "8 are coded" in end


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
    address = f"/admin/analysis/codingsample/study/{study.pk}/draw/"
    assert "grammar | Grammar" in client.get(address).content.decode()
    assert "mismatch | Mismatch" in client.get(f"{address}?kind=rejections").content.decode()
    data = {
        "kind": "explanations", "per_arm": 2, "origin": "live", "rule": "union", "first": coders[0].pk, "second": coders[1].pk,
        "third": "", "codebook": "\n".join(EXPLANATIONS.as_lines()), "left_out": "Null",
    }  # fmt: skip
    page = client.post(address, data, follow=True).content.decode()
    assert "Sample 1 is drawn: 4 items" in page and "carl" in page and "Writer intent" in page
    for change, words in (
        ({"second": coders[0].pk}, "two different coders"), ({"codebook": "Form"}, "Line 1"), ({"per_arm": "0"}, "greater than"),
        ({"rule": "third"}, "chosen with the rule"), ({"kind": "other"}, "valid choice"), ({"left_out": "Other"}, "No label is in"),
    ):  # fmt: skip
        refused = client.post(address, data | change)
        assert refused.status_code == 422 and words in refused.content.decode(), words
    assert CodingSample.objects.count() == 1
    assert "Sample 1" in client.get(f"/studies/{study.code}/analyses/").content.decode()
