"""Practice items of training sections. They are made in the draft, with their expected answers and explanations.

A practice item's prompt is never shown in sections that count (studies.design.draw), because annotators know the truth about it.
"""

from collections.abc import Mapping, Sequence

from django.db.models import Max

from studies.design.draw import item_content_hash
from studies.models import FIRST_TEST_NUMBER, Expected, Exposure, Item, Output, Section
from studies.protocols import REGISTRY

from . import drafts
from .lifecycle import ActionRefused


def create_practice_item_and_delete_test_runs(
    section: Section, outputs: Sequence[Output], explanation: str = "", given: Mapping[str, str] | None = None, *, by
) -> Item:
    """Make an item from these outputs of one prompt.

    ``given``: the expected answers by question key, where the protocol does not find them itself. Ranges are about the first
    output.
    """
    with drafts.locked_draft(section.study_id, by, deletes_test_runs=True) as study:
        item = _build_item(section, outputs, explanation, given or {})
        drafts.record_edit_and_raise_version(
            study, by, made=f"practice item {item.number} of section {section.position}"
        )
    return item


def _build_item(section: Section, outputs: Sequence[Output], explanation: str, given: Mapping[str, str]) -> Item:
    if section.purpose != Section.Purpose.TRAINING:
        raise ActionRefused("Only training sections can have practice items. Choose a training section.")
    if not outputs:
        raise ActionRefused("No text is chosen. Choose at least one.")
    prompts = {output.prompt_id for output in outputs}
    if len(prompts) > 1:
        raise ActionRefused("The texts have different prompts. Choose texts of the same prompt.")
    if len({output.pk for output in outputs}) < len(outputs):
        raise ActionRefused("The same text is chosen twice. Choose two different texts.")
    authors = [(output.system.name, output.system.is_human) for output in outputs]
    protocol = REGISTRY[section.protocol]
    if not protocol.practice_answers:
        raise ActionRefused(
            "This protocol has no expected answers, so it cannot have practice items. Use another protocol."
        )
    try:
        truths = protocol.expected_practice_answers(section, authors, given)
    except ValueError as refused:
        raise ActionRefused(str(refused)) from None
    questions = {question.key: question for question in section.questions.all()}
    (prompt,) = prompts
    content = item_content_hash(prompt, [output.pk for output in outputs], Item.Kind.PRACTICE)
    if section.items.filter(content=content).exists():
        raise ActionRefused("This practice item already exists. Choose other texts.")
    numbers = section.items.filter(number__lt=FIRST_TEST_NUMBER).aggregate(last=Max("number"))
    item = Item.objects.create(
        study_id=section.study_id,
        section=section,
        number=(numbers["last"] or 0) + 1,
        prompt_id=prompt,
        kind=Item.Kind.PRACTICE,
        content=content,
    )
    # By name, so that the place of an output on the page does not show which one the answer is about.
    places = {pk: n for n, pk in enumerate(o.pk for o in sorted(outputs, key=lambda output: output.system.name))}
    exposures = [Exposure.objects.create(item=item, output=output, number=places[output.pk]) for output in outputs]
    is_about_one = protocol.practice_answers == "points"
    for key, truth in truths.items():
        exposure, (low, high) = (exposures[truth], (None, None)) if isinstance(truth, int) else (None, truth)
        Expected.objects.create(
            item=item,
            question=questions[key],
            explanation=explanation,
            exposure=exposure,
            low=low,
            high=high,
            about=exposures[0] if is_about_one and low is not None and len(exposures) > 1 else None,
        )
    return item


def delete_practice_item_and_test_runs(item: Item, by) -> None:
    """Delete a practice item of a draft."""
    with drafts.locked_draft(item.study_id, by, deletes_test_runs=True) as study:
        item_text = f"practice item {item.number} of section {item.section.position}"
        drafts.delete_item_with_exposures_and_expected(item)
        drafts.record_edit_and_raise_version(study, by, deleted=item_text)
