"""A request that no page sends is answered in words, and the page stays open."""

from decimal import Decimal
from io import BytesIO
from urllib.parse import urlencode

import pytest
from django.test import RequestFactory
from django.test.client import encode_multipart

from annotators.models import PageVisit, Response
from tests.bad_input.annotators.assignments import at_questions, fresh, words_of
from tests.players import claimed

pytestmark = pytest.mark.postgres


FORM = "application/x-www-form-urlencoded"


def multipart(part: str) -> bytes:
    return f'--x\r\nContent-Disposition: form-data; name="s2.q1"{part}\r\n\r\n40\r\n--x--\r\n'.encode()


FORMS = {
    "nothing": (b"", FORM, 422, "4 answers are missing"),
    "one answer missing": (
        lambda good: urlencode(dict(list(good.items())[1:])).encode(),
        FORM,
        422,
        "One answer is missing",
    ),
    "1,001 fields more": (
        lambda good: urlencode(good | {f"f{n}": 1 for n in range(1001)}).encode(),
        FORM,
        422,
        "does not ask for f0",
    ),
    "too many fields": (
        lambda good: urlencode({f"f{n}": 1 for n in range(5001)}).encode(),
        FORM,
        400,
        "more than 5,000 fields",
    ),
    "too much": (b"s2.q1=" + b"4" * (2**20 + 1), FORM, 400, "larger than 1 MB"),
    "a megabyte in a number": (
        lambda good: urlencode(dict.fromkeys(good, "4" * 100_000)).encode(),
        FORM,
        422,
        "4 answers are missing",
    ),
    "a file": (
        multipart('; filename="a.png"'),
        "multipart/form-data; boundary=x",
        422,
        "You cannot send files on this page",
    ),
    "JSON": (b'{"s2.q1": "40"}', "application/json", 422, "4 answers are missing"),
    "compressed": (b"\x1f\x8b\x08\x00", FORM, 422, "4 answers are missing"),
    "no UTF-8": (b"s2.q1=\xff", FORM, 422, "4 answers are missing"),
    "cut off": (b"--x\r\nContent-Disp", "multipart/form-data; boundary=x", 422, "4 answers are missing"),
    "no boundary": (b"--x\r\n", "multipart/form-data", 400, "was not understood"),
    "UTF-16": (b"s2.q1=40", f"{FORM}; charset=utf-16", 400, "did not use the character set UTF-8"),
    "no character set": (
        multipart(""),
        "multipart/form-data; boundary=x; charset=rot13",
        400,
        "did not use the character set UTF-8",
    ),
}


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
        assert response.status_code == 400 and "before all data had arrived" in words_of(response)
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
    assert response.status_code == 400 and "did not use the character set UTF-8" in words_of(response)


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
