"""What a reader may write first: the answer over all systems, and one paragraph of methods.

Everything is read from the design and from the report's own numbers, so that the paragraph says nothing that the report does not.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db.models import Count, Max

from analysis.protocols.blocks import Block, cells
from analysis.protocols.blocks.layouts import METHOD_NAMES, Table
from analysis.protocols.blocks.populations import population_of
from analysis.protocols.blocks.sentences import decided_comparisons, printed_conclusions
from analysis.protocols.blocks.systems import SystemOrder, answer_sentences, answer_tables
from analysis.protocols.kinds.answers import readable_scale
from annotators.counting import Use, select
from annotators.models import Recruitment
from annotators.recruitment.channels.thresholds import threshold_lines
from studies.design.subjects import question_topics, read_words_of_sections, words_of_section
from studies.models import Output, Section, Study
from studies.protocols import REGISTRY

# A sentence lists at most this number of names or questions, and counts more.
MAX_NAMED = 6
# A place in a question for the letter of an output.
PLACEHOLDER = re.compile(r"\{\w+\}")
ORIGIN_SENTENCES = {
    "robot": "The answers are simulated.",
    "imported": "The answers were collected elsewhere and read from files.",
    "test": "The answers are those of test runs.",
}


def read_system_orders(blocks: Sequence[Block]) -> list[SystemOrder]:
    """Return the orders of the systems that the conclusions are about, or all orders without conclusions."""
    orders = [(block.name, block.systems) for block in blocks if block.systems is not None]
    concluding = {name.partition(".")[0] for name, _ in printed_conclusions(blocks)}
    return [order for name, order in orders if not concluding or name.partition(".")[0] in concluding]


def build_answer(blocks: Sequence[Block]) -> tuple[dict[str, Any], list[Table]]:
    """Return the sentences over all systems, and the tables of the systems."""
    decided = decided_comparisons(blocks)
    orders = [replace(order, claims=tuple(decided.get(order.about, ()))) for order in read_system_orders(blocks)]
    return {"sentences": answer_sentences(orders, decided)}, answer_tables(orders)


def limits_of_claims(report: Mapping[str, Any], blocks: Sequence[Block]) -> list[str]:
    """Return what may not be written although a reader could think so: each completes "This report does not show that"."""
    origins = set(report["parameters"]["origins"])
    limits = ["people think so: robots answered"] if origins == {"robot"} else []
    found = [conclusion.estimate for _, conclusion in printed_conclusions(blocks)]
    for about, pairs in decided_comparisons(blocks).items():
        still_open = [f"{x} and {y}" for x, y, side in pairs if side == "?"]
        on = f" on {about}" if about else ""
        if len(still_open) > MAX_NAMED:
            limits.append(f"the systems of the {len(still_open)} open comparisons{on} are equally good")
        elif still_open:
            limits.append(f"{cells.listed(still_open, 'or')} are equally good{on}")
    populations = {population_of(one) for one in found if one.estimate is not None}
    if "people" in populations:
        limits.append("the results hold for other prompts than these")
    if "people and prompts" in populations:
        limits.append("the results hold for other kinds of people and prompts than those that were sampled")
    return limits


def methods_paragraph(study: Study, report: Mapping[str, Any], blocks: Sequence[Block]) -> str:
    """Return the methods in one paragraph: task, questions, systems, prompts, people, pay, exclusions and analysis."""
    sentences = [
        *_people_sentences(study, report),
        *material_sentences(study),
        *(task_sentence(section) for section in sections_with_items(study)),
        *_analysis_sentences(report, blocks),
    ]
    return " ".join(sentences)


def sections_with_items(study: Study) -> list[Section]:
    """Return the live sections in which people judge outputs, with their questions."""
    live = list(study.sections.filter(purpose=Section.Purpose.LIVE).prefetch_related("questions", "arms"))
    read_words_of_sections(live)
    return [section for section in live if section.protocol in REGISTRY and REGISTRY[section.protocol].has_items]


def _people_sentences(study: Study, report: Mapping[str, Any]) -> list[str]:
    flow, n, origins = report["flow"], report["n"], report["parameters"]["origins"]
    noun = "robot" if set(origins) == {"robot"} else "annotator"
    sentences = [f"{cells.format_count(n['submitted'], noun)} of {flow['arrived']} who came submitted their answers"]
    left_out = n["submitted"] - n["kept"]
    rules = [
        f"{step['label'].partition(':')[0]}, {step['n_excluded']}"
        for step in flow["rules"]
        if step["n_excluded"] and not step["is_outcome_blind"] and step["role"] != "sensitivity"
    ]
    if left_out:
        named = f" ({'; '.join(rules)})" if rules else ""
        sentences[0] += f"; rules that do not use outcomes excluded {left_out}{named}, so {n['kept']} are analysed."
    else:
        sentences[0] += ", and none of them was excluded."
    assignments = select(Use.RESULTS, study.assignments.all(), origins)
    doors = dict(assignments.values_list("recruitment").annotate(n=Count("pk")))
    came = Recruitment.objects.filter(pk__in=[door for door in doors if door]).order_by("pk")
    channels: dict[str, int] = {}
    for door in came if "live" in origins else ():
        channels[door.get_channel_display()] = channels.get(door.get_channel_display(), 0) + doors[door.pk]
    if channels:
        sentences.append(f"They came by {cells.listed([f'{name} ({n})' for name, n in channels.items()])}.")
        for name, words in dict.fromkeys(
            (door.get_channel_display(), "; ".join(f"{label}: {value}" for label, value in lines))
            for door in came
            if (lines := threshold_lines(door.settings))
        ):
            sentences.append(f"The link of {name} declared whom it wanted: {words}.")
        rewards = sorted(
            {
                (door.reward if door.reward is not None else study.reward, door.currency or study.currency)
                for door in came
            },
            key=str,
        )
        paid = [f"{reward} {currency}" for reward, currency in rewards if reward]
        if paid:
            minutes = f" for about {study.minutes} minutes" if study.minutes else ""
            sentences.append(f"One batch paid {cells.listed(paid, 'or')}{minutes}.")
        else:
            sentences.append("They were not paid through the study.")
    return [*sentences, *(ORIGIN_SENTENCES[one] for one in origins if one in ORIGIN_SENTENCES)]


def material_sentences(study: Study) -> list[str]:
    names = list(study.systems.filter(reference="").order_by("name").values_list("name", flat=True))
    prompts = study.prompts.count()
    if not names or not prompts:
        return []
    most = 1 + (Output.objects.filter(system__study=study).aggregate(last=Max("sample"))["last"] or 0)
    outputs = f", with up to {most} outputs each" if most > 1 else ""
    said = cells.listed(names) if len(names) <= MAX_NAMED else f"{len(names)} systems"
    return [f"The study compares {said} on {cells.format_count(prompts, 'prompt')}{outputs}."]


def task_sentence(section: Section) -> str:
    """Return what a section asked, in the words that annotators read, with the ends of the scale."""
    questions = [
        one for one in section.questions.all() if (scale := readable_scale(one)) and scale.answer_column != "text"
    ]
    topics = question_topics(questions)
    texts = [PLACEHOLDER.sub("…", " ".join((one.text or topics.get(one.key) or one.key).split())) for one in questions]
    # Questions about pairs have the same words, with other names.
    asked = [
        f"“{text}”{f' for each of {n} {noun}' if n > 1 else ''}{_ends_in_words(question)}"
        for question, text in zip(questions, texts, strict=True)
        if texts.index(text) == questions.index(question)
        and (n := texts.count(text))
        and (noun := "pairs" if question.x_id else "criteria")
    ]
    more = f"; and {len(asked) - MAX_NAMED} more questions" if len(asked) > MAX_NAMED else ""
    said = f" Asked: {'; '.join(asked[:MAX_NAMED])}{more}." if asked else ""
    name = re.sub(r" \([^)]*\)", "", words_of_section(section).name, count=1)
    name = re.sub(r"\bwith \d+ \w+", r"\g<0> for each annotator", name, count=1)
    return f"Task: {name}.{said}"


def _ends_in_words(question: Any) -> str:
    spec = readable_scale(question)
    if spec is None:
        return ""
    if spec.kind == "likert":
        points = sorted(spec.points, key=lambda point: int(point.key))
        low, high = points[0], points[-1]
        words = f": “{low.label}” to “{high.label}”" if low.label and high.label else ""
        return f" ({low.key} to {high.key}{words})"
    if spec.kind in ("percent", "continuous"):
        return f" ({spec.minimum} to {spec.maximum})"
    return ""


def _analysis_sentences(report: Mapping[str, Any], blocks: Sequence[Block]) -> list[str]:
    estimates = [conclusion.estimate for _, conclusion in printed_conclusions(blocks)]
    found = [one for one in estimates if one.estimate is not None]
    if not found:
        return []
    quantities = list(dict.fromkeys(one.estimand for one in found))
    intervals = list(
        dict.fromkeys(
            f"{METHOD_NAMES.get(one.interval.method, one.interval.method.replace('_', ' '))}"
            for one in found
            if one.interval
        )
    )
    populations = {population_of(one) for one in found}
    about = {
        "people and prompts": " over people and prompts, so they hold for others like these",
        "people": " over people, for exactly these prompts",
    }.get(" or ".join(populations), "")
    sentences = [f"Reported is the {cells.listed(quantities[:MAX_NAMED], 'or')}."]
    if intervals:
        level = f"{100 * report['parameters']['level']:g} %"
        sentences.append(f"Intervals have the level {level} (method: {cells.listed(intervals)}){about}.")
    families = {one.test.family for one in found if one.test and one.test.family}
    for family in report["families"]:
        if family["family"] in families and family["size"] > 1:
            method = cells.ADJUSTMENT_NAMES[family["adjust"]][1]
            sentences.append(f"The {family['size']} tests of the family “{family['family']}” are adjusted by {method}.")
    # Invented answers are those of a copy, whose design nobody reads.
    versions = report["design"]["versions"]
    if versions and report["parameters"]["origins"] != ["robot"]:
        when = "was frozen before the answers came" if report["confirmatory"]["is_confirmatory"] else "is frozen"
        sentences.append(f"The design {when} (SHA-256 {versions[-1]['sha256'][:12]}).")
    return sentences
