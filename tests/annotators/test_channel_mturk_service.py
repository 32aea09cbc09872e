"""The requester's side against a server that speaks the real protocol: each order once, whatever happens to its answer."""

import sys
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache

import pytest

from annotators.channels import REGISTRY
from annotators.channels.mturk import service as making
from annotators.channels.mturk.exported import read_batch
from annotators.channels.mturk.money import fee_of, fees_of, hits_for
from annotators.channels.mturk.service import endpoint_of, receipt_in
from annotators.channels.mturk.stand_in import MTurkStandIn, Wrong
from annotators.models import Recruitment
from annotators.panels import APPROVED, OPERATIONS, REJECTED, SUBMITTED, UNKNOWN, Busy, Order, Refused, Unclear
from tests.conftest import lacking

URL = "https://eval.example.org/e/k/?a=1&b=2"
PUBLISHED = {
    "title": "Read two stories", "description": "And say which is better.", "url": URL, "reward": "1.25", "currency": "USD",
    "minutes": 10, "places": 20, "name": "stories", "lists": [],
}  # fmt: skip


@pytest.fixture(scope="module")
def server():
    with MTurkStandIn() as server:
        yield server


# Making one takes longer than all calls of a test.
client_of = cache(making.client_of)


@pytest.fixture
def fake(server, settings, monkeypatch):
    try:
        from botocore.retries.quota import RetryQuota
        from botocore.retries.standard import ExponentialBackoff
    except ImportError:
        lacking("boto3 is not installed")
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda *_: 0)
    # The client is shared: what one test tried again is no other's concern.
    monkeypatch.setattr(RetryQuota, "acquire", lambda *_: True)
    monkeypatch.setattr(making, "client_of", client_of)
    settings.MTURK_ENDPOINT_URL = server.url
    server.begin()
    return server


@pytest.fixture
def service(fake):
    return service_of()


KEYS = {"key_id": "key", "key": "secret"}


def service_of(channel="mturk", **wanted):
    return REGISTRY[channel].service(Recruitment(channel=channel, settings=wanted), KEYS)


def published(service, token="p1", **changes) -> str:
    return service.do(Order("publish", token, PUBLISHED | changes))["task"]


def sent(fake, hit, worker="A1ANNA", receipt="R1", assignment="") -> str:
    """An accepted and submitted assignment."""
    name = fake.accept(hit, worker, assignment)
    fake.submit({"assignmentId": name, "receipt": receipt, "study": "s"})
    return name


# Every order, and what may happen to it: (operation, the call that writes, how often it is carried out)
WRITES = {
    "publish": ("CreateHITWithHITType", 3),
    "extend": ("CreateHITWithHITType", 2),
    "stop": ("UpdateExpirationForHIT", 3),
    "approve": ("ApproveAssignment", 1),
    "reject": ("RejectAssignment", 1),
    "reverse": ("ApproveAssignment", 1),
    "bonus": ("SendBonus", 1),
    "bar": ("AssociateQualificationWithWorker", 1),
}


def test_every_order_that_the_service_takes_is_tried_with_every_fault(service):
    assert set(WRITES) == service.can and service.can <= set(OPERATIONS)


def prepared(fake, service, operation) -> Order:
    """What must be there before, and the order itself."""
    if operation == "publish":
        return Order("publish", "p1", PUBLISHED)
    task = published(service, "before")
    if operation in ("extend", "stop"):
        return Order(operation, "o1", {"task": task} | ({"places": 32} if operation == "extend" else {}))
    if operation == "bar":
        return Order("bar", "o1", {"people": ["A1ANNA"], "list": "heval family 1"})
    assignment = sent(fake, next(iter(fake.hits)))
    values = {"task": task, "submission": assignment, "person": "A1ANNA", "message": "Thank you.", "category": "work"}
    if operation == "reverse":
        service.do(Order("reject", "before", values))
    if operation == "bonus":
        values |= {"amount": "0.50", "currency": "USD", "reason": "Your part was longer."}
    return Order(operation, "o1", values)


@pytest.mark.parametrize("fault", ["ok", "drop_before", "drop_after", "throttle", "fault"])
@pytest.mark.parametrize("operation", sorted(WRITES))
def test_an_order_is_carried_out_once_whatever_happens_to_an_answer(fake, service, operation, fault):
    order = prepared(fake, service, operation)
    call, times = WRITES[operation]
    before = fake.calls[call]
    fake.faults = {call: [fault]}
    service.do(order)
    held = fake.balance
    assert service.look(order) is not None or operation == "bar"
    service.do(order)
    # What is refused as done already was not carried out again. An expiry or a list set twice is as set once.
    assert fake.calls[call] - before == times + (operation == "bar" or (operation, fault) == ("stop", "drop_after")) + (
        (operation, fault) == ("bar", "drop_after")
    )
    assert fake.balance == held and len(fake.bonuses) == (operation == "bonus")
    writes = [asked for name, asked in fake.asked if name in ("CreateHITWithHITType", "SendBonus")]
    assert all(asked["UniqueRequestToken"] for asked in writes)


@pytest.mark.parametrize("operation", sorted(set(WRITES) - {"bar"}))
def test_an_order_whose_every_answer_is_lost_is_looked_up(fake, service, operation):
    order = prepared(fake, service, operation)
    call, times = WRITES[operation]
    assert service.look(order) is None
    before = fake.calls[call]
    fake.faults = {call: ["drop_before"] * 5}
    with pytest.raises(Unclear):
        service.do(order)
    assert service.look(order) is None and fake.calls[call] == before
    # Done at the first try, and no answer ever came.
    fake.faults = {call: ["drop_after"] + ["drop_before"] * 4} if times == 1 else {}
    try:
        service.do(order)
    except Unclear:
        assert times == 1
    assert service.look(order) is not None and fake.calls[call] - before == times


@pytest.mark.parametrize(("fault", "raised"), [("throttle", Busy), ("fault", Unclear), ("drop_before", Unclear)])
def test_what_does_not_pass_is_told_in_the_words_of_every_panel(fake, service, fault, raised):
    fake.faults = {"GetAccountBalance": [fault] * 5}
    with pytest.raises(raised):
        service.check()
    assert service.check() == "Mechanical Turk, live: 10000.00 USD available"


def test_a_server_that_nobody_reaches_was_told_nothing(fake, settings, monkeypatch):
    monkeypatch.setattr(making, "client_of", client_of.__wrapped__)
    settings.MTURK_ENDPOINT_URL = "http://127.0.0.1:9"
    with pytest.raises(Busy, match="cannot be reached"):
        service_of().check()


# Publishing


def test_places_are_published_in_hits_of_at_most_nine_of_one_type(fake, service):
    task = published(service)
    assert [hit["MaxAssignments"] for hit in fake.hits.values()] == [9, 9, 2] and len(fake.kinds) == 1
    kind = next(iter(fake.kinds.values()))[1]
    assert kind["Reward"] == "1.25" and kind["AssignmentDurationInSeconds"] == 1800
    assert all(
        "a=1&amp;b=2" in hit["Question"] and hit["RequesterAnnotation"].startswith(task) for hit in fake.hits.values()
    )
    service.do(Order("extend", "e1", {"task": task, "places": 30}))
    assert [hit["MaxAssignments"] for hit in fake.hits.values()] == [9, 9, 2, 9, 1] and len(service.hits(task)) == 5
    assert published(service, "p2") != task and len(fake.kinds) == 1 and len(service.hits(task)) == 5


def test_publishing_that_broke_off_makes_only_what_is_missing(fake, service):
    fake.faults = {"CreateHITWithHITType": ["ok"] + ["fault"] * 5}
    with pytest.raises(Unclear):
        published(service)
    assert len(fake.hits) == 1
    assert service.look(Order("publish", "p1", PUBLISHED)) is None
    published(service)
    assert [hit["MaxAssignments"] for hit in fake.hits.values()] == [9, 9, 2]


def test_closing_that_broke_off_goes_on_and_leaves_nothing_open(fake, service):
    task = published(service)
    fake.faults = {"UpdateExpirationForHIT": ["ok"] + ["fault"] * 5}
    with pytest.raises(Unclear):
        service.do(Order("stop", "s1", {"task": task}))
    service.do(Order("stop", "s1", {"task": task}))
    assert all(hit["Expiration"] < datetime.now(UTC).timestamp() for hit in fake.hits.values())
    assert fake.calls["UpdateExpirationForHIT"] == 3


def test_a_hit_made_by_hand_is_not_enlarged_beyond_nine(fake, service):
    published(service, places=9)
    (hit,) = fake.hits
    with pytest.raises(Refused, match="cannot be enlarged beyond 9"):
        service.do(Order("extend", "e1", {"task": hit, "places": 10}))
    assert fake.hits[hit]["MaxAssignments"] == 9
    with pytest.raises(Wrong, match="cannot have ten"):
        fake.CreateAdditionalAssignmentsForHIT(
            {"HITId": hit, "NumberOfAdditionalAssignments": 1, "UniqueRequestToken": "t"}
        )


def test_what_cannot_be_paid_is_not_published_nor_extended(fake, service):
    fake.balance = Decimal("29.99")
    with pytest.raises(Refused, match=r"20 places cost 30\.00 USD with fees, and the account has 29\.99"):
        published(service)
    assert not fake.hits
    fake.balance = Decimal("30")
    task = published(service)
    fake.balance = Decimal("1")
    with pytest.raises(Refused, match="1 places cost 1.50"):
        service.do(Order("extend", "e1", {"task": task, "places": 21}))
    assert len(fake.hits) == 3


def test_places_are_meant_in_all_and_an_order_given_again_adds_none(fake, service):
    published(service, places=4)
    (hit,) = fake.hits
    order = Order("extend", "e1", {"task": hit, "places": 7})
    for _ in range(2):
        service.do(order)
    assert fake.hits[hit]["MaxAssignments"] == 7 and fake.calls["CreateAdditionalAssignmentsForHIT"] == 1
    task = published(service, "p2", places=9)
    for token, places in (("e2", 9), ("e3", 12), ("e3", 12), ("e4", 5)):
        service.do(Order("extend", token, {"task": task, "places": places}))
    assert [one["MaxAssignments"] for one in service.hits(task)] == [9, 3]
    # Which HITs an order made is told: the panel's file names HITs.
    there = set(fake.hits)
    assert (
        set(service.do(Order("extend", "e5", {"task": task, "places": 15}))["hits"]) == set(fake.hits) - there != set()
    )


def test_a_hit_of_ten_costs_the_higher_fee_for_what_is_added(fake, service):
    published(service, places=9)
    (hit,) = fake.hits
    fake.hits[hit]["MaxAssignments"] = 12
    order = Order("extend", "e1", {"task": hit, "places": 14})
    fake.balance = Decimal("3.49")
    with pytest.raises(Refused, match=r"2 places cost 3\.50 USD"):
        service.do(order)
    fake.balance = Decimal("3.50")
    assert service.do(order) == {"task": hit} and fake.hits[hit]["MaxAssignments"] == 14


def test_who_is_on_a_list_does_not_see_what_is_published_with_it(fake, service):
    # Names that contain the name, over more than a page: a search finds them too.
    for n in range(120):
        fake.CreateQualificationType({"Name": f"family 1{n}", "Description": "", "QualificationTypeStatus": "Active"})
    service.do(Order("bar", "b1", {"people": ["A1ANNA"], "list": "family 1"}))
    service.do(Order("bar", "b2", {"people": ["A1ANNA", "A2BERT"], "list": "family 1"}))
    service.do(Order("bar", "b3", {"people": [], "list": "nobody's"}))
    assert not [one for one in fake.lists.values() if one["Name"] == "nobody's"]
    (name,) = {name for name, _ in fake.listed}
    assert fake.lists[name]["Name"] == "family 1" and len(fake.listed) == 2
    published(service_of(countries="US, GB", approved_percent=97), lists=["family 1"])
    asked = next(iter(fake.kinds.values()))[1]["QualificationRequirements"]
    assert [(one["Comparator"], one["ActionsGuarded"]) for one in asked] == [
        ("DoesNotExist", "DiscoverPreviewAndAccept"), ("In", "DiscoverPreviewAndAccept"), ("GreaterThanOrEqualTo", "PreviewAndAccept"),
    ]  # fmt: skip
    assert asked[0]["QualificationTypeId"] == name and asked[1]["LocaleValues"] == [
        {"Country": "US"},
        {"Country": "GB"},
    ]


def test_the_sandbox_demands_no_record(fake):
    published(service_of("mturk_sandbox", countries="US", approved_percent=97))
    assert next(iter(fake.kinds.values()))[1]["QualificationRequirements"] == []


def test_another_currency_is_refused(service):
    with pytest.raises(Refused, match="USD, not in EUR"):
        published(service, currency="EUR")


# Submissions


def test_all_submissions_are_read_to_the_last_page(fake, service):
    task = published(service, places=9)
    (hit,) = fake.hits
    for n in range(250):
        sent(fake, hit, f"A{n}", f"R{n}")
    seen = list(service.submissions(task))
    assert {(one.person, one.receipt) for one in seen} == {(f"A{n}", f"R{n}") for n in range(250)}
    assert sum(name == "ListAssignmentsForHIT" for name, _ in fake.asked) == 3
    one = seen[0]
    assert (one.task, one.state, one.word) == (hit, SUBMITTED, "Submitted")
    assert (one.decides_itself_at - one.submitted_at).total_seconds() == pytest.approx(3 * 86_400, abs=1)


def test_an_id_that_was_given_to_another_worker_is_neither_approved_nor_paid(fake, service):
    task = published(service, places=9)
    (hit,) = fake.hits
    name = fake.accept(hit, "A1ANNA")
    assert sent(fake, hit, "A2BERT", "R2", assignment=name) == name
    values = {
        "task": task,
        "submission": name,
        "person": "A1ANNA",
        "message": "m",
        "amount": "1.00",
        "currency": "USD",
        "reason": "r",
    }
    for operation in ("approve", "reject", "reverse", "bonus"):
        with pytest.raises(Refused):
            service.do(Order(operation, operation, values))
    assert fake.assignments[name]["AssignmentStatus"] == "Submitted" and not fake.bonuses
    service.do(Order("approve", "a", values | {"person": "A2BERT"}))
    assert service.submission(name).state == APPROVED and service.submission(name).person == "A2BERT"


def test_what_was_accepted_and_not_sent_is_shown_to_nobody(fake, service):
    published(service, places=9)
    name = fake.accept(next(iter(fake.hits)), "A1ANNA")
    assert service.submission(name) is None
    with pytest.raises(Refused, match="shows no submission"):
        service.do(Order("approve", "a", {"submission": name, "person": "A1ANNA", "message": ""}))


def test_the_panel_refuses_a_form_without_a_second_field(fake, service):
    published(service, places=9)
    name = fake.accept(next(iter(fake.hits)), "A1ANNA")
    with pytest.raises(Wrong, match="not submitted correctly"):
        fake.submit({"assignmentId": name})


def test_approved_twice_or_by_the_panels_timer_is_approved(fake, service):
    published(service, places=9)
    hit = next(iter(fake.hits))
    once, timer = sent(fake, hit), sent(fake, hit, "A2BERT")
    fake.decide_itself(timer)
    for n in (1, 2):
        service.do(Order("approve", f"a{n}", {"submission": once, "person": "A1ANNA", "message": ""}))
    service.do(Order("approve", "b", {"submission": timer, "person": "A2BERT", "message": ""}))
    assert fake.calls["ApproveAssignment"] == 1
    with pytest.raises(Refused, match="approved already"):
        service.do(Order("reject", "c", {"submission": timer, "person": "A2BERT", "message": "No."}))


def test_a_rejection_has_its_words_and_can_be_taken_back(fake, service):
    published(service, places=9)
    name = sent(fake, next(iter(fake.hits)))
    values = {"submission": name, "person": "A1ANNA", "category": "work", "message": " "}
    with pytest.raises(Refused, match="without a message"):
        service.do(Order("reject", "a", values))
    service.do(Order("reject", "b", values | {"message": "Every answer was 1."}))
    assert (
        service.submission(name).state == REJECTED
        and fake.assignments[name]["RequesterFeedback"] == "Every answer was 1."
    )
    with pytest.raises(Refused, match="rejected already"):
        service.do(Order("approve", "c", values))
    service.do(Order("reverse", "d", values))
    assert service.submission(name).state == APPROVED


def test_two_bonuses_alike_are_two_and_each_is_found_by_its_own_mark(fake, service):
    published(service, places=9)
    name = sent(fake, next(iter(fake.hits)))
    values = {"submission": name, "person": "A1ANNA", "amount": "0.50", "currency": "USD", "reason": "Thank you."}
    for token in ("b1", "b2", "b1"):
        service.do(Order("bonus", token, values))
    assert [one["BonusAmount"] for one in fake.bonuses] == ["0.50", "0.50"]
    assert service.look(Order("bonus", "b2", values)) == {} and service.look(Order("bonus", "b3", values)) is None


def test_what_the_panel_does_not_list_yet_is_not_made_again(fake, service, monkeypatch):
    """Its lists lag: the token alone tells then, and nobody says that it was refused."""
    published(service, places=9)
    name = sent(fake, next(iter(fake.hits)))
    values = {"submission": name, "person": "A1ANNA", "amount": "0.50", "currency": "USD", "reason": "Thank you."}
    service.do(Order("bonus", "b1", values))
    monkeypatch.setattr(fake, "ListBonusPayments", lambda asked: {"BonusPayments": []})
    monkeypatch.setattr(fake, "ListHITs", lambda asked: {"HITs": []})
    for again in (Order("bonus", "b1", values), Order("publish", "p1", PUBLISHED | {"places": 9})):
        with pytest.raises(Unclear):
            service.do(again)
    assert len(fake.bonuses) == len(fake.hits) == 1


def test_what_the_panel_lists_is_not_made_again_when_it_has_forgotten_the_token(fake, service):
    published(service, places=9)
    values = {
        "submission": sent(fake, next(iter(fake.hits))),
        "person": "A1ANNA",
        "amount": "0.50",
        "currency": "USD",
        "reason": "r",
    }
    for _ in range(2):
        service.do(Order("bonus", "b1", values))
        published(service, places=9)
        fake.tokens.clear()
    assert len(fake.bonuses) == len(fake.hits) == 1


HEAD = '<?xml version="1.0"?>'
FORM = "<QuestionFormAnswers><Answer><QuestionIdentifier>{}</QuestionIdentifier><FreeText>{}</FreeText></Answer></QuestionFormAnswers>"


@pytest.mark.parametrize(
    ("answer", "receipt"),
    [
        (HEAD + FORM.format("receipt", " AB-1 "), "AB-1"),
        (HEAD + FORM.format("comment", "AB-1"), ""),
        (HEAD + '<!DOCTYPE a [<!ENTITY e "AB-1">]>' + FORM.format("receipt", "&e;"), ""),
        (
            (HEAD.replace("?>", ' encoding="UTF-16"?>') + "<!DOCTYPE a>" + FORM.format("receipt", "AB-1")).encode(
                "utf-16"
            ),
            "",
        ),
        ("", ""),
        ("no XML <", ""),
    ],
)
def test_a_receipt_is_read_and_a_document_type_is_refused(answer, receipt):
    assert receipt_in(answer) == receipt


# Where the orders go


def test_orders_go_to_the_panel_or_to_this_machine_and_environments_are_not_mixed(settings):
    live, sandbox = (
        "https://mturk-requester.us-east-1.amazonaws.com",
        "https://mturk-requester-sandbox.us-east-1.amazonaws.com",
    )
    for value, environment, wanted in (
        ("", "live", live), ("", "sandbox", sandbox), (live, "live", live), ("http://127.0.0.1:9", "sandbox", "http://127.0.0.1:9"),
    ):  # fmt: skip
        settings.MTURK_ENDPOINT_URL = value
        assert endpoint_of(environment) == wanted
    for value in (sandbox, "https://evil.example.org", "http://127.0.0.1@evil.example.org", "http://10.0.0.1"):
        settings.MTURK_ENDPOINT_URL = value
        with pytest.raises(Refused, match="MTURK_ENDPOINT_URL"):
            endpoint_of("live")


def test_without_the_package_it_is_said_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(Refused, match=r"pip install 'boto3>="):
        service_of()


def test_without_both_keys_there_is_no_service():
    for keys in ({}, {"key_id": "key"}, {"key_id": "key", "key": ""}):
        assert REGISTRY["mturk"].service(Recruitment(channel="mturk"), keys) is None


# Fees and files


def test_fees_of_nines_and_of_one_large_hit():
    (fee,) = fees_of(Decimal("1.25"), 100)
    assert fee.amount + 100 * Decimal("1.25") == Decimal("150.00") and fee.source
    assert (Decimal("1.25") + fee_of(Decimal("1.25"), 100)) * 100 == Decimal("175.00")
    assert len(hits_for(100)) == 12 and sum(hits_for(100)) == 100 and max(hits_for(100)) == 9
    assert fee_of(Decimal("0.03")) == Decimal("0.01") and fee_of(Decimal("0.12")) == Decimal("0.02")
    assert fee_of(Decimal("0.125") * 100) == Decimal("2.50") and fee_of(Decimal("1.00"), is_masters=True) == Decimal(
        "0.25"
    )


COLUMNS = "HITId,AssignmentId,WorkerId,AssignmentStatus,AcceptTime,SubmitTime,AutoApprovalTime,ApprovalTime,RejectionTime,Answer.receipt"
ROW = "H1,A9,A1ANNA,{},Tue May 05 11:52:41 PDT 2026,Tue Nov 10 12:02:41 PST 2026,2026-05-08T19:02:41Z,,,R1"


def test_an_exported_batch_is_read():
    one, other = read_batch(f"\ufeff{COLUMNS}\n{ROW.format('Submitted')}\n{ROW.format('NotReviewed')}\n")
    assert (one.task, one.submission, one.person, one.state, one.receipt) == ("H1", "A9", "A1ANNA", SUBMITTED, "R1")
    assert one.started_at == datetime(2026, 5, 5, 18, 52, 41, tzinfo=UTC)
    assert one.submitted_at == datetime(2026, 11, 10, 20, 2, 41, tzinfo=UTC)
    assert one.decides_itself_at == datetime(2026, 5, 8, 19, 2, 41, tzinfo=UTC) and one.decided_at is None
    assert (other.state, other.word) == (UNKNOWN, "NotReviewed")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "lacks the column HITId"),
        ("", "lacks the column HITId"),
        (f"{COLUMNS}\nH1,A9\n", "Row 2 has another number of cells"),
        (f"{COLUMNS}\n{ROW.format('Submitted').replace('A1ANNA', ' ')}\n", "Row 2: WorkerId is empty"),
        (
            f"{COLUMNS}\n{ROW.format('Submitted').replace('Tue May 05', 'Tue Foo 05')}\n",
            "Row 2: AcceptTime is no moment",
        ),
        (f'{COLUMNS}\n"H1"x,A9\n', "no CSV"),
    ],
)
def test_a_file_that_is_none_is_refused_with_row_and_column(text, words):
    with pytest.raises(ValueError, match=words):
        list(read_batch(text))
