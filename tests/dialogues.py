"""The published labels of Dynamic Human Evaluation on their real pairs: stimuli and answers imported, analysed, and the paper's figures printed.

``python -m tests.dialogues`` does it in a fresh SQLite database and prints what each step took. Pairs and labels have no licence
and lie beside the project; the paper's third batch is not among them. One report has all values of delta.
"""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

from tests import ROOT
from tests.playing import at_home, timed
from tools.proofs.papers.dynamic import DELTAS, FILES, KAPPA, RELEASED, TABLE_6, TABLE_7, confidence

DATA = ROOT.parent / "shared" / "data"
# The file's names of the columns.
COLUMNS = {
    "annotator": "worker",
    "prompt_key": "pair_id",
    "shown:A": "model_a",
    "shown:B": "model_b",
    "chosen": "chosen_model",
    "label": "choice",
    "time": "submitted_utc",
}
LINES = {
    "7 workers": "7 Workers",
    "5 workers": "5 Workers",
    "max three workers": "Max 3 Workers",
    "one worker": "One Worker",
}


def rows_of(batch: str) -> Iterator[dict[str, str]]:
    with (DATA / FILES[batch]).open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def write_stimuli(batch: str, path: Path) -> Path:
    """The pairs in the import format: a prompt without words, and the sentence of each system."""
    pairs = {row["pair_id"]: row for row in rows_of(batch)}
    with path.open("w", encoding="utf-8") as file:
        for key, row in pairs.items():
            outputs = {row["model_a"]: row["sentence_a"], row["model_b"]: row["sentence_b"]}
            attributes = {name: row[name] for name in ("sentiment", "verb_tense", "pronoun")}
            file.write(json.dumps({"prompt_key": key, "outputs": outputs, "attributes": attributes}) + "\n")
    return path


def draft(owner, batch: str):
    """The paper's comparison without people to come: any number of labels an item, no stopping, CGA expected to be better."""
    from studies.models import Arm, Contrast, Question, Section, Study, StudyMember, System

    study = Study.objects.create(owner=owner, title=batch, seed=2021)
    StudyMember.objects.create(study=study, user=owner, role=StudyMember.Role.OWNER)
    Arm.objects.create(study=study, name="all")
    systems = {name: System.objects.create(study=study, name=name) for name in ("CGA", batch.split()[0])}
    section = Section.objects.create(
        study=study,
        position=1,
        protocol="two_choice",
        m=1,
        settings={"noun": "sentence", "strategy": "any", "stopping": "none", "delta": DELTAS[0]},
    )
    Question.objects.create(
        section=section,
        position=1,
        key="better",
        text="Which sentence is more natural?",
        scale={"kind": "output"},
        help="Could a native speaker have written it?",
    )
    Contrast.objects.create(study=study, x=systems["CGA"], y=systems[batch.split()[0]], expected=">")
    return study


def found_in(result: dict) -> dict[str, float]:
    """The figures of a report that the paper prints too, by name."""
    made: dict[str, float] = {}
    for block in result["blocks"]:
        for estimate in block["estimates"]:
            if block["name"] == "choice.agreement":
                made[estimate["estimand"]] = estimate["estimate"]
            if block["name"] == "choice.replay":
                settings = estimate["settings"]
                line = f"{LINES.get(settings['system'], settings['system'])}, {confidence(settings['delta'])}, {block['mode']}"
                made[line] = estimate["estimate"]
                made[f"{line}, share decided"] = estimate["detail"]["share_decided"]
            if block["name"] == "choice.preference":
                made[f"share of x, {block['mode']}"] = estimate["estimate"]
    return made


def print_figures(batch: str, found: dict[str, float]) -> None:
    print(f"  {batch} (ours / published)")
    by_side, by_system = (found[f"Fleiss' kappa by {coding}"] for coding in ("side of the screen", "system"))
    print(f"    Fleiss' kappa by side {by_side:.4f} / {KAPPA[batch]}, by system {by_system:.4f} / not printed")
    for line, published in TABLE_6[batch].items():
        for place, delta in enumerate(DELTAS):
            name = f"{counted_as_published(batch) if line == 'Max 3 Workers' else line}, {confidence(delta)}"
            share = found[f"{name}, paper, share decided"]
            table_7 = (
                f", {share:.1%} decide / {TABLE_7[place]:.0%}" if line == "One Worker" and batch != "V1 vs CGA" else ""
            )
            needed = found[f"{line}, {confidence(delta)}, recommended"]
            print(
                f"    Table 6, {name}: crossing that stays {found[f'{name}, paper']:7.1f} / {published[place]}{table_7}; "
                f"needed to the first crossing {needed:7.1f}"
            )


def counted_as_published(batch: str) -> str:
    """The line of a report whose third labels are counted as in the released analysis; x is CGA."""
    first = {"unless_both_a": "CGA", "unless_both_b": batch.split()[0]}[RELEASED[batch]]
    return f"max three workers, a third label counted unless both chose {first}"


def main() -> None:
    home = at_home("dialogues")
    from analysis.report.runs import run_analysis
    from annotators.imports import Options as AnswerOptions
    from annotators.imports import import_answers_and_close_draft
    from studies.imports.tables import Options, import_stimuli_file
    from studies.models import Study
    from tests.builders import user

    owner = user()
    how = AnswerOptions(COLUMNS)

    def played(batch: str) -> None:
        stimuli, answers = write_stimuli(batch, home / "pairs.jsonl"), DATA / FILES[batch]
        study = draft(owner, batch)
        timed(
            "pairs: 500 prompts, 1,000 outputs",
            lambda: import_stimuli_file(study, stimuli, options=Options(), by=owner),
        )
        look = timed(
            "dry run of the answers",
            lambda: import_answers_and_close_draft(study, answers, options=how, by=owner, is_dry_run=True),
        )
        assert look.is_sound, [str(problem) for problem in look.problems][:5]
        print("   ", {kind: count.new for kind, count in look.counts.items()}, [one.text for one in look.findings])
        timed("answers: 5,000", lambda: import_answers_and_close_draft(study, answers, options=how, by=owner))
        frozen = Study.objects.get(pk=study.pk)
        again = timed("the same again", lambda: import_answers_and_close_draft(frozen, answers, options=how, by=owner))
        assert not again.has_changes
        run = timed("analysis", lambda: run_analysis(frozen, {"deltas": DELTAS}, by=owner))
        for sentence in run.result["conclusions"]:
            print("   ", sentence["text"])
        print_figures(batch, found_in(run.result))

    for batch in FILES:
        played(batch)


if __name__ == "__main__":
    main()
