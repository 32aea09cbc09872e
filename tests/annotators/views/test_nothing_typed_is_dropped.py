"""No answer to a POST of answers drops what was typed: it is stored, or the page that comes back shows it again with the reason.

Every state of an assignment, every page, every body and every way to send it. Bodies that are refused unread are the exception.
"""

from collections import Counter

import pytest
from django.db import OperationalError, transaction
from django.test import Client, RequestFactory

from annotators.models import Assignment, Inquiry
from annotators.pages import record
from annotators.pages.form_data import CONTROL_NAMES, SKIP_SUFFIX
from annotators.pages.record import PageNotStored
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.views import pages as page_views
from annotators.views import urls
from heval_site import middleware
from studies.protocols import REGISTRY
from tests import ROOT
from tests.annotators.views.cells import BODIES, STATES, at_work, cells, snapshot, study_of, walk_through
from tests.annotators.views.kept import WORDS, Shown, assert_kept, not_shown, plain, raw_missing
from tests.builders import launched, recruitment
from tests.players import claimed, sent_from
from tests.robots import Page as Forms
from tests.samples import sample_draft

pytestmark = pytest.mark.django_db
FEW_BODIES = ("valid", "strange names")
# In these every body, beside "at work".
FULL_STATES = ("withdrawn", "closed, and that is over")


@pytest.fixture
def refusals(monkeypatch) -> Counter:
    """How often each reason was met."""
    met: Counter = Counter()
    original = page_views._not_stored_response

    def counted(request, code, key, refusal):
        met[type(refusal)] += 1
        return original(request, code, key, refusal)

    monkeypatch.setattr(page_views, "_not_stored_response", counted)
    return met


def all_below(cls) -> set[type]:
    return (
        {cls, *(below for one in cls.__subclasses__() for below in all_below(one))} if cls.__subclasses__() else {cls}
    )


@pytest.mark.slow
def test_whatever_is_sent_in_whatever_state_is_stored_or_shown_again(refusals):
    came = walk_through(cells(FEW_BODIES), refusals)
    assert sum(came.values()) > 800 and {outcome for outcome, _ in came} == {"stored", "shown"}
    assert {status for _, status in came} == {200, 302, 409, 422}


@pytest.mark.slow
@pytest.mark.parametrize("state", FULL_STATES)
def test_bodies_of_every_kind_are_stored_or_shown_again(state, refusals):
    came = walk_through(
        cells([body for body in BODIES if body not in FEW_BODIES], [state], ["send", "more time"]), refusals
    )
    assert sum(came.values()) >= 100


@pytest.mark.slow
def test_every_body_in_every_state_is_stored_or_shown_again(refusals):
    assert sum(walk_through(cells(BODIES), refusals).values()) > 5_000
    assert set(refusals) == all_below(PageNotStored) - {PageNotStored}


@pytest.mark.slow
def test_every_reason_for_which_answers_are_not_stored_has_its_words_and_its_case(refusals):
    wanted = {"at work": BODIES, "submitted": ["valid"]}
    for state, bodies in wanted.items():
        walk_through(cells(bodies, [state]), refusals)
    reasons = all_below(PageNotStored) - {PageNotStored}
    assert len(reasons) >= 5 and set(refusals) == reasons
    assert set(page_views.NOT_STORED_MESSAGES) | {record.ConflictingAnswers, record.AssignmentClosed} == reasons


# Every protocol


def filled(page: str) -> dict[str, str]:
    """Every field of a page filled in, with the last that is offered."""
    form = next(form for form in Forms(page).forms if "go" in dict(form.buttons))
    data = {}
    for name, values in form.fields.items():
        kind = form.kinds[name]
        if name in CONTROL_NAMES or kind == "hidden" or name.endswith(SKIP_SUFFIX):
            continue
        values = [value for value in values if value]
        if values or kind in ("text", "textarea"):
            data[name] = {"textarea": WORDS, "text": "77"}.get(kind) or values[-1]
    return data


def broken(*args, **kwargs):
    raise OperationalError("the connection is lost")


def faulty(*args, **kwargs):
    raise RuntimeError("a fault of ours")


@pytest.mark.parametrize("slug", sorted(REGISTRY))
def test_each_field_of_each_protocol_is_shown_again(slug, monkeypatch):
    study = launched(sample_draft(slug, 3, 1))
    client = Client(raise_request_exception=False)
    assignment = claimed(study, "w", recruitment(study))
    path, pages = client.get(f"/p/{assignment.code}/")["Location"], 0
    while True:
        page = client.get(path).content.decode()
        if (valid := sent_from(path)) is None:
            break
        key, everything = path.split("/")[3], filled(page)
        fresh = Assignment.objects.select_related("study").get(pk=assignment.pk)
        if everything:
            pages += 1
            point = transaction.savepoint()
            withdraw_annotator_and_erase_texts(fresh)
            assert assert_kept(client.post(path, everything), fresh, key, everything, (path, "left")) == "shown"
            transaction.savepoint_rollback(point)
            strange = everything | {"of.another.page": WORDS}
            assert assert_kept(client.post(path, strange), fresh, key, strange, (path, "strange")) == "shown"
            for fault, status in ((broken, 503), (faulty, 500)):
                with monkeypatch.context() as patched:
                    patched.setattr(page_views, "record_page_answers", fault)
                    response = client.post(path, everything)
                assert response.status_code == status and not raw_missing(response, everything)
                assert Shown(response.content.decode()).again == set(everything.items()), "it can be sent again"
        following = client.post(path, valid)
        assert following.status_code == 302
        if everything and {name: value for name, value in valid.items() if name != "go"} != everything:
            assert assert_kept(client.post(path, everything), fresh, key, everything, (path, "otherwise")) == "shown"
        path = following["Location"]
    assert pages


DATA = {"s1.q1": "40", "s1.q2": WORDS}


@pytest.mark.parametrize("path", ["/p/nobody/s1/", "/p/nobody/time/?page=s1", "/p/x/s1/more/", "/p/%00/s1/"])
def test_an_address_that_is_none_shows_what_was_sent_to_it(path):
    response = Client().post(path, DATA)
    assert response.status_code == 404 and not raw_missing(response, DATA)
    assert "What you sent" not in Client().get(path.partition("?")[0]).content.decode()


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "templates").glob("[45]*.html")))
def test_every_page_about_a_fault_shows_what_an_annotator_sent_and_nothing_of_anybody_else(name):
    shown = middleware.error_response(RequestFactory().post("/p/some-code/s1/", DATA), int(name), title="A fault")
    assert not raw_missing(shown, DATA)
    other = middleware.error_response(RequestFactory().post("/admin/login/", DATA), int(name), title="A fault")
    assert "marks" not in other.content.decode()


UNREAD = {
    "too many fields": (lambda: "&".join(f"f{n}=1" for n in range(5_001)), "application/x-www-form-urlencoded"),
    "too many bytes": (lambda: "s1.q2=" + "x" * (2**20 + 1), "application/x-www-form-urlencoded"),
    "not a form": (lambda: "--x\r\n", "multipart/form-data"),
    "the character set": (lambda: "s1.q1=40", "application/x-www-form-urlencoded; charset=utf-16"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_is_refused_unread_says_so(name, settings):
    """The exception: nobody knows what was typed. A page of ours sends nothing of the kind."""
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 2**20
    cell = at_work(study_of())
    body, kind = UNREAD[name]
    before = snapshot(cell.assignment)
    response = Client().generic("POST", f"/p/{cell.assignment.code}/s2/", body(), kind)
    assert response.status_code == 400 and Shown(response.content.decode()).reasons
    assert snapshot(cell.assignment) == before


# The addresses


ANSWERS = {"annotation_page", "extend_or_revive_place_and_save_draft"}
# What somebody writes that is not an answer: each is in the test below.
OTHER_WORDS = {"inquiry_page", "appeal_page"}
# A press of a button, and nothing typed.
NOTHING_TYPED = {"withdrawal_page", "start_another_part"}


def test_every_address_of_an_assignment_that_takes_a_form_is_known_here():
    cell = at_work(study_of())
    takes = set()
    for one in urls.assignment_urlpatterns:
        point = transaction.savepoint()
        path = str(one.pattern).replace("<str:key>", "s2").replace("<str:name>", "x")
        if Client().post(f"/p/{cell.assignment.code}/{path}", {"text": "Hello"}).status_code != 405:
            takes.add(one.callback.__name__)
        transaction.savepoint_rollback(point)
    assert takes == ANSWERS | OTHER_WORDS | NOTHING_TYPED


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", sorted(OTHER_WORDS))
def test_other_words_are_stored_or_shown_again(name, state):
    cell = at_work(study_of())
    STATES[state](cell.assignment)
    path = next(str(one.pattern) for one in urls.assignment_urlpatterns if one.callback.__name__ == name)
    response = Client().post(f"/p/{cell.assignment.code}/{path}", {"text": WORDS, "kind": "question"})
    stored = [plain(one.text) for one in Inquiry.objects.filter(assignment=cell.assignment)]
    assert plain(WORDS) in stored or not not_shown(response, {}, {("text", WORDS)}), response.content.decode()
