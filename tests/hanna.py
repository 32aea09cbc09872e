"""The judges of HANNA beside its three people, as a user would bring them in, and what heval says about each judge.

``python -m tests.hanna [criterion …]`` makes the study in a fresh SQLite database and prints figures for docs: explanation/hanna-judges. The facts
have the MIT licence and lie beside the project. The texts are not there, so each output is a placeholder.
"""

import csv
import gzip
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests import ROOT
from tests.playing import at_home, timed

HANNA = ROOT.parent / "shared" / "data" / "hanna_judges.csv.gz"
CRITERIA = ("relevance", "coherence", "empathy", "surprise")
PEOPLE = ("human1", "human2", "human3")
METRICS = ("bleu", "chrf", "rouge_l", "bertscore_f1", "bartscore_sh", "length")
# What each judge's model was made from.
FAMILIES = {
    "beluga_13b": "Llama",
    "orcaplatypus": "Llama",
    "mistral_7b": "Mistral",
    "llama_13b": "Llama",
    "chatgpt": "GPT",
}
KEYS = ("system", "prompt", "criterion")


def read_rows() -> list[dict[str, str]]:
    with gzip.open(HANNA, "rt", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def judges_of(rows: list[dict[str, str]]) -> list[str]:
    return [name for name in rows[0] if name not in (*KEYS, *PEOPLE, *METRICS)]


def as_csv(rows: Iterable[dict[str, str]]) -> bytes:
    rows = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def placeholder(row: dict[str, str]) -> str:
    """Return a text as long as the story, with nothing of it."""
    name = f"Story of {row['system']} for prompt {row['prompt']}."
    return " ".join([name, *["word"] * max(0, round(float(row["length"])) - len(name.split()))])


def make_study(owner, rows: list[dict[str, str]], home: Path, criteria: tuple[str, ...] = CRITERIA):
    """Make the study with placeholders for texts, and import the answers as those of three places."""
    from annotators.imports import import_answers_and_close_draft
    from studies.imports.tables import Options, import_stimuli_file
    from studies.models import Question, Section, Study
    from tests.builders import draft_study

    study = draft_study(systems=(), prompts=0, owner=owner)
    section = Section.objects.create(
        study=study, position=1, protocol="rating", m=96, settings={"scores": "unit", "shown": "one"}
    )
    for position, criterion in enumerate(criteria, 1):
        Question.objects.create(
            section=section,
            position=position,
            key=criterion,
            criterion=criterion,
            text=f"How much {criterion} has text {{label}}?",
            scale={"kind": "likert", "labels": ["1", "2", "3", "4", "5"]},
        )
    outputs = home / "outputs.csv"
    outputs.write_bytes(
        as_csv(
            {
                "system": row["system"],
                "prompt_key": f"p{row['prompt']}",
                "prompt_text": f"Prompt {row['prompt']}",
                "text": placeholder(row),
            }
            for row in rows
            if row["criterion"] == criteria[0]
        )
    )
    import_stimuli_file(study, outputs, options=Options(creates_systems=True), by=owner)
    study = Study.objects.get(pk=study.pk)
    answers = home / "answers.csv"
    answers.write_bytes(
        as_csv(
            {
                "annotator": place,
                "question": row["criterion"],
                "system": row["system"],
                "shown:A": row["system"],
                "prompt_key": f"p{row['prompt']}",
                "value": row[place].removesuffix(".0"),
            }
            for row in rows
            for place in PEOPLE
            if row[place]
        )
    )
    report = import_answers_and_close_draft(study, answers, by=owner)
    assert report.is_sound, [str(problem) for problem in report.problems.first]
    return Study.objects.get(pk=study.pk)


def store_scores(study, rows: list[dict[str, str]]) -> None:
    """Upload the judges by criterion and the metrics of the outputs. Some means of runs lie outside of 1 to 5, so they are cut."""
    from analysis.metrics.files import ScoresFileSettings
    from analysis.metrics.store import MetricDescription, upload_scores

    chosen = ScoresFileSettings(scale_low=1, scale_high=5)
    for model, family in FAMILIES.items():
        judges = [name for name in judges_of(rows) if name.startswith(model)]
        sent = [
            {"system": row["system"], "prompt": f"p{row['prompt']}", "question": row["criterion"]}
            | {name: str(min(5.0, max(1.0, float(row[name])))) for name in judges}
            for row in rows
        ]
        described = MetricDescription("judge", "2024", {"model": model}, family=family, scale_low=1, scale_high=5)
        upload_scores(study, study.owner, "judges.csv", as_csv(sent), chosen, described)
    sent = [
        {"system": row["system"], "prompt": f"p{row['prompt']}"} | {name: row[name] for name in METRICS}
        for row in rows
        if row["criterion"] == rows[0]["criterion"]
    ]
    upload_scores(
        study, study.owner, "metrics.csv", as_csv(sent), ScoresFileSettings(), MetricDescription("metric", "published")
    )


def print_levels(compared: dict[str, Any], calibrated: dict[str, Any]) -> None:
    """Print Kendall's tau with people over systems and within prompts, and how far each judge favours people's and long stories."""
    favours = {
        (row["judge"], row["group"]): row["favour"]
        for row in [*calibrated["bias_by_system"], *calibrated["bias_by_length"]]
    }
    for row in compared["metrics"]:
        name, measures = f"{row['name']} {row['version']}", row["measures"]
        over_systems, within = measures["kendall"]["estimate"], measures["segment_tau"]
        print(
            f"   {name:20} tau over systems {over_systems:5.2f}  within prompts {within['estimate']:5.2f} "
            f"({within['low']:.2f} to {within['high']:.2f})",
            end="",
        )
        for group in ("Human", "long texts"):
            if found := favours.get((name, group)):
                span = found["interval_adjusted"]
                ends = f"{100 * span['low']:+.1f} to {100 * span['high']:+.1f}"
                print(f"  favours {group} {100 * found['estimate']:+.1f} ({ends})", end="")
        print()


def main(criteria: tuple[str, ...]) -> None:
    home = at_home("hanna")
    from analysis.metrics.calibrated.options import CalibrationOptions
    from analysis.metrics.calibrated.run import calibrate
    from analysis.metrics.calibrated.views import bias_sentences, main_sentences, plan_sentences, verdict
    from analysis.metrics.comparison import compare_with_people
    from tests.builders import user

    rows, owner = read_rows(), user()
    study = timed("import: 1,056 stories, 12,672 answers", lambda: make_study(owner, rows, home))
    timed("upload: 20 judges, 6 metrics", lambda: store_scores(study, rows))
    compared = {one.question_id: one.result for one in timed("compare", lambda: compare_with_people(study, owner))}
    options = CalibrationOptions(are_people_known=False)
    for stored in timed("combine and plan", lambda: calibrate(study, options, owner)):
        if criteria and stored.question.key not in criteria:
            continue
        print(f"\n== {stored.question.key}")
        for sentence in (*main_sentences(stored.result, stored.options), *plan_sentences(stored.result)):
            print("  ", sentence)
        for judge in sorted(stored.result["judges"], key=lambda one: -(one["correlation"] or 0)):
            saved = judge["verdicts"].get("useful", 0)
            bias = judge["bias"].get("estimate")
            print(
                f"   {judge['name']:34} r {judge['correlation']:5.2f}  useful for {saved:2} of 11  "
                f"bias {'–' if bias is None else format(100 * bias, '+.1f')}  {verdict(judge['verdicts'])}"
            )
        for sentence in bias_sentences(stored.result):
            print("  ", sentence)
        print_levels(compared[stored.question_id], stored.result)


if __name__ == "__main__":
    import sys

    main(tuple(sys.argv[1:]))
