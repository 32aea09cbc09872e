"""What the report says of codings and of reviewed work."""

import pytest

from analysis.coding import samples
from analysis.coding.samples import decided_review_assignment_ids, read_coded_samples, refusal_reasons_by_assignment
from analysis.report.build import build_report
from annotators.models import Assignment
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from studies.models import Study
from studies.services import lifecycle
from tests.analysis.coding.coded import code_all, made, people, sample_of, tables
from tests.builders import user

pytestmark = pytest.mark.django_db


@pytest.mark.slow
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
    (read,) = read_coded_samples(study, ["live"])
    assert (
        sum(map(bool, [read.is_work_refused(item) for item in read.items_coded_by_both])) == 3
    )  # the rule does not touch agreement


@pytest.mark.slow
def test_items_that_one_coder_has_not_coded_do_not_count(study, coders):
    sample = sample_of(study, coders)
    code_all(sample, coders[0], lambda i: ["grammar"])
    assert made(study) == []
    samples.store_coding(sample.items.first(), coders[1], ["grammar"], False, 0)
    assert "Both coders coded 1 of 8 items" in tables(made(study))["coding_agreement_1"]["note"]


def test_coders_who_may_see_more_are_named(study):
    carl, olga = people(study, "carl")[0], user("olga")
    sample = sample_of(study, [carl, olga])
    for coder in (carl, olga):
        code_all(sample, coder, lambda i: ["grammar"])
    assert "1 of the coders can see the study by another role" in tables(made(study))["coding_agreement_1"]["note"]


def test_who_withdraws_after_being_coded_is_gone_from_the_report(study, coders):
    sample = sample_of(study, coders)
    for coder in coders:
        code_all(sample, coder, lambda i: ["grammar"])
    withdraw_annotator_and_erase_texts(sample.items.first().assignment)
    assert "Both coders coded 7 of 7 items" in tables(made(study))["coding_agreement_1"]["note"]
    assert len(samples.items_of_seat(sample, 1, samples.current_codings_by_item(sample))) == 7


def test_the_report_has_it_and_hides_it_while_the_study_collects(study, coders):
    sample = sample_of(study, coders)
    for coder in coders:
        code_all(sample, coder, lambda i: ["grammar"])
    hidden = build_report(study, {"resamples": 99})
    assert not any(block["name"].startswith("coding") for block in hidden["blocks"])
    lifecycle.start_closing(study, by=None), lifecycle.end_grace_period(study, by=None)
    shown = build_report(Study.objects.get(pk=study.pk), {"resamples": 99})
    assert {"coding_agreement_1", "coding_categories_1"} <= {one["name"] for one in shown["tables"]}
    assert shown["problems"] == []


def test_reviewers_agree_by_reason_and_refused_work_can_be_left_out(study, coders):
    sample = sample_of(study, coders, kind="rejections", rule="union")
    items = list(sample.items.all())
    assert {item.response_id for item in items} == {None}
    code_all(
        sample, coders[0], lambda i: ["vague", "copied"] if i == items[0] else ["mismatch"] if i == items[1] else []
    )
    code_all(sample, coders[1], lambda i: ["vague"] if i == items[0] else [])
    samples = read_coded_samples(study, ["live"])
    assert refusal_reasons_by_assignment(samples) == {
        items[0].assignment_id: "reviewed: Copied, Vague",
        items[1].assignment_id: "reviewed: Mismatch",
    }
    assert len(decided_review_assignment_ids(samples)) == 8
    found = tables(made(study))
    rows = {row["label"]: row for row in found["coding_agreement_1"]["rows"]}
    assert rows["Vague"]["estimate"] == 1.0 and rows["any reason"]["agreement"] == 0.875
    assert sum(row["refused"] for row in found["coding_refused_1"]["rows"]) == 2
    from analysis.data.frames import assignments_frame, responses_frame
    from analysis.data.rule_input import build_rule_input
    from analysis.exclusions import FAIL, PASS
    from analysis.exclusions.rules.work import flag_failed_reviews

    flags = flag_failed_reviews(build_rule_input(study, responses_frame(study).rows, assignments_frame(study).rows))
    assert (
        flags.states[items[0].assignment_id] == FAIL and flags.evidence[items[1].assignment_id] == "reviewed: Mismatch"
    )
    assert flags.states[items[5].assignment_id] == PASS


def test_both_must_refuse_where_the_rule_says_so(study, coders):
    sample = sample_of(study, coders, kind="rejections", rule="intersection")
    items = list(sample.items.all())
    code_all(sample, coders[0], lambda i: ["vague"] if i in items[:2] else [])
    code_all(sample, coders[1], lambda i: ["copied"] if i == items[0] else [])
    assert list(refusal_reasons_by_assignment(read_coded_samples(study, ["live"]))) == [items[0].assignment_id]
    note = tables(made(study))["coding_refused_1"]["note"]
    assert (
        "Work counts as refused if both reviewers refuse it, even for different reasons." in note
        and "label" not in note
    )


def test_what_a_third_has_not_decided_leaves_an_earlier_review_as_it_was(study, coders):
    from analysis.data.rule_input import _reviews

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
    assert "7 items wait for the third coder and are not counted." in note and "third coder decides" in note
    rows = {row["condition"]: row for row in tables(made(study))["coding_refused_2"]["rows"]}
    assert sorted(row["n"] for row in rows.values()) == [0, 1]
    assert {row["reason"] for row in rows.values() if not row["n"]} == {"no value to analyse"}


def test_work_that_nobody_reviewed_is_unknown(study):
    from analysis.data.frames import assignments_frame, responses_frame
    from analysis.data.rule_input import build_rule_input
    from analysis.exclusions import UNKNOWN
    from analysis.exclusions.rules.work import flag_failed_reviews

    flags = flag_failed_reviews(build_rule_input(study, responses_frame(study).rows, assignments_frame(study).rows))
    assert set(flags.states.values()) == {UNKNOWN}
