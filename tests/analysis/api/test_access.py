"""Who may do what over REST: every method of every path, for every kind of caller."""

import json
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from analysis.api.tokens import create_token, revoke_token
from analysis.coding.codebook import REJECTIONS_CODEBOOK
from analysis.coding.models import CodingItem, CodingSample, CodingSeat
from analysis.data.flat_rows import annotator_pseudonym, assignment_pseudonym
from analysis.models import Metric, ReportLink
from annotators.events import subscriptions
from annotators.models import Exclusion, Inquiry, PanelOrder, PanelTask, Recruitment
from annotators.participation.link_actions import create_link
from studies.imports.tables import run
from studies.models import Job, StudyMember
from tests.builders import draft_study, user
from tests.size_plans import planned_size

from .rest import Api, analysis_of, api_of, body_of, closed_study, comparison_of

pytestmark = pytest.mark.django_db
# Who may do what

ACTORS = (
    "anonymous", "other", "viewer", "coder", "editor", "owner", "admin", "read token", "token of another study", "expired",
    "revoked",
)  # fmt: skip
OK, SEEN = "ok", "seen"
READ = dict(zip(ACTORS, (401, 404, OK, 403, OK, OK, OK, OK, 404, 401, 401), strict=True))
MEMBER = READ | {"coder": OK}
WRITE = dict(zip(ACTORS, (401, 404, 403, 403, OK, OK, OK, 403, 404, 401, 401), strict=True))
# What is sent is wrong, but only who may write learns that.
REFUSED = {actor: 400 if answer == OK else answer for actor, answer in WRITE.items()}
OWNERS = WRITE | {"editor": 403}
# Who looks at a study may make a draft of their own of it, unless the token may only read or is bound to another study.
COPY = WRITE | {"viewer": OK}
LIST = dict(zip(ACTORS, (401, OK, OK, OK, OK, OK, OK, OK, OK, 401, 401), strict=True))
CREATE = dict(zip(ACTORS, (401, OK, OK, OK, OK, OK, OK, 403, 403, 401, 401), strict=True))
OPEN = dict.fromkeys(ACTORS, OK)
# The coder and the editor have the seats of the sample.
SEAT = READ | {"viewer": 404, "coder": OK, "owner": 404, "admin": 404, "read token": 404}
CODES = SEAT | {"viewer": 403, "read token": 403}
CHECK = {"key": "reads", "text": "Choose No here.", "answers": ["Yes", "No"], "right": "No"}
SCORES = {
    "version": "1",
    "is_partial": True,
    "scores": [{"system": "alpha", "prompt": f"p00{number}", "length": number} for number in (1, 2)],
}
# (method, path, body, who may): {s} a closed study, {d} a draft, {j} a job, {p} a job with a file, {l} a link, {m} a metric, {k} a plan, {i} an import.
TABLE = (
    ("GET", "schema/", None, OPEN),
    ("GET", "docs/", None, OPEN),
    ("GET", "studies/", None, LIST),
    ("POST", "studies/", {"title": "New"}, CREATE),
    ("GET", "studies/{s}/", None, MEMBER),
    ("PATCH", "studies/{d}/", {"contact": "a@example.org"}, WRITE),
    ("GET", "templates/", None, LIST),
    ("GET", "tokens/", None, LIST),
    (
        "POST",
        "tokens/",
        {},
        CREATE
        | dict.fromkeys(("other", "viewer", "coder", "editor", "owner", "admin"), 400)
        | {"token of another study": 400},
    ),
    # A token that may not make tokens sees only itself.
    ("POST", "tokens/{t}/revoke/", None, WRITE | dict.fromkeys(("viewer", "coder", "editor", "owner", "admin"), 404)),
    ("GET", "studies/{d}/checklist/", None, READ),
    # Of a closed study most acts are refused, after the permission is checked.
    ("POST", "studies/{s}/launch/", {}, WRITE),
    ("POST", "studies/{s}/amend/", {"reason": "Clearer."}, WRITE),
    ("POST", "studies/{s}/pause/", None, WRITE),
    ("POST", "studies/{s}/resume/", None, WRITE),
    ("POST", "studies/{s}/places/", {"places": 1}, WRITE),
    ("POST", "studies/{s}/close/", {}, WRITE),
    ("POST", "studies/{s}/outcomes/", {"reason": "The board asked."}, OWNERS),
    ("POST", "studies/{s}/clone/", {"title": "Again"}, COPY),
    ("POST", "studies/{s}/invite/", {"account": "viewer", "role": "viewer"}, OWNERS),
    ("POST", "studies/{s}/keep-template/", {"title": "Ours"}, COPY),
    ("POST", "studies/{s}/remove-texts/", None, WRITE),
    ("POST", "studies/{s}/archive/", None, OWNERS),
    ("POST", "studies/{s}/restore/", None, OWNERS),
    ("DELETE", "studies/{s}/", None, OWNERS),
    ("GET", "studies/{s}/members/", None, READ),
    ("GET", "studies/{s}/log/", None, READ),
    ("GET", "studies/{s}/bundle/", None, READ),
    ("PUT", "studies/{d}/bundle/", {}, REFUSED),
    ("GET", "studies/{d}/cards/", None, READ),
    ("POST", "studies/{d}/question/", {}, REFUSED),
    ("POST", "studies/{d}/texts/", {}, WRITE),
    ("GET", "studies/{d}/preview/", None, READ),
    ("POST", "studies/{d}/preview/", {}, WRITE),
    ("GET", "studies/{d}/links/", None, WRITE),
    ("POST", "studies/{d}/links/", {"channel": "none"}, REFUSED),
    ("GET", "studies/{d}/links/{r}/", None, WRITE),
    ("PATCH", "studies/{d}/links/{r}/", {"wanted": 9}, WRITE),
    ("POST", "studies/{d}/links/{r}/rehearse/", {}, WRITE),
    ("POST", "studies/{d}/links/{r}/stop/", None, WRITE),
    ("POST", "studies/{d}/links/{r}/open/", None, WRITE),
    ("DELETE", "studies/{s}/links/{q}/", None, WRITE),
    ("GET", "studies/{s}/webhooks/", None, WRITE),
    ("POST", "studies/{d}/webhooks/", {"url": "https://example.org/", "events": ["closed"]}, WRITE),
    ("POST", "studies/{d}/webhooks/{w}/test/", None, WRITE),
    ("GET", "studies/{d}/webhooks/{w}/deliveries/", None, WRITE),
    ("POST", "studies/{d}/webhooks/{w}/deliveries/{v}/send/", None, WRITE),
    # One of another study, because the first who may delete it would leave nothing to the others.
    (
        "DELETE",
        "studies/{d}/webhooks/0/",
        None,
        {actor: 404 if answer == OK else answer for actor, answer in WRITE.items()},
    ),
    ("GET", "studies/{s}/links/{q}/payments.csv", None, WRITE),
    ("POST", "studies/{s}/links/{q}/payments/settle/", {}, WRITE),
    ("POST", "studies/{s}/links/{q}/payments/order/", {"total": "0"}, WRITE),
    ("POST", "studies/{s}/links/{q}/payments/paid/", {"payments": [1]}, WRITE),
    ("POST", "studies/{s}/links/{q}/payments/cancel/", {"payments": [1]}, WRITE),
    ("POST", "studies/{s}/links/{q}/payments/compensate/", {"payments": [1]}, WRITE),
    ("POST", "studies/{s}/links/{q}/bonuses/", {}, REFUSED),
    ("GET", "studies/{d}/links/{r}/panel/", None, WRITE),
    ("PATCH", "studies/{d}/links/{r}/panel/", {"secrets": {}}, WRITE),
    ("POST", "studies/{d}/links/{r}/panel/ask/", {}, WRITE),
    ("POST", "studies/{d}/links/{r}/panel/publish/", {}, REFUSED),
    ("POST", "studies/{d}/links/{r}/panel/rounds/", {}, REFUSED),
    ("POST", "studies/{d}/links/{r}/panel/rounds/repeat/", None, WRITE),
    ("POST", "studies/{s}/links/{q}/panel/tasks/{b}/stop/", None, WRITE),
    ("POST", "studies/{s}/links/{q}/panel/orders/{o}/cancel/", None, WRITE),
    ("POST", "studies/{s}/links/{q}/panel/orders/{o}/resolve/", {"was_carried_out": True}, WRITE),
    ("POST", "studies/{d}/links/{r}/panel/file/", {}, REFUSED),
    ("GET", "studies/{d}/test-runs/", None, WRITE),
    ("POST", "studies/{d}/test-runs/", {}, WRITE),
    ("DELETE", "studies/{d}/test-runs/", None, WRITE),
    ("GET", "studies/{s}/inquiries/", None, READ | {"read token": 403}),
    ("POST", "studies/{s}/inquiries/{y}/handle/", {}, WRITE),
    ("POST", "studies/{s}/inquiries/{y}/answer/", {}, REFUSED),
    ("POST", "studies/{s}/sections/{c}/both-directions/", {}, WRITE),
    ("GET", "studies/{s}/design/", None, READ),
    ("GET", "studies/{s}/progress/", None, READ),
    ("GET", "studies/{s}/demographics/", None, READ),
    ("GET", "studies/{s}/systems/", None, READ),
    ("POST", "studies/{d}/systems/", {"name": "delta"}, WRITE),
    ("GET", "studies/{s}/prompts/", None, READ),
    ("POST", "studies/{d}/prompts/", {"key": "more"}, WRITE),
    ("GET", "studies/{s}/outputs/", None, READ),
    ("POST", "studies/{d}/outputs/", {"system": "alpha", "prompt": "p000", "sample": 1, "text": "More."}, WRITE),
    ("GET", "studies/{s}/preparation/", None, READ),
    ("POST", "studies/{d}/preparation/", {"settings": {}}, WRITE),
    ("GET", "studies/{s}/batches/", None, READ),
    ("GET", "studies/{s}/annotators/", None, READ),
    ("POST", "studies/{s}/annotators/screen/", {}, WRITE),
    ("POST", "studies/{s}/annotators/{n}/bar/", {"reason": "Answers at random."}, WRITE),
    ("POST", "studies/{s}/annotators/{n}/lift/", {"reason": "A mistake."}, WRITE),
    ("POST", "studies/{d}/imports/", {}, REFUSED),
    ("POST", "studies/{d}/imports/answers/", {}, REFUSED),
    ("GET", "studies/{s}/test-questions/", None, READ),
    ("POST", "studies/{d}/test-questions/", {}, REFUSED),
    ("GET", "studies/{s}/practice-items/", None, READ),
    ("POST", "studies/{d}/practice-items/", {}, REFUSED),
    ("GET", "studies/{d}/imports/{i}/", None, WRITE),
    ("GET", "studies/{s}/attention-checks/", None, READ),
    ("POST", "studies/{d}/attention-checks/", {"checks": [CHECK]}, WRITE),
    ("GET", "studies/{s}/translation/", None, READ),
    ("GET", "studies/{s}/translation/words.po", None, READ),
    ("PUT", "studies/{d}/translation/", {}, REFUSED),
    ("DELETE", "studies/{d}/translation/", None, WRITE),
    ("GET", "studies/{d}/plans/", None, READ),
    ("POST", "studies/{d}/plans/", {"people": 12}, WRITE),
    ("GET", "studies/{d}/plans/numbers/", None, READ),
    ("POST", "studies/{d}/plans/pilots/", {"pilot": "none"}, REFUSED),
    ("POST", "studies/{d}/plans/strategies/", {"shares": [60, 55]}, WRITE),
    ("POST", "studies/{d}/plans/test-questions/", {"rounds": 5}, WRITE),
    ("GET", "studies/{d}/plans/{k}/", None, READ),
    ("POST", "studies/{d}/plans/{k}/choose/", {}, WRITE),
    ("GET", "studies/{s}/metrics/", None, READ),
    ("POST", "studies/{s}/metrics/", SCORES, WRITE),
    ("POST", "studies/{s}/metrics/compute/", {"names": ["exact_match"]}, WRITE),
    ("GET", "studies/{s}/metrics/comparison/", None, READ),
    ("POST", "studies/{s}/metrics/comparison/", None, WRITE),
    ("POST", "studies/{s}/metrics/{m}/discard/", None, WRITE),
    ("GET", "studies/{s}/assignments/", None, READ),
    ("POST", "studies/{s}/assignments/{a}/release/", None, WRITE),
    ("GET", "studies/{s}/responses/", None, READ),
    ("GET", "studies/{s}/codings/", None, READ),
    ("GET", "studies/{s}/coding-samples/", None, MEMBER),
    ("POST", "studies/{s}/coding-samples/", {}, REFUSED),
    ("GET", "studies/{s}/coding-samples/1/", None, MEMBER),
    ("GET", "studies/{s}/coding-samples/1/items/", None, SEAT),
    ("GET", "studies/{s}/coding-samples/1/items/{e}/", None, SEAT),
    ("POST", "studies/{s}/coding-samples/1/items/{e}/", {"labels": [], "is_none": True, "revision": 0}, CODES),
    ("GET", "studies/{s}/exclusions/", None, READ),
    ("POST", "studies/{s}/exclusions/", {"assignments": ["{a}"], "reason": "technical"}, WRITE),
    ("POST", "studies/{s}/exclusions/{x}/reverse/", {}, WRITE),
    ("GET", "studies/{s}/pay/", None, READ),
    ("GET", "studies/{s}/payments/", None, READ),
    ("GET", "studies/{s}/payments.csv", None, READ),
    ("GET", "studies/{s}/analyses/", None, READ),
    ("POST", "studies/{s}/analyses/", {}, WRITE),
    ("GET", "studies/{s}/analyses/1/", None, READ),
    ("POST", "studies/{s}/analyses/1/report.pdf", {}, WRITE),
    ("GET", "studies/{s}/analyses/1/report.pdf", None, READ),
    ("GET", "studies/{s}/comparisons/", None, READ),
    ("POST", "studies/{s}/comparisons/", {"studies": []}, REFUSED),
    ("GET", "studies/{s}/comparisons/1/", None, READ),
    ("GET", "studies/{s}/verdict/", None, READ),
    ("GET", "studies/{s}/judge/", None, READ),
    ("POST", "studies/{s}/judge/", None, WRITE),
    ("POST", "studies/{s}/judge/sample/", {}, REFUSED),
    ("GET", "studies/{s}/calibrated/", None, READ),
    ("POST", "studies/{s}/calibrated/", {"sample": "random"}, WRITE),
    ("GET", "studies/{s}/report-links/", None, OWNERS),
    ("POST", "studies/{s}/report-links/", {}, REFUSED | {"editor": 403}),
    ("POST", "studies/{s}/report-links/{l}/revoke/", None, OWNERS),
    ("GET", "studies/{s}/report-forms/", None, READ),
    ("PATCH", "studies/{d}/report-forms/", {"answers": {"ethics": "The board of Graz."}}, WRITE),
    ("GET", "studies/{s}/report-forms/osf.txt", None, READ),
    ("GET", "studies/{s}/jobs/", None, READ),
    ("GET", "studies/{s}/jobs/{j}/", None, READ),
    ("POST", "studies/{s}/jobs/{j}/cancel/", {}, WRITE),
    ("GET", "studies/{s}/jobs/{p}/file/", None, READ),
    ("POST", "studies/{s}/exports/", {}, WRITE),
    ("GET", "studies/{s}/exports/codings.csv", None, READ),
    ("GET", "studies/{s}/exports/codings.csv.sha256", None, READ),
    ("GET", "studies/{s}/exports/codings.excel.csv", None, READ),
    ("GET", "studies/{s}/exports/codings.excel.csv.sha256", None, READ),
    ("GET", "studies/{s}/exports/codings.jsonl", None, READ),
    ("GET", "studies/{s}/exports/codings.jsonl.sha256", None, READ),
    ("GET", "studies/{s}/exports/items.csv", None, READ),
    ("GET", "studies/{s}/exports/items.csv.sha256", None, READ),
    ("GET", "studies/{s}/exports/items.excel.csv", None, READ),
    ("GET", "studies/{s}/exports/items.excel.csv.sha256", None, READ),
    ("GET", "studies/{s}/exports/items.jsonl", None, READ),
    ("GET", "studies/{s}/exports/items.jsonl.sha256", None, READ),
    ("GET", "studies/{s}/exports/responses.csv", None, READ),
    ("GET", "studies/{s}/exports/responses.csv.sha256", None, READ),
    ("GET", "studies/{s}/exports/responses.excel.csv", None, READ),
    ("GET", "studies/{s}/exports/responses.excel.csv.sha256", None, READ),
    ("GET", "studies/{s}/exports/responses.jsonl", None, READ),
    ("GET", "studies/{s}/exports/responses.jsonl.sha256", None, READ),
    ("GET", "studies/{s}/exports/assignments.csv", None, READ),
    ("GET", "studies/{s}/exports/assignments.csv.sha256", None, READ),
    ("GET", "studies/{s}/exports/assignments.excel.csv", None, READ),
    ("GET", "studies/{s}/exports/assignments.excel.csv.sha256", None, READ),
    ("GET", "studies/{s}/exports/assignments.jsonl", None, READ),
    ("GET", "studies/{s}/exports/assignments.jsonl.sha256", None, READ),
    ("GET", "studies/{s}/exports/codebook.json", None, READ),
    ("GET", "studies/{s}/exports/headline.py", None, READ),
    ("GET", "studies/{s}/metrics/texts.jsonl", None, READ),
    ("GET", "studies/{s}/metrics/other_metrics.py", None, READ),
    ("GET", "studies/{s}/exports/headline.R", None, READ),
    ("GET", "studies/{s}/exports/headline.sql", None, READ),
    ("GET", "studies/{s}/exports/codebook.md", None, READ),
    ("GET", "studies/{s}/exports/archive.zip", None, READ),
)

# A closed study or a draft; a link by which somebody came, or nobody.
SAME = re.compile(r"\{[sdqr]\}")


@pytest.fixture
def world(owner, settings, tmp_path, monkeypatch):
    """A closed study and a draft with people of every role, and a client for each actor."""
    monkeypatch.setattr("analysis.api.permissions.requests_per_minute", lambda scope: 100_000)
    settings.MEDIA_ROOT = tmp_path
    study, draft, elsewhere = closed_study(owner, 1), draft_study(owner=owner), draft_study(owner=owner)
    soon = timezone.now() + timedelta(days=1)
    link = ReportLink.objects.create(run=analysis_of(study), hash="0" * 64, expires_at=soon)
    comparison_of(study)
    job = Job.objects.create(kind="analyse", study=study)
    made = Job.objects.create(
        kind="export",
        study=study,
        state="done",
        ended_at=timezone.now(),
        arguments={"table": "responses", "origins": ["live"]},
    )
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports" / f"{made.code}.parquet").write_bytes(b"PAR1")
    first = study.assignments.get()
    used = Recruitment.objects.create(study=study, channel="open_link")
    study.assignments.update(recruitment=used)
    excluded = Exclusion.objects.create(assignment=first, reason="technical", by=owner)
    task = PanelTask.objects.create(recruitment=used, external_id="t1")
    order = PanelOrder.objects.create(recruitment=used, operation="stop", token="one")
    inquiry = Inquiry.objects.create(assignment=first, kind="question", text="Is this right?")
    metric = Metric.objects.create(study=study, kind="metric", name="bleu", version="1", source="upload")
    people = {name: user(name) for name in ("other", "viewer", "coder", "editor")}
    for role in ("viewer", "coder", "editor"):
        for each in (study, draft):
            StudyMember.objects.create(study=each, user=people[role], role=role)
    sample = CodingSample.objects.create(
        study=study,
        number=1,
        kind="rejections",
        rule="union",
        codebook=REJECTIONS_CODEBOOK.as_json(),
        per_arm=1,
        origin="live",
        by=owner,
    )
    for number, role in enumerate(("coder", "editor"), 1):
        CodingSeat.objects.create(sample=sample, number=number, user=people[role])
    CodingItem.objects.create(sample=sample, number=1, assignment=first)
    past = timezone.now() - timedelta(seconds=1)
    revoked, raw = create_token(owner, "revoked", scope="write")
    revoke_token(revoked, None)
    hook, _ = subscriptions.subscribe(draft, owner, ["closed"], url="https://example.org/hook")
    actors = {name: api_of(person) for name, person in people.items()} | {
        "anonymous": Api(),
        "owner": api_of(owner),
        "admin": api_of(user("admin", is_superuser=True)),
        "read token": api_of(owner, scope="read"),
        "token of another study": api_of(owner, study=elsewhere),
        "expired": api_of(owner, expires_at=past),
        "revoked": Api(raw),
    }
    return actors, {
        "s": study.code,
        "d": draft.code,
        "j": job.code,
        "p": made.code,
        "x": excluded.pk,
        "a": assignment_pseudonym(first.code),
        "l": link.pk,
        "m": metric.pk,
        "n": annotator_pseudonym(study, first.annotator.code),
        "k": planned_size(draft).pk,
        "q": used.key,
        "w": hook.pk,
        "v": subscriptions.send_test(hook, owner).pk,
        "b": task.pk,
        "o": order.pk,
        "y": inquiry.pk,
        "c": study.sections.get(protocol="spa").position,
        "e": 1,
        "t": revoked.pk,
        "r": create_link(Recruitment(study=draft, channel="open_link"), owner).key,
        "i": run.store_upload([b"prompt_key"], "a.csv", study_id=draft.pk, user_id=owner.pk, options={}).token,
    }


def test_every_method_of_every_path_is_allowed_to_exactly_those_who_should(world):
    actors, names = world
    wrong = []
    for method, path, body, expected in TABLE:
        for actor in ACTORS:
            if body and "assignments" in body:
                body = {**body, "assignments": [names["a"]]}
            answer = actors[actor].send(method, path.format(**names), body)
            body_of(answer)
            wanted = expected[actor]
            # 409: allowed, but this installation or state cannot; 200: was there already.
            fits = answer.status_code in (200, 201, 202, 409) if wanted == OK else answer.status_code == wanted
            if not fits:
                wrong.append((method, path, actor, answer.status_code, wanted))
    assert wrong == [], "\n".join(map(str, wrong))


def test_every_published_path_is_in_the_table_and_knows_no_other_method(world):
    actors, names = world
    published = json.loads(Api().get("schema/").content)["paths"]
    # Boards have a table of their own, in tests/boards/api.
    studies = {path: methods for path, methods in published.items() if not path.startswith("/api/v1/boards/")}
    declared = {(method.upper(), path) for path, methods in studies.items() for method in methods}
    in_table = {
        (
            method,
            "/api/v1/"
            + re.sub(r"\{[sd]\}", "{code}", path)
            .replace("{j}", "{job}")
            .replace("{p}", "{job}")
            .replace("/1/", "/{number}/")
            .replace("{x}", "{number}")
            .replace("{n}", "{annotator}")
            .replace("{m}", "{metric}")
            .replace("{l}", "{link}")
            .replace("{k}", "{plan}")
            .replace("{r}", "{key}")
            .replace("{t}", "{number}")
            .replace("{q}", "{key}")
            .replace("{i}", "{token}")
            .replace("{w}", "{webhook}")
            .replace("webhooks/0/", "webhooks/{webhook}/")
            .replace("{v}", "{delivery}")
            .replace("{a}", "{assignment}")
            .replace("{b}", "{number}")
            .replace("{o}", "{number}")
            .replace("{y}", "{number}")
            .replace("{c}", "{position}")
            .replace("{e}", "{item}")
            .replace("osf.txt", "{form}.{extension}"),
        )
        for method, path, _, _ in TABLE
        if path not in ("schema/", "docs/")
    }
    assert declared == in_table
    assert len(published) > 20
    methods = {
        path: {m for m, p, _, _ in TABLE if SAME.sub("{s}", p) == SAME.sub("{s}", path)} for _, path, _, _ in TABLE
    }
    for path, known in methods.items():
        for method in {"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} - known:
            answer = actors["owner"].send(method, path.format(**names), {})
            assert answer.status_code == 405, (method, path)


def test_every_published_answer_has_its_errors(world):
    published = json.loads(Api().get("schema/").content)["paths"]
    for path, methods in published.items():
        for method, operation in methods.items():
            wanted = {"400", "401", "403", "404", "429"} | (set() if method == "get" else {"409", "413"})
            assert wanted <= set(operation["responses"]), (method, path)


def test_a_session_may_read_and_writes_only_with_its_csrf_token(owner):
    study = draft_study(owner=owner)
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
    api = Api(client=client)
    assert api.get(f"studies/{study.code}/").status_code == 200
    refused = api.post(f"studies/{study.code}/systems/", {"name": "delta"})
    assert (refused.status_code, refused["Content-Type"]) == (403, "application/problem+json")
    client.cookies["csrftoken"] = secret = "a" * 32
    assert api.post(f"studies/{study.code}/systems/", {"name": "delta"}, **{"X-CSRFToken": secret}).status_code == 201
