"""Prepare marks for the statistics: one row per judged output, and one row per sentence of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.protocols.blocks.comparisons import Comparison
from analysis.protocols.blocks.populations import SECOND_SAMPLE
from analysis.protocols.blocks.references import PlantedReferences, planted_references_of
from analysis.protocols.blocks.subjects import words_of_section
from studies.protocols import REGISTRY
from studies.protocols.base.scales import parse_scale
from studies.protocols.marks import ERRORS, SCORE, Codebook
from studies.protocols.marks.text_sentences import WHOLE_TEXT, split_sentences
from studies.stimuli.texts import word_count

if TYPE_CHECKING:
    from pandas import DataFrame

# With the assignment, because only one of an annotator's batches may be excluded. The annotator comes first, because assignments
# are numbered in the order of arrival.
OUTPUT_KEY = ["annotator", "assignment", "item", "system", "sample"]
KEPT_COLUMNS = ["is_kept", "is_kept_paper"]


@dataclass(frozen=True, slots=True)
class JudgedOutputs:
    """A section's judged outputs. ``outputs``: KEY, prompt, penalty, errors, one column ``is:<category>`` and ``at:<severity>`` each
    with counts, score (NaN where not asked), words. ``parts``: KEY, part, is_marked, worst (weight of the worst mark, 0 without)."""

    section: Any
    codebook: Codebook
    references: PlantedReferences
    outputs: "DataFrame"
    parts: "DataFrame"
    has_score: bool
    score_range: tuple[float, float]

    @property
    def title(self) -> str:
        return words_of_section(self.section).circumstance


def read_judged_outputs(frame: "DataFrame", section: Any) -> JudgedOutputs:
    """Return marks and scores of a section by output. An output is judged if a mark or "no error" was stored for it."""
    import pandas as pd

    codebook = REGISTRY[section.protocol].codebook_of(section)  # type: ignore[attr-defined]  # the protocol of marks
    scales = {}
    for question in section.questions.all():
        try:
            scales[question.key] = parse_scale(question.scale)
        except (ValueError, TypeError, KeyError):
            continue  # the frame reports it as a problem
    rows = frame[(frame["section"] == section.position) & frame["system"].notna()]
    marks = rows[(rows["question"] == ERRORS) & rows["value"].notna()]
    errors, score = scales.get(ERRORS), scales.get(SCORE)
    low, high = (errors.minimum, errors.maximum) if errors else (0, 1)
    # Weights have at most four decimals. Rounding removes the error from scaling to 0..1 and back.
    marks = marks.assign(weight=(low + marks["value"] * (high - low)).round(4))
    outputs = marks.groupby(OUTPUT_KEY, sort=True, dropna=False).agg(
        prompt=("prompt", "first"),
        **{SECOND_SAMPLE: (SECOND_SAMPLE, "first")},
        penalty=("weight", "sum"),
        errors=("choice", lambda choices: int((choices != "").sum())),
        **{name: (name, "first") for name in KEPT_COLUMNS},
    )
    real = marks[marks["choice"] != ""]
    for category in codebook.categories:
        outputs[f"is:{category.key}"] = (
            real[real["choice"] == category.key].groupby(OUTPUT_KEY).size().reindex(outputs.index, fill_value=0)
        )
    for category in codebook.severities:
        own_marks = real[real["weight"] == float(category.weight)]
        outputs[f"at:{category.key}"] = own_marks.groupby(OUTPUT_KEY).size().reindex(outputs.index, fill_value=0)
    ends = (float(score.minimum), float(score.maximum)) if score else (0.0, 100.0)
    scores = rows[(rows["question"] == SCORE)].groupby(OUTPUT_KEY)["value"].first().reindex(outputs.index)
    outputs["score"] = ends[0] + scores.astype(float) * (ends[1] - ends[0])
    outputs = outputs.reset_index()
    texts = _output_texts(section)
    outputs["words"] = [
        word_count(texts.get(key, ""))
        for key in zip(outputs["prompt"], outputs["system"], outputs["sample"], strict=True)
    ]
    return JudgedOutputs(
        section,
        codebook,
        planted_references_of(section.study),
        outputs,
        _sentence_rows(outputs, real, texts, pd),
        score is not None,
        ends,
    )


def pivot_outputs(judged_outputs: JudgedOutputs, estimand: str) -> "DataFrame":
    """Return one row per annotator, item and prompt of the annotators that the rules keep, with a column for each system."""
    rows = judged_outputs.outputs[judged_outputs.outputs["is_kept"].astype(bool)]
    return rows.pivot_table(
        index=["annotator", "item", "prompt", SECOND_SAMPLE],
        columns="system",
        values=estimand,
        aggfunc="mean",
        sort=True,
    )


def paired_differences(wide: "DataFrame", estimand: str, comparison: Comparison) -> tuple[Any, Any, Any]:
    """Return differences of outputs judged side by side, above 0 if x is better, with their annotators and second sample."""
    table = wide.reindex(columns=[comparison.x, comparison.y]).dropna().reset_index()
    sign = 1.0 if estimand == SCORE else -1.0
    differences = sign * (table[comparison.x] - table[comparison.y]).to_numpy(float)
    return differences, table["annotator"].to_numpy(object), table[SECOND_SAMPLE].to_numpy(object)


def _sentence_rows(outputs: "DataFrame", error_rows: "DataFrame", texts: Mapping[tuple, str], pd: Any) -> "DataFrame":
    """Return every sentence of every judged output. Marks outside sentences are left out."""
    worst: dict[tuple, float] = {}
    for *key, part, weight in zip(*(error_rows[name] for name in (*OUTPUT_KEY, "part", "weight")), strict=True):
        number = str(part).partition(":")[0]
        if number.isdecimal() and int(number) != WHOLE_TEXT:
            sentence_key = (*key, int(number))
            worst[sentence_key] = max(worst.get(sentence_key, 0.0), float(weight))
    rows = []
    for prompt, *key in zip(outputs["prompt"], *(outputs[name] for name in OUTPUT_KEY), strict=True):
        for part in split_sentences(texts.get((prompt, *key[-2:]), "")):
            weight = worst.get((*key, part.number), 0.0)
            rows.append((*key, part.number, float(weight > 0), weight))
    return pd.DataFrame(rows, columns=[*OUTPUT_KEY, "part", "is_marked", "worst"])


def _output_texts(section: Any) -> dict[tuple, str]:
    """Return the texts of the section's outputs by prompt, system and sample. The frame does not hold them."""
    from studies.models import Output

    outputs = Output.objects.filter(system__study=section.study_id).values_list(
        "prompt__key", "system__name", "sample", "text"
    )
    return {(prompt, system, sample): text for prompt, system, sample, text in outputs}
