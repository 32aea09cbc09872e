"""Prolific without a token, and what it sends by itself: exported files, text for its forms, signed messages."""

from datetime import UTC, datetime

import pytest

from annotators.models import Recruitment
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.channels.prolific import client
from annotators.recruitment.panels import Order, SubmissionSnapshot

TASK = "60ab" * 6
HEAD = "Submission id,Participant id,Status,Started at,Completed at,Reviewed at,Archived at,Time taken,Completion code,Total approvals,Age"
FIRST = f"{'66f0' * 6},{'5f1a' * 6},AWAITING REVIEW,2026-11-20T10:00:00.179000Z,2026-11-20T10:20:00Z,Not Applicable,,1200,A2K7PQ,389,25"
SECOND = f"{'66F1' * 6},{'5f1b' * 6},APPROVED,2026-11-20T10:00:00Z,2026-11-20T10:20:00Z,2026-11-21T08:00:00Z,,1200,NOCODE,2,CONSENT_REVOKED"
THIRD = f"{'66f2' * 6},{'5f1c' * 6},TIMED-OUT,2026-11-20T10:00:00Z,,,,,,,"


def read(*lines, ends="\r\n"):
    return REGISTRY["prolific"].read_export(Recruitment(), "\ufeff" + ends.join(lines) + ends, TASK)


def test_an_export_is_read_as_the_service_would_show_it():
    first, second, third = read(HEAD, FIRST, SECOND, "", THIRD)
    assert first == SubmissionSnapshot(
        task=TASK, submission="66f0" * 6, person="5f1a" * 6, state="submitted", word="AWAITING REVIEW", code="A2K7PQ",
        started_at=datetime(2026, 11, 20, 10, 0, 0, 179000, UTC), submitted_at=datetime(2026, 11, 20, 10, 20, tzinfo=UTC),
        decides_itself_at=datetime(2026, 12, 11, 10, 20, tzinfo=UTC),
    )  # fmt: skip
    assert (second.state, second.submission, second.code) == ("approved", "66f1" * 6, "NOCODE")
    assert second.decided_at == datetime(2026, 11, 21, 8, tzinfo=UTC) and second.decides_itself_at is None
    assert (third.state, third.submitted_at, third.code) == ("expired", None, "")


@pytest.mark.parametrize("written", ["2026-11-20T10:20:00", "2026-11-20 10:20:00.123000", "2026-11-20T10:20:00Z"])
def test_times_without_a_zone_are_in_utc(written):
    (only,) = read(HEAD, FIRST.replace("2026-11-20T10:20:00Z", written))
    assert only.submitted_at.replace(microsecond=0) == datetime(2026, 11, 20, 10, 20, tzinfo=UTC)


@pytest.mark.parametrize("mark", [";", "\t"])
def test_cells_may_be_separated_as_a_spreadsheet_does_it(mark):
    assert read(HEAD.replace(",", mark), FIRST.replace(",", mark)) == read(HEAD, FIRST)


def test_columns_may_stand_in_another_order_and_others_may_be_missing():
    (only,) = read(
        "Status,Fluent languages,Participant id,Submission id",
        f'RETURNED,"Czech, English",{"5f1a" * 6},{"66f0" * 6}',
        ends="\n",
    )
    assert (only.state, only.person, only.started_at) == ("returned", "5f1a" * 6, None)
    assert read(HEAD) == []


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([""], "only blank lines. Choose the file that Prolific exports"),
        (
            ["id,name", "1,2"],
            "Row 1: no column Submission id or Participant id or Status; the columns found are: id, name. Choose the file",
        ),
        ([HEAD, FIRST, FIRST], f"Row 3, column “Submission id”: the submission {'66f0' * 6} is already in row 2"),
        ([HEAD, "", "robert" + FIRST[24:]], "Row 3, column “Submission id”: “robert” is not a Prolific id"),
        ([HEAD, FIRST.replace("5f1a" * 6, "anna")], "Row 2, column “Participant id”: “anna”"),
        ([HEAD, FIRST.replace("AWAITING REVIEW", " ")], "Row 2, column “Status”: the cell is empty"),
        (
            [HEAD, FIRST.replace("2026-11-20T10:20:00Z", "yesterday")],
            "Row 2, column “Completed at”: “yesterday” is not a time",
        ),
        ([HEAD, "66f0,5f1a"], "Row 2: has 2 cells, the header has 11"),
        ([HEAD, FIRST.replace("A2K7PQ", '"A2')], "Row 2: a quote is opened and never closed"),
    ],
)
def test_a_file_that_is_none_is_refused_with_row_and_column(lines, words):
    with pytest.raises(ValueError, match=words):
        read(*lines)


# Text for Prolific's own forms


def order(operation, person, task=TASK, **values):
    return Order(
        operation, f"{operation}-{person}", {"task": task, "submission": f"s{person}", "person": person} | values
    )


def test_orders_become_lines_for_prolifics_forms():
    orders = [
        order("approve", "a1"),
        order("bonus", "a1", amount="0.50"),
        order("approve", "a2"),
        order("bonus", "a1", amount="0.50"),
    ]
    texts = REGISTRY["prolific"].bulk_texts(
        [*orders, order("screen_out", "a3", amount=""), order("reject", "a4"), order("stop", "")]
    )
    assert {text.name: text.text for text in texts} == {
        "People to approve": "a1\na2\n",
        "Bonuses": "a1,0.50\na1,0.50\n",
        "People to screen out": "a3\n",
    }
    assert all("Prolific" in text.where for text in texts)


def test_each_study_has_a_text_of_its_own_and_nobody_is_approved_twice():
    texts = REGISTRY["prolific"].bulk_texts([order("approve", "a1"), order("approve", "a2", task="other")])
    assert [(text.text, text.where.partition(".")[0]) for text in texts] == [
        ("a1\n", f"Study {TASK}"),
        ("a2\n", "Study other"),
    ]
    with pytest.raises(ValueError, match="a1 is ordered twice"):
        REGISTRY["prolific"].bulk_texts([order("approve", "a1"), order("approve", "a1")])
    assert REGISTRY["prolific"].bulk_texts([]) == [] and REGISTRY["generic"].bulk_texts([order("approve", "a1")]) == []


def test_a_panel_without_files_says_so():
    with pytest.raises(ValueError, match="cannot read files of this panel"):
        REGISTRY["open_link"].read_export(Recruitment(), "a,b")


# Messages

RAW = b'{"resource_id":"66f0","event_type":"submission.status.change","participant_id":"5f1a","status":"RETURNED"}'
SENT = ("whsec_test", "1795229881", RAW, "hk6U8Vh9RBAPZ89+N48Ou1LWglirxZ6j+1+kOsRxrU4=")


def test_a_message_that_prolific_signed_is_genuine():
    assert client.is_signature_valid(*SENT)
    assert client.parse_notification("ev1", RAW) == client.WebhookMessage(
        "ev1", "66f0", "5f1a", "RETURNED", "submission.status.change"
    )


@pytest.mark.parametrize(
    ("place", "other"),
    [
        (0, "whsec_tess"),
        (0, ""),
        (1, "1795229882"),
        (1, ""),
        (2, RAW + b" "),
        (2, b""),
        (3, ""),
        (3, SENT[3][:-1]),
        (3, "ä"),
    ],
)
def test_a_message_of_which_anything_differs_is_not(place, other):
    sent = list(SENT)
    sent[place] = other
    assert not client.is_signature_valid(*sent)


def test_nobody_signs_with_no_secret():
    assert not client.is_signature_valid("", "1", RAW, client.compute_signature("", "1", RAW))


def test_messages_about_something_else_name_no_submission():
    other = client.parse_notification(
        "ev2", b'{"event_type":"study.has_high_return_rate","resource_id":"60ab","status":[1]}'
    )
    assert other == client.WebhookMessage("ev2", "", "", "", "study.has_high_return_rate")


@pytest.mark.parametrize(
    ("event", "raw", "words"),
    [
        ("ev", b"not json", "not JSON"),
        ("ev", b"\xff", "not JSON"),
        ("ev", b"[1]", "not an object"),
        ("", RAW, "X-Event-ID"),
        ("e" * 201, RAW, "X-Event-ID"),
        ("ev", RAW.replace(b'"66f0"', b"7"), "names no submission"),
        ("ev", RAW.replace(b'"66f0"', b'""'), "names no submission"),
        ("ev", b"[" * 200_000, "not JSON"),
        ("ev", RAW.replace(b"66f0", b"6" * 65), "names no submission"),
        ("ev", RAW.replace(b"66f0", b"6\\u0000"), "names no submission"),
    ],
)
def test_what_is_no_message_is_refused(event, raw, words):
    with pytest.raises(ValueError, match=words):
        client.parse_notification(event, raw)
