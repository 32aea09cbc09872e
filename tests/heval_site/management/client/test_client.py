"""The Python client: from the outputs of two systems to a launched study with a link, and to its verdict."""

import ast
import asyncio
import csv
import inspect
import json
import sys

import httpx
import pandas
import pytest

from analysis.api.tokens import create_token
from heval_site.management import client
from heval_site.management.client import (
    AsyncSite,
    AsyncStudy,
    NotReachable,
    Refused,
    Site,
    TimedOut,
    WrongUse,
    operations,
)
from heval_site.management.client.http import AsyncConnection, checked_address
from heval_site.management.client.tables import as_upload
from studies.models import Study
from studies.services import jobs, lifecycle
from tests import ROOT
from tests.builders import user
from tests.in_process import FACTS, person_choosing, site_of, through_django

pytestmark = pytest.mark.django_db
PACKAGE = ROOT / "heval_site" / "management" / "client"


@pytest.fixture
def olga():
    return user("olga")


def rows(name, n=12):
    return [{"prompt": f"Question {i}?", "output": f"The {name} answer {i}."} for i in range(n)]


def new_study(site, outputs=None, **changes):
    options = {
        "ask": "two_choice",
        "criterion": "overall",
        "m": 4,
        "people": 10,
        "minutes": 5,
        "reward": "1.00",
        "facts": FACTS,
        "public_title": "Comparing answers",
    }
    return site.create("A checkpoint", outputs or {"new": rows("new"), "old": rows("old")}, **(options | changes))


def test_from_outputs_to_a_link_and_a_verdict(olga):
    site = site_of(olga)
    study = new_study(site, {name: rows(name, 20) for name in ("new", "old")}, people=20)
    checklist = study.check()
    assert not checklist.missing
    assert study.launch(acknowledged=checklist.warnings)["state"] == "launched"
    link = study.link()
    assert (link.state, link.missing) == ("open", ()) and str(link).endswith(f"/e/{link.key}/")
    assert study.links() == [link]
    stored = Study.objects.get(code=study.code)
    for n in range(20):
        person_choosing(stored, n, "new")
    assert study.wait("target", timeout=5)["counted"] == 20
    waited = study.claim("new beats old")
    assert waited.verdict == "open" and not waited.holds and "no analysis" in waited.sentence
    assert study.close("Enough.")["state"] == "closing"
    lifecycle.end_grace_period(Study.objects.get(code=study.code), by=None)
    assert study.wait(timeout=5)["state"] == "closed"
    assert study.analyse(resamples=199)["number"] == 1
    verdict = study.claim("new beats old")
    assert verdict.holds, str(verdict)
    assert verdict.analysis == 1 and "new" in verdict.sentence
    assert [one.claim for one in study.verdicts()] == [verdict.claim]
    assert not study.claim("old beats new").holds
    with pytest.raises(Refused, match="No planned comparison") as refused:
        study.claim("new beats everything")
    assert refused.value.status == 400 and refused.value.errors[0].field == "claim"
    # The answers have the columns of the exports.
    header = next(csv.reader(study.export("responses.csv").decode().splitlines()))
    answers, frame = study.answers(), study.frame()
    assert list(frame.columns) == header and list(answers[0]) == header and len(frame) == len(answers) > 0
    assert study.export("archive.zip")[:2] == b"PK"
    with pytest.raises(WrongUse, match="no export"):
        study.export("../../tokens")


def test_a_study_has_no_answers_yet_and_its_frame_has_columns(olga):
    study = new_study(site_of(olga))
    study.launch()
    with pytest.raises(Refused) as refused:
        study.frame()
    assert refused.value.status == 403
    study.outcomes("The board asked.")
    assert study.answers() == []
    assert study.frame().empty and "system" in study.frame().columns
    cut = httpx.Response(200, content=b'{"system": "new"}\n')
    with pytest.raises(NotReachable, match="only in part"):
        site_of(olga, send=lambda request: cut).run(operations.answers(study.code))


def test_acts_on_a_whole_study(olga):
    site = site_of(olga)
    study = new_study(site)
    with pytest.raises(WrongUse, match="is a draft"):
        study.wait()
    study.launch()
    assert study.pause()["state"] == "paused"
    with pytest.raises(Refused, match="paused") as refused:
        study.pause()
    assert refused.value.status == 409
    assert study.resume()["state"] == "launched"
    assert study.places(2)["opened_batches"] >= 2
    assert study.outcomes("The board asked.")["unblinded_at"]
    copy = study.clone("Again")
    assert copy.status()["title"] == "Again" and site.study("Again").code == copy.code
    assert site.study(study.code[:13]).code == study.code
    for name, words in (("nothing", "There is no study"), ("", "There is no study")):
        with pytest.raises(WrongUse, match=words):
            site.study(name)
    assert copy.delete()["outcome"] in ("deleted", "archived")
    assert [one["code"] for one in site.studies()] == [study.code]


def test_a_study_that_is_refused_leaves_nothing(olga):
    site = site_of(olga)
    with pytest.raises(Refused) as refused:
        new_study(site, criterion="no such criterion")
    assert refused.value.status == 400 and "criterion" in {fault.field for fault in refused.value.errors}
    with pytest.raises(Refused) as refused:
        new_study(site, {"new": rows("new"), "old": [{"prompt": "Question 1?", "output": "a\x00b"}]})
    assert refused.value.errors[0].row == 13 and "row 13" in str(refused.value)
    with pytest.raises(Refused) as refused:
        new_study(site, colour="red")
    assert refused.value.errors[0].field == "colour"
    # The log keeps that outputs were imported, so such a draft is archived instead of deleted.
    assert not Study.objects.filter(archived_at=None).exists() and Study.objects.count() == 1


def test_a_template_and_a_bundle_make_a_study(olga):
    site = site_of(olga)
    template = site.get("templates/")[0]["key"]
    assert site.create(template=template, title="Of a template").status()["title"] == "Of a template"
    study = new_study(site)
    bundle = site.get(f"studies/{study.code}/bundle/")
    assert site.create(bundle=bundle, people=7).status()["target_n"] == 7


def as_csv(table):
    return "prompt,output\n" + "".join(f"{one['prompt']},{one['output']}\n" for one in table)


def as_lines(table):
    return "".join(json.dumps(one) + "\n" for one in table)


def test_outputs_come_as_files_rows_and_data_frames(tmp_path):
    wanted = as_upload({"new": rows("new"), "old": rows("old")})
    for suffix, text in (("jsonl", as_lines), ("csv", as_csv), ("json", json.dumps)):
        for name in ("new", "old"):
            (tmp_path / f"{name}.{suffix}").write_text(text(rows(name)))
        assert as_upload({name: tmp_path / f"{name}.{suffix}" for name in ("new", "old")}) == wanted
    frames = {name: pandas.DataFrame(rows(name)) for name in ("new", "old")}
    assert as_upload(frames) == wanted
    assert as_upload({name: as_lines(rows(name)).encode() for name in ("new", "old")}) == wanted
    assert as_upload(tmp_path / "new.csv") == ("new.csv", as_csv(rows("new")).encode())
    assert as_upload(b"prompt,output\n")[0] == "outputs.csv"
    missing = pandas.DataFrame([{"prompt": "a", "output": None}])
    assert b'"output": null' in as_upload({"new": missing})[1]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("nothing.jsonl", "cannot be read"),
        (b'{"prompt": "a"}\n{"prompt"', "new, line 2: this is not JSON"),
        (b"[1]", "is not an object"),
        (b"\xff\xfe", "not UTF-8"),
        (b"PK\x03\x04", "a zip or a workbook"),
        (b"prompt,output\n", "has no rows"),
        (["a text"], "row 1: this is not a dict"),
        ([{"prompt": "a", "output": object()}], "JSON cannot hold"),
    ],
)
def test_outputs_that_cannot_be_sent(table, words):
    with pytest.raises(WrongUse, match=words):
        as_upload({"new": table})


def test_a_request_is_repeated_with_its_key_while_the_site_is_not_reachable(olga):
    seen, waits = [], []

    def send(request):
        seen.append(request.headers.get("Idempotency-Key"))
        if len(seen) == 1:
            raise httpx.ConnectError("Connection refused", request=request)
        if len(seen) < 4:
            return httpx.Response(503, headers={"Retry-After": "9"}, content=b"")
        return through_django(request)

    study = site_of(olga, sleep=waits.append, send=send).create("A checkpoint")
    assert Study.objects.get().code.hex == study.code.replace("-", "")
    assert waits == [2, 9, 9] and len(set(seen)) == 1 and len(seen[0]) == 32

    def never(request):
        raise httpx.ConnectError("Connection refused", request=request)

    with pytest.raises(NotReachable, match="cannot be reached: Connection refused. Check") as refused:
        site_of(olga, sleep=waits.append, send=never).create("A checkpoint")
    assert "ConnectError" not in str(refused.value)
    limited = httpx.Response(429, headers={"Retry-After": "3600"}, content=b'{"detail": "Too many today."}')
    with pytest.raises(Refused, match="Too many today"):
        site_of(olga, send=lambda request: limited).studies()
    with pytest.raises(Refused, match="without JSON"):
        site_of(olga, send=lambda request: httpx.Response(404, content=b"<html>")).studies()


def test_waiting_ends_in_time_and_goes_on_while_the_site_is_away(olga):
    study = new_study(site_of(olga))
    study.launch()
    with pytest.raises(TimedOut, match="launched: 0 of 10 people"):
        study.wait(timeout=0.01)
    with pytest.raises(WrongUse, match="closed or target"):
        study.wait("evening")
    away = httpx.Response(503, content=b"")
    with pytest.raises(TimedOut, match="503"):
        site_of(olga, sleep=lambda seconds: None, send=lambda request: away).run(
            operations.wait(study.code, timeout=0.01)
        )


def test_a_job_that_fails_or_lasts_is_named(olga):
    study = new_study(site_of(olga, sleep=lambda seconds: None))
    with pytest.raises(TimedOut, match="job launch has not ended"):
        study.launch(timeout=0.01)
    failing = {"code": "1", "kind": "launch", "state": "failed", "error": "The draft changed.", "doing": ""}
    with pytest.raises(Refused, match="The draft changed"):
        study.site.run(operations.finish_job(study.code, failing))


def test_all_pages_of_a_list_are_read(olga):
    site = site_of(olga)
    for n in range(5):
        site.create(f"Study {n}")
    assert len(site.run(operations.rows_of("studies/", page_size=2))) == 5


@pytest.mark.parametrize("address", ["eval", "ftp://eval.example.org", "http://eval.example.org", "http://[", ""])
def test_a_token_goes_to_no_other_address(address):
    with pytest.raises(WrongUse):
        checked_address(address)


@pytest.mark.parametrize("token", ["", "two words", "ü"])
def test_a_token_is_needed(token, monkeypatch):
    monkeypatch.setenv("HEVAL_TOKEN", token)
    with pytest.raises(WrongUse, match="token"):
        Site("https://eval.example.org")


class AsyncTransport(httpx.AsyncBaseTransport):
    """Requests that ask the database in this thread, where the test's transaction is."""

    async def handle_async_request(self, request):
        await request.aread()
        return through_django(request)


@pytest.mark.django_db(transaction=True)
def test_the_same_for_asyncio(olga, monkeypatch):
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    token = create_token(olga, "test", scope="write")[1]

    async def sleep(seconds):
        jobs.run_waiting_jobs()

    async def steps():
        connection = AsyncConnection("http://localhost", token, transport=AsyncTransport(), sleep=sleep)
        study = await new_study(AsyncSite("http://localhost", connection=connection))
        await study.launch((await study.check()).warnings)
        return (await study.link()).state, (await study.claim("new beats old")).verdict

    assert asyncio.run(steps()) == ("open", "open")


def test_sync_and_async_have_the_same_methods():
    for one, other in ((Site, AsyncSite), (client.Study, AsyncStudy)):
        names = {name for name in vars(one) if not name.startswith("_")}
        assert names == {name for name in vars(other) if not name.startswith("_")}
        for name in names:
            taken = [set(inspect.signature(getattr(kind, name)).parameters) - {"path"} for kind in (one, other)]
            assert taken[0] == taken[1], name


def test_the_client_needs_no_heval_and_one_module_knows_the_network():
    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in (one.partition(".")[0] for one in names):
                allowed = name in sys.stdlib_module_names or (path.name, name) in {
                    ("http.py", "httpx"),
                    ("mcp.py", "mcp"),
                    ("site.py", "pandas"),
                }
                assert allowed, f"{path.name} imports {name}"
