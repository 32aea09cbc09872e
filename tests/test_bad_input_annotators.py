"""What annotators, panels and broken browsers send: each case ends in words or in what was meant, nothing is lost or half written.

With the faults that a test of the application alone can bring about.
"""

from datetime import timedelta
from decimal import Decimal
from io import BytesIO
from urllib.parse import urlencode

import pytest
from django.core.cache import cache
from django.db import connection
from django.db.models import F, QuerySet
from django.dispatch import Signal
from django.test import Client, RequestFactory
from django.test.client import encode_multipart

from annotators import tasks
from annotators.models import Annotator, Assignment, Inquiry, PageVisit, Response
from annotators.models.identity import ids_of
from annotators.pages.forms import active_seconds, read_page
from annotators.pages.record import standing_of
from annotators.places import assign
from annotators.views import ends
from studies import signals
from studies.models import Batch, Job, Study
from studies.protocols import Ask, Page, Protocol
from studies.protocols.base.fields import ExposureChoice
from studies.protocols.base.scales import read_scale
from studies.services import lifecycle
from tests.builders import panel, spa_study
from tests.players import answered, claimed, form, open_page, plausible, submitted

pytestmark = pytest.mark.postgres

FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def study(db):
    return spa_study(target_n=4)


@pytest.fixture
def client():
    return Client(raise_request_exception=False)


def words_of(response) -> str:
    return " ".join(response.content.decode().replace("&#x27;", "'").split())


def fresh(assignment):
    return Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)


def at_questions(study, person="w"):
    """An assignment that looks at the SPA questions, their address, and a good answer to each."""
    assignment = submitted(study, person, until="s2.ask")
    return assignment, f"/p/{assignment.code}/s2.ask/", plausible(assignment)


def finished(assignment) -> Assignment:
    """Every page that is left, answered."""
    while (key := standing_of(fresh(assignment)).next_key) is not None:
        assert answered(assignment, key).sent is None
    return fresh(assignment)


# Links

LINKS = {
    "no id": ("", "not complete"),
    "empty": ("who=", "not complete"),
    "blank": ("who=%20", "not complete"),
    "zero width": ("who=%E2%80%8B", "not complete"),
    "twice": ("who=a&who=b", "not right"),
    "NUL": ("who=a%00b", "not right"),
    "line break": ("who=a%0D%0ASet-Cookie:x", "not right"),
    "surrogate": ("who=%ED%A0%80", "not right"),
    "no UTF-8": ("who=%FF", "not right"),
    "NUL in another": ("who=a&session=%00", "not right"),
    "another twice": ("who=a&x=1&x=2", "not right"),
    "1,000 characters": ("who=" + "x" * 1000, "longer than 200 characters"),
    "a placeholder": ("who={{person}}", "did not fill in your id"),
    "markup": ("who=<b>", "did not fill in your id"),
}


@pytest.mark.parametrize(("query", "said"), LINKS.values(), ids=LINKS)
def test_a_link_that_names_nobody_is_told_and_takes_no_place(study, client, query, said):
    address = f"/e/{panel(study).key}/?{query}"
    for response in (client.get(address), client.post(address, {"agree": "1", "start": "1"})):
        assert response.status_code == 200 and said in words_of(response)
    assert client.head(address).status_code == 200
    assert not Assignment.objects.exists() and not Annotator.objects.exists()


def test_the_panels_session_with_another_person_is_another_assignment_and_both_are_kept(study, client):
    door = panel(study)
    for person in ("anna", "bert"):
        client.post(f"/e/{door.key}/?who={person}&session=S1", {"agree": "1"})
    first, second = Assignment.objects.order_by("pk")
    assert first.annotator_id != second.annotator_id and first.batch_id != second.batch_id
    for assignment, person in ((first, "anna"), (second, "bert")):
        assert ids_of(assignment) == {"person": person, "session": "S1"}
        assert "cc=C1" in words_of(client.get(f"/p/{finished(assignment).code}/done/"))
    # Whoever comes with another person's id on a page of their own stays who they are.
    assert "Thank you" in words_of(client.get(f"/p/{first.code}/done/?who=bert"))


# A page's form as a whole


def multipart(part: str) -> bytes:
    return f'--x\r\nContent-Disposition: form-data; name="s2.q1"{part}\r\n\r\n40\r\n--x--\r\n'.encode()


FORMS = {
    "nothing": (b"", FORM, 422, "4 answers are missing"),
    "one answer missing": (lambda good: urlencode(dict(list(good.items())[1:])).encode(), FORM, 422, "One answer is missing"),
    "1,001 fields more": (lambda good: urlencode(good | {f"f{n}": 1 for n in range(1001)}).encode(), FORM, 422, "does not ask for f0"),
    "too many fields": (lambda good: urlencode({f"f{n}": 1 for n in range(5001)}).encode(), FORM, 400, "More than 5,000 fields"),
    "too much": (b"s2.q1=" + b"4" * (2**20 + 1), FORM, 400, "More than 1 MB"),
    "a megabyte in a number": (lambda good: urlencode(dict.fromkeys(good, "4" * 100_000)).encode(), FORM, 422, "4 answers are missing"),
    "a file": (multipart('; filename="a.png"'), "multipart/form-data; boundary=x", 422, "takes no files"),
    "JSON": (b'{"s2.q1": "40"}', "application/json", 422, "4 answers are missing"),
    "compressed": (b"\x1f\x8b\x08\x00", FORM, 422, "4 answers are missing"),
    "no UTF-8": (b"s2.q1=\xff", FORM, 422, "4 answers are missing"),
    "cut off": (b"--x\r\nContent-Disp", "multipart/form-data; boundary=x", 422, "4 answers are missing"),
    "no boundary": (b"--x\r\n", "multipart/form-data", 400, "was not understood"),
    "UTF-16": (b"s2.q1=40", f"{FORM}; charset=utf-16", 400, "another character set than UTF-8"),
    "no character set": (multipart(""), "multipart/form-data; boundary=x; charset=rot13", 400, "another character set than UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "content_type", "status", "said"), FORMS.values(), ids=FORMS)
def test_a_form_that_no_page_sends_is_answered_in_words_and_the_page_stays_open(
    study, client, settings, body, content_type, status, said
):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 2**20
    assignment, address, good = at_questions(study)
    sent = body(good) if callable(body) else body
    response = client.generic("POST", address, sent, content_type)
    assert (response.status_code, said in words_of(response)) == (status, True), words_of(response)[:500]
    assert not Response.objects.filter(assignment=assignment, slot__startswith="s2").exists()
    assert client.post(address, good).status_code == 302
    stored = Response.objects.filter(assignment=assignment, slot__startswith="s2")
    assert {row.slot: row.value for row in stored} == {slot: Decimal(value) for slot, value in good.items()}


def served(environ):
    """As a server makes the request: Django's own client makes it in another way."""
    from heval_site.wsgi import Application, Request

    application = Application()
    return application.get_response(Request(environ))


class ByPieces(BytesIO):
    """What arrives in several packets."""

    def read(self, size=-1):
        return super().read(min(size, 7))


@pytest.mark.parametrize("kind", [FORM, "multipart/form-data; boundary=x"])
@pytest.mark.parametrize("stream", [BytesIO, ByPieces])
def test_an_answer_that_was_cut_off_on_its_way_is_not_taken_for_a_shorter_one(study, kind, stream):
    assignment, address, good = at_questions(study)
    sent = urlencode(good).encode() if kind == FORM else encode_multipart("x", good)
    environ = RequestFactory().generic("POST", address, sent, kind).environ
    for missing in (1, len(sent) - 1):
        environ["wsgi.input"] = stream(sent[:-missing])
        response = served(environ)
        assert response.status_code == 400 and "before all of it had come" in words_of(response)
        assert not Response.objects.filter(assignment=assignment, slot__startswith="s2").exists()
    environ["wsgi.input"] = stream(sent)
    assert served(environ).status_code == 302


@pytest.mark.parametrize("charset", ["rot13", "undefined", "idna", "utf-16", "latin-1"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_character_set_that_is_another_is_refused_before_anything_is_read(charset, method):
    """As a server makes the request: Django reads the address's parameters meanwhile, where no error page would answer."""
    environ = RequestFactory().generic(method, "/e/some-key/?who=%C3%A4", b"agree=1", FORM).environ
    environ["CONTENT_TYPE"] = f"{FORM}; charset={charset}"
    response = served(environ)
    assert response.status_code == 400 and "another character set than UTF-8" in words_of(response)


METHODS = {
    "": ("post", "put", "patch", "delete", "options"), "s1/": ("put", "patch", "delete", "options"),
    "done/": ("post", "put", "delete"), "consent/": ("post", "put", "delete"), "withdraw/": ("put", "patch", "delete"),
    "question/": ("put", "patch", "delete"), "time/": ("get", "head", "put", "delete"), "another/": ("get", "head", "put", "delete"),
    "m/x": ("post", "put", "delete"),
}  # fmt: skip


@pytest.mark.parametrize("path", METHODS)
def test_a_method_that_an_address_does_not_have_changes_nothing(study, client, path):
    assignment = claimed(study, "w")
    for method in METHODS[path]:
        assert getattr(client, method)(f"/p/{assignment.code}/{path}").status_code == 405, method
    assert not PageVisit.objects.exists() and fresh(assignment).withdrawn_at is None


@pytest.mark.parametrize(
    "path", ["", "s1/", "start/", "done/", "consent/", "withdraw/", "question/", "nothing/", "m/x"]
)
def test_who_only_looks_for_a_head_writes_nothing(study, client, path):
    assignment = claimed(study, "w")
    assert client.head(f"/p/{assignment.code}/{path}").status_code in (200, 302, 404)
    assert not PageVisit.objects.exists() and fresh(assignment).started_at is None


@pytest.mark.parametrize("code", ["%00", "%ED%A0%80", "x" * 5000, "..", "٣", "{code}.", "{code})", "{CODE}"])
def test_a_code_that_is_none_finds_nothing(study, client, code):
    mine = claimed(study, "w").code
    address = f"/p/{code.format(code=mine, CODE=mine.swapcase())}/"
    for response in (client.get(address), client.post(f"{address}s1/", {"s1.q1": "yes"}), client.get(f"{address}m/x")):
        assert response.status_code == 404 and "nothing here" in words_of(response)


# One answer

OPTIONS = [{"key": "yes", "label": "Yes"}, {"key": "no", "label": "No"}]
FIELDS = {
    "percent": read_scale({"kind": "percent"}).field(),
    "likert": read_scale({"kind": "likert", "maximum": 5}).field(),
    "continuous": read_scale({"kind": "continuous", "minimum": 0, "maximum": 10}).field(),
    "number": read_scale({"kind": "number", "minimum": 0, "maximum": 10}).field(),
    "choice": read_scale({"kind": "choice", "options": OPTIONS}).field(),
    "exposure": ExposureChoice(exposures=(("A", 481), ("B", 977))),
    "acknowledgement": read_scale({"kind": "acknowledgement"}).field(),
    "box": read_scale({"kind": "multiple", "options": OPTIONS}).option_fields()[0][1],
    "text": read_scale({"kind": "text", "minimum_length": 3, "maximum_length": 2000}).field(),
}
# Spellings of 3 that are none, and what is no number at all.
NO_NUMBERS = [
    "-0", "-1", "101", "3.5", "3,5", "3e0", "3 4", "0_3", "0x3", "³", "NaN", "inf", "-inf", "1e309", "9" * 5000,
    "3\x00", "3\n", "\u200b3", "\ufeff3", "on", "null", "A",
]  # fmt: skip
# Spellings that a field for a number takes, and that are no key of a point.
SPELLINGS = ["3.0", "+3", "٣", "３", "\u00a03"]
REFUSED = {
    "percent": NO_NUMBERS,
    "likert": [*NO_NUMBERS, *SPELLINGS, "0", "6", "03", " 3"],
    "continuous": [*NO_NUMBERS, "11"],
    "number": [*NO_NUMBERS, "11"],
    "choice": ["maybe", "YES", " yes", "yes\x00", "Yes", "yes,no", "0"],
    "exposure": ["C", "a", "481", "AB", "A ", "\u0410"],
    "acknowledgement": ["0", "2", "on", "true", "1 ", "１"],
    "box": ["0", "2", "on", "true", "1 ", "１"],
    "text": [
        "x" * 2001, "😀" * 2001, "x" * 1_000_000, "ab", "a\x00bc", "a\ud800bc", "a\x1bbc", "a\x85bc", "   ", " \n\t", "\u200b" * 5, "\u3164" * 5,
        "\u0301" * 5,
    ],
}  # fmt: skip
TAKEN = {
    "percent": {"0": 0, "100": 100, " 40 ": 40, "03": 3, "40 %": 40} | dict.fromkeys(SPELLINGS, 3),
    "likert": {"1": 1, "5": 5},
    "continuous": {"0": 0, "10": 10} | dict.fromkeys(SPELLINGS, 3),
    "number": {"0": 0, "10": 10} | dict.fromkeys(SPELLINGS, 3),
    "choice": {"no": "no"},
    "exposure": {"B": 977},
    "acknowledgement": {"1": 1},
    "box": {"": 0, "1": 1},
    "text": {
        "x" * 2000: "x" * 2000,
        "😀" * 2000: "😀" * 2000,
        "\u202eabc\u202c": "\u202eabc\u202c",
        " abc\r\nd ": "abc\nd",
    },
}


def sent(kind, *values):
    """What is found in a page with one field."""
    asks = {"s1.q1": Ask(FIELDS[kind], 1)}
    return read_page(type("Step", (), {"protocol": Protocol(), "page": Page}), asks, form(**{"s1.q1": list(values)}))


@pytest.mark.parametrize(
    ("kind", "value"),
    [(kind, value) for kind, values in REFUSED.items() for value in values],
    ids=lambda value: ascii(value)[:24],
)
def test_what_is_not_an_answer_is_refused_at_its_field(kind, value):
    found = sent(kind, value)
    assert list(found.errors) == ["s1.q1"] and found.errors["s1.q1"].endswith((".", "allowed.")) and not found.values
    assert not found.general and found.typed["s1.q1"] == value  # it comes back to be corrected


@pytest.mark.parametrize("kind", FIELDS)
def test_two_answers_are_none_and_no_answer_is_told_where_one_is_needed(kind):
    good = next(value for value in TAKEN[kind] if value)
    for values in ([good, good], ["", good], [good, ""]):
        assert sent(kind, *values).errors == {"s1.q1": "Please give one answer only."}
    for values in ([], [""]):
        assert (list(sent(kind, *values).errors) == ["s1.q1"]) is FIELDS[kind].required


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [(kind, value, stored) for kind, values in TAKEN.items() for value, stored in values.items()],
    ids=lambda value: ascii(value)[:24],
)
def test_what_is_an_answer_is_taken_as_it_was_meant(kind, value, stored):
    found = sent(kind, value)
    assert found.is_valid and found.values == {"s1.q1": stored}


def test_a_text_that_may_be_left_out_and_cannot_be_seen_was_left_out():
    assert read_scale({"kind": "text"}).field(required=False).clean(" \u200b ") is None


@pytest.mark.parametrize("active", ["-1", "1.5", "1e309", "NaN", "٣", "9" * 5000, "", "-", "1\n", "0x9"])
def test_seconds_that_a_browser_cannot_have_counted_are_none(active):
    assert active_seconds(form(active=active)) == 0


def test_seconds_of_a_browser_are_at_most_a_day_and_may_be_absent(study, client):
    assert (active_seconds(form(active="999999")), active_seconds(form())) == (86_400, 0)
    assignment, address, good = at_questions(study)
    client.post(address, {"save": "auto", "active": "70"})
    client.post(address, good | {"active": "-5"})
    # Less than was counted before is no more believed than the rest.
    assert PageVisit.objects.get(assignment=assignment, key="s2.ask").active_seconds == 70


# Two tabs, and pages out of time


def test_a_tab_that_stayed_behind_overwrites_nothing_and_is_shown_what_is_stored(study, client):
    assignment, address, good = at_questions(study)
    assert client.post(address, good).status_code == 302
    other = {slot: str((int(value) + 1) % 101) for slot, value in good.items()}
    refused = client.post(address, other)
    assert refused.status_code == 409 and "Other answers are stored" in words_of(refused)
    # Neither does a draft of it, nor a page that is not yet due.
    assert client.post(address, other | {"save": "auto"}).status_code == 409
    early = client.post(f"/p/{assignment.code}/s4/", {"s4.q1": "words"})
    assert early.status_code == 409 and "not stored" in words_of(early) and ">words<" in early.content.decode()
    stored = Response.objects.filter(assignment=assignment, slot__startswith="s2")
    assert {row.slot: f"{row.value:.0f}" for row in stored} == good
    assert finished(assignment).submitted_at and Response.objects.filter(assignment=assignment).count() == 8


def test_the_answers_of_one_person_do_not_fit_the_page_of_another(study, client):
    """Same names of fields, another page key: each page stores under its own assignment and nowhere else."""
    mine, address, good = at_questions(study, "mine")
    theirs = claimed(study, "theirs")
    refused = client.post(f"/p/{theirs.code}/s2.ask/", good)
    assert refused.status_code == 409 and all(f">{value}<" in refused.content.decode() for value in good.values())
    assert not Response.objects.filter(slot__startswith="s2").exists()
    assert client.post(address, good).status_code == 302 and Response.objects.filter(assignment=mine).count() == 5


# The inbox

INQUIRIES = {
    "nothing": ("", "a few words"), "blanks": (" \n", "a few words"), "zero width": ("\u200b\u200d", "a few words"),
    "NUL": ("a\x00b", "NUL character"), "control character": ("a\x07b", "control character"), "too long": ("x" * 2001, "at most 2000"),
    "a megabyte": ("x" * 1_000_000, "at most 2000"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), INQUIRIES.values(), ids=INQUIRIES)
def test_a_question_that_cannot_be_sent_says_why(study, client, text, said):
    address = f"/p/{claimed(study).code}/question/?page=s1"
    response = client.post(address, {"kind": "report", "text": text})
    assert response.status_code == 422 and said in words_of(response) and not Inquiry.objects.exists()


def test_one_person_does_not_fill_the_inbox(study, client, monkeypatch):
    monkeypatch.setattr(ends, "MOST_INQUIRIES", 2)
    one, other = claimed(study), claimed(study)
    sent = [client.post(f"/p/{one.code}/question/", {"text": f"Hello {n}"}) for n in range(3)]
    assert [response.status_code for response in sent] == [200, 200, 422]
    assert "2 messages" in words_of(sent[-1]) and "Hello 2" in sent[-1].content.decode(), (
        "what was typed is there still"
    )
    assert client.post(f"/p/{other.code}/question/", {"text": "Hello"}).status_code == 200
    assert Inquiry.objects.count() == 3


@pytest.mark.parametrize("page", ["%00", "x" * 1000, "%ED%A0%80", "<b>"])
def test_a_question_from_a_page_that_is_none_arrives(study, client, page):
    response = client.post(f"/p/{claimed(study).code}/question/?page={page}", {"kind": "nonsense", "text": "Hello"})
    assert response.status_code == 200 and Inquiry.objects.get().kind == "question"
    refused = client.post(f"/p/{claimed(study).code}/time/?page={page}", {"s1.q1": "yes"})
    assert refused.status_code == 409 and "no such page" in words_of(refused) and ">yes<" in refused.content.decode()


# Faults: the study, the clock, the disk and the broker


def test_a_pause_lets_those_inside_finish_and_turns_others_away_in_words(study, client):
    door, (inside, _, _) = panel(study), at_questions(study)
    lifecycle.pause(study, by=None)
    for response in (client.get(f"/e/{door.key}/?who=new"), client.post(f"/e/{door.key}/?who=new", {"agree": "1"})):
        assert "paused" in words_of(response)
    assert finished(inside).submitted_at and not fresh(inside).is_late
    assert Assignment.objects.count() == 1


def test_after_the_grace_period_work_is_kept_as_late_and_the_code_is_given(study, client):
    in_time, late = (at_questions(study, person)[0] for person in ("in time", "late"))
    lifecycle.close(study, by=None)
    assert tasks.end_grace_periods() == 0
    assert not finished(in_time).is_late
    hours = timedelta(hours=3)
    QuerySet(Study).filter(pk=study.pk).update(launched_at=F("launched_at") - hours, closing_at=F("closing_at") - hours)
    assert tasks.end_grace_periods() == 1
    late = finished(late)
    assert late.submitted_at and late.is_late and late.released_reason == "expired"
    assert Response.objects.filter(assignment=late).count() == 8
    assert "marked as late" in words_of(client.get(f"/p/{late.code}/done/"))
    assert assign.miscounted_batches() == [] and Batch.objects.filter(study=study, claimed=1).count() == 1


JUMPS = [timedelta(hours=1), timedelta(hours=-1), timedelta(days=3), timedelta(days=-3)]


@pytest.mark.parametrize("jump", JUMPS, ids=str)
def test_a_clock_that_jumps_loses_no_answer_and_makes_no_negative_time(study, client, jump):
    """Every time that is stored lies where it would lie had the clock jumped since."""
    assignment, address, good = at_questions(study)
    for model, columns in (
        (PageVisit, ["shown_at", "recorded_at"]), (Assignment, ["claimed_at", "started_at", "reserved_until"]),
        (Study, ["launched_at"]),
    ):  # fmt: skip
        QuerySet(model).update(**{column: F(column) - jump for column in columns})
    assert client.post(address, good).status_code == 302
    assignment = finished(assignment)
    assert assignment.submitted_at >= assignment.started_at and not assignment.is_late
    assert all(visit.recorded_at >= visit.shown_at for visit in PageVisit.objects.filter(assignment=assignment))
    lifecycle.close(study, by=None)
    lifecycle.finish(study, by=None)
    study.refresh_from_db()
    assert study.launched_at <= study.closing_at <= study.closed_at


def test_a_clock_that_ran_ahead_while_places_were_swept_costs_nobody_the_place(study):
    people = [at_questions(study, person)[0] for person in "abc"]
    Assignment.objects.update(reserved_until=F("reserved_until") - timedelta(days=3))
    assert assign.sweep() == 3
    assert not any(finished(assignment).is_late for assignment in people)
    assert assign.miscounted_batches() == [] and Batch.objects.filter(study=study, claimed=1).count() == 3


@pytest.fixture
def crowd(db):
    """Twelve people inside, all of whose places have run out."""
    study = spa_study(target_n=60, prompts=8)
    for number in range(12):
        claimed(study, f"w{number}")
    run_out(Assignment.objects.all())
    yield study
    cache.delete(assign.FIRST_LOOK_KEY)


def run_out(assignments):
    assignments.update(reserved_until=F("reserved_until") - timedelta(days=3))


def first_look_was_before(seconds):
    cache.set(assign.FIRST_LOOK_KEY, cache.get(assign.FIRST_LOOK_KEY) - seconds)


def test_places_that_run_out_all_together_wait_for_a_second_look(crowd, caplog):
    assert assign.sweep() == 0 and "12 of 12 places ran out together" in caplog.text
    first_look_was_before(assign.SECOND_LOOK_AFTER - 60)
    assert assign.sweep() == 0
    first_look_was_before(61)
    assert assign.sweep() == 12 and assign.miscounted_batches() == []


def test_a_clock_that_is_set_back_before_the_second_look_costs_nobody_a_place(crowd):
    assert assign.sweep() == 0
    Assignment.objects.update(reserved_until=F("reserved_until") + timedelta(days=3))
    assert assign.sweep() == 0 and cache.get(assign.FIRST_LOOK_KEY) is None
    run_out(Assignment.objects.all())
    assert assign.sweep() == 0


@pytest.mark.parametrize("seconds", [-7 * 24 * 3600, assign.FIRST_LOOK_HOLDS + 1])
def test_a_first_look_of_another_time_is_none(crowd, seconds):
    assert assign.sweep() == 0
    first_look_was_before(seconds)
    assert assign.sweep() == 0 and assign.sweep() == 0


def test_a_small_share_of_many_and_places_of_a_closed_study_go_at_once(crowd):
    Assignment.objects.update(reserved_until=F("reserved_until") + timedelta(days=3))
    for number in range(12, 60):
        claimed(crowd, f"w{number}")
    run_out(Assignment.objects.filter(pk__in=list(Assignment.objects.values_list("pk", flat=True)[:11])))
    assert assign.sweep() == 11
    run_out(Assignment.objects.all())
    assert assign.sweep() == 0
    lifecycle.close(crowd, by=None)
    lifecycle.finish(crowd, by=None)
    assert assign.sweep() == 49


@pytest.mark.django_db(transaction=True)
@pytest.mark.only_on("sqlite")  # it can be told how large its file may be
def test_a_full_disk_is_told_and_heals_and_leaves_nothing_half_written(client):
    assignment = submitted(spa_study(target_n=1), "w", until="s4")
    open_page(assignment)
    address, words = f"/p/{assignment.code}/s4/", {"s4.q1": "😀" * 2000}
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA max_page_count")
        (allowed,) = cursor.fetchone()
        # What is free within the file would still take the answer.
        cursor.execute("VACUUM")
        cursor.execute("PRAGMA max_page_count = 1")  # SQLite makes of it the size that the file has
        try:
            response = client.post(address, words)
        finally:
            cursor.execute(f"PRAGMA max_page_count = {allowed}")
    assert response.status_code == 503 and "not saved yet" in words_of(response) and response["Retry-After"]
    assert fresh(assignment).submitted_at is None
    assert PageVisit.objects.get(assignment=assignment, key="s4").recorded_at is None
    assert not Response.objects.filter(assignment=assignment, slot="s4.q1").exists()
    assert client.post(address, words).status_code == 302
    assert fresh(assignment).submitted_at and Response.objects.get(slot="s4.q1").text == words["s4.q1"]


def test_no_annotator_ever_waits_for_a_broker(study, client, monkeypatch, django_capture_on_commit_callbacks):
    def broken(**kwargs):
        raise AssertionError("the broker was asked")

    monkeypatch.setattr(signals, "jobs_waiting", Signal())
    signals.jobs_waiting.connect(broken)
    with django_capture_on_commit_callbacks(execute=True):
        client.post(f"/e/{panel(study).key}/?who=a", {"agree": "1"})
        assignment = finished(Assignment.objects.get())
        client.get(f"/p/{assignment.code}/done/")
        client.post(f"/p/{assignment.code}/withdraw/", {"leave": "1"})
    assert fresh(assignment).withdrawn_at and not Job.objects.exists()
