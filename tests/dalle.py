"""The image experiment of The Authenticity Gap on its real stimuli: import, launch, robots over HTTP, analyse.

``python -m tests.dalle [robots]`` plays it in a fresh SQLite database and prints what each step took, and the curve over m. The
images have no licence and lie beside the project; the readers' answers were never published, so robots answer.
"""

import csv
import json
import re
import zipfile
from pathlib import Path

from tests import ROOT
from tests.playing import at_home, timed

DATA = ROOT.parent / "shared" / "data"
SYSTEMS = {"left_file_raw": "dalle-raw", "right_file_scrambled": "dalle-scrambled"}
LEVELS = (1, 2, 4, 8)
# What robots think that raw's chance is after m images: the paper prints a figure of it, and no numbers.
CHANCES = {1: 0.7, 2: 0.62, 4: 0.68, 8: 0.72}


def rows(name: str):
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def write_import_file(path: Path) -> Path:
    """The readers' batches in the import format, one row a reader and prompt, with the images that they name."""
    texts = {row["prompt_id"]: row["prompt"] for row in rows("dalle_manifest.csv")}
    samples = {row["file"]: int(row["sample"]) - 1 for row in rows("dalle_manifest.csv")}
    entries = [
        {
            "batch": f"reader-{int(row['reader_id']):03}",
            "section": LEVELS.index(int(row["m"])) + 1,
            "position": place,
            "prompt_key": row["prompt_id"],
            "prompt_text": texts[row["prompt_id"]],
            "outputs": {
                system: {"image": row[column], "sample": samples[row[column]]} for column, system in SYSTEMS.items()
            },
        }
        for place, row in enumerate(rows("dalle_assignments.csv"), 1)
    ]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("batches.jsonl", "\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries))
        for name in samples:
            archive.write(DATA / "dalle_images" / name, name)
    return path


def draft(owner, target_n: int):
    from studies.models import Arm, Contrast, ExclusionRule, Question, Section, Study, StudyMember, System
    from studies.protocols.spa import DEFAULT_EXPLANATION

    study = Study.objects.create(
        owner=owner,
        title="DALL-E, scrambled",
        public_title="Pictures by eight artists",
        seed=2022,
        target_n=target_n,
        minutes=15,
        reward="3.00",
        contact="research@example.org",
        consent="You take part of your own free will.",
        purpose="You look at pictures that eight artists made for the same words.",
    )
    StudyMember.objects.create(study=study, user=owner, role=StudyMember.Role.OWNER)
    Arm.objects.create(study=study, name="all")
    raw, scrambled = (System.objects.create(study=study, name=name) for name in SYSTEMS.values())
    for position, m in enumerate(LEVELS, 1):
        section = Section.objects.create(
            study=study,
            position=position,
            protocol="spa",
            m=m,
            settings={"noun": "artist", "labels": "continue", "explanation": DEFAULT_EXPLANATION},
        )
        for n, (x, y) in enumerate([(raw, scrambled), (scrambled, raw)], 1):
            Question.objects.create(
                section=section,
                position=n,
                key=f"{x.name}-{y.name}"[:50],
                x=x,
                y=y,
                scale={"kind": "percent"},
                text="Based on what you have seen, what is the chance that artist {x} is better than artist {y}?",
            )
    Contrast.objects.create(study=study, x=raw, y=scrambled, expected=">", margin=0.1)
    ExclusionRule.objects.create(study=study, position=1, rule="incoherent", settings={"tau": 1.1})
    return study


def reader(systems_of, exposures_of):
    """A robot that knows an artist by the pictures under the letter; one in six leans to the artist who is named first."""
    from tests.robots import clipped

    def answer(name, kind, values, asked, page, robot):
        if name.endswith(".skip"):
            return None
        letters = re.search(r"artist (\w+) is better than artist (\w+)\?", asked).groups()
        first, second = (painter(robot, letter) for letter in letters)
        assert first != second
        chance = CHANCES[len(robot.read[letters[0]])]
        share = (chance if first == "dalle-raw" else 1 - chance) + (0.2 if robot.address[-1] in "05" else 0.0)
        return str(clipped(5 * round(20 * (share + robot.rng.gauss(0, 0.2))), 0, 100))

    def painter(robot, letter):
        (name,) = {systems_of[exposures_of(src)] for src in robot.read[letter]}
        return name

    return answer


def play(study, n: int) -> None:
    """Robots by the panel's link. They see keyed addresses alone; whose picture each is, this knows from the other side."""
    from annotators.models import Assignment
    from annotators.pages.sequence import media_file_names_by_id
    from studies.models import Output
    from tests.builders import panel
    from tests.robots import Robot

    systems_of = dict(Output.objects.filter(system__study=study).values_list("media", "system__name"))
    names: dict[str, dict[str, str]] = {}

    def exposures_of(src):
        _, _, code, _, media = src.split("/")
        if code not in names:
            names[code] = media_file_names_by_id(Assignment.objects.get(code=code))
        return names[code][media]

    door = panel(study)
    for number in range(n):
        robot = Robot(f"/e/{door.key}/?session=s{number}&who=reader{number}", reader(systems_of, exposures_of), number)
        heading = robot.play()
        assert heading == "Thank you" and sorted(robot.read) == list("ABCDEFGH"), heading


def main(robots: int) -> None:
    if not DATA.is_dir():
        print("The real images do not lie beside the project: nothing to play.")
        return
    home = at_home("dalle")
    from analysis.report.runs import run_analysis
    from studies.imports.tables import Options, import_stimuli_file
    from studies.models import Study
    from studies.services import lifecycle
    from tests.builders import user, warnings_of

    owner = user()
    study = draft(owner, robots)
    path = write_import_file(home / "dalle.zip")
    options = Options(makes_batches=True)
    report = timed("dry run", lambda: import_stimuli_file(study, path, options=options, by=owner, is_dry_run=True))
    for finding in report.findings:
        print("   ", finding.text)
    timed("import: 150 batches, 120 images", lambda: import_stimuli_file(study, path, options=options, by=owner))
    timed("the same again", lambda: import_stimuli_file(study, path, options=options, by=owner))
    study = timed("launch", lambda: lifecycle.launch(study, owner, warnings_of(study)))
    timed(f"{robots} robots over HTTP", lambda: play(study, robots))
    lifecycle.start_closing(study, owner)
    lifecycle.end_grace_period(study, owner)
    study = Study.objects.get(pk=study.pk)
    run = timed("analysis", lambda: run_analysis(study, None, by=owner))
    for problem in run.result["problems"]:
        print("   ", problem)
    for name in ("exposure_levels", "exposures", "gap"):
        for row in next(table for table in run.result["tables"] if table["name"] == name)["rows"]:
            what = row.get("estimand") or row.get("what") or row.get("contrast")
            value = row["estimate"] if "estimate" in row else row["gap"]
            print(f"    {what:90.90} {value:6.3f}  {row['interval']}  n = {row['n']}")


if __name__ == "__main__":
    import sys

    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
