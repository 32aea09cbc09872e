"""Who may do what with boards over REST: every method of every path, for every kind of caller."""

import json
import re

import pytest

from analysis.api.tokens import create_token
from analysis.report.screening.run import screen_annotators
from boards.models import BoardMetricTable
from boards.services import boards, images, labels, rounds
from studies.services import jobs
from tests.analysis.api.rest import Api, api_of
from tests.boards import builders
from tests.builders import draft_study, user

from .rest import api_of_team, body, scored_board

pytestmark = pytest.mark.django_db

ACTORS = ("anonymous", "stranger", "other team", "team", "viewer", "editor", "owner", "read token", "token of a study")
OK = "ok"
# Of a public board, and of a private one.
PUBLIC = dict.fromkeys(ACTORS, OK)
SUBMITTERS = dict(zip(ACTORS, (401, 403, 403, OK, OK, OK, OK, OK, 403), strict=True))
MEMBERS = dict(zip(ACTORS, (401, 403, 403, 403, OK, OK, OK, OK, 403), strict=True))
SUBMIT = dict(zip(ACTORS, (401, 403, 403, OK, 403, OK, OK, 403, 403), strict=True))
TEAM_ONLY = dict(zip(ACTORS, (401, 403, 403, OK, 403, 403, 403, 403, 403), strict=True))
EDIT = dict(zip(ACTORS, (401, 403, 403, 403, 403, OK, OK, 403, 403), strict=True))
OWN = dict(zip(ACTORS, (401, 403, 403, 403, 403, 403, OK, 403, 403), strict=True))
CREATE = dict(zip(ACTORS, (401, 404, 403, 403, 404, 404, OK, 403, 403), strict=True))
# From a file, everybody who may create a study can make a board.
NEW = dict(zip(ACTORS, (401, OK, 403, 403, OK, OK, OK, 403, 403), strict=True))
TABLE = (
    ("GET", "", None, PUBLIC),
    ("POST", "", {"slug": "new-{n}", "title": "New", "template": "{t}"}, CREATE),
    ("POST", "new/", "bundle", NEW),
    ("GET", "{b}/bundle/", None, MEMBERS),
    ("GET", "{b}/members/", None, MEMBERS),
    ("PUT", "{b}/members/", "members", OWN),
    ("GET", "{b}/", None, PUBLIC),
    ("PATCH", "{b}/", {"title": "Stories"}, OWN),
    ("POST", "{b}/open/", {}, OWN),
    ("GET", "{b}/annotators/", None, MEMBERS),
    ("GET", "{b}/prompts/", None, SUBMITTERS),
    ("GET", "{b}/prompts/archive/", None, SUBMITTERS),
    ("GET", "{b}/submissions/", None, PUBLIC),
    ("POST", "{b}/submissions/", "submission", SUBMIT),
    ("GET", "{b}/submissions/2/", None, PUBLIC),
    ("GET", "{b}/checks/{c}/", None, SUBMITTERS),
    ("POST", "{b}/submissions/3/publish/", {}, TEAM_ONLY),
    ("POST", "{b}/submissions/3/anchor/", {"is_anchor": False}, EDIT),
    ("GET", "{b}/submissions/3/comparison/?baseline=2", None, PUBLIC),
    ("GET", "{b}/rounds/", None, PUBLIC),
    ("POST", "{b}/rounds/", {}, EDIT),
    ("POST", "{b}/rounds/1/cancel/", {}, EDIT),
    ("GET", "{b}/snapshots/", None, PUBLIC),
    ("POST", "{b}/snapshots/", {}, EDIT),
    ("GET", "{b}/snapshots/1/", None, PUBLIC),
    ("GET", "{b}/snapshots/latest/", None, PUBLIC),
    ("GET", "{b}/snapshots/1/metrics/", None, PUBLIC),
    ("GET", "{b}/metrics/", None, PUBLIC),
    ("POST", "{b}/metrics/", {"names": ["exact_match"]}, EDIT),
    ("GET", "{b}/jobs/{j}/", None, MEMBERS),
    ("POST", "{b}/labels/", {"format": "csv"}, EDIT),
    ("GET", "{b}/labels/{l}/", None, MEMBERS),
    ("GET", "{b}/teams/", None, MEMBERS),
    ("POST", "{b}/teams/", {"name": "Team {n}"}, EDIT),
    ("POST", "{b}/teams/{o}/revoke/", {}, EDIT),
    ("POST", "{b}/teams/{o}/key/", {}, EDIT),
    ("POST", "{b}/submissions/3/withdraw/", {}, SUBMIT),
    ("POST", "{b}/no-test-questions/", {}, OWN),
    ("POST", "{b}/close/", {}, OWN),
    ("POST", "{b}/renew/", {"share": "0.25", "after": 1}, OWN),
)


@pytest.fixture
def world(monkeypatch):
    monkeypatch.setattr("analysis.api.permissions.requests_per_minute", lambda scope: 100_000)
    board, team = scored_board()
    elsewhere = builders.open_board(user("elsewhere"), slug="elsewhere")
    other = api_of_team(elsewhere, "Other")
    BoardMetricTable.objects.create(snapshot=board.snapshots.get(), result={"level": 0.95, "tables": []})
    screen_annotators(board.rounds.get().study, "robot", by=None)
    spare, _ = builders.team_of(board, "Spare")
    builders.add_member(board, "viewer", "viewer")
    builders.add_member(board, "editor", "editor")
    labels_job = labels.request_labels(board, board.owner, "csv")
    jobs.run_waiting_jobs()
    job = jobs.submit(rounds.KIND, by=board.owner, board=board.pk)
    sent_by = board.teams.get(name="Team A")
    check = jobs.submit(images.KIND, by=None, board=board.pk, team=sent_by.pk, sha256="0" * 64)
    actors = {
        "anonymous": Api(),
        "stranger": api_of(user("stranger")),
        "other team": other,
        "team": team,
        "viewer": api_of(board.members.get(role="viewer").user),
        "editor": api_of(board.members.get(role="editor").user),
        "owner": api_of(board.owner),
        "read token": api_of(board.owner, scope="read"),
        "token of a study": Api(create_token(board.owner, "t", scope="write", study=board.template)[1]),
    }
    template = draft_study(owner=board.owner, systems=("human",))
    names = {"b": board.slug, "t": str(template.code), "j": job.code, "c": check.code, "l": labels_job.code}
    return board, actors, names | {"o": spare.pk}


def filled(sent, board, actor, names):
    if sent == "submission":
        return body(board, f"by {actor}") | ({} if actor == "team" else {"team": "Team A"})
    if sent == "bundle":
        bundle = boards.serialize_board(board)
        return bundle | {"board": bundle["board"] | {"slug": f"new-{names['n']}"}}
    if sent == "members":
        return {"members": [{"user": one.user.username, "role": one.role} for one in board.members.all()]}
    return sent and json.loads(re.sub(r"\{(\w)\}", lambda found: str(names[found[1]]), json.dumps(sent)))


def statuses(world, expected_of):
    board, actors, names = world
    wrong = []
    for number, (method, path, sent, expected) in enumerate(TABLE):
        for actor in ACTORS:
            named = names | {"n": f"{number}-{ACTORS.index(actor)}"}
            answer = actors[actor].send(method, f"boards/{path.format(**named)}", filled(sent, board, actor, named))
            wanted = expected_of(actor, expected[actor], path)
            # 409: allowed, but the state of the board does not fit any more.
            fits = answer.status_code in (200, 201, 202, 409) if wanted == OK else answer.status_code == wanted
            if not fits:
                wrong.append((method, path, actor, answer.status_code, wanted, answer.body[:200]))
    return wrong


def test_every_method_of_every_path_is_allowed_to_exactly_those_who_should(world):
    assert statuses(world, lambda actor, wanted, path: wanted) == []


def test_a_private_board_is_not_there_for_strangers_and_shows_a_team_its_own(world):
    world[0].visibility = "members"
    world[0].save()

    def expected(actor, wanted, path):
        if path in ("", "new/") or actor in ("viewer", "editor", "owner", "read token"):
            return wanted
        if actor == "team":
            return 403 if path.startswith(("{b}/snapshots/", "{b}/metrics/")) else wanted
        return 401 if actor == "anonymous" else 404

    # Of the researcher's read token, a method that writes is refused before the board is looked for.
    assert statuses(world, expected) == []


def test_every_published_path_of_boards_is_in_the_table(world):
    published = json.loads(Api().get("schema/").content)["paths"]
    declared = {
        (method.upper(), path)
        for path, methods in published.items()
        if path.startswith("/api/v1/boards/")
        for method in methods
    }
    in_table = {(method, "/api/v1/boards/" + _published(path)) for method, path, _, _ in TABLE}
    assert declared == in_table
    for path, methods in published.items():
        for method, operation in methods.items():
            if (method, path) == ("post", "/api/v1/boards/{slug}/submissions/"):
                assert {"200", "201", "202"} <= set(operation["responses"])
                assert "application/zip" in operation["requestBody"]["content"]
            wanted = {"400", "401", "403", "404", "429"} | (set() if method == "get" else {"409", "413"})
            assert wanted <= set(operation["responses"]), (method, path)


def _published(path: str) -> str:
    path = path.partition("?")[0].replace("{b}", "{slug}").replace("{o}", "{number}")
    path = path.replace("{j}", "{job}").replace("{c}", "{job}").replace("{l}", "{job}")
    return re.sub(r"(submissions|rounds|snapshots)/\d/", r"\1/{number}/", path)


def test_no_path_knows_another_method(world):
    board, actors, names = world
    known: dict[str, set] = {}
    for method, path, _, _ in TABLE:
        known.setdefault(path.partition("?")[0], set()).add(method)
    for path, methods in known.items():
        for method in {"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} - methods:
            answer = actors["owner"].send(method, f"boards/{path.format(**names)}", {})
            assert answer.status_code == 405, (method, path)


def test_a_revoked_key_and_an_unknown_one_get_the_same_answer(world):
    board, actors, _ = world
    unknown = Api("heval_team_" + "A" * 43).get(f"boards/{board.slug}/")
    from boards.access import revoke_team

    revoke_team(actors["team"].team, board.owner)
    revoked = actors["team"].get(f"boards/{board.slug}/")
    assert (revoked.status_code, revoked.content) == (401, unknown.content)


def test_a_key_of_a_team_opens_nothing_but_boards(world):
    _, actors, _ = world
    assert actors["team"].get("studies/").status_code == 401


@pytest.mark.usefixtures("in_one_minute")
def test_readers_without_a_token_are_limited_by_their_address(world, monkeypatch):
    monkeypatch.setattr("analysis.api.permissions.requests_per_minute", lambda scope: 2 if scope == "public" else 100)
    board, actors, _ = world
    assert [Api().get(f"boards/{board.slug}/").status_code for _ in range(3)] == [200, 200, 429]
    assert actors["team"].get(f"boards/{board.slug}/").status_code == 200
