"""Prepare a draft's stimuli as declared: normalise texts, shorten outputs, filter prompts.

It always starts from the original texts, so the result depends only on the current settings. Outputs keep their original in
``original``, prompts in their attributes. The settings are in ``Study.preparation``, which the design's hash covers.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from typing import Any

from django.db import transaction
from django.db.models import F

from studies import signals
from studies.access import Action, check_permission_or_404
from studies.models import Item, Output, Prompt, Study, audit
from studies.services import lifecycle
from studies.stimuli.normalising import (
    FilteredPrompt,
    NormalisedText,
    Preparation,
    PreparedText,
    normalise_text,
    per_prompt_filter_results,
    prepared_outputs,
)

ORIGINAL_KEY = "original_text"  # a prompt's attribute: its text before preparation
MAX_EXAMPLES = 10
CHUNK = 500


@dataclass(frozen=True)
class TextChange:
    """A text before and after preparation, for a person to compare."""

    what: str
    before: str
    after: str
    notes: tuple[str, ...] = ()


@dataclass
class PreparationReport:
    """The changes that a preparation makes or would make."""

    outputs: int = 0
    changed_outputs: int = 0
    changed_prompts: int = 0
    by_step: dict[str, int] = field(default_factory=dict)
    examples: list[TextChange] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    warnings_count: int = 0
    dropped: list[FilteredPrompt] = field(default_factory=list)
    dropped_by_filter: dict[str, int] = field(default_factory=dict)
    dropped_outputs: list[FilteredPrompt] = field(default_factory=list)
    dropped_outputs_by_system: dict[str, int] = field(default_factory=dict)
    is_written: bool = False

    @property
    def has_changes(self) -> bool:
        return bool(self.changed_outputs or self.changed_prompts or self.dropped or self.dropped_outputs)

    def changes_text(self) -> str:
        text = f"{self.changed_outputs:,} of {self.outputs:,} outputs and {self.changed_prompts:,} prompts"
        left_out = [
            f"{len(rows):,} {noun}{'' if len(rows) == 1 else 's'}"
            for rows, noun in ((self.dropped, "prompt"), (self.dropped_outputs, "output"))
            if rows
        ]
        return text + (f" ({' and '.join(left_out)} left out)" if left_out else "")

    def add_change(self, example: TextChange) -> None:
        for note in example.notes:
            self.by_step[note] = self.by_step.get(note, 0) + 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(example)

    def add_warnings(self, label: str, warnings: Iterable[str]) -> None:
        for warning in warnings:
            self.warnings_count += 1
            if len(self.warnings) < 100:
                self.warnings.append(f"{label}: {warning}")


def original_prompt_text(prompt: Prompt) -> str:
    """Return a prompt's text before preparation."""
    return prompt.attributes.get(ORIGINAL_KEY, prompt.text)


def preview_preparation(study: Study, settings: object) -> PreparationReport:
    """Return the report of ``prepare`` without changing anything. Raise SettingsRefused for invalid settings."""
    report = PreparationReport()
    preparation = Preparation.from_json(settings)
    _drop(study, preparation, report)
    dropped = {result.key for result in report.dropped}
    left_out = _drop_outputs(study, preparation, report, dropped)
    for _ in _changed_prompts(study, preparation, report, dropped):
        pass
    for _ in _changed_outputs(study, preparation, report, dropped, left_out):
        pass
    return report


@transaction.atomic
def prepare_stimuli_and_delete_dropped_prompts(
    study: Study, settings: object, *, by: Any, is_import: bool = False
) -> PreparationReport:
    """Prepare a draft's stimuli as declared. Raise SettingsRefused or ActionRefused; then nothing has changed.

    ``is_import``: it is part of the last transaction of an import.
    """
    check_permission_or_404(by, Action.EDIT, study)
    study = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
    if study.state != Study.State.DRAFT:
        raise lifecycle.ActionRefused("Stimuli can only be prepared in a draft. Clone the study.")
    preparation = Preparation.from_json(settings)
    stored = preparation.as_json() if preparation != Preparation() else {}
    if preparation == Preparation.from_json(study.preparation):
        stored = study.preparation  # equal settings can have different JSON: keep the stored JSON
    report = PreparationReport()
    _drop(study, preparation, report)
    _delete_prompts(study, report.dropped, is_import)
    _delete_outputs(study, _drop_outputs(study, preparation, report, set()), is_import)
    for chunk in _chunks(_changed_prompts(study, preparation, report, set())):
        Prompt.objects.bulk_update(chunk, ["text", "attributes"])
    for chunk in _chunks(_changed_outputs(study, preparation, report, set(), ())):
        Output.objects.bulk_update(chunk, ["text", "original"])
    if stored != study.preparation or report.has_changes:
        Study.objects.filter(pk=study.pk).update(preparation=stored, version=F("version") + 1)
        audit.record(
            "prepare stimuli",
            study=study,
            by=by,
            settings=stored,
            outputs=report.changed_outputs,
            prompts=report.changed_prompts,
            by_step=report.by_step,
            dropped=[[result.key, result.filter, result.reason] for result in report.dropped],
            dropped_outputs=[[result.key, result.filter, result.reason] for result in report.dropped_outputs],
        )
    report.is_written = True
    return report


def _chunks(rows: Iterable[Any]) -> Iterator[list[Any]]:
    rows = iter(rows)
    while chunk := list(islice(rows, CHUNK)):
        yield chunk


def _prompt_ids(study: Study) -> Iterator[list[int]]:
    """Yield the ids of prompts in chunks. No query stays open while rows are written, and memory holds one chunk's texts."""
    return _chunks(list(study.prompts.order_by("pk").values_list("pk", flat=True)))


def _drop(study: Study, preparation: Preparation, report: PreparationReport) -> None:
    if not preparation.prompt_filters:
        return
    texts = ((prompt.key, original_prompt_text(prompt)) for prompt in study.prompts.order_by("pk").iterator(CHUNK))
    report.dropped = [
        result for result in per_prompt_filter_results(texts, preparation.prompt_filters) if not result.passes
    ]
    for result in report.dropped:
        report.dropped_by_filter[result.filter] = report.dropped_by_filter.get(result.filter, 0) + 1


def _delete_prompts(study: Study, dropped: list[FilteredPrompt], is_import: bool) -> None:
    keys = [result.key for result in dropped]
    if keys:
        # Test runs refer to the prompts.
        signals.deleting_test_runs.send(Study, study=study, spares_imports=is_import)
    for start in range(0, len(keys), CHUNK):
        chunk_keys = keys[start : start + CHUNK]
        used = (
            Item.objects.filter(study=study, prompt__key__in=chunk_keys)
            .values_list("prompt__key", flat=True)
            .order_by("prompt__key")
        )
        if used:
            raise lifecycle.ActionRefused(
                f"The filters would remove the prompt {used[0]}, but it has items (ready-made batches, training, tests). "
                "Delete these items first, or change the filters."
            )
        Output.objects.filter(system__study=study, prompt__key__in=chunk_keys).delete()
        Prompt.objects.filter(study=study, key__in=chunk_keys).delete()


def _drop_outputs(
    study: Study, preparation: Preparation, report: PreparationReport, dropped: Collection[str]
) -> list[int]:
    """Return the ids of the outputs that a filter leaves out, by their original texts."""
    found = []
    for ids in _prompt_ids(study) if preparation.output_filters else ():
        rows = Output.objects.filter(prompt__in=ids, is_empty=False, media="").select_related("system", "prompt")
        for output in rows.exclude(prompt__key__in=dropped).order_by("prompt_id", "system__name", "sample"):
            texts = [(_label(output), output.original or output.text)]
            (result,) = per_prompt_filter_results(texts, preparation.output_filters)
            if not result.passes:
                found.append(output.pk)
                report.dropped_outputs.append(result)
                counts, system = report.dropped_outputs_by_system, output.system.name
                counts[system] = counts.get(system, 0) + 1
    return found


def _label(output: Output) -> str:
    return f"{output.system.name} on {output.prompt.key}" + (f", sample {output.sample}" if output.sample else "")


def _delete_outputs(study: Study, left_out: list[int], is_import: bool) -> None:
    if left_out:
        signals.deleting_test_runs.send(Study, study=study, spares_imports=is_import)
    for chunk in _chunks(left_out):
        rows = Output.objects.filter(pk__in=chunk)
        if used := rows.filter(exposures__isnull=False).select_related("system", "prompt").order_by("pk").first():
            raise lifecycle.ActionRefused(
                f"The filters would remove the output of {_label(used)}, but it has items (ready-made batches, training, tests). "
                "Delete these items first, or change the filters."
            )
        rows.delete()


def _changed_prompts(
    study: Study, preparation: Preparation, report: PreparationReport, dropped: set[str]
) -> Iterator[Prompt]:
    """Yield the prompts whose text changes, with the new text."""
    prompts = (prompt for ids in _prompt_ids(study) for prompt in study.prompts.filter(pk__in=ids).order_by("pk"))
    for prompt in prompts:
        if prompt.key in dropped:
            continue
        original = original_prompt_text(prompt)
        result: NormalisedText = normalise_text(original, preparation.normalisation)
        label = f"prompt {prompt.key}"
        report.add_warnings(label, [result.warning] if result.warning else [])
        if result.text == prompt.text:
            continue
        report.changed_prompts += 1
        report.add_change(TextChange(label, prompt.text, result.text, result.changed_by))
        prompt.text = result.text
        prompt.attributes = {name: value for name, value in prompt.attributes.items() if name != ORIGINAL_KEY}
        if result.text != original:
            prompt.attributes[ORIGINAL_KEY] = original
        yield prompt


def _changed_outputs(
    study: Study,
    preparation: Preparation,
    report: PreparationReport,
    dropped: set[str],
    left_out: Collection[int],
) -> Iterator[Output]:
    """Yield the outputs whose text changes, with the new text. All outputs of one prompt are read at once."""
    # Only prompts have tags at the start. In an output, "(Laughing) He ..." begins the story.
    preparation = replace(preparation, normalisation=replace(preparation.normalisation, leading_tag=False))
    item_ids = _items_by_output(study)
    rows = (
        Output.objects.filter(system__study=study, is_empty=False, media="")
        .select_related("system", "prompt")
        .order_by("prompt_id", "system__name", "sample")
    )
    read = (output for ids in _prompt_ids(study) for output in list(rows.filter(prompt__in=ids)))
    left_out = set(left_out)
    read = (output for output in read if output.pk not in left_out)
    for _, group in groupby(read, key=lambda output: output.prompt_id):
        outputs = list(group)
        if outputs[0].prompt.key in dropped:
            continue
        prepared = _prepared(outputs, item_ids, preparation)
        for output in outputs:
            report.outputs += 1
            result, original = prepared[output.pk], output.original or output.text
            label = _label(output)
            report.add_warnings(label, result.warnings)
            if result.text == output.text:
                continue
            report.changed_outputs += 1
            report.add_change(TextChange(label, output.text, result.text, result.notes))
            output.text, output.original = result.text, original if result.text != original else ""
            yield output


def _items_by_output(study: Study) -> Mapping[int, list[int]]:
    """Return the ids of existing items by output."""
    items: dict[int, list[int]] = {}
    rows = Item.objects.filter(study=study, exposures__isnull=False).values_list("pk", "exposures__output")
    for item, output in rows.iterator(2000):
        items.setdefault(output, []).append(item)
    return items


def _prepared(
    outputs: list[Output], together: Mapping[int, list[int]], preparation: Preparation
) -> dict[int, PreparedText]:
    """Return each output's text. Outputs of one item share a length; without items, those with the same sample number do."""
    groups: dict[tuple[str, int], dict[str, Output]] = {}
    for output in outputs:
        keys = [("item", item) for item in together.get(output.pk, ())] or [("sample", output.sample)]
        for key in keys:
            groups.setdefault(key, {})[output.system.name] = output
    shortest: dict[int, PreparedText] = {}
    for group in groups.values():
        texts = {system: output.original or output.text for system, output in group.items()}
        for system, result in prepared_outputs(texts, preparation).items():
            pk = group[system].pk
            # An output has one text in all its items: the shortest that any of them requires.
            if pk not in shortest or len(result.text) < len(shortest[pk].text):
                shortest[pk] = result
    return shortest
