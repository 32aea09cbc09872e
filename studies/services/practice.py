"""Practice items of training sections: made in the draft, with what they should be answered and why.

A practice item's prompt is shown to nobody where it counts (studies.design.draw): who was told the truth about it has nothing to guess.
"""

from collections.abc import Sequence

from django.db.models import Max

from studies.design.draw import content_of
from studies.models import TEST_NUMBERS, Expected, Exposure, Item, Output, Section
from studies.protocols import REGISTRY

from . import drafts
from .lifecycle import NotNow


def make_practice(section: Section, outputs: Sequence[Output], explanation: str = "", *, by) -> Item:
    """An item of these outputs of one prompt, in this order. The protocol says what it should be answered."""
    with drafts.editing(section.study_id, by, clears_tries=True) as study:
        item = _made(section, outputs, explanation)
        drafts.edited(study, by, made=f"practice item {item.number} of section {section.position}")
    return item


def _made(section: Section, outputs: Sequence[Output], explanation: str) -> Item:
    if section.purpose != Section.Purpose.TRAINING:
        raise NotNow("Practice items belong to training sections.")
    if not outputs:
        raise NotNow("Choose a text.")
    prompts = {output.prompt_id for output in outputs}
    if len(prompts) > 1:
        raise NotNow("The texts of one practice item answer one prompt.")
    if len({output.pk for output in outputs}) < len(outputs):
        raise NotNow("Choose two different texts.")
    authors = [(output.system.name, output.system.is_human) for output in outputs]
    try:
        truths = REGISTRY[section.protocol].practice(section, authors)
    except ValueError as refused:
        raise NotNow(str(refused)) from None
    if not truths:
        raise NotNow("This protocol has no practice items: nothing says what they should be answered.")
    questions = {question.key: question for question in section.questions.all()}
    (prompt,) = prompts
    content = content_of(prompt, [output.pk for output in outputs], Item.Kind.PRACTICE)
    if section.items.filter(content=content).exists():
        raise NotNow("There is such a practice item already.")
    numbers = section.items.filter(number__lt=TEST_NUMBERS).aggregate(last=Max("number"))
    item = Item.objects.create(
        study_id=section.study_id,
        section=section,
        number=(numbers["last"] or 0) + 1,
        prompt_id=prompt,
        kind=Item.Kind.PRACTICE,
        content=content,
    )
    exposures = [Exposure.objects.create(item=item, output=output, number=n) for n, output in enumerate(outputs)]
    for key, truth in truths.items():
        is_place = isinstance(truth, int)
        Expected.objects.create(
            item=item,
            question=questions[key],
            explanation=explanation,
            exposure=exposures[truth] if is_place else None,
            low=None if is_place else truth[0],
            high=None if is_place else truth[1],
        )
    return item


def delete_practice(item: Item, by) -> None:
    """Take a practice item out of a draft."""
    with drafts.editing(item.study_id, by, clears_tries=True) as study:
        about = f"practice item {item.number} of section {item.section.position}"
        drafts.remove_practice(item)
        drafts.edited(study, by, deleted=about)
