"""The lines of links, their pay and panel, and of what is done while a study collects."""

from unittest import mock

from django.core.files.uploadedfile import SimpleUploadedFile

from analysis.models import IdempotentRequest
from annotators.models import PanelOrder
from tests import builders
from tests.analysis.api.rest import api_of
from tests.messages.lines import At, only_informs
from tests.messages.rest.scenarios import draft, launched, patched, posts, reads, shown


def of_link(method, path, body=None, *, channel="open_link", make=launched, before=None, **columns):
    """What the owner's token gets from an address of a link."""

    def scenario():
        link = builders.recruitment(make(), channel, **columns)
        number = before(link).pk if before else ""
        address = f"studies/{link.study.code}/links/{link.key}/{path.format(number)}"
        return shown(api_of(link.study.owner).send(method, address, body))

    return scenario


def sent_order(link):
    return PanelOrder.objects.create(
        recruitment=link, operation="stop", token="one", state="waiting", sent_at="2026-11-01T00:00Z"
    )


def sent_file():
    link = builders.recruitment(launched())
    api, sent = api_of(link.study.owner), {"file": SimpleUploadedFile("a.csv", b"a")}
    return shown(
        api.client.post(f"/api/v1/studies/{link.study.code}/links/{link.key}/panel/file/", sent, headers=api.headers)
    )


def unread():
    """A launched study whose launch is asked for again, and one that is resumed without a pause."""
    study = launched()
    return shown(api_of(study.owner).post(f"studies/{study.code}/resume/", {}))


def damaged():
    """A test run of a draft with a damaged question."""
    fault = ValueError("The scale of a question is damaged. Correct it.")
    with mock.patch("analysis.api.collecting.start_test_run", side_effect=fault):
        return posts("test-runs/", {})()


def without_scope():
    study = draft()
    return shown(api_of(study.owner, scope="write").get(f"studies/{study.code}/inquiries/"))


def repeated(first, second=None, answered=True):
    """What a request gets that is sent again with its Idempotency-Key: with another body, or before the first is answered."""

    def scenario():
        api = api_of(draft().owner, may_make_tokens=True)
        api.post("tokens/", first, **{"Idempotency-Key": "one"})
        if not answered:
            IdempotentRequest.objects.update(status=None)
        return shown(api.post("tokens/", second or first, **{"Idempotency-Key": "one"}))

    return scenario


def tokens(body, **options):
    return lambda: shown(api_of(draft().owner, **options).post("tokens/", body))


TASK = {"title": "A", "description": "B", "places": 2, "minutes": 5, "reward": "1.00"}
REST = {
    "This channel has no such setting": At("settings.colour", of_link("PATCH", "", {"settings": {"colour": 1}})),
    "There is no such end": At("early_ends.late", of_link("PATCH", "", {"early_ends": {"late": {"rule": "all"}}})),
    "There is no channel": At("channel", posts("links/", {"channel": "pigeon"})),
    "Only the rule": At(
        "early_ends.full.amount", of_link("PATCH", "", {"early_ends": {"full": {"rule": "nothing", "amount": "1.00"}}})
    ),
    "perform: The study has no arm": At("arm", posts("test-runs/", {"arm": "no"})),
    "_arms: The study has no arm": At("arms", of_link("PATCH", "", {"arms": ["no"]})),
    "so it has no annotators": only_informs(posts("annotators/screen/", {})),
    "may not code in": At("coders", posts("coding-samples/", {"kind": "explanations", "coders": ["ann", "ben"]})),
    "The channel has no such secret": At("secrets.key", of_link("PATCH", "panel/", {"secrets": {"key": "x"}})),
    "The rewards are": At("total", of_link("POST", "panel/publish/", TASK)),
    "There is no refused": only_informs(of_link("POST", "panel/rounds/repeat/")),
    "The state of the order": of_link("POST", "panel/orders/{}/cancel/", before=sent_order),
    "with the panel's file": At("file", of_link("POST", "panel/file/", {})),
    "This names people": without_scope,
    "The study has no such": At("arms.no", posts("amend/", {"reason": "A", "arms": {"no": {}}}, make=launched)),
    "The study has no … “…”": At("arm", reads("batches/?arm=no")),
    "This header must have 1": posts("systems/", {"name": "d"}, **{"Idempotency-Key": "ü"}),
    "This Idempotency-Key was sent": repeated({"name": "a"}, {"name": "b"}),
    "The first request with this key is being": repeated({"name": "a"}, answered=False),
    "The first request with this key made": repeated({"name": "a"}),
    "This token may not": tokens({"name": "a"}),
    "You have no study": At(
        "study", tokens({"name": "a", "study": "00000000-0000-4000-8000-000000000000"}, may_make_tokens=True)
    ),
    "This time is in the past": At(
        "expires_at", tokens({"name": "a", "expires_at": "2020-01-01T00:00:00Z"}, may_make_tokens=True)
    ),
    "This is not a time": At("expires_at", tokens({"name": "a", "expires_at": "soon"}, may_make_tokens=True)),
    "A test run is not": damaged,
    "heval sets this field": At("state", patched(state="launched")),
    "This channel has no file": sent_file,
    "A rule is missing": At("early_ends.full.rule", of_link("PATCH", "", {"early_ends": {"full": {}}})),
    "The study is …, so this is not possible": unread,
    "The study has no system “…”. Name": At("baseline", posts("question/", {"card": "two_choice", "baseline": "no"})),
}
