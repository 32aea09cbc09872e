"""The published stories are imported whole."""

import gzip
import json
import time
from pathlib import Path

import pytest

from studies.models import Exposure, Output, Placement
from tests.builders import add_spa, draft_study
from tests.studies.imports.files import contents, lines, sound

LETTERS = dict(zip("ABCDE", ["ada", "babbage", "curie", "davinci", "human"], strict=True))


def stories(path: Path) -> list[dict]:
    """The published rows as ready-made batches; the one empty text is said to be empty."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [
        {
            "batch": f"reader-{row['reader_id']:03}",
            "position": row["position"],
            "prompt_key": row["prompt_id"],
            "prompt_text": row["prompt"],
            "outputs": {LETTERS[letter]: text or {"is_empty": True} for letter, text in row["texts"].items()},
        }
        for row in rows
    ]


@pytest.mark.slow
@pytest.mark.shared
def test_the_published_stories_are_imported_whole(db, put, shared):
    study = draft_study(systems=(), prompts=0)
    add_spa(study, m=5, pairs=[])
    rows = stories(shared / "spa_stories.jsonl.gz")
    options = {"into": study, "makes_batches": True, "creates_systems": True}
    began = time.process_time()
    dry = sound(put(lines(rows), "stories.jsonl", is_dry_run=True, **options))
    assert not study.prompts.exists()
    report = sound(put(lines(rows), "stories.jsonl", agreed=dry.outcome(), **options))
    seconds = time.process_time() - began
    counts = {kind: count.new for kind, count in report.counts.items()}
    # Three human texts were shown to two readers each: 747 of 750 human outputs, so 3,747 outputs in 3,750 exposures.
    assert counts == {"systems": 5, "prompts": 601, "outputs": 3747, "batches": 150}
    assert study.items.count() == 750 and Exposure.objects.filter(item__study=study).count() == 3750
    assert Placement.objects.filter(batch__study=study).count() == 750
    assert Output.objects.filter(system__study=study, is_empty=True).values_list(
        "system__name", "prompt__key"
    ).get() == ("human", "p600697fb")
    found = {finding.kind: finding for finding in report.findings}
    assert (
        found["prompt_twice_in_batch"].examples[0].startswith("reader-042")
        and found["prompt_twice_in_batch"].count == 3
    )
    assert {"surface:tokeniser_quotes", "surface:tokenised_spacing", "surface:other_scripts", "surface:words"} <= set(
        found
    )
    assert "human" in found["surface:tokeniser_quotes"].text and "ada" in found["surface:other_scripts"].text
    assert found["empty"].count == 1 and report.missing_count == 0
    assert contents(study)["reader-110"][1][-1] == ""
    assert {row["prompt_key"] for row in rows if row["batch"] == "reader-007"} == {
        place[0] for place in contents(study)["reader-007"]
    }
    _check_stored_as_published(study, rows)
    assert not sound(put(lines(rows), "stories.jsonl", **options)).has_changes
    assert seconds < 30, f"{seconds:.1f} s"


def _check_stored_as_published(study, rows) -> None:
    published = {
        (row["prompt_key"], system, text)
        for row in rows
        for system, text in row["outputs"].items()
        if isinstance(text, str)
    }
    stored = set(
        Output.objects.filter(system__study=study, is_empty=False).values_list("prompt__key", "system__name", "text")
    )
    assert stored == published
    every = [text for _, _, text in stored]
    assert sum("&amp;" in text for text in every) == 1 and max(text.count("ú") for text in every) >= 789
    assert any("</story>" in text for text in every) and any("<<light>" in text for text in every)
    assert any("軍" in text for text in every)
