"""Every address of the site, and a site in which each of them leads somewhere."""

from datetime import timedelta

from django.utils import timezone

from analysis.coding.codebook import EXPLANATIONS_CODEBOOK
from analysis.data.flat_rows import annotator_pseudonym, assignment_pseudonym
from analysis.models import ApiToken, CodingItem, CodingSample, CodingSeat
from analysis.report.runs import run_analysis
from annotators.models import Appeal, Inquiry, PanelSubmission, Response, Verdict
from annotators.places.exclusions import exclude_assignments
from annotators.recruitment.panels.orders import get_or_create_order
from boards.models import Board, BoardMember, BoardSnapshot, Team
from studies.models import Output, StudyMember
from studies.services import jobs
from tests.boards import builders as board_builders
from tests.builders import panel, spa_study, user
from tests.players import claimed, submitted

ACTORS = ("anonymous", "stranger", "coder", "viewer", "editor", "owner", "administrator")
# Django's and other packages' own pages, tested by them.
LEFT_OUT = (
    "admin/auth/",
    "admin/axes/",
    "admin/contenttypes/",
    "admin/^",
    "admin/(?P<url>",
    "admin/r/",
    "admin/jsi18n/",
)


def addresses(resolver, before=""):
    for pattern in resolver.url_patterns:
        route = before + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            yield from addresses(pattern, route)
        elif not route.startswith(LEFT_OUT):
            yield route


def everything() -> dict:
    """People with each role, a launched study of theirs, and a row of everything that has an address."""
    people = {name: user(name) for name in ACTORS[1:-1]} | {"administrator": user("administrator", is_superuser=True)}
    study = spa_study(by=people["owner"], target_n=4)
    for role in ("editor", "viewer", "coder"):
        StudyMember.objects.create(study=study, user=people[role], role=role)
    door = panel(study)
    done = submitted(study, "done", recruitment=door, comment="fine")
    live = claimed(study, "live", recruitment=door)
    exclusions = exclude_assignments([done], "technical", by=people["owner"])
    run = run_analysis(study, {"resamples": 99}, by=people["owner"])
    job = jobs.submit("analyse", study=study, by=people["owner"])
    token = ApiToken.objects.create(user=people["owner"], name="t", hash="0" * 64)
    sample = CodingSample.objects.create(
        study=study,
        number=1,
        kind="explanations",
        rule="union",
        codebook=EXPLANATIONS_CODEBOOK.as_json(),
        per_arm=1,
        origin="live",
    )
    CodingSeat.objects.create(sample=sample, number=1, user=people["coder"])
    written = Response.objects.exclude(text="").get(assignment=done)
    CodingItem.objects.create(sample=sample, number=1, assignment=done, response=written)
    order = get_or_create_order(door, "stop", "stop-1", by=None, task="T")
    inquiry = Inquiry.objects.create(assignment=live, kind="question", text="?")
    submission = PanelSubmission.objects.create(
        recruitment=door, external_id="S", annotator=done.annotator, assignment=done, state="rejected", source="file"
    )
    why = {"category": "c", "message": "m", "by": people["owner"]}
    verdict = Verdict.objects.create(assignment=done, kind="reject", **why)
    board, team = private_board(people)
    due = timezone.now() + timedelta(days=9)
    appeal = Appeal.objects.create(verdict=verdict, rejected_by=people["owner"], text="Why?", due_at=due)
    return locals()


def private_board(people) -> tuple[Board, Team]:
    """A private board that is open, with members, a team, a submission and a snapshot without numbers."""
    board = board_builders.open_board(people["owner"], visibility="members")
    BoardMember.objects.bulk_create(
        BoardMember(board=board, user=people[role], role=role) for role in ("editor", "viewer")
    )
    team, _ = board_builders.team_of(board)
    board_builders.submit(board, team, "good")
    result = {
        "format": "heval.board/1", "kind": "scores", "population": "prompts", "level": 0.95, "is_simulated": False,
        "sample": {"prompts": 12, "seed": board.seed, "keys_sha256": ""}, "rounds": [], "rows": [], "tables": {},
        "criteria": [{"key": "overall", "label": "overall", "is_overall": True, "is_mean": False}],
    }  # fmt: skip
    BoardSnapshot.objects.create(board=board, number=1, result=result, result_sha256="0" * 64, n_labels=0)
    return board, team


def filled(route: str, w) -> str:
    """The address with ids that exist."""
    ids = {
        "studies/job": w["job"].pk, "studies/auditevent": w["study"].audit_events.first().pk, "studies/section": w["study"].sections.first().pk,
        "studies/prompt": w["study"].prompts.first().pk, "studies/output": Output.objects.first().pk, "studies/study": w["study"].pk,
        "annotators/assignment": w["done"].pk, "annotators/recruitment": w["door"].pk, "annotators/inquiry": w["inquiry"].pk,
        "analysis/apitoken": w["token"].pk, "analysis/analysisrun": w["run"].pk,
        "analysis/codingsample": w["sample"].pk, "boards/board": w["board"].pk if "board" in w else 1,
    }  # fmt: skip
    route = route.replace("/study/<int:pk>/", f"/study/{w['study'].pk}/").replace(
        "studies/<path:page>", f"studies/{w['study'].code}/analyses/"
    )
    route = route.replace("<path:page>", "preview/").replace("<uidb64>/<token>", "MQ/no-token")
    if "exclusion/<int:pk>" in route:
        route = route.replace("<int:pk>", str(w["done"].exclusions.first().pk))
    # The address of an image names its study, though the records of prompts serve it.
    route = route.replace("prompt/media/<int:pk>/", f"prompt/media/{w['study'].pk}/")
    for place, pk in ids.items():
        if route.startswith(f"admin/{place}/"):
            route = route.replace("<path:object_id>", str(pk)).replace("<int:pk>", str(pk))
    if route.startswith("admin/studies/job/"):
        route = route.replace("<uuid:code>", str(w["job"].code))
    if "boards/" in route:
        slug, team = (w["board"].slug, w["team"].pk) if "board" in w else ("none", 1)
        route = route.replace("<slug:slug>", slug).replace("<int:pk>", str(team))
        route = route.replace("teams/<int:number>", f"teams/{team}")
    parts = {
        "<uuid:code>": w["study"].code, "<uuid:job>": w["job"].code, "<int:number>": 1, "<str:code>": w["live"].code,
        "<slug:key>": w["door"].key, "<str:key>": "s1", "<int:inquiry>": w["inquiry"].pk, "<slug:token>": "nothing", "<str:token>": "nothing", "<slug:name>": "forest",
        "<slug:slug>": "image_makers", "<slug:form>": "osf", "<slug:extension>": "txt", "<int:order>": w["order"].pk, "<int:task>": 1, "<int:prompt>": 1,
        "<int:submission>": w["submission"].pk, "<int:metric>": 1, "<int:plan>": 1, "<int:link>": 1, "<int:webhook>": 1, "<int:delivery>": 1, "<int:assignment>": w["done"].pk, "<int:appeal>": w["appeal"].pk,
        "<slug:assignment>": assignment_pseudonym(w["done"].code), "<int:position>": 1, "<int:item>": 1,
        "<slug:annotator>": annotator_pseudonym(w["study"], w["done"].annotator.code), "<str:file_format>": "csv", "<str:name>": "nothing.webp", "<path:name>": "index",
    }  # fmt: skip
    for part, value in parts.items():
        route = route.replace(part, str(value))
    assert "<" not in route, route
    return f"/{route}" + ("?who=new" if route.startswith("e/") else "")
