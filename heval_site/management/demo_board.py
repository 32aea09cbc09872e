"""The demo board: small systems continue fables, and robots rate them in five rounds.

``systems`` has the systems, ``world`` what is true of them and of the robots, ``texts`` what people read, and ``rounds``
makes the board and plays its rounds.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from django.db import transaction

from annotators.participation.simulate import CrowdSettings, record_simulated_answers
from boards import access
from boards.models import Board, BoardRound, BoardSnapshot, Submission, Team
from boards.services import boards, rounds, snapshots, submissions
from heval_site.management.demo_texts import load_demo_texts
from studies.models import ExclusionRule, Job, Output, Prompt, Question, Section, Study, System
from studies.services import drafts, jobs, lifecycle
from studies.services.known_answers import KnownAnswerRequest, make_test_questions_and_delete_test_runs

# What annotators and visitors of the demo board read.


SLUG = "demo"
TITLE = "Demo: endings of fables"
TEMPLATE_TITLE = "Demo board: endings of fables (template)"
DESCRIPTION = """\
Systems read the opening of a fable and write its ending. All is a demonstration:

- The **systems** are small programs. They learn from 23 other fables of this demo, and run in a second.
- The **annotators** are robots. They do not read, but know how good each system is meant to be.
- Each of the five rounds represents **a week**. They ran one after the other, when the demo was started.

In one week all robots were too lenient, and in two weeks a robot answered at random. The anchors and the test questions
are there to find this.
"""

PUBLIC_TITLE = "How does the fable end?"
PURPOSE = "You read the openings of old fables with an ending each, and say how good the ending is."
INSTRUCTIONS = """\
Each page has the opening of a short fable and an ending. Some endings are by people and some by computer programs.

A good ending **makes sense**, is good **English**, and **belongs to this opening**: the same animals and people, the same
matter. The fables are old, so old-fashioned words are no fault.

There are no right answers. If you know a fable already, judge what is on the page.
"""
QUESTION = "How good is this ending?"
LABELS = ("Very bad", "Bad", "Neither bad nor good", "Good", "Very good")
CONSENT = """\
You rate ten to twenty endings of fables, which takes about eight minutes. You are 18 or older, and read English with ease.
You are paid the amount that you saw where you found this study; it does not depend on your answers. You may stop at any time.
We store your answers without your name. Questions: research@example.org.
"""
DEBRIEFING = """\
Thank you. Some of the endings were by George Fyler Townsend, whose English versions of Aesop's fables appeared in 1867. The
others were made by small computer programs, from the words or the endings of other fables. A few pages showed an ending
that we knew to be right or wrong, to see who reads.
"""


# The truth behind the demo board, which its results should find: how good the systems are, and how robots differ.
#
# Robots do not read. They rate an output by the strength of its system, in log-odds: a system of strength 0 gets the
# middle of the scale on average.


HUMAN = "human"
STRENGTHS = {
    HUMAN: 1.7,
    "nearest fable, renamed": 0.9,
    "nearest fable": 0.1,
    "three words": -0.3,
    "rare words": -0.3,
    "two words": -0.9,
    "echo": -1.2,
    "one word": -1.9,
}


@dataclass(frozen=True, slots=True)
class Week:
    """A round: the systems that are submitted, and the robots that come.

    ``leniency``: how much too high its robots rate all outputs, in log-odds. ``noisy``: how many robots answer at random.
    """

    submitted: tuple[str, ...]
    leniency: float = 0.0
    noisy: int = 0


WEEKS = (
    Week(("two words", "three words")),
    Week(("one word", "echo"), noisy=1),
    Week(("rare words",)),
    # The planted drift: without anchors, the system of this week looks better than it is.
    Week(("nearest fable",), leniency=1.0),
    Week(("nearest fable, renamed",), noisy=1),
)
# Scored again in each later round, as the human endings are.
ANCHORS = WEEKS[0].submitted
# A robot that answers at random does so in all batches that an annotator may have.
BATCHES_PER_ANNOTATOR = 3
TEAMS = dict.fromkeys(("one word", "two words", "three words", "rare words"), "Counters") | dict.fromkeys(
    ("echo", "nearest fable", "nearest fable, renamed"), "Borrowers"
)
DESCRIPTIONS = {
    "one word": "Draws each word alone, as often as it occurs in 23 fables.",
    "two words": "Draws each word by the word before it.",
    "three words": "Draws each word by the two words before it.",
    "echo": "Says the last sentence of the opening again.",
    "rare words": "Takes the three sentences of other fables that share the rarest words with the opening.",
    "nearest fable": "Takes the ending of the fable whose opening is most alike.",
    "nearest fable, renamed": "Takes the ending of the nearest fable, with this fable's animals.",
}


# Systems that continue a fable from its opening. Each is a pure function of the opening, of other fables, and of a
# seed.


MIN_TOKENS, MAX_TOKENS = 55, 95
EXTRACTED_SENTENCES = 3
_TOKEN = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*|[.,;:!?]")
_SENTENCE = re.compile(r".+?[.!?]\"?(?=\s+\S|$)", re.DOTALL)
# Animals and people have a capital in these fables, and mostly come after an article.
_CHARACTER = re.compile(r"\b(?:[Aa]n?|[Tt]he|[Tt]wo|[Ss]ome) ([A-Z][a-z]+)")


@dataclass(frozen=True, slots=True)
class Fable:
    """A fable in two parts, both by its author."""

    key: str
    opening: str
    ending: str


Writer = Callable[[str, Sequence[Fable], Random], str]


def write_by_ngrams(opening: str, others: Sequence[Fable], rng: Random, *, order: int) -> str:
    """Draw word after word by what follows the last ``order - 1`` words in other fables; fewer words if they never occur there."""
    followers: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for fable in others:
        tokens = _TOKEN.findall(f"{fable.opening} {fable.ending}")
        for place, token in enumerate(tokens):
            for length in range(min(order - 1, place) + 1):
                followers[tuple(tokens[place - length : place])].append(token)
    history = _TOKEN.findall(opening)
    written: list[str] = []
    while len(written) < MAX_TOKENS and not (len(written) >= MIN_TOKENS and written[-1] in ".!?"):
        length = next(n for n in range(order - 1, -1, -1) if tuple(history[len(history) - n :]) in followers or not n)
        token = rng.choice(followers[tuple(history[len(history) - length :])])
        history.append(token)
        written.append(token)
    return _join(written)


def _join(words_and_marks: Iterable[str]) -> str:
    text = ""
    for piece in words_and_marks:
        if not piece[0].isalpha():
            text = text.rstrip(" .,;:!?") + piece if text else ""
        elif not text:
            text = _capitalised(piece)
        else:
            text += " " + (_capitalised(piece) if text[-1] in ".!?" else piece)
    return text if text[-1] in ".!?" else text.rstrip(" ,;:") + "."


def _capitalised(word: str) -> str:
    return word[0].upper() + word[1:]


def repeat_opening(opening: str, others: Sequence[Fable], rng: Random) -> str:
    """Say the last sentence of the opening again: a baseline that is fluent and tells nothing new."""
    return sentences_of(opening)[-1]


def extract_sentences(opening: str, others: Sequence[Fable], rng: Random) -> str:
    """Take the sentences of other endings that share the rarest words with the opening."""
    weights = word_weights(others)
    wanted = set(_words(opening))
    found = [
        (sum(weights.get(word, 0.0) for word in wanted.intersection(_words(sentence))), place, sentence)
        for place, sentence in enumerate(sentence for fable in others for sentence in sentences_of(fable.ending))
    ]
    best = sorted(found, key=lambda row: (-row[0], row[1]))[:EXTRACTED_SENTENCES]
    return " ".join(sentence for _, _, sentence in sorted(best, key=lambda row: row[1]))


def take_nearest_ending(opening: str, others: Sequence[Fable], rng: Random) -> str:
    """Take the ending of the fable whose opening is most alike by its words."""
    return nearest_fable(opening, others).ending


def rename_nearest_ending(opening: str, others: Sequence[Fable], rng: Random) -> str:
    """Take the nearest ending, with the characters of this opening in the places of the other ones."""
    nearest = nearest_fable(opening, others)
    new, old = characters_of(opening), characters_of(f"{nearest.opening} {nearest.ending}")
    if not new:
        return nearest.ending
    names = {name: new[place % len(new)] for place, name in enumerate(old)}
    return re.sub(r"\b[A-Z][a-z]+\b", lambda found: names.get(found[0], found[0]), nearest.ending)


def nearest_fable(opening: str, others: Sequence[Fable]) -> Fable:
    """Return the fable with the highest cosine between the weighted words of the openings."""
    weights = word_weights(others)

    def vector(text: str) -> dict[str, float]:
        return {word: n * weights.get(word, 0.0) for word, n in Counter(_words(text)).items()}

    mine = vector(opening)

    def likeness(fable: Fable) -> float:
        other = vector(fable.opening)
        size = math.hypot(*other.values()) * math.hypot(*mine.values())
        return sum(value * other.get(word, 0.0) for word, value in mine.items()) / size if size else 0.0

    return max(others, key=likeness)


def word_weights(fables: Sequence[Fable]) -> dict[str, float]:
    """Return the logarithm of how rare each word is: the number of fables over that of fables with the word."""
    found = Counter(word for fable in fables for word in set(_words(f"{fable.opening} {fable.ending}")))
    return {word: math.log(len(fables) / n) for word, n in found.items()}


def characters_of(text: str) -> list[str]:
    """Return the names of animals and people, each once, in the order of the text."""
    return list(dict.fromkeys(_CHARACTER.findall(text)))


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text. A quote that a sentence does not close is left out."""
    found = [sentence.strip() for sentence in _SENTENCE.findall(text)] or [text]
    return [sentence if sentence.count('"') % 2 == 0 else sentence.replace('"', "") for sentence in found]


def _words(text: str) -> list[str]:
    return [token.lower() for token in _TOKEN.findall(text) if token[0].isalpha()]


WRITERS: dict[str, Writer] = {
    "one word": partial(write_by_ngrams, order=1),
    "two words": partial(write_by_ngrams, order=2),
    "three words": partial(write_by_ngrams, order=3),
    "echo": repeat_opening,
    "rare words": extract_sentences,
    "nearest fable": take_nearest_ending,
    "nearest fable, renamed": rename_nearest_ending,
}


def continue_fables(name: str, fables: Sequence[Fable], seed: int) -> dict[str, str]:
    """Return the system's ending of each fable, by key. It never sees the fable's own ending."""
    texts = {}
    for fable in fables:
        others = [other for other in fables if other.key != fable.key]
        texts[fable.key] = WRITERS[name](fable.opening, others, Random(f"{seed} {name} {fable.key}"))
    return texts


# Make the demo board, and play its rounds with robots. Each step looks at what exists, so that a cut-off job goes on
# where it was.


KIND = "demo_board"
SEED = 20261127
TEST_QUESTIONS_OF_A_TYPE = 24
Progress = Callable[[int, int, str], object]


@transaction.atomic
def get_or_create_demo_board(user) -> Board:
    """Return the demo board. If it does not exist, make it. Unless its rounds are over, a job plays them."""
    board = Board.objects.filter(slug=SLUG).first() or create_demo_board(user)
    is_waiting = Job.objects.filter(kind=KIND).exclude(state__in=jobs.ENDED).exists()
    if not is_waiting and board.snapshots.count() < len(WEEKS):
        jobs.submit(KIND, by=user, board=board.pk)
    return board


def load_fables() -> list[Fable]:
    return [Fable(row["key"], row["prompt"], row["outputs"][HUMAN]) for row in load_demo_texts()]


@transaction.atomic
def create_demo_board(user, labels_per_output: int = 3) -> Board:
    """Make the template, open the board, and make its teams."""
    board = boards.create_board(
        Board(
            slug=SLUG,
            title=TITLE,
            description=DESCRIPTION,
            template=_create_template(user),
            visibility=Board.Visibility.PUBLIC,
            shows_examples=True,
            seed=SEED,
            labels_per_output=labels_per_output,
            # So many that each round scores all anchors.
            anchor_share="0.70",
        ),
        user,
    )
    board = boards.open_board(board, user)
    for name in sorted(set(TEAMS.values())):
        access.create_team(board, user, name)
    return board


def _create_template(user) -> Study:
    study = Study(
        title=TEMPLATE_TITLE,
        public_title=PUBLIC_TITLE,
        seed=SEED,
        purpose=PURPOSE,
        instructions=INSTRUCTIONS,
        consent=CONSENT,
        debriefing=DEBRIEFING,
        institution="heval demo",
        contact="research@example.org",
        retention="Answers without any identity are kept.",
        target_n=20,
        reward="2.00",
        minutes=8,
        wage_per_hour="15.00",
        batches_per_annotator=BATCHES_PER_ANNOTATOR,
    )
    study = drafts.create_draft_with_default_arm(study, user)
    human = System.objects.create(study=study, name=HUMAN, is_human=True)
    fables = load_fables()
    prompts = Prompt.objects.bulk_create(
        Prompt(study=study, key=fable.key, text=fable.opening, language="en") for fable in fables
    )
    Output.objects.bulk_create(
        Output(system=human, prompt=prompt, text=fable.ending, language="en")
        for fable, prompt in zip(fables, prompts, strict=True)
    )
    section = Section.objects.create(
        study=study,
        position=1,
        protocol="rating",
        m=10,
        settings={
            "scores": "unit",
            "shown": "one",
            "noun": "ending",
            "positive_share": 0.2,
            "negative_share": 0.2,
            "neutral": "wrong",
        },
    )
    question = Question.objects.create(
        section=section,
        position=1,
        key="quality",
        text=QUESTION,
        scale={"kind": "likert", "labels": list(LABELS)},
    )
    ExclusionRule.objects.create(
        study=study, position=1, rule="failed_tests", settings={"failed": 2, "counted": 4, "share": None}
    )
    counts = dict.fromkeys(("positive", "negative"), TEST_QUESTIONS_OF_A_TYPE)
    make_test_questions_and_delete_test_runs(section, KnownAnswerRequest(question, counts, human), by=user)
    return Study.objects.get(pk=study.pk)


def play_rounds(board: Board, by, progress: Progress = lambda *_: None) -> list[BoardSnapshot]:
    """Play the rounds that are not over yet. Return the snapshots of all rounds, oldest first."""
    for number, week in enumerate(WEEKS, 1):
        progress(number - 1, len(WEEKS), f"Robots rate the submissions of round {number} of {len(WEEKS)}")
        if board.snapshots.count() < number:
            play_round(board, number, week, by)
    progress(len(WEEKS), len(WEEKS), "All rounds are over")
    return list(board.snapshots.order_by("number"))


def play_round(board: Board, number: int, week: Week, by) -> BoardSnapshot:
    """Submit the outputs of a week, open its round, let robots fill it, close it, and take a snapshot."""
    for name in week.submitted:
        submission = submit(board, name)
        if name in ANCHORS and not submission.is_anchor:
            rounds.choose_anchor(submission, by, True)
    one = board.rounds.filter(number=number, launched_at__isnull=False).select_related("study").first()
    one = one or rounds.open_round(board, by)
    study = one.study
    if study.state == Study.State.LAUNCHED:
        let_robots_answer(one, week)
        study.refresh_from_db()
    # The site itself begins to close a round whose places are filled.
    if study.state == Study.State.LAUNCHED:
        lifecycle.start_closing(study, by, "the demo's robots have finished")
        study.refresh_from_db()
    if study.state == Study.State.CLOSING:
        lifecycle.end_grace_period(study, by)
    return snapshots.take_snapshot(board, by)


def submit(board: Board, name: str) -> Submission:
    """Submit the outputs of a system for its team. A repeated submission changes nothing."""
    rows = [{"prompt": key, "output": text} for key, text in continue_fables(name, load_fables(), seed=SEED).items()]
    file = "".join(json.dumps(row) + "\n" for row in rows).encode()
    team = Team.objects.get(board=board, name=TEAMS[name])
    found, _ = submissions.submit_outputs(board, team, name, "outputs.jsonl", file, description=DESCRIPTIONS[name])
    return found


def let_robots_answer(one: BoardRound, week: Week) -> None:
    """Fill the places of a round: first robots that answer at random in all their batches, then the others."""
    study = one.study
    strengths = {name: STRENGTHS[name] for name in _judged_names(study)}
    for robot in range(week.noisy):
        for batch in range(BATCHES_PER_ANNOTATOR):
            record_simulated_answers(
                study,
                1,
                strengths,
                Random(f"{SEED} noisy {one.number} {robot} {batch}"),
                crowd=CrowdSettings(screened_out=0, acquiescent=0, careless=1),
                name_prefix=f"noisy-{robot}",
            )
    crowd = CrowdSettings(screened_out=0, acquiescent=0, middle=0.0, leniency=week.leniency)
    record_simulated_answers(study, study.target_n or 0, strengths, Random(f"{SEED} {one.number}"), crowd=crowd)


def _judged_names(study: Study) -> Sequence[str]:
    return list(study.systems.judged().order_by("name").values_list("name", flat=True))


def play_rounds_job(job: Job, progress: Progress) -> dict:
    """Play the rounds of the demo board."""
    board = Board.objects.select_related("template").get(pk=job.arguments["board"])
    return {"snapshots": len(play_rounds(board, job.by, progress))}
