"""What heval exports comes back: for every protocol and format, a clone that imports the answers has the same answers and numbers."""

import random
from pathlib import Path

import pytest

from analysis.data.exports import csv_blocks, jsonl_blocks_with_summary_line, write_parquet
from analysis.data.flat_rows import Selection
from analysis.report.build import build_report
from annotators.imports import import_answers_and_close_draft
from annotators.models import Response
from studies.models import Study
from studies.protocols import REGISTRY
from studies.services import lifecycle
from studies.services.copying import clone_study
from studies.services.questions import add_missing_questions, select_system_pairs
from tests import builders
from tests.analysis.protocols.numbers import numbers
from tests.builders import COMMENT, SCREENING, draft_study, launched, user
from tests.players import play, submitted

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_orders")]
SKIPPED = [{"key": "cannot_judge", "label": "I cannot judge"}]


def choice(study, position):
    return builders.add_choice(study, position=position, m=3, strategy="any", stopping="none", allows_tie=True)


def spa(study, position):
    section = builders.add_spa(study, position=position, m=2)
    pairs = select_system_pairs(section, "neighbours")
    add_missing_questions(section, pairs, "", by=None, size_text="How much better is {x} than {y}?")
    builders.add_rating(study, position=position + 1, reuses=section, m=2)
    return section


def survey(study, position):
    builders.add_rating(study, position=position, m=2)
    boxes = {"kind": "multiple", "options": [{"key": "a", "label": "A, or b"}, {"key": "b", "label": "-B"}]}
    screening = SCREENING | {
        "scale": {"kind": "choice", "options": [{"key": "yes", "label": "Yes"}, {"key": "no", "label": "No"}]}
    }
    asked = [screening, COMMENT | {"required": True}, {"key": "which", "text": "Which?", "scale": boxes}]
    return builders.add_survey(study, position=position + 1, questions=asked)


SECTIONS = {
    "best_worst": lambda study, position: builders.add_section(study, "best_worst", position=position, m=3, settings={"set_size": 3}),
    "humanlike": lambda study, position: builders.add_humanlike(study, position=position, m=3),
    "marks": lambda study, position: builders.add_marks(study, position=position, m=2),
    "ranking": lambda study, position: builders.add_ranking(study, position=position, m=2),
    "rating": lambda study, position: builders.add_rating(study, position=position, m=2),
    "relative": lambda study, position: builders.add_relative(study, position=position, m=4),
    "spa": spa,
    "survey": survey,
    "two_choice": choice,
}  # fmt: skip
SYSTEMS = ("alpha", "-beta", "=gamma", "@delta")
STRENGTHS = dict(zip(SYSTEMS, (0.0, 0.5, 1.0, 1.5), strict=True))
FORMATS = ("csv", "raw csv", "jsonl", "parquet")


def closed(protocol: str) -> Study:
    """A study of one protocol with four systems that five people answered."""
    systems = (*SYSTEMS[:-1], "human") if protocol == "humanlike" else SYSTEMS
    study = draft_study(systems=systems, prompts=60, target_n=5, owner=user(), instructions="", annotators_per_batch=2)
    SECTIONS[protocol](study, 1)
    for section in study.sections.exclude(
        protocol__in=["spa", "survey", "ranking", "best_worst", "marks", "humanlike"]
    ):
        section.questions.update(skip_reasons=SKIPPED)
    study.contrasts.all().delete()
    study = launched(study)
    for n in range(5):
        if protocol == "best_worst":  # which has no tie
            submitted(study, f"person {n}", random.Random(n))
        else:
            play(study, n, strengths=STRENGTHS)
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    return Study.objects.get(pk=study.pk)


def exported(study: Study, file_format: str, folder: Path) -> Path:
    selection = Selection(study)
    if file_format == "parquet":
        write_parquet("responses", selection, folder / "own.parquet")
        return folder / "own.parquet"
    if file_format == "jsonl":
        blocks = jsonl_blocks_with_summary_line("responses", selection)
    else:
        blocks = csv_blocks("responses", selection, raw=file_format == "raw csv")
    path = folder / f"own.{'jsonl' if file_format == 'jsonl' else 'csv'}"
    path.write_bytes(b"".join(blocks))
    return path


def given(study: Study) -> list:
    """Every answer of every person, without the names of people."""
    people: dict[int, list] = {}
    rows = Response.objects.filter(assignment__study=study).values_list(
        "assignment__annotator", "question__section__position", "question__key", "item__prompt__key", "exposure__output__system__name", "value",
        "chosen__output__system__name", "choice", "part", "text", "skip_reason", "label", "position", "received_at",
    )  # fmt: skip
    for person, *answer in rows:
        people.setdefault(person, []).append(tuple(map(str, answer)))
    return sorted(sorted(answers) for answers in people.values())


def shown(study: Study) -> set:
    """What was shown: the systems of each item that was answered."""
    items: dict[int, set] = {}
    exposures = Response.objects.filter(assignment__study=study, item__isnull=False).values_list(
        "item_id", "item__prompt__key", "item__section__position", "item__exposures__output__system__name"
    )
    for item, prompt, section, system in exposures:
        items.setdefault(item, set()).add((prompt, section, system))
    return {frozenset(one) for one in items.values()}


def test_every_protocol_is_here():
    assert set(SECTIONS) == set(REGISTRY)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", SECTIONS)
def test_a_clone_that_imports_an_export_has_the_same_answers_and_numbers(tmp_path, protocol):
    study = closed(protocol)
    answers, live = given(study), numbers(build_report(study, {"resamples": 99}))
    assert answers
    for file_format in FORMATS:
        clone = clone_study(study, user())
        path = exported(study, file_format, tmp_path)
        report = import_answers_and_close_draft(clone, path, by=None)
        assert report.is_written, (protocol, file_format, [str(problem) for problem in report.problems][:10])
        assert report.rows == report.counts["answers"].new == Response.objects.filter(assignment__study=study).count()
        clone = Study.objects.get(pk=clone.pk)
        assert given(clone) == answers and shown(clone) == shown(study), (protocol, file_format)
        imported = numbers(build_report(clone, {"resamples": 99}))
        assert live.keys() == imported.keys(), (protocol, file_format)
        for key, value in live.items():
            if key[0] == "choice.times":  # the export has no times of pages
                assert imported[key][0] != imported[key][0], (file_format, key)
                continue
            assert imported[key] == pytest.approx(value, rel=1e-5, abs=1e-7, nan_ok=True), (file_format, key)
