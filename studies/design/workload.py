"""Compute the workload of a batch: what one annotator reads and answers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from studies.models import Batch, Exposure, Item, Output, Placement, Study
from studies.protocols import REGISTRY, UnfillableBatch
from studies.stimuli.texts import reading_minutes, word_count

from .draw import draw_batches, items_shown_again


@dataclass(frozen=True, slots=True)
class SectionWorkload:
    """What one section shows and asks in a batch. Answers that do not depend on the number of items are in ``fixed_answers``."""

    prompt_words: int
    output_words: int
    outputs: int
    answers: int
    fixed_answers: int


@dataclass(frozen=True, slots=True)
class BatchWorkload:
    """The work in one batch for one annotator, with that of its sections by id."""

    batch: str
    words: int
    questions: int
    minutes: float
    per_hour: float | None
    sections: dict[int, SectionWorkload]

    @property
    def minutes_text(self) -> str:
        return minutes_text(self.minutes)


def minutes_text(minutes: float) -> str:
    """Return minutes with one decimal, rounded in the same way on all pages.

    >>> minutes_text(5.05), minutes_text(5.04996), minutes_text(11.8)
    ('5.1', '5.1', '11.8')
    """
    return f"{round(minutes, 3) + 1e-6:.1f}"


def median_workload(workloads: Sequence[BatchWorkload]) -> BatchWorkload | None:
    """Return the workload of the median batch by minutes: what the pages call the minutes of the design. None without batches."""
    by_minutes = sorted(workloads, key=lambda burden: burden.minutes)
    return by_minutes[(len(by_minutes) - 1) // 2] if by_minutes else None


def mean_reward(study: Study) -> Decimal | None:
    """Return the mean reward of the arms for one batch, or None if an arm has none."""
    rewards = [arm.reward if arm.reward is not None else study.reward for arm in study.arms.all()]
    paid = [Decimal(reward) for reward in rewards if reward is not None]
    return sum(paid, Decimal()) / len(paid) if paid and len(paid) == len(rewards) else None


def reward_per_hour(reward: Decimal, minutes: int) -> Decimal:
    """Return the hourly rate of a reward.

    >>> reward_per_hour(Decimal("1.25"), 10)
    Decimal('7.50')
    """
    return (reward * 60 / minutes).quantize(Decimal("0.01"))


def low_pay_text(study: Study) -> str:
    """Return by how much the study pays less than it aims at, or '' if it pays enough, or pays nobody."""
    if not (study.reward and study.minutes and study.wage_per_hour):
        return ""
    hourly = reward_per_hour(Decimal(study.reward), study.minutes)
    wage = Decimal(study.wage_per_hour)
    if hourly >= wage:
        return ""
    return (
        f"{Decimal(study.reward):.2f} {study.currency} for {study.minutes} minutes is {hourly} {study.currency} an hour, less than the "
        f"{wage:.2f} that you aim at. Raise the pay for one person, or lower the aim."
    )


def _is_test_question(item_and_kind: tuple[int, str]) -> bool:
    return item_and_kind[1] == Item.Kind.TEST


def estimate_stored_or_trial_batch_workloads(study: Study, unsaved_batches=None) -> list[BatchWorkload]:
    """Return the workload of each batch, smallest first: words at the study's reading speed, plus 15 seconds per question.

    All texts shown count, also planted references, because annotators read and judge them too.

    ``unsaved_batches``: batches that are not stored yet (preview of a draft's first batches). The default is the stored ones.
    """
    if unsaved_batches is None and study.batches.exclude(origin=Batch.Origin.TEST).exists():
        rows: Iterable[tuple[int, int, int, int, str, int, int]] = (
            Placement.objects.filter(batch__study=study, item__retired_in=None)
            .exclude(batch__origin=Batch.Origin.TEST)
            .order_by("batch__number", "number")
            .values_list(
                "batch__number",
                "batch__arm_id",
                "item__section_id",
                "item_id",
                "item__kind",
                "item__prompt_id",
                "item__exposures__output_id",
            )
        )
        top_up = set(study.batches.filter(origin=Batch.Origin.TOP_UP).values_list("number", flat=True))
    else:
        if unsaved_batches is None:
            try:
                unsaved_batches = draw_batches(
                    study, 0, min(200, -(-(study.target_n or 20) // study.annotators_per_batch))
                )
            except UnfillableBatch:
                return []
        outputs_of_made_items: dict[int, list[tuple[int, int]]] = {}
        for item, prompt, output in Exposure.objects.filter(
            item__study=study, item__kind__in=[Item.Kind.PRACTICE, Item.Kind.TEST]
        ).values_list("item_id", "item__prompt_id", "output_id"):
            outputs_of_made_items.setdefault(item, []).append((prompt, output))
        rows = [
            (batch.number, batch.arm_id, section, item_number, item.kind, prompt, output)
            for batch in unsaved_batches
            for item_number, (section, item) in enumerate(batch.items)
            for prompt, output in (
                outputs_of_made_items[item.item]
                if item.item is not None
                else [(item.prompt, output_id) for output_id in item.outputs]
            )
        ]
        top_up = set()
    output_words = {
        pk: word_count(text) for pk, text in Output.objects.filter(system__study=study).values_list("pk", "text")
    }
    prompt_words = {
        pk: word_count(text) + word_count(source)
        for pk, text, source in study.prompts.values_list("pk", "text", "source")
    }
    n_words: dict[tuple[int, int], int] = {}
    prompts: dict[tuple[int, int], set[int]] = {}
    # Words of outputs and the prompts, by batch and section.
    section_words: dict[tuple[int, int, int], int] = {}
    section_prompts: dict[tuple[int, int, int], set[int]] = {}
    # Number of outputs shown, by batch, section and item with its kind, in the order of the batch.
    n_outputs_shown: dict[tuple[int, int], dict[int, dict[tuple[int, str], int]]] = {}
    for number, arm, section, item, kind, prompt, output in rows:
        n_words[number, arm] = n_words.get((number, arm), 0) + output_words.get(output, 0)
        prompts.setdefault((number, arm), set()).add(prompt)
        section_words[number, arm, section] = section_words.get((number, arm, section), 0) + output_words.get(output, 0)
        section_prompts.setdefault((number, arm, section), set()).add(prompt)
        counts = n_outputs_shown.setdefault((number, arm), {}).setdefault(section, {})
        counts[item, kind] = counts.get((item, kind), 0) + 1
    asking_sections = [
        (section, protocol, {arm.pk for arm in section.arms.all()})
        for section in study.read_sections()
        if (protocol := REGISTRY.get(section.protocol))
    ]
    rewards = {arm.pk: arm.reward if arm.reward is not None else study.reward for arm in study.arms.all()}

    def section_workloads(number: int, arm: int) -> dict[int, SectionWorkload]:
        """Return the work of each section that asks. A top-up batch has the items of one section and nothing else."""
        found = {}
        for section, protocol, arms in asking_sections:
            if (arms and arm not in arms) or (number in top_up and not protocol.has_items):
                continue
            shown = n_outputs_shown[number, arm].get(section.reuses_id or section.pk, {})
            again = items_shown_again(shown, section.m, _is_test_question) if section.reuses_id else shown
            items = [shown[item] for item in again]
            answers = protocol.count_answers(section, items)
            own = (number, arm, section.pk)
            found[section.pk] = SectionWorkload(
                sum(prompt_words[prompt] for prompt in section_prompts.get(own, ())),
                section_words.get(own, 0),
                0 if section.reuses_id else sum(items),
                answers,
                # With one item more, as many answers: they come at the end.
                answers if protocol.count_answers(section, items * 2) == answers else 0,
            )
        return found

    workloads = []
    for (number, arm), n in n_words.items():
        total = n + sum(prompt_words[prompt] for prompt in prompts[number, arm])
        parts = section_workloads(number, arm)
        questions = sum(part.answers for part in parts.values())
        minutes = reading_minutes(total, study.words_per_minute) + questions / 4
        reward = rewards.get(arm)
        workloads.append(
            BatchWorkload(
                str(number),
                total,
                questions,
                minutes,
                float(reward) * 60 / minutes if reward is not None and minutes else None,
                parts,
            )
        )
    return sorted(workloads, key=lambda burden: (burden.words, burden.batch))
