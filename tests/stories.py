"""The story experiment of The Authenticity Gap on its real stimuli: import, launch, robots over HTTP, analyse, export.

``python -m tests.stories [robots]`` plays it in a fresh SQLite database and prints what each step took. The stimuli have no
licence and lie beside the project; the readers' answers were never published, so robots answer, with the preference strengths
that the paper's Table 1 prints.
"""

import gzip
import json
import re
from pathlib import Path

from tests import ROOT
from tests.playing import at_home, timed

STORIES = ROOT.parent / "shared" / "data" / "spa_stories.jsonl.gz"
WRITERS = {"A": "ada", "B": "babbage", "C": "curie", "D": "davinci", "E": "human"}
# (x, y, expected, P[x > y], Likert delta): Table 1 of the paper.
TABLE_1 = [
    ("ada", "human", "<", 0.420, -0.822),
    ("babbage", "ada", ">", 0.688, 0.644),
    ("curie", "babbage", ">", 0.630, 0.322),
    ("davinci", "curie", ">", 0.575, 0.244),
    ("human", "davinci", "~", 0.544, -0.389),
]
# Mean ratings that give those deltas.
RATINGS = {"ada": 2.6, "babbage": 3.244, "curie": 3.566, "davinci": 3.81, "human": 3.422}


def rows():
    with gzip.open(STORIES, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def write_import_file(path: Path) -> Path:
    """The published batches in the import format: one row a reader and prompt."""
    with path.open("w", encoding="utf-8") as file:
        for row in rows():
            entry = {
                "batch": f"reader-{row['reader_id']:03}",
                "position": row["position"],
                "prompt_key": row["prompt_id"],
                "prompt_text": row["prompt"],
                "outputs": {WRITERS[letter]: text for letter, text in row["texts"].items()},
            }
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
    return path


def draft(owner, target_n: int):
    from studies.models import Arm, Contrast, Question, Section, Study, StudyMember, System
    from studies.protocols.spa import DEFAULT_EXPLANATION
    from tests.builders import COMMENT, SCREENING, add_survey

    study = Study.objects.create(
        owner=owner,
        title="GPT-3 stories",
        public_title="Five writers, five prompts",
        seed=2022,
        target_n=target_n,
        minutes=20,
        reward="3.50",
        contact="research@example.org",
        consent="You take part of your own free will.",
        purpose="You read continuations of five prompts by five writers.",
        instructions="Read all five continuations of each prompt.",
    )
    StudyMember.objects.create(study=study, user=owner, role=StudyMember.Role.OWNER)
    Arm.objects.create(study=study, name="all")
    systems = {
        name: System.objects.create(study=study, name=name, is_human=name == "human") for name in WRITERS.values()
    }
    add_survey(study, position=1, purpose="screening", questions=[SCREENING])
    spa = Section.objects.create(
        study=study, position=2, protocol="spa", m=5, settings={"noun": "writer", "explanation": DEFAULT_EXPLANATION}
    )
    directed = [pair for x, y, *_ in TABLE_1 for pair in ((x, y), (y, x))]
    for n, (x, y) in enumerate(directed, 1):
        Question.objects.create(
            section=spa,
            position=n,
            key=f"{x}-{y}",
            x=systems[x],
            y=systems[y],
            scale={"kind": "percent"},
            text="Based on what you have read, what is the chance that writer {x} is better than writer {y}?",
        )
    for x, y, expected, *_ in TABLE_1:
        Contrast.objects.create(study=study, x=systems[x], y=systems[y], expected=expected, margin=0.1)
    rating = Section.objects.create(
        study=study, position=3, protocol="rating", m=1, reuses=spa, settings={"noun": "writer"}
    )
    Question.objects.create(
        section=rating,
        position=1,
        key="overall",
        text="How would you rate the first continuation, by writer {label}?",
        scale={"kind": "likert", "low": "worst", "high": "best"},
    )
    add_survey(study, position=4, questions=[COMMENT])
    return study


def reader(systems_of: dict[str, str]):
    """A robot with the paper's mean preferences; it knows a writer by the texts under the writer's letter."""
    from tests.robots import clipped

    chances = {(x, y): p for x, y, _, p, _ in TABLE_1}

    def answer(name, kind, values, asked, page, robot):
        if name.endswith(".skip"):
            return None
        if kind == "textarea":
            return "I liked the second one."
        if kind == "radio" and values[0] == "yes":
            return "yes"
        if kind == "text":
            x, y = (
                writer(robot.read[label]) for label in re.search(r"writer (\w+) is.* writer (\w+)\?", asked).groups()
            )
            chance = chances[x, y] if (x, y) in chances else 1 - chances[y, x]
            return str(clipped(5 * round(20 * (chance + robot.rng.gauss(0, 0.22))), 0, 100))
        return str(clipped(RATINGS[writer(page.texts[name.rsplit(".", 1)[1]])] + robot.rng.gauss(0, 1), 1, 5))

    def writer(texts):
        (name,) = {systems_of[text] for text in texts if text in systems_of}
        return name

    return answer


def shown_text(text: str) -> str:
    """A text as a robot reads it from the page: blanks run together."""
    return " ".join(text.split())


def play(study, n: int) -> None:
    from studies.models import Output
    from tests.builders import panel
    from tests.robots import Robot

    systems_of = {
        shown_text(text): name
        for text, name in Output.objects.filter(system__study=study, is_empty=False).values_list("text", "system__name")
    }
    door = panel(study)
    for number in range(n):
        robot = Robot(f"/e/{door.key}/?who=reader{number}&session=s{number}", reader(systems_of), number)
        heading = robot.play()
        assert heading == "Thank you", heading


def main(robots: int) -> None:
    home = at_home("stories")
    from django.core.management import call_command

    from analysis.report.runs import run_analysis
    from studies.imports.tables import Options, import_stimuli_file
    from studies.models import Study
    from studies.services import lifecycle
    from tests.builders import user, warnings_of

    owner = user()
    study = draft(owner, robots)
    path = write_import_file(home / "stories.jsonl")
    options = Options(makes_batches=True, allows_empty=True)
    report = timed(
        "dry run of the import", lambda: import_stimuli_file(study, path, options=options, by=owner, is_dry_run=True)
    )
    for finding in report.findings:
        print("   ", finding.text)
    timed("import: 750 rows, 3,750 outputs", lambda: import_stimuli_file(study, path, options=options, by=owner))
    timed("the same again", lambda: import_stimuli_file(study, path, options=options, by=owner))
    study = timed("launch", lambda: lifecycle.launch(study, owner, warnings_of(study)))
    timed(f"{robots} robots over HTTP", lambda: play(study, robots))
    lifecycle.start_closing(study, owner)
    lifecycle.end_grace_period(study, owner)
    study = Study.objects.get(pk=study.pk)
    run = timed("analysis", lambda: run_analysis(study, None, by=owner))
    for sentence in run.result["conclusions"]:
        print("   ", sentence["apa"], "|", sentence["recovered"])
    for file in ("responses.csv", "responses.jsonl", "archive.zip"):
        out = home / file
        timed(
            f"export {file}",
            lambda file=file, out=out: call_command("study", "export", str(study.code), file, "--output", str(out)),
        )
        print(f"    {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    import sys

    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
