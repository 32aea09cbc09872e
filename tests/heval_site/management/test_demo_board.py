"""The demo board: its systems never see what they must write, and its results find the truth that went in."""

import pytest

from annotators.places.assign import get_or_create_annotator
from boards.services import rounds, snapshots
from heval_site.management import demo_board
from heval_site.management.demo_board import WRITERS, Fable, continue_fables, rename_nearest_ending, sentences_of
from studies.models import Job
from studies.services import jobs
from tests.builders import user


@pytest.mark.parametrize("name", WRITERS)
def test_a_system_writes_every_ending_without_seeing_the_right_one(name):
    fables = demo_board.load_fables()
    texts = continue_fables(name, fables, seed=1)
    assert list(texts) == [fable.key for fable in fables]
    assert all(text[-1] in '.!?"' and text.count('"') % 2 == 0 for text in texts.values())
    assert texts == continue_fables(name, fables, seed=1)
    changed = [
        Fable(fable.key, fable.opening, "Never seen." if fable == fables[0] else fable.ending) for fable in fables
    ]
    assert continue_fables(name, changed, seed=1)[fables[0].key] == texts[fables[0].key] != fables[0].ending


def test_the_longer_memory_of_words_writes_longer_runs_of_the_fables():
    fables = demo_board.load_fables()
    written = " ".join(f"{fable.opening} {fable.ending}" for fable in fables)

    def known_runs(name):
        texts = [text.split() for text in continue_fables(name, fables, seed=1).values()]
        runs = [" ".join(words[place : place + 3]) for words in texts for place in range(len(words) - 2)]
        return sum(run in written for run in runs) / len(runs)

    shares = [known_runs(name) for name in ("one word", "two words", "three words")]
    assert shares == sorted(shares) and shares[2] > 4 * shares[0]


def test_the_nearest_ending_gets_the_characters_of_the_opening():
    other = Fable("a", "A Fox saw a Crow with a cheese.", "The Fox ran off, and the Crow wept.")
    far = Fable("b", "Winter came.", "It snowed.")
    written = rename_nearest_ending("A Lion saw a Mouse with a cheese.", [far, other], None)
    assert written == "The Lion ran off, and the Mouse wept."
    assert sentences_of('He said: "Go. Now." She went.') == ["He said: Go.", "Now.", "She went."]


def test_the_truth_names_every_system_once():
    submitted = [name for week in demo_board.WEEKS for name in week.submitted]
    assert sorted(submitted) == sorted(WRITERS) == sorted(demo_board.TEAMS) == sorted(demo_board.DESCRIPTIONS)
    assert set(demo_board.STRENGTHS) == {demo_board.HUMAN, *submitted}
    assert sum(week.noisy for week in demo_board.WEEKS) == 2
    assert [number for number, week in enumerate(demo_board.WEEKS, 1) if week.leniency] == [4]


@pytest.mark.slow
@pytest.mark.django_db
def test_the_rounds_are_played_by_one_job_that_goes_on_after_a_cut():
    owner = user(is_superuser=True)
    board = demo_board.get_or_create_demo_board(owner)
    assert demo_board.get_or_create_demo_board(owner) == board and Job.objects.filter(kind=demo_board.KIND).count() == 1
    assert board.is_public and board.submissions.get().name == demo_board.HUMAN
    # A process ended in the first round, after the places were opened.
    for name in demo_board.WEEKS[0].submitted:
        demo_board.submit(board, name)
    cut = rounds.open_round(board, owner)
    jobs.claim_and_run_job(Job.objects.get(kind=demo_board.KIND).pk, "test")
    job = Job.objects.get(kind=demo_board.KIND)
    assert job.state == "done", job.error
    assert job.result == {"snapshots": len(demo_board.WEEKS)}
    assert demo_board.get_or_create_demo_board(owner) and Job.objects.filter(kind=demo_board.KIND).count() == 1
    assert list(board.rounds.values_list("study__state", flat=True)) == ["closed"] * len(demo_board.WEEKS)
    assert board.rounds.get(number=1) == cut

    last = board.snapshots.first()
    assert last.result["is_simulated"]
    (overall,) = last.result["criteria"]
    shown = snapshots.display_rows(last)
    score = {row["name"]: row["scores"][overall["key"]] for row in shown}
    # The order of systems that differ by 30 points or more, which is four standard errors.
    for better, worse in (
        (demo_board.HUMAN, "three words"),
        ("nearest fable, renamed", "echo"),
        ("nearest fable", "one word"),
        ("three words", "one word"),
    ):
        assert score[better]["estimate"] > score[worse]["estimate"]
    assert score[demo_board.HUMAN]["is_best"] and not score["one word"]["is_best"]
    # The planted drift. Anchors were in each round.
    equating = last.result["tables"][overall["key"]]["equating"]
    shifts = {shift["round"]: shift["estimate"] for shift in equating["shifts"]}
    assert max(shifts, key=shifts.get) == 4 and equating["drift"]["pvalue"] < 0.05
    assert len(equating["anchors"]) == 1 + len(demo_board.ANCHORS)
    rows = snapshots.read_board_rows(board)
    naive = rows[rows["system"] == board.submissions.get(name="nearest fable").number]["value"].mean() * 100
    assert naive > score["nearest fable"]["estimate"] + 4
    # The robots that answer at random did all their batches, and the test questions found both of them and nobody else.
    people = set(rows["annotator"])
    for number, week in enumerate(demo_board.WEEKS, 1):
        study = board.rounds.get(number=number).study
        submitted = study.assignments.filter(submitted_at__isnull=False)
        noisy = [get_or_create_annotator("robots", f"noisy-{n}-{study.pk}-0").pk for n in range(week.noisy)]
        assert submitted.filter(annotator__in=noisy).count() == week.noisy * demo_board.BATCHES_PER_ANNOTATOR
        assert set(submitted.values_list("annotator", flat=True)) - people == set(noisy)
