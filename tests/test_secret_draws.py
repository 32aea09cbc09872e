"""Nobody who may not edit a study reads what determines its draw before the study is closed."""

import io
import re
import zipfile
from hashlib import sha256

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.urls import get_resolver

from analysis.models import JudgeCheck
from annotators.models import Assignment
from boards.models import Board, BoardRound
from boards.services import rounds, snapshots
from studies import access
from studies.design.draw import draw_batches, item_key, seeded_random
from studies.models import Placement, Study, StudyMember, audit, new_seed
from studies.services.drafts import update_draft
from tests.addresses import addresses, everything, filled
from tests.analysis.api.rest import Api, api_of
from tests.analysis.metrics.judge_check.builders import checked_study
from tests.boards import builders as board_builders
from tests.builders import draft_study, panel, spa_draft, spa_study, user

pytestmark = pytest.mark.django_db
READERS = ("anonymous", "stranger", "coder", "viewer")
SEPARATORS = re.compile(r"(?<=\d)(?:[,.'’_\s]|&nbsp;|&#x27;)(?=\d{3})")


def secrets_of_draws() -> dict[str, str]:
    """Each number that determines a draw of a study that is not closed, as it could be written, and whose it is."""
    found: dict[int, str] = {}
    for study in Study.objects.exclude(state=Study.State.CLOSED):
        found[study.seed] = f"seed of {study.title}"
    for assignment in Assignment.objects.exclude(study__state=Study.State.CLOSED):
        found[assignment.seed] = f"seed of assignment {assignment.pk}"
    for check in JudgeCheck.objects.exclude(study__state=Study.State.CLOSED):
        found[check.seed] = f"seed of check {check.pk}"
    words = {written: name for number, name in found.items() for written in (f"{number}", f"{number:x}")}
    words |= {one.nonce: f"nonce of {one}" for one in BoardRound.objects.exclude(study__state=Study.State.CLOSED)}
    assert all(len(word) > 10 for word in words)
    return words


def texts_of(response) -> tuple[list[str], int]:
    """The headers and the body of an answer with each file of an archive, and the status."""
    data = getattr(response, "body", None)
    if data is None:
        data = b"".join(response.streaming_content) if response.streaming else response.content
    parts = [data, " ".join(f"{name}: {value}" for name, value in response.items()).encode()]
    if data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts += [archive.read(name) for name in archive.namelist()]
    return [SEPARATORS.sub("", part.decode("utf-8", "replace")) for part in parts], response.status_code


@pytest.fixture
def collecting(db, monkeypatch):
    """A site with a launched study, a draft, a check of a judge and a round of a public board; the same people have roles in all."""
    monkeypatch.setattr("analysis.api.permissions.requests_per_minute", lambda scope: 100_000)
    for module in ("tests.builders", "tests.boards.builders", "tests.analysis.metrics.judge_check.builders"):
        monkeypatch.setattr(f"{module}.draft_study", lambda **options: draft_study(**{"seed": new_seed()} | options))
    w = everything()
    Board.objects.filter(pk=w["board"].pk).update(visibility="public")
    w["board"].refresh_from_db()
    one = rounds.open_round(w["board"], w["people"]["owner"])
    draft = update_draft(spa_draft(owner=w["people"]["owner"], title="A draft"), None, {"seed": new_seed()})
    judged, _ = checked_study(n_people=1, n_test=4, seed=new_seed())
    for study in (draft, judged, one.study):
        study.members.all().delete()
        for role in ("owner", "editor", "viewer", "coder"):
            StudyMember.objects.create(study=study, user=w["people"][role], role=role)
        audit.record("edit", study=study, by=w["people"]["owner"])
    return w | {"round": one, "draft": draft, "judged": judged}


def walked(w):
    """The ids of each study that is walked through."""
    yield "launched", w
    for name, study in (("draft", w["draft"]), ("judged", w["judged"]), ("round", w["round"].study)):
        door = study.recruitments.first() or panel(study, key=f"of-{name}")
        yield name, w | {"study": study, "door": door}


def test_no_address_gives_readers_the_secrets_of_a_draw(collecting):
    w = collecting
    # Answers of these two may be read, so that exports and archives are open. The round stays blind.
    for study in (w["study"], w["judged"]):
        Study.objects.filter(pk=study.pk).update(unblinded_at=study.launched_at)
    secrets, leaks, answered, seen = secrets_of_draws(), [], 0, set()
    _, key = board_builders.team_of(w["board"], "Readers")
    team, viewer = Api(key), api_of(w["people"]["viewer"], scope="read")
    clients = {actor: Client() for actor in READERS}
    for actor in READERS[1:]:
        clients[actor].force_login(w["people"][actor])
    for name, ids in walked(w):
        for route in sorted(set(addresses(get_resolver()))):
            address = filled(route.replace("<str:key>", key), ids)
            asked = {actor: clients[actor].get for actor in READERS}
            if route.startswith("api/"):
                asked |= {"team": team.get, "viewer's token": viewer.get}
            for actor, get in asked.items():
                if (actor, address) in seen:
                    continue  # an address of no study is the same for each
                seen.add((actor, address))
                cache.clear()
                texts, status = texts_of(get(address))
                answered += status == 200
                leaks += [
                    f"{secret} for {actor} ({name}): {route}"
                    for word, secret in secrets.items()
                    if any(word in text for text in texts)
                ]
    assert not leaks, "\n".join(leaks)
    assert answered > 300


@pytest.mark.parametrize("state", Study.State.values)
def test_only_editors_read_a_draw_before_the_end(state):
    study = draft_study()
    roles = {role: user(role) for role in StudyMember.Role.values}
    for role, person in roles.items():
        StudyMember.objects.create(study=study, user=person, role=role)
    study.state = state
    readers = {role for role, person in roles.items() if access.may_read_draw(person, study)}
    assert readers == ({"owner", "editor"} if state != "closed" else set(roles))
    assert access.may_read_draw(None, study)


@pytest.mark.parametrize("state", [state for state in Study.State.values if state not in ("draft", "launching")])
@pytest.mark.parametrize(
    "path",
    [
        "batches/",
        "design/",
        "exports/archive.zip",
        *(f"exports/items.{kind}" for kind in ("csv", "jsonl", "csv.sha256", "jsonl.sha256")),
    ],
)
def test_a_viewer_reads_the_drawn_batches_only_at_the_end(path, state):
    study, viewer = spa_study(target_n=2), user("vera")
    StudyMember.objects.create(study=study, user=viewer, role="viewer")
    now = study.launched_at
    times = {"closing": {"closing_at": now}, "closed": {"closing_at": now, "closed_at": now}}.get(state, {})
    with connection.cursor() as cursor:
        columns = {"state": state, "unblinded_at": now} | times
        names = ", ".join(f"{name} = %s" for name in columns)
        cursor.execute(f"UPDATE studies_study SET {names} WHERE id = %s", [*columns.values(), study.pk])
    status = api_of(viewer).get(f"studies/{study.code}/{path}").status_code
    assert status == (200 if state == "closed" else 403)


def stored_batches(study) -> list[list[tuple]]:
    rows = Placement.objects.filter(batch__study=study).order_by("batch__number", "number")
    found: dict[int, list[tuple]] = {}
    for batch, section, content in rows.values_list("batch__number", "item__section", "item__content"):
        found.setdefault(batch, []).append((section, content))
    return [found[number] for number in sorted(found)]


def drawn_batches(study, seed: int) -> list[list[tuple]]:
    study.seed = seed
    drawn = draw_batches(study, 0, study.batches.count())
    return [[item_key(section, record) for section, record in batch.items] for batch in drawn]


def test_public_numbers_do_not_give_a_running_draw_and_published_ones_do(client):
    board = board_builders.open_board(sample_size=9, seed=new_seed())
    team, key = board_builders.team_of(board)
    board_builders.submit(board, team, "good")
    board_builders.play_round(board)
    snapshots.take_snapshot(board, board.owner)
    board_builders.submit(board, team, "middle")
    one = rounds.open_round(board, board.owner)
    paths = ("", "rounds/", "snapshots/", "snapshots/latest/", "submissions/", "prompts/")
    texts = [Api(key).get(f"boards/tales/{path}").body.decode() for path in paths]
    texts += [
        client.get(f"/boards/tales/{path}").content.decode()
        for path in ("", "1/scores.json", "1/scores.csv", "history/")
    ]
    public = {int(number) for text in texts for number in re.findall(r"(?<![\w.])\d{1,19}(?![\w.])", text)}
    public = {number for number in public if number <= 2**62}
    assert board.seed in public and len(public) > 10
    stored, tried = stored_batches(one.study), 0
    for number in public:
        for seed in (number, seeded_random(number, "board", "round", one.number).getrandbits(62)):
            assert drawn_batches(one.study, seed) != stored
            tried += 1
    assert tried == 2 * len(public)
    running = Api().get("boards/tales/rounds/").json()["results"][1]
    assert (running["state"], running["nonce"], running["seed"], running["submissions"]) == (
        "running",
        None,
        None,
        None,
    )
    assert running["commitment"] in client.get("/boards/tales/").content.decode()
    board_builders.finish(one.study)
    closed = Api().get("boards/tales/rounds/").json()["results"][1]
    assert (
        closed["commitment"]
        == running["commitment"]
        == sha256(f"{closed['nonce']}:{closed['seed']}".encode()).hexdigest()
    )
    assert drawn_batches(one.study, int(closed["seed"])) == stored
    page, file = client.get("/boards/tales/").content.decode(), client.get("/boards/tales/1/scores.json").json()
    assert closed["nonce"] in page and closed["seed"] in page
    assert {name: file["draws"][1][name] for name in ("commitment", "nonce", "seed")}.items() <= closed.items()


def test_a_round_from_before_there_were_hashes_says_so(client):
    board = board_builders.open_board()
    board_builders.submit(board, board_builders.team_of(board)[0], "good")
    one = board_builders.play_round(board)
    BoardRound.objects.filter(pk=one.pk).update(nonce="")
    assert Api().get("boards/tales/rounds/").json()["results"][0]["commitment"] == ""
    assert "the seed follows from the board" in client.get("/boards/tales/").content.decode()
