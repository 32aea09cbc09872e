"""Human or machine on texts of our own: the demo's fables, whose origin is known, under the template of that experiment.

``python -m tests.origins [robots] [crowd]`` plays it in a fresh SQLite database and prints what each step took, and what the report
finds beside what was put in. Who comes when gets the same machine in every play, so that one crowd of robots brings its chance with it
each time: without a number another crowd comes. The machines are word n-gram models of rising order, the human texts are those of a translation in the
public domain (tools/demo_texts). Robots tell each machine from the human author with a sensitivity that is set.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from random import randrange
from statistics import NormalDist
from typing import Any

from heval_site.management.demo_texts import SYSTEMS, load_demo_texts
from tests.playing import at_home, timed

*MACHINES, HUMAN = SYSTEMS
DOMAIN = "stories"
# How far the machine's texts lie from human ones for every robot, in standard deviations: the longer the runs, the harder to tell.
SENSITIVITIES = {"order-1": 2.0, "order-2": 1.5, "order-3": 1.0, "order-5": 0.4}
# What a robot calls a machine's: evidence above this, where human texts lie around 0.
CUT = 0.75
REASONS = ("It goes on and on about nothing, number {}.", "The beginning and the end fit one another, number {}.")


def write_import_file(path: Path) -> Path:
    """The shipped stimuli in the import format."""
    with path.open("w", encoding="utf-8") as file:
        for record in load_demo_texts():
            entry = {
                "prompt_key": record["key"],
                "prompt_text": record["prompt"],
                "domain": DOMAIN,
                "outputs": record["outputs"],
            }
            file.write(json.dumps(entry) + "\n")
    return path


def draft(owner: Any, target_n: int):
    """The template of the paper's untrained experiment with our machines, one an annotator, on one domain."""
    from studies.imports.study_templates import TEMPLATES_BY_SLUG, create_draft_from_template
    from studies.models import Arm, ArmSystem, Study, System

    study = create_draft_from_template(TEMPLATES_BY_SLUG["human_or_machine"], owner)
    # The same draw each time; ours to write to.
    Study.objects.filter(pk=study.pk).update(
        title="Fables of known origin",
        target_n=target_n,
        seed=1867,
        contact="research@example.org",
        consent="You take part of your own free will.",
    )
    ArmSystem.objects.filter(arm__study=study).delete()
    study.arms.all().delete()
    study.systems.exclude(name=HUMAN).delete()
    human = study.systems.get(name=HUMAN)
    for machine in MACHINES:
        arm = Arm.objects.create(study=study, name=f"{DOMAIN}, {machine}", domain=DOMAIN, condition="none")
        arm.systems.set([human, System.objects.create(study=study, name=machine)])
    return Study.objects.get(pk=study.pk)


def judging(author_of: dict[str, str]):
    """Someone who reads who wrote a text off the text, with the machine's sensitivity and one cut for all."""

    def answer(name, kind, values, asked, page, robot):
        if kind == "textarea":
            return robot.rng.choice(REASONS).format(robot.rng.randrange(10**6))
        (text,) = page.texts[name.rsplit(".", 1)[1]]
        evidence = SENSITIVITIES.get(author_of[text], 0.0) + robot.rng.gauss(0, 1) - CUT
        return str(1 + (evidence > -1) + (evidence > 0) + (evidence > 1))

    return answer


def play(study, n: int, crowd: int = 0) -> None:
    from studies.models import Output
    from tests.builders import panel
    from tests.robots import Robot
    from tests.stories import shown_text

    rows = Output.objects.filter(system__study=study).values_list("text", "system__name")
    answer = judging({shown_text(text): name for text, name in rows})
    door = panel(study)
    for number in range(n):
        heading = Robot(f"/e/{door.key}/?who=w{number}&session=s{number}", answer, f"{crowd}.{number}").play()
        assert heading == "Thank you", heading


def expected_accuracy(d_prime: float) -> float:
    """The share of right answers at the cut, as many human texts as machine texts."""
    normal = NormalDist()
    return (normal.cdf(CUT) + normal.cdf(d_prime - CUT)) / 2


def found_in(result: dict) -> Iterator[tuple[str, dict, dict]]:
    """Machine, its row in the layout of the paper's Table 1, and its row of sensitivity and leaning."""
    tables = {one["name"]: one["rows"] for one in result["tables"]}
    paper = {row["model"]: row for row in tables["paper_table_1"]}
    for row in tables["detection"]:
        if row["domain"] == "all":
            yield row["model"], paper[row["model"]], row


def main(robots: int, crowd: int) -> None:
    home = at_home("origins")
    from analysis.report.runs import run_analysis
    from studies.imports.tables import Options, import_stimuli_file
    from studies.models import Study
    from studies.services import lifecycle
    from tests.builders import user, warnings_of

    owner = user()
    study = timed("draft from the template", lambda: draft(owner, robots))
    path = write_import_file(home / "fables.jsonl")
    timed("import: 24 prompts, 120 outputs", lambda: import_stimuli_file(study, path, options=Options(), by=owner))
    for words in warnings_of(study):
        print("    acknowledged:", words)
    study = timed("launch", lambda: lifecycle.launch(study, owner, warnings_of(study)))
    timed(f"{robots} robots over HTTP, crowd {crowd}", lambda: play(study, robots, crowd))
    lifecycle.start_closing(study, owner), lifecycle.end_grace_period(study, owner)
    run = timed("analysis", lambda: run_analysis(Study.objects.get(pk=study.pk), None, by=owner))
    print(
        f"{'machine':10} {'n':>4} | {'d put in':>8} {'found':>6} {'95% CI':>16} | {'correct, put in':>15} {'found':>6} {'% human':>8}"
    )
    for machine, paper, row in found_in(run.result):
        low, high = row["d_interval"]
        print(
            f"{machine:10} {row['n']:4} | {SENSITIVITIES[machine]:8.2f} {row['d']:6.2f} {f'[{low:.2f}, {high:.2f}]':>16} | "
            f"{expected_accuracy(SENSITIVITIES[machine]):15.3f} {paper['accuracy']:6.3f} {paper['human']:8.1%}"
        )
    for sentence in run.result["conclusions"]:
        print("   ", sentence["claim"], sentence["text"])


if __name__ == "__main__":
    import sys

    given = [int(word) for word in sys.argv[1:]]
    main(given[0] if given else 400, given[1] if len(given) > 1 else randrange(10**6))
